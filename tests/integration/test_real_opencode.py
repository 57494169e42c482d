"""The true opencode under the supervisor, against a model on loopback."""

from __future__ import annotations

import pytest

from fleet.model.states import TaskState
from tests.support.real_coder_suite import WRITES, RealCoderSuite
from tests.support.real_coders import Bench, a_bench, a_model

__all__ = ["a_bench", "a_model"]
pytestmark = pytest.mark.real_coders


class TestOpencode(RealCoderSuite):
    """opencode, with a provider that speaks chat completions. It starts in seconds: fewer faults are tried."""

    coder = "opencode"
    tells_calls_late = True

    @pytest.mark.parametrize("faults", ["429:1*1", "500*1"])
    def test_what_passes_by_itself_costs_nothing(self, bench: Bench, faults: str) -> None:
        """After a rate limit or an error the same session goes on and passes."""
        super().test_what_passes_by_itself_costs_nothing(bench, faults)

    def test_a_rate_limit_that_stays_is_tried_again_and_then_fails(self, bench: Bench) -> None:
        """It waits in silence, without end: the supervisor ends it, and the receipt does not blame the task."""
        bench.talk_to("429")
        uid = bench.add("opencode", WRITES)
        bench.run(max_attempts=1, idle_seconds=20)
        assert [session.outcome for session in bench.sessions(uid)] == ["stalled"]
        assert bench.task(uid).state is TaskState.FAILED

    def test_a_prompt_that_is_too_long_makes_a_fresh_session(self, bench: Bench) -> None:
        """By the model's own word."""
        bench.talk_to("ctx*1")
        uid = bench.add("opencode", WRITES)
        bench.run()
        outcomes = [session.outcome for session in bench.sessions(uid)]
        assert outcomes in (["context", "ok"], ["ok"])  # it may have compacted by itself
