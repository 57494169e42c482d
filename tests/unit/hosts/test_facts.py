"""The line of facts and the record of the end: what is understood, and what is not believed."""

from __future__ import annotations

import pytest

from fleet.errors import TransportError
from fleet.hosts.facts import Cause, Exit, HostState, Killed, parse, parse_exit


def test_a_line_of_facts() -> None:
    """Every word of the line has its place."""
    seen = parse(
        "proto=1 state=exited epoch=3 boot=b now=9 idle=4 runner=dead stdout=5 stderr=6 pid=77 start=1"
        " code=143 ended=8 cause=stop swept=done killed=12/TERM/sleep,13/KILL/sh left=1\n"
    )
    assert (seen.state, seen.epoch, seen.pid, seen.boot, seen.idle_ms) == (HostState.EXITED, 3, 77, "b", 4)
    assert (seen.stdout_bytes, seen.stderr_bytes, seen.runner_lives, seen.left) == (5, 6, False, 1)
    assert seen.exit == Exit(code=143, ended_at=8, cause=Cause.STOP, swept=True)
    assert seen.exit.signal == "SIGTERM"
    assert seen.killed == (Killed(12, "TERM", "sleep"), Killed(13, "KILL", "sh"))


def test_a_reason_may_have_blanks() -> None:
    """The reason is the rest of the line."""
    assert parse("state=abandoned epoch=1 reason=no such place=x").reason == "no such place=x"


@pytest.mark.parametrize("line", ["", "hello", "state=dancing", "state=running pid=x", "state=exited code= ended=1"])
def test_what_is_no_fact(line: str) -> None:
    """An answer that is not understood is an error of the transport, never a state."""
    with pytest.raises(TransportError, match="no fact"):
        parse(line)


@pytest.mark.parametrize(("code", "signal"), [(0, None), (127, None), (130, "SIGINT"), (137, "SIGKILL"), (255, None)])
def test_codes_and_signals(code: int, signal: str | None) -> None:
    """A code above 128 is told as the signal that it stands for, where there is one."""
    assert Exit(code=code, ended_at=0).signal == signal


def test_a_record_of_the_end() -> None:
    """A record is read up to its last line; the room that was reserved for it is not part of it."""
    record = b"code=3\nended=8\ncause=cap\nend\n      \n"
    assert parse_exit(record) == Exit(code=3, ended_at=8, cause=Cause.CAP)


@pytest.mark.parametrize(("said", "ran_ms"), [("1510", 1510), ("0", 0), ("", None), ("-86400000", None)])
def test_for_how_long_an_agent_ran(said: str, ran_ms: int | None) -> None:
    """As its host measured; less than nothing is none of what a host can have measured."""
    assert parse(f"state=running epoch=1 ran={said}").ran_ms == ran_ms
    record = parse_exit(f"code=0\nended=8\nran={said}\ncause=exit\nend\n".encode())
    assert record is not None
    assert record.ran_ms == ran_ms


@pytest.mark.parametrize(
    "record", [b"", b"code=3\n", b"code=3\nended=8\ncause=exit\n", b"end\n", b"code=\nended=\nend\n"]
)
def test_a_torn_record(record: bytes) -> None:
    """A record that is not whole is none."""
    assert parse_exit(record) is None
