"""`fleet hosts`: declaring machines, probing them, and what is known of each, with a real sshd."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.away import reach
from tests.support.cli import Cli
from tests.support.sshd import Sshd, sshd


@pytest.fixture(scope="module")
def server() -> Iterator[Sshd]:
    """A machine over there."""
    with sshd() as server:
        yield server


@pytest.fixture
def cli(tmp_path: Path, server: Sshd) -> Iterator[Cli]:
    """A person with a home, whose supervisor ends with the test."""
    cli = Cli(tmp_path)
    cli.env |= {"XDG_RUNTIME_DIR": str(server.directory)}
    cli.ok("init")
    yield cli
    cli.run("run", "stop")


def words(server: Sshd, directory: Path, **fields: str) -> list[str]:
    """The fields of a host, as `fleet hosts add` takes them."""
    return [f"{name}={value}" for name, value in reach(server, directory, **fields).items() if name != "kind"]


def test_a_host_is_added_probed_and_removed(cli: Cli, server: Sshd, tmp_path: Path) -> None:
    """It stands in fleet.toml, with the comments around it as they were; its probe is kept and shown."""
    before = cli.home.toml.read_text()
    cli.ok(
        "hosts",
        "add",
        "builder-1",
        *words(server, tmp_path / "far"),
        "capabilities=linux,gpu",
        "max_concurrent_tasks=3",
    )
    assert cli.home.toml.read_text().startswith(before)
    unknown = json.loads(cli.ok("hosts", "--json").out)[1]
    assert (unknown["name"], unknown["state"], unknown["slots"]) == ("builder-1", "unknown", 3)
    (probed,) = json.loads(cli.ok("hosts", "probe", "builder-1", "--json").out)
    assert (probed["state"], probed["evidence"]) == ("up", "it answered, and has what sessions need")
    known = json.loads(cli.ok("hosts", "list", "--json").out)[1]
    assert (known["state"], known["capabilities"], known["sessions"]) == ("up", ["gpu", "linux"], 0)
    assert cli.ok("hosts").lines[2].split()[:3] == ["builder-1", "ssh", "up"]
    cli.ok("hosts", "remove", "builder-1")
    assert cli.home.toml.read_text().rstrip() == before.rstrip()
    assert len(json.loads(cli.ok("hosts", "--json").out)) == 1


def test_what_a_probe_finds_wrong(cli: Cli, server: Sshd, tmp_path: Path) -> None:
    """The exit code is 1, and the evidence says what is missing, or that nobody answered."""
    far = tmp_path / "far"
    cli.ok("hosts", "add", "fit", *words(server, far))
    cli.ok("hosts", "add", "bare", *words(server, far, agent_binary="no-such-agent"))
    cli.ok("hosts", "add", "lost", *words(server, far, working_directory=str(tmp_path / "nowhere")))
    cli.ok("hosts", "add", "away", *words(server, far, port="1"))
    done = cli.run("hosts", "probe")
    assert done.code == 1
    said = dict(line.split(": ", 1) for line in done.lines)
    assert said["fit"].startswith("up in ")
    assert "there is no program no-such-agent" in said["bare"]
    assert f"there is no directory {tmp_path / 'nowhere'}" in said["lost"]
    assert "cannot reach host 127.0.0.1" in said["away"]


def test_a_host_that_drains(cli: Cli, server: Sshd, tmp_path: Path) -> None:
    """It takes no new work until it is resumed; what it was told outlives its probes."""
    cli.home.toml.write_text('[supervisor]\ncoder = "command"\n')
    cli.ok("hosts", "add", "builder-1", *words(server, tmp_path / "far"), "capabilities=gpu")
    assert "takes no new work" in cli.ok("hosts", "drain", "builder-1").out
    cli.ok("hosts", "probe")
    spec = {"id": "t", "command": "pwd", "worker": {"capabilities": ["gpu"]}}
    run = {"workers": [{"id": "w", "host": "builder-1", "capabilities": ["gpu"]}], "tasks": [spec]}
    (cli.cwd / "run.json").write_text(json.dumps(run))
    made = cli.ok("run", "run.json", "--detach").out.strip()
    assert json.loads(cli.ok("hosts", "--json").out)[1]["draining"] is True
    assert len(json.loads(cli.ok("ready", "--json").out)) == 1
    assert "takes work again" in cli.ok("hosts", "resume", "builder-1").out
    cli.ok("wait", made)


def test_words_that_are_refused(cli: Cli, server: Sshd, tmp_path: Path) -> None:
    """Nothing is written where a field is unknown, missing or wrong, a name is taken, or a host is not there."""
    cli.ok("hosts", "add", "b", *words(server, tmp_path / "far"))
    before = cli.home.toml.read_text()
    for argv, code, said in (
        (["add", "c", "colour=red"], 2, "a host has no field `colour`"),
        (["add", "c", "host"], 2, "expected FIELD=VALUE"),
        (["add", "c", "host=h"], 2, "error: an ssh host needs working_directory=..., agent_binary=...\n"),
        (["add", "c", "kind=stone"], 2, 'error: kind: expected "local", "ssh" or "sprite", found "stone"\n'),
        (["add", "c", "host=-oProxyCommand=x", "working_directory=/w", "agent_binary=a"], 2, "host"),
        (["add", "b", *words(server, tmp_path / "far")], 1, "there is a host `b` already"),
        (["remove", "c"], 4, "no host `c`"),
        (["probe", "c"], 4, "no host `c`"),
        (["drain", "c"], 4, "no host `c`"),
    ):
        done = cli.run("hosts", *argv)
        assert (done.code, said in done.err) == (code, True), (argv, done)
    assert cli.home.toml.read_text() == before
