"""agy, which no registry offers: a program of its name that replays the reported shapes, and each reported lie."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from fleet.model.states import Result, TaskState
from fleet.store.reads import Reads
from tests.golden.cases import BY_ID, Case
from tests.support.leftovers import LEFT
from tests.support.model_server import ModelServer
from tests.support.real_coders import LEFT_SECONDS, Bench

CONVERSATION = "c0ffee00-0000-4000-8000-000000000001"
END = "end-of-call"
# It keeps what it was called with, then says and does what the case says.
REPLAY = """\
#!/bin/sh
printf '%s\\n' "$@" >>{calls}
echo {end} >>{calls}
{before}
cat {transcript}
printf %s {stderr} >&2
exit {code}
"""


class Replay:
    """A bench whose agy is a replay."""

    def __init__(self, bench: Bench, programs: Path) -> None:
        self.bench = bench
        self.calls = bench.path / "calls"
        self._program = programs / "agy"

    def plays(self, transcript: Path, *, stderr: str = "", code: int = 0, before: str = "") -> None:
        """From now on, agy is this."""
        self._program.write_text(
            REPLAY.format(
                end=END,
                calls=shlex.quote(str(self.calls)),
                transcript=shlex.quote(str(transcript)),
                stderr=shlex.quote(stderr),
                code=code,
                before=before,
            )
        )
        self._program.chmod(0o755)

    def plays_case(self, name: str, before: str = "") -> None:
        """From now on, agy is a recorded case."""
        case: Case = BY_ID[f"agy-{name}"]
        self.plays(case.transcript, stderr=case.stderr, code=case.code or 0, before=before)

    def calls_made(self) -> list[str]:
        """The words of each call."""
        return self.calls.read_text().split(f"\n{END}\n")[:-1]


@pytest.fixture(name="replay")
def a_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Replay]:
    """A bench that needs no model."""
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    with ModelServer() as model:
        bench = Bench(tmp_path, model)
        yield Replay(bench, programs)
        LEFT.end_within(LEFT_SECONDS, bench.home.sessions)


def outcomes(replay: Replay, uid: str) -> list[str | None]:
    """How its sessions ended."""
    return [session.outcome for session in replay.bench.sessions(uid)]


def queued_again(uid: str) -> Callable[[Reads], bool]:
    """Whether it has had a session and waits for the next."""
    return lambda reads: bool(reads.sessions(task=uid)) and reads.task(uid).state is TaskState.QUEUED


def test_a_turn_that_succeeds_passes(replay: Replay) -> None:
    """The tools are in the log, and what the steps told is counted once, though the result sums it up again."""
    replay.plays_case("ok")
    uid = replay.bench.add("agy", "Write the file.")
    replay.bench.run()
    receipt = replay.bench.receipt(uid)
    assert receipt.result is Result.PASS
    assert (receipt.usage.input_tokens, receipt.usage.cached_tokens) == (800, 1100)
    assert (receipt.usage.output_tokens, receipt.usage.tool_calls) == (65, 1)
    kinds = [said["kind"] for said in replay.bench.said(uid)]
    assert kinds.count("tool_started") == kinds.count("tool_ended") == 1
    (call,) = replay.calls_made()
    assert "--output-format\nstream-json" in call
    assert "--print-timeout\n24h" in call


def test_its_own_time_out_is_no_success(replay: Replay) -> None:
    """Exit code 0 and SUCCESS with half an answer: only stderr tells. The next session goes on with it."""
    replay.plays_case("timeout")
    uid = replay.bench.add("agy", "Write the file.")
    replay.bench.run(max_attempts=2)
    assert outcomes(replay, uid) == ["stalled", "stalled"]
    assert replay.bench.receipt(uid).result is Result.TIMEOUT
    first, second = replay.calls_made()
    assert "--conversation" not in first
    assert f"--conversation\n{CONVERSATION}" in second


def test_a_denied_tool_is_no_success(replay: Replay) -> None:
    """Exit code 0 and SUCCESS with an empty answer: a person has to allow it."""
    replay.plays_case("denied")
    uid = replay.bench.add("agy", "Remove the build.")
    replay.bench.run()
    assert outcomes(replay, uid) == ["denied"]
    block = replay.bench.task(uid).block
    assert block is not None
    assert block.kind == "permission"
    assert "run_command" in block.text


def test_a_quota_that_is_used_up_pauses_the_coder(replay: Replay) -> None:
    """Exit code 3 and a line on stderr: the task goes back unharmed."""
    replay.plays_case("quota")
    uid = replay.bench.add("agy", "Write the file.")
    replay.bench.run(queued_again(uid))
    assert outcomes(replay, uid) == ["plan_limit"]
    assert replay.bench.task(uid).charged == 0


def test_a_quota_that_is_retried_in_silence_is_a_stall(replay: Replay) -> None:
    """It says nothing and does not end: our own clock ends it, and nothing is left of it."""
    replay.plays_case("quota", before=f"cat {shlex.quote(str(BY_ID['agy-quota'].transcript))}; sleep 60")
    uid = replay.bench.add("agy", "Write the file.")
    replay.bench.run(max_attempts=1, idle_seconds=1)
    assert outcomes(replay, uid) == ["stalled"]


@pytest.mark.parametrize(
    ("name", "outcome", "state"),
    [
        ("not-signed-in", "auth", TaskState.BLOCKED),
        ("bad-model", "refusal", TaskState.FAILED),
    ],
)
def test_a_lone_error_is_understood(replay: Replay, name: str, outcome: str, state: TaskState) -> None:
    """Exit code 1 and a result without a conversation; trying it again would not help."""
    replay.plays_case(name)
    uid = replay.bench.add("agy", "Write the file.")
    replay.bench.run()
    assert outcomes(replay, uid) == [outcome]
    assert replay.bench.task(uid).state is state


def test_an_end_without_a_result_is_no_success(replay: Replay, tmp_path: Path) -> None:
    """Older versions print nothing where there is no terminal, with exit code 0."""
    empty = tmp_path / "empty"
    empty.touch()
    replay.plays(empty)
    uid = replay.bench.add("agy", "Write the file.")
    replay.bench.run(max_attempts=1)
    assert outcomes(replay, uid) == ["crashed"]
    assert replay.bench.task(uid).state is TaskState.FAILED


def test_a_line_is_ended_by_a_line_feed_alone(replay: Replay, tmp_path: Path) -> None:
    """It writes U+0085 and U+2028 as they are, which are line breaks to some."""
    text = "one\u0085two\u2028three"
    spoken = tmp_path / "spoken"
    result = {"conversation_id": CONVERSATION, "status": "SUCCESS", "response": text, "num_turns": 1}
    spoken.write_text(msgspec.json.encode({"event": "result", "result": result}).decode() + "\n")
    replay.plays(spoken)
    uid = replay.bench.add("agy", "Say it.")
    replay.bench.run()
    assert replay.bench.receipt(uid).result is Result.PASS
    assert [said["final_text"] for said in replay.bench.said(uid) if said["kind"] == "turn_ended"] == [text]


def test_a_large_prompt_is_a_line_on_stdin(replay: Replay) -> None:
    """In its own input format, and without -p, which would take the next word for the prompt."""
    kept = replay.bench.path / "stdin"
    replay.plays_case("ok", before=f"cat >{shlex.quote(str(kept))}")
    replay.bench.add("agy", "A long story. " * 15_000)
    replay.bench.run()
    (call,) = replay.calls_made()
    assert "-p" not in call.split("\n")
    line = msgspec.json.decode(kept.read_bytes())
    assert "A long story. " * 14_000 in line["message"]["content"]
