"""The true codex under the supervisor, against a model on loopback."""

from __future__ import annotations

import time

import pytest

from fleet.model.states import TaskState
from tests.support.model_server import script
from tests.support.real_coder_suite import FINISH, STAYS, WRITES, RealCoderSuite
from tests.support.real_coders import Bench, a_bench, a_model

__all__ = ["a_bench", "a_model"]
pytestmark = pytest.mark.real_coders


class TestCodex(RealCoderSuite):
    """codex."""

    coder = "codex"

    def test_a_plan_that_is_used_up_pauses_only_this_coder(self, bench: Bench) -> None:
        """The task goes back unharmed, others of codex wait, other coders work."""
        bench.talk_to("plan")
        first = bench.add("codex", WRITES, priority=0)
        second = bench.add("codex", WRITES, priority=1)
        other = bench.add("command", "true", priority=2)
        bench.run(lambda reads: reads.task(other).state is TaskState.COMPLETED, max_concurrent=1)
        task = bench.task(first)
        assert [session.outcome for session in bench.sessions(first)] == ["plan_limit"]
        assert (task.state, task.charged, bench.sessions(second)) == (TaskState.QUEUED, 0, [])
        assert abs((task.not_before or 0) / 1000 - time.time() - 3600) < 60

    def test_a_context_that_is_nearly_full_ends_the_session_and_a_fresh_one_goes_on(self, bench: Bench) -> None:
        """By the size that it writes into the thread's own file; the window is its own word too."""
        bench.talk_to("usage:236000*1")  # with more it would compact by itself
        uid = bench.add("codex", script("true", STAYS, *FINISH))  # it writes the size down when a tool has ended
        bench.run()
        first, second = bench.sessions(uid)
        assert (first.outcome, second.outcome, bench.task(uid).charged) == ("context", "ok", 0)
        (full, *_) = (said for said in bench.said(uid) if said["kind"] == "context")
        assert full["tokens"] >= 236_000
        assert full["window"] == 258_400
        assert "Go on with task" not in bench.asked()[1].text

    def test_the_windows_of_a_plan_are_told_once(self, bench: Bench) -> None:
        """Though it repeats them with every reply."""
        bench.talk_to("limits")
        uid = bench.add("codex", WRITES)
        bench.run()
        (limited,) = (said for said in bench.said(uid) if said["kind"] == "limited")
        assert (limited["window"], limited["used_pct"]) == ("5 hours", 37.5)

    def test_a_rate_limit_without_a_time_is_waited_for_by_the_supervisor(self, bench: Bench) -> None:
        """codex gives up at once where it is not told when to come back; the next session resumes the conversation."""
        bench.talk_to("429*1")
        uid = bench.add("codex", WRITES)
        bench.run()
        assert [session.outcome for session in bench.sessions(uid)] == ["transient", "ok"]
        assert "Go on with task" in bench.asked()[1].text
        assert "@@script" in bench.asked()[1].text

    def test_a_model_that_writes_code_to_call_its_tools_is_followed_too(self, bench: Bench) -> None:
        """Newer models call one tool with JavaScript; the commands within have the session's own `fleet`."""
        uid = bench.add("codex", WRITES, model="gpt-6.1-sol")
        bench.run()
        assert (bench.work / "OUT.txt").exists()
        assert bench.receipt(uid).reason == "the file is written"
        assert bench.receipt(uid).usage.tool_calls == 2

    @pytest.mark.parametrize("faults", ["ctx*1", "failed:context_length_exceeded*1"])
    def test_a_prompt_that_is_too_long_makes_a_fresh_session(self, bench: Bench, faults: str) -> None:
        """By the model's own word, where no usage was reported before."""
        bench.talk_to(faults)
        uid = bench.add("codex", WRITES)
        bench.run()
        assert [session.outcome for session in bench.sessions(uid)] == ["context", "ok"]
        assert bench.task(uid).charged == 0
        assert "Go on with task" not in bench.asked()[1].text

    def test_an_overload_in_the_stream_that_stays_is_tried_again(self, bench: Bench) -> None:
        """As a failure of the way, not of the task."""
        bench.talk_to("failed:server_is_overloaded")
        uid = bench.add("codex", WRITES)
        bench.run(max_attempts=2)
        assert [session.outcome for session in bench.sessions(uid)] == ["transient", "transient"]
