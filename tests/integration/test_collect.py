"""Files that a session left: found where they are, never out of their place, kept by content, within bounds."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import subprocess
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from fleet.errors import TransportError
from fleet.hosts.collect import Bounds, Collector, Shelf
from fleet.hosts.files import Looked, Places, Seen, look
from fleet.hosts.git import commit
from fleet.hosts.local import LocalTransport
from fleet.hosts.transport import Completed
from tests.support.programs import need
from tests.support.session_host import SHELLS, shell_named

T = TypeVar("T")


def do(work: Coroutine[Any, Any, T]) -> T:
    """Run to its end, within a deadline."""

    async def bounded() -> T:
        async with asyncio.timeout(30):
            return await work

    return asyncio.run(bounded())


class Site:
    """A workspace and an artifact directory, on this machine."""

    def __init__(self, path: Path) -> None:
        self.workspace = path / "work space"
        self.artifacts = path / "artifacts"
        self.outside = path / "outside"
        for directory in (self.workspace, self.artifacts, self.outside):
            directory.mkdir()
        reference = path / "launch"
        reference.write_text("")
        os.utime(reference, (1_000_000, 1_000_000))
        self.places = Places(artifacts=str(self.artifacts), workspace=str(self.workspace), reference=str(reference))
        self.shelf = Shelf(path / "kept")

    def look(self, *paths: str) -> Looked:
        """What a look finds."""
        return do(look(LocalTransport(), self.places, paths))

    def kinds(self, *paths: str) -> list[str]:
        """What stands at each path."""
        return [found[0].kind for found in self.look(*paths).asked]

    def collector(self, transport: LocalTransport | None = None, **bounds: int) -> Collector:
        """Keeps files of this place."""
        return Collector(transport or LocalTransport(), self.shelf, Bounds(**bounds))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A place with nothing in it."""
    return Site(tmp_path)


@pytest.fixture(params=sorted(SHELLS))
def each_shell(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The word sh stands for each shell in turn."""
    program, *rest = shell_named(request.param)
    found = shutil.which(program)
    assert found is not None
    directory = tmp_path / "bin"
    directory.mkdir()
    (directory / "sh").symlink_to(found)
    assert rest in ([], ["sh"])
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")


@pytest.mark.usefixtures("each_shell")
def test_what_stands_at_a_path(site: Site) -> None:
    """Files are found through links that stay inside; whatever leads out is told from what is missing."""
    (site.workspace / "file").write_text("content")
    (site.workspace / "empty dir").mkdir()
    (site.workspace / "deep").mkdir()
    (site.workspace / "deep" / "er").write_text("1")
    (site.outside / "secret").write_text("secret")
    (site.workspace / "inner link").symlink_to("file")
    (site.workspace / "outer link").symlink_to(site.outside / "secret")
    (site.workspace / "outer dir").symlink_to(site.outside)
    (site.workspace / "circle").symlink_to("circle")
    (site.artifacts / "report.md").write_text("r")
    os.mkfifo(site.workspace / "pipe")
    asked = {
        "file": "file",
        "inner link": "file",
        str(site.workspace / "file"): "file",
        str(site.artifacts / "report.md"): "file",
        "deep/er": "file",
        "empty dir": "directory",
        "pipe": "other",
        "missing": "absent",
        "missing/too": "absent",
        "outer link": "outside",
        "outer dir/secret": "outside",
        "outer dir": "outside",
        "circle": "outside",
        str(site.outside / "secret"): "outside",
        "../outside/secret": "outside",
        "/etc/passwd": "outside",
        "": "outside",
        "nul\0": "outside",
    }
    assert dict(zip(asked, site.kinds(*asked), strict=True)) == asked


@pytest.mark.usefixtures("each_shell")
def test_the_artifact_directory_is_listed(site: Site) -> None:
    """Every file at any depth, by any name, with its size and whether this session wrote it; no link is followed."""
    names = ["report.md", "sub/a b", "sub/new\nline", "sub/日本", ".hidden", "-rf", "sub/' \" $x"]
    for name in names:
        path = site.artifacts / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    old = site.artifacts / "old"
    old.write_text("")
    os.utime(old, (999_999, 999_999))
    (site.artifacts / "link").symlink_to("/etc/passwd")
    (site.artifacts / "linked").symlink_to(site.outside)
    (site.outside / "secret").write_text("secret")
    found = {Path(seen.path).relative_to(site.artifacts): seen for seen in site.look().artifacts}
    assert {str(name) for name in found} == {*names, "old"}
    assert all(seen.fresh is (name != Path("old")) for name, seen in found.items())
    assert all(seen.size == len(str(name).encode()) for name, seen in found.items() if seen.fresh)


@pytest.mark.usefixtures("each_shell")
def test_a_directory_that_has_no_end_hides_nothing_else(site: Site) -> None:
    """Where there are more files than can be listed, what was asked for is found all the same, and it is said."""
    for n in range(6000):
        (site.artifacts / f"{n:0200}").touch()
    (site.workspace / "wanted").write_text("here")
    looked = site.look(".", "wanted")
    assert looked.cut_off
    assert [found[0].kind for found in looked.asked] == ["directory", "file"]
    assert 1000 < len(looked.artifacts) < 6000


def test_what_is_not_there_costs_no_process(site: Site) -> None:
    """A session that left nothing, and of which nothing is asked, is looked at without a program."""

    class NoPrograms(LocalTransport):
        async def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> Any:
            raise AssertionError(f"{argv} was run")

    assert do(look(NoPrograms(), site.places)).artifacts == ()
    site.artifacts.rmdir()
    assert do(look(NoPrograms(), site.places)).artifacts == ()


def test_silence_is_not_absence(site: Site) -> None:
    """A host that does not answer is an error, never a file that is missing."""

    class Silent(LocalTransport):
        async def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> Any:
            raise TransportError("no route")

    with pytest.raises(TransportError):
        do(look(Silent(), site.places, ["x"]))


def test_a_file_is_kept_by_its_content(site: Site) -> None:
    """Kept under its sha256, once, and not writable; asked for again, nothing is written."""
    data = os.urandom(3 << 20)
    (site.artifacts / "a").write_bytes(data)
    (site.artifacts / "b").write_bytes(data)
    collector = site.collector()
    kept = [do(collector.keep(seen)) for seen in site.look().artifacts]
    name = hashlib.sha256(data).hexdigest()
    assert {(one.sha256, one.size, one.note) for one in kept} == {(name, len(data), "")}
    files = [path for path in site.shelf.root.rglob("*") if path.is_file()]
    assert files == [site.shelf.root / name[:2] / name]
    assert files[0].stat().st_mode & 0o777 == 0o400
    assert site.shelf.read(name) == data


def test_what_exceeds_a_bound_is_not_kept_and_said(site: Site) -> None:
    """A file that is too large, too many files and too much in all are left out, each with its reason."""
    for n, size in enumerate((10, 101, 60, 60, 1)):
        (site.artifacts / str(n)).write_bytes(bytes([n]) * size)
    seen = sorted(site.look().artifacts, key=lambda one: one.path)

    async def keep(collector: Collector) -> list[str]:
        return [(await collector.keep(one)).note for one in seen]

    assert do(keep(site.collector(most_bytes=100))) == ["", "larger than 100 bytes", "", "", ""]
    assert do(keep(site.collector(most_bytes_of_all=100)))[3] == "larger than 30 bytes"
    assert do(keep(site.collector(most_files=2))) == ["", ""] + ["more than 2 files"] * 3


@pytest.mark.parametrize("times", [1, 99])
@pytest.mark.parametrize("mode", ["ab", "r+b"])
def test_a_file_that_changes_while_it_is_read(site: Site, times: int, mode: str) -> None:
    """One that changed once is read again; one that never rests is kept as it was read, and that is said."""
    path = site.artifacts / "restless"
    path.write_bytes(b"x" * (3 << 20))

    class Restless(LocalTransport):
        left = times

        async def get(self, path: str, *, offset: int = 0, limit: int = 1 << 20) -> bytes:
            data = await super().get(path, offset=offset, limit=limit)
            if offset == 1 << 20 and self.left:
                self.left -= 1
                with open(path, mode) as file:
                    file.write(b"%d" % self.left)
            return data

    (seen,) = site.look().artifacts
    kept = do(site.collector(Restless()).keep(seen))
    assert kept.sha256 is not None
    assert len(site.shelf.read(kept.sha256)) == kept.size
    assert kept.note == ("" if times == 1 else "it changed while it was read")
    if times == 1:
        assert site.shelf.read(kept.sha256) == path.read_bytes()


def test_a_file_that_cannot_be_read_is_not_a_host_that_is_silent(site: Site) -> None:
    """A file that may not be read is left out, with the reason; where it could be read, the host is asked again."""
    (site.artifacts / "mine").write_text("x")
    (seen,) = site.look().artifacts

    class Refusing(LocalTransport):
        code = 1

        async def get(self, path: str, *, offset: int = 0, limit: int = 1 << 20) -> bytes:
            raise TransportError("cannot read it")

        async def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> Completed:
            return Completed(self.code, b"", b"")

    kept = do(site.collector(Refusing()).keep(seen))
    assert (kept.sha256, kept.note) == (None, "it cannot be read")
    silent = Refusing()
    silent.code = 0
    with pytest.raises(TransportError):
        do(site.collector(silent).keep(seen))


def test_a_name_that_is_no_sha256_is_no_path(site: Site) -> None:
    """What is not a sha256 cannot be looked up: it could be a way out."""
    for name in ("../../etc/passwd", "a" * 63, "G" * 64, ""):
        with pytest.raises(ValueError, match="is no sha256"):
            site.shelf.path(name)


def test_the_commit_of_a_workspace(site: Site, tmp_path: Path) -> None:
    """The commit that is checked out, from anywhere within, through links, in a worktree; none where there is none."""
    git = need("git", shutil.which("git"), "install git")

    def call(*words: str, at: Path = site.workspace) -> str:
        argv = [git, "-C", str(at), "-c", "user.name=x", "-c", "user.email=x@y", *words]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()

    def found(at: Path) -> str | None:
        return do(commit(LocalTransport(), str(at)))

    assert found(site.outside / "missing") is None
    call("init", "-q")
    assert found(site.workspace) is None
    call("commit", "-q", "--allow-empty", "-m", "x")
    first = call("rev-parse", "HEAD")
    (site.workspace / "sub").mkdir()
    (site.outside / "link").symlink_to(site.workspace / "sub")
    assert [found(at) for at in (site.workspace, site.workspace / "sub", site.outside / "link")] == [first] * 3
    call("worktree", "add", "-q", str(tmp_path / "tree"))
    call("commit", "-q", "--allow-empty", "-m", "y", at=tmp_path / "tree")
    assert found(tmp_path / "tree") == call("rev-parse", "HEAD", at=tmp_path / "tree") != first
    call("pack-refs", "--all")
    assert found(site.workspace) == first
    call("checkout", "-q", "--detach")
    assert found(site.workspace) == first


def test_what_is_no_repository_costs_no_process(site: Site) -> None:
    """That a directory is in no repository is seen without a program; so is the commit of a plain one."""

    class NoPrograms(LocalTransport):
        async def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> Any:
            raise AssertionError(f"{argv} was run")

    assert do(commit(NoPrograms(), str(site.workspace))) is None
    subprocess.run("git init -q . && git -c user.name=x -c user.email=x@y commit -q --allow-empty -m x",
                   shell=True, check=True, cwd=site.workspace)  # fmt: skip
    assert do(commit(NoPrograms(), str(site.workspace))) is not None


def test_the_reference_is_the_measure_of_freshness(site: Site) -> None:
    """A file that is as old as the session counts as its own; one that is older does not."""
    for name, at in (("same", 1_000_000), ("older", 999_999), ("newer", 1_000_001)):
        (site.workspace / name).write_text("")
        os.utime(site.workspace / name, (at, at))
    found: list[Seen] = [each[0] for each in site.look("same", "older", "newer").asked]
    assert [seen.fresh for seen in found] == [True, False, True]
