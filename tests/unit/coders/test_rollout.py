"""The file that codex keeps of a thread."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from fleet.coders.coder import Exit
from fleet.coders.codex import Codex, rollout
from fleet.model.outcome import OutcomeKind
from fleet.model.stream import AnySaid, Compacted, Context, Limited

USED = {"input_tokens": 9241, "output_tokens": 47, "total_tokens": 9288}
FAILED = b'{"type":"turn.failed","error":{"message":"You\xe2\x80\x99ve hit your usage limit, try again at 2:07 PM."}}'


def counts(used_percent: float | None = None, **info: object) -> bytes:
    """A line about tokens and limits, as codex 0.166 writes it."""
    window = {"used_percent": used_percent, "window_minutes": 300, "resets_at": 1794769623}
    limits = {"limit_id": "codex", "primary": window if used_percent is not None else None, "secondary": None}
    payload = {"type": "token_count", "info": info or None, "rate_limits": limits}
    return json.dumps({"timestamp": "2026-11-15T18:07:03.501Z", "type": "event_msg", "payload": payload}).encode()


def test_the_size_of_the_context_is_that_of_the_last_reply() -> None:
    """With the window that codex reports; not the sum over the thread."""
    line = counts(total_token_usage={"total_tokens": 99_999}, last_token_usage=USED, model_context_window=258_400)
    assert rollout.parse(line) == (Context(tokens=9288, window=258_400),)


def test_a_plan_is_told_when_it_changes() -> None:
    """Each window once, and again when more of it is used; the place in the file moves with every line."""
    coder, state = Codex(), Codex().begin()
    told: list[AnySaid] = []
    for line in (counts(37.5), counts(37.5), counts(40.0), b"{}", b"\xff"):
        before = state.noted
        state, said = coder.parse_aside(state, line)
        assert state.noted == before + len(line) + 1
        told += said
    assert [each.used_pct for each in told if isinstance(each, Limited)] == [37.5, 40.0]


def test_a_limit_resets_when_the_file_says_so_else_by_the_clock() -> None:
    """The file has the very second; the words have a time of day, which needs to know when and where it was said."""
    coder, state = Codex(), Codex().begin()
    state, _ = coder.parse(state, FAILED)
    exit = Exit(code=1, at=1794766023_000, utc_offset_seconds=-5 * 3600)
    by_words = coder.outcome(state, exit, "")
    assert (by_words.kind, by_words.resets_at) == (OutcomeKind.PLAN_LIMIT, 1794769620_000)
    state, _ = coder.parse_aside(state, counts(100.0))
    assert coder.outcome(state, exit, "").resets_at == 1794769623_000


def test_a_compaction_is_told() -> None:
    """It is nowhere in the stream."""
    assert rollout.parse(b'{"type":"compacted","payload":{"message":"x"}}') == (Compacted(),)


def test_the_file_is_found_by_the_thread(tmp_path: Path) -> None:
    """In the usual place or the one that is set; nothing is printed as long as it is not there."""
    for variable, home in (("HOME", tmp_path / ".codex"), ("CODEX_HOME", tmp_path / "other")):
        env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), variable: str(tmp_path if variable == "HOME" else home)}
        argv = ["sh", "-c", rollout.FIND, "sh", f"thread-{variable}"]
        assert subprocess.run(argv, env=env, capture_output=True, check=False).stdout == b""
        file = home / "sessions" / "2026" / "11" / "15" / f"rollout-2026-11-15T17-46-46-thread-{variable}.jsonl"
        file.parent.mkdir(parents=True)
        file.touch()
        assert subprocess.run(argv, env=env, capture_output=True, check=True).stdout == bytes(file)


@given(st.binary(max_size=60).map(lambda data: b'{"type":"event_msg","payload":{"type":"token_count",' + data))
def test_nothing_in_it_breaks_the_reading(line: bytes) -> None:
    """A broken line tells nothing."""
    assert isinstance(rollout.parse(line), tuple)
