"""The true gemini CLI under the supervisor, against a model on loopback."""

from __future__ import annotations

import pytest

from fleet.model.states import Result, Source, TaskState
from tests.support.real_coder_suite import STAYS_ONCE, WRITES, RealCoderSuite
from tests.support.real_coders import Bench, a_bench, a_model

__all__ = ["a_bench", "a_model"]
pytestmark = pytest.mark.real_coders


class TestGemini(RealCoderSuite):
    """gemini. It does not tell what it thinks, and starts in seconds: fewer faults are tried."""

    coder = "gemini"
    told = frozenset({"started", "text", "used", "turn_ended", "context"})

    @pytest.mark.parametrize("faults", ["429:1*1", "503*1"])
    def test_what_passes_by_itself_costs_nothing(self, bench: Bench, faults: str) -> None:
        """After a rate limit or an overload the same session goes on and passes."""
        super().test_what_passes_by_itself_costs_nothing(bench, faults)

    def test_a_rate_limit_that_stays_is_tried_again_and_then_fails(self, bench: Bench) -> None:
        """Each attempt counts; a conversation that never had an answer cannot be resumed, so each is a fresh one."""
        bench.talk_to("429")
        uid = bench.add("gemini", WRITES)
        bench.run(max_attempts=2)
        outcomes = [session.outcome for session in bench.sessions(uid)]
        assert [each for each in outcomes if each != "context"] == ["transient", "transient"]
        assert {(each.result, each.source) for each in bench.receipts(uid)} == {(Result.FAIL, Source.TRANSPORT)}

    def test_a_quota_that_is_used_up_pauses_only_this_coder(self, bench: Bench) -> None:
        """The task goes back unharmed, other coders work."""
        bench.talk_to("plan")
        first = bench.add("gemini", WRITES, priority=0)
        other = bench.add("command", "true", priority=2)
        bench.run(lambda reads: reads.task(other).state is TaskState.COMPLETED, max_concurrent=1)
        task = bench.task(first)
        assert [session.outcome for session in bench.sessions(first)] == ["plan_limit"]
        assert (task.state, task.charged) == (TaskState.QUEUED, 0)

    def test_a_prompt_that_is_too_long_makes_a_fresh_session(self, bench: Bench) -> None:
        """By the model's own word."""
        bench.talk_to("ctx*1")
        uid = bench.add("gemini", WRITES)
        bench.run()
        assert [session.outcome for session in bench.sessions(uid)] == ["context", "ok"]
        assert bench.receipt(uid).result is Result.PASS

    def test_a_context_that_is_nearly_full_ends_the_session_and_a_fresh_one_goes_on(self, bench: Bench) -> None:
        """By the size that it writes into its own file of the conversation."""
        bench.talk_to("usage:1000000*1")
        uid = bench.add("gemini", STAYS_ONCE)
        bench.run()
        assert [session.outcome for session in bench.sessions(uid)] == ["context", "ok"]
        assert bench.task(uid).charged == 0
