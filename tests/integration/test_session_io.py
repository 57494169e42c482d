"""What goes into a session and what comes out: prompts, words, secrets, output, requests; and a disk that is full."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from fleet.errors import Conflict, HostFull, NotStarted
from fleet.hosts.facts import Cause, HostState
from fleet.hosts.launch_file import Rules
from fleet.hosts.lines import LONGEST_LINE
from fleet.hosts.outbox import Request
from fleet.hosts.session import HostedSession
from fleet.model.launch import Launch
from tests.support.programs import need
from tests.support.session_fixtures import under_each_shell, under_sh  # noqa: F401  # fixtures
from tests.support.session_host import QUICK, SessionHost, do, no_root, processes_with, until

SECRET = f"s3cr3t-{uuid4().hex}'\"$(id)\n`x`-\\-value"  # nobody else's: the whole machine is looked through for it
ANY_BYTES = os.fsdecode(bytes(range(1, 256)))


def test_a_large_prompt_on_stdin(host: SessionHost) -> None:
    """A prompt of 300 KB arrives on stdin to the last byte."""
    prompt = "äöü 0123456789\n" * 20_000
    session = host.started("exec sha256sum", prompt=prompt, prompt_on_stdin=True)
    host.ended(session)
    assert len(prompt.encode()) > 300_000
    assert host.file(session, "stdout").read_text().split()[0] == hashlib.sha256(prompt.encode()).hexdigest()


def test_words_of_any_bytes(host: SessionHost) -> None:
    """Arguments and variables arrive whatever bytes are in them: breaks, quotes, dashes, blanks, no letters at all."""
    words = ("", "-n", "--", "a b", "it's", '"', "$HOME", "`id`", "$(id)", "x\ny\n", "\\", "*", "#", ANY_BYTES)
    session = host.session()
    argv = ("/usr/bin/printf", r"<%s>\0", *words)
    do(session.prepare(Launch(argv=argv, cwd=str(host.root), env={"ODD": ANY_BYTES}), QUICK))
    do(session.start())
    host.ended(session)
    got = host.file(session, "stdout").read_bytes()
    assert got == b"".join(b"<" + os.fsencode(word) + b">\0" for word in words)


def test_variables_of_any_bytes(host: SessionHost) -> None:
    """So do the values of variables, and the names of directories."""
    place = host.root / "a $(touch pwned) 'dir'\n"
    place.mkdir()
    session = host.started('printf %s "$ODD"; pwd >../where', env={"ODD": ANY_BYTES}, cwd=str(place))
    host.ended(session)
    assert host.file(session, "stdout").read_bytes() == os.fsencode(ANY_BYTES)
    assert (host.root / "where").read_text() == f"{place}\n"
    assert not list(host.root.rglob("pwned"))


def test_secrets_are_nowhere_but_in_the_agent(host: SessionHost) -> None:
    """A secret reaches the agent, and is in no argument of any process, in no file, and not in the runner."""
    session = host.prepared(
        'printf %s "$TOKEN" >"$OUT"; exec sleep 1000', secrets=("TOKEN",), env={"OUT": "/dev/stdout"}
    )
    part = SECRET.split("\n", maxsplit=1)[0].encode()

    async def watched_start() -> list[int]:
        starting = asyncio.create_task(session.start({"TOKEN": SECRET}))
        seen: list[int] = []
        while not starting.done():
            seen += processes_with(part, files=("cmdline",))
            await asyncio.sleep(0)
        await starting
        return seen

    assert do(watched_start()) == []
    until(lambda: host.file(session, "stdout").read_bytes())
    assert host.file(session, "stdout").read_text() == SECRET
    assert processes_with(part, files=("cmdline",)) == []
    assert processes_with(part, files=("environ",)) == [do(session.start()).pid]
    files = [path for path in Path(session.directory).rglob("*") if path.is_file() and path.name != "stdout"]
    assert len(files) > 5
    assert [path.name for path in files if b"s3cr3t" in path.read_bytes()] == []
    do(session.stop(grace_seconds=1))


def test_output_past_the_cap_ends_it(host: SessionHost) -> None:
    """An agent that writes more than it may is ended as over budget, and what it wrote is kept."""
    rules = Rules(most_output_bytes=100_000, look_seconds=1, grace_ms=100, use_cgroup=False)
    session = host.started("while :; do head -c 30000 /dev/zero; sleep 0.02; done", rules)
    seen = host.ended(session)
    assert seen.exit is not None
    assert seen.exit.cause is Cause.CAP
    assert seen.stdout_bytes > 100_000


def test_what_prints_as_fast_as_it_can_stands_still_at_the_cap(host: SessionHost) -> None:
    """It is not asked to end, however long its grace: it is deaf to that, and would print on."""
    rules = Rules(most_output_bytes=1_000_000, look_seconds=1, grace_ms=600_000, use_cgroup=False)
    session = host.started("trap '' INT TERM; while :; do head -c 100000 /dev/zero; sleep 0.01; done", rules)
    seen = host.ended(session)
    assert seen.exit is not None
    assert seen.exit.cause is Cause.CAP


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_the_space_beyond_the_cap_is_given_back(one_host: SessionHost, name: str) -> None:
    """By the host itself, while nobody looks: what was printed keeps its length, its beginning and its end."""
    rules = Rules(most_output_bytes=1_000_000, look_seconds=1, grace_ms=100, use_cgroup=False)
    most = 50_000_000  # a disk has an end
    session = one_host.started(f"(yes | head -c {most}; echo last; exec sleep 1000) >>$FLEET_SESSION_DIR/{name}", rules)
    one_host.ended(session)
    file = one_host.file(session, name)
    until(lambda: file.stat().st_blocks * 512 < 1_000_000 + 2 * LONGEST_LINE + 4_000_000, "the space")
    data = file.read_bytes()
    assert len(data) == most + len(b"last\n")
    assert data.startswith(b"y\n" * 500_000 + b"y\n" * (LONGEST_LINE // 2))
    assert data.endswith(b"y\n" * (LONGEST_LINE // 2) + b"last\n")


def test_much_output(one_host: SessionHost) -> None:
    """Twenty megabytes in two hundred thousand lines are read, each line once and at its offset."""
    session = one_host.started("seq -f '%099.0f' 200000")

    async def read() -> int:
        count, expected = 0, 0
        async for line in session.lines(every_seconds=0.01):
            count += 1
            assert line.offset == expected
            assert int(line.data) == count
            expected += len(line.data) + 1
        return count

    assert do(read()) == 200_000


def test_an_unfinished_last_line(host: SessionHost) -> None:
    """A last line without its break is held back while the agent lives, and read at its end."""
    session = host.started("printf 'one\\ntw'; until [ -e go ]; do sleep 0.02; done; printf o")
    until(lambda: host.file(session, "stdout").stat().st_size == 6)
    got = do(session.read(0))
    assert ([line.data for line in got.lines], got.cursor) == ([b"one"], 4)
    assert do(session.read(4)).lines == ()
    (host.root / "go").touch()
    host.ended(session)
    (line,) = do(session.read(4, ended=True)).lines
    assert (line.offset, line.data, line.whole) == (4, b"two", False)


def test_space_behind_the_cursor_is_freed(one_host: SessionHost) -> None:
    """Freed output keeps its offsets; what lies ahead of the cursor is untouched."""
    need("fallocate", shutil.which("fallocate"), "it is in util-linux")
    session = one_host.started("head -c 1000000 /dev/zero | tr '\\0' x; echo; echo last")
    one_host.ended(session)
    do(session.free(1_000_001))
    seen = do(session.observe())
    assert seen.stdout_bytes == 1_000_006
    assert do(session.read(1_000_001)).lines[0].data == b"last"


def test_forgetting(host: SessionHost) -> None:
    """A directory is removed only when nothing lives, all output was collected and every request was answered."""
    session = host.started("echo out; exec sleep 1000")
    until(lambda: host.file(session, "stdout").stat().st_size)
    with pytest.raises(Conflict, match="still runs"):
        do(session.forget(stdout_bytes=4, stderr_bytes=0))
    do(session.stop(grace_seconds=1))
    until(lambda: not do(session.observe()).runner_lives)
    with pytest.raises(Conflict, match="stdout has 4 bytes"):
        do(session.forget(stdout_bytes=3, stderr_bytes=0))
    host.file(session, "outbox/1").write_text("verb: ask\n\nwhy?\n")
    with pytest.raises(Conflict, match="request 1"):
        do(session.forget(stdout_bytes=4, stderr_bytes=0))
    do(session.answer(1, "because"))
    do(session.forget(stdout_bytes=4, stderr_bytes=0))
    assert not Path(session.directory).exists()
    assert do(session.observe()).state is HostState.ABSENT


def test_forgetting_keeps_what_is_not_ours(one_host: SessionHost) -> None:
    """While somebody's file or directory is there nothing is removed, and it is named, each time; then all is."""
    session = one_host.started("echo mine >precious", cwd=str(one_host.root / "."))
    one_host.ended(session)
    until(lambda: not do(session.observe()).runner_lives)
    ours = set(os.listdir(session.directory))
    one_host.file(session, "precious").write_text("work")
    one_host.file(session, ".hidden").touch()
    one_host.file(session, "pid.more").mkdir()
    for _ in range(2):
        with pytest.raises(Conflict, match=r"not ours .*: pid\.more precious \.hidden"):
            do(session.forget(stdout_bytes=0, stderr_bytes=0))
    assert set(os.listdir(session.directory)) == ours | {"precious", ".hidden", "pid.more"}
    one_host.file(session, "precious").unlink()
    one_host.file(session, ".hidden").unlink()
    one_host.file(session, "pid.more").rmdir()
    do(session.forget(stdout_bytes=0, stderr_bytes=0))
    assert not Path(session.directory).exists()


def test_what_has_no_runner_is_not_said_to_be_forgotten(one_host: SessionHost) -> None:
    """A directory that lost its runner is kept with what is in it, and that is told; an empty one goes."""
    session = one_host.session()
    precious = one_host.file(session, "precious")
    precious.parent.mkdir()
    precious.touch()
    with pytest.raises(Conflict, match="no runner"):
        do(session.forget(stdout_bytes=0, stderr_bytes=0))
    precious.unlink()
    do(session.forget(stdout_bytes=0, stderr_bytes=0))
    assert not precious.parent.exists()


@pytest.mark.parametrize("make", ["mkdir 1", "mkfifo 1", ": >1"])
def test_only_files_are_requests(host: SessionHost, make: str) -> None:
    """What else an agent makes in its outbox is no request: its next one says so, and all can be forgotten."""
    script = f'cd "$FLEET_SESSION_DIR/outbox" && {make} && fleet comment more'
    session = host.started(script, env={"FLEET_ANSWER_SECONDS": "0"})
    record = host.ended(session).exit
    assert record is not None
    assert record.code == 1
    assert "cannot be written to" in host.file(session, "stderr").read_text()
    until(lambda: not do(session.observe()).runner_lives)
    assert do(session.requests(0)) == []
    do(session.forget(stdout_bytes=0, stderr_bytes=host.file(session, "stderr").stat().st_size))
    assert not Path(session.directory).exists()


# the shims


def answered(host: SessionHost, session: HostedSession, text: str, code: int = 0) -> Request:
    """The one request that an agent made, and let it go on."""
    (request,) = until(lambda: do(session.requests(0)), "a request")
    do(session.answer(request.number, text, code=code))
    return request


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (
            "fleet ask 'Which one?\nThe \"old\" or the new?' --kind choice",
            ("ask", {"kind": "choice"}, 'Which one?\nThe "old" or the new?'),
        ),
        ("fleet close 'all done'", ("close", {}, "all done")),
        ("fleet comment -- it went well", None),
        ("fleet comment it went well", ("comment", {}, "it went well")),
        ("fleet show", ("show", {}, "")),
        ("bd close bd-7 --reason 'it works'", ("close", {"id": "bd-7"}, "it works")),
        (
            "bd update bd-7 --status blocked --notes 'QUESTION: which?'",
            ("update", {"id": "bd-7", "status": "blocked"}, "QUESTION: which?"),
        ),
        ("bd comment bd-7 'so far so good'", ("comment", {"id": "bd-7"}, "so far so good")),
        ("bd show bd-7", ("show", {"id": "bd-7"}, "")),
        ("bd create something", None),
        ("fleet run", None),
        ("fleet", None),
    ],
)
def test_the_words_of_an_agent(
    one_host: SessionHost, command: str, expected: tuple[str, dict[str, str], str] | None
) -> None:
    """Each word that is available makes one request, and its answer is printed; any other is an error that helps."""
    session = one_host.started(command)
    if expected:
        request = answered(one_host, session, "heard\nyou")
        assert (request.verb, request.fields, request.text) == expected
    record = one_host.ended(session).exit
    assert record is not None
    assert record.code == (0 if expected else 2)
    assert one_host.file(session, "stdout").read_text() == ("heard\nyou\n" if expected else "")
    assert ("Available here" in one_host.file(session, "stderr").read_text()) == (expected is None)


def test_an_answer_has_a_code(host: SessionHost) -> None:
    """The agent's command ends with the code of its answer."""
    session = host.started("fleet close; exit $?")
    answered(host, session, "not yet: the tests fail", code=1)
    record = host.ended(session).exit
    assert record is not None
    assert record.code == 1


def test_requests_of_many_at_once(host: SessionHost) -> None:
    """Requests made at the same time are numbered without a gap, each once."""
    session = host.started("for i in 1 2 3 4 5 6; do fleet comment $i & done; wait", env={"FLEET_ANSWER_SECONDS": "0"})
    host.ended(session)
    requests = do(session.requests(0))
    assert [request.number for request in requests] == [1, 2, 3, 4, 5, 6]
    assert sorted(request.text for request in requests) == ["1", "2", "3", "4", "5", "6"]
    assert [request.number for request in do(session.requests(4))] == [5, 6]
    assert "recorded" in host.file(session, "stderr").read_text()


# a disk that is full


@pytest.fixture
def small_disk(host: SessionHost) -> Iterator[SessionHost]:
    """A place for sessions with very little room."""
    no_root("only root can mount a small disk")
    place = host.root / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160k", "none", str(place)], check=False)
    need("a small disk", "mounted" if mounted.returncode == 0 else None, "run where tmpfs can be mounted")
    yield host.elsewhere(place)
    until(lambda: subprocess.run(["umount", str(place)], check=False, stderr=subprocess.DEVNULL).returncode == 0)


def fill(host: SessionHost, leave: int = 0) -> None:
    """Leave room for so many pages."""
    page = os.sysconf("SC_PAGESIZE")
    with open(host.root / "filler", "wb", buffering=0) as file:
        with contextlib.suppress(OSError):
            while file.write(b"x" * page):
                pass
        file.truncate(file.tell() - leave * page)


def test_no_room_to_prepare(small_disk: SessionHost) -> None:
    """A full disk is an error that says so, before anything was started."""
    fill(small_disk)
    with pytest.raises(HostFull, match="No space left"):
        small_disk.prepared("touch /tmp/never")


@pytest.mark.parametrize("pages", [0, 1, 2, 3])
def test_no_room_to_start(small_disk: SessionHost, tmp_path: Path, pages: int) -> None:
    """A disk that is full at any point of the start starts nothing, says so, and the session can be settled later."""
    session = small_disk.prepared(f"echo x >>{tmp_path}/ran", cwd="/")
    fill(small_disk, leave=pages)
    with pytest.raises((HostFull, NotStarted), match="No space left"):
        do(session.start())
    (small_disk.root / "filler").unlink()
    assert do(session.observe()).state in {HostState.PREPARED, HostState.ABANDONED}
    assert do(session.abandon())
    assert not (tmp_path / "ran").exists()


def test_an_agent_that_fills_the_disk(small_disk: SessionHost) -> None:
    """The record of the end has its room reserved: it is written when the agent has left none."""
    session = small_disk.started("cat /dev/zero; exit 4", cwd="/")
    seen = small_disk.ended(session)
    assert seen.exit is not None
    assert seen.exit.code == 4


def test_an_agent_that_fills_the_disk_and_leaves_something(small_disk: SessionHost) -> None:
    """That room is kept until what was left behind is ended: then the record says so, with nothing in it missing."""
    session = small_disk.started("sleep 1000 & cat /dev/zero; exit 4", cwd="/")
    seen = small_disk.ended(session)
    assert seen.exit is not None
    assert (seen.exit.code, seen.exit.swept) == (4, True)
    assert [one.name for one in seen.killed] == ["sleep"]
