"""Sessions on a terminal: the same runner in a pane of tmux; its agent may live on when its session has ended."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.errors import Conflict
from fleet.hosts.facts import Cause, HostState
from fleet.hosts.session import HostedSession
from fleet.model.launch import Launch
from tests.support.programs import need
from tests.support.session_fixtures import under_sh  # noqa: F401  # a fixture
from tests.support.session_host import QUICK, SessionHost, do, lives, until

TMUX = ("tmux", "-f", "/dev/null")


@pytest.fixture(name="pane")
def a_pane(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A pane of a tmux server of its own."""
    need("tmux", shutil.which("tmux"), "run `sh scripts/tools`")
    sockets = tempfile.mkdtemp(prefix="ft")
    monkeypatch.setenv("TMUX_TMPDIR", sockets)
    monkeypatch.delenv("TMUX", raising=False)
    made = subprocess.run(
        [*TMUX, "new-session", "-d", "-P", "-F", "#{pane_id}", "sleep 100"], check=True, capture_output=True, text=True
    )
    subprocess.run([*TMUX, "set-option", "-g", "remain-on-exit", "on"], check=True)
    yield made.stdout.strip()
    subprocess.run([*TMUX, "kill-server"], check=False, capture_output=True)
    shutil.rmtree(sockets, ignore_errors=True)


def on(pane: str, host: SessionHost, script: str, **fields: tuple[str, ...]) -> HostedSession:
    """A session whose agent is a piece of sh in the pane, prepared."""
    session = host.session()
    words = (*TMUX, "respawn-pane", "-k", "-t", pane, "--")
    launch = Launch(argv=("/bin/sh", "-c", script), cwd=str(host.root), terminal=words, **fields)  # type: ignore[arg-type]
    do(session.prepare(launch, QUICK))
    return session


def test_its_streams_are_the_terminal(one_host: SessionHost, pane: str) -> None:
    """All three are; a secret reaches it and is in no file; the end of the program is recorded as always."""
    said = "tty >tty; test -t 1 && test -t 2 && echo $A_KEY >key; until [ -e go ]; do sleep 0.05; done; exit 7"
    session = on(pane, one_host, said, secrets=("A_KEY",))
    started = do(session.start({"A_KEY": "s3cret"}))
    assert lives(started.pid)
    assert one_host.said("tty").startswith("/dev/")
    assert one_host.said("key") == "s3cret\n"
    inside = [path for path in Path(session.directory).rglob("*") if path.is_file()]
    assert not [path for path in inside if b"s3cret" in path.read_bytes()]
    (one_host.root / "go").touch()
    record = one_host.ended(session).exit
    assert record is not None
    assert (record.code, record.cause) == (7, Cause.EXIT)


def test_it_is_concluded_and_lives_on(one_host: SessionHost, pane: str) -> None:
    """Its session has ended by what it did; its process stays, is kept in mind, and stop ends it."""
    session = on(pane, one_host, "until [ -e go ]; do sleep 0.05; done")
    pid = do(session.start()).pid
    seen = do(session.conclude())
    assert seen.state is HostState.EXITED
    assert seen.exit is not None
    assert (seen.exit.code, seen.exit.cause, seen.exit.swept) == (0, Cause.DONE, True)
    assert lives(pid)
    with pytest.raises(Conflict):
        do(session.forget(stdout_bytes=0, stderr_bytes=0))
    do(session.stop(grace_seconds=1))
    until(lambda: not lives(pid), "its end")
    record = do(session.exit())
    assert record is not None
    assert record.cause is Cause.DONE


def test_only_on_a_terminal(one_host: SessionHost) -> None:
    """An agent that has none cannot be concluded: its exit is its end."""
    session = one_host.started("until [ -e go ]; do sleep 0.05; done")
    with pytest.raises(Conflict, match="terminal"):
        do(session.conclude())
    do(session.stop(grace_seconds=1))


def test_a_terminal_that_is_killed(one_host: SessionHost, pane: str) -> None:
    """Its runner outlives the pane by a moment and records how the agent ended."""
    session = on(pane, one_host, "exec sleep 1000")
    pid = do(session.start()).pid
    subprocess.run([*TMUX, "kill-pane", "-t", pane], check=True, env=dict(os.environ))
    until(lambda: not lives(pid), "its end")
    assert one_host.ended(session).exit is not None
