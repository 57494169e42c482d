"""The true Claude Code under the supervisor, against a model on loopback."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from fleet.model.states import Result, TaskState
from fleet.model.terms import RetryPolicy, Terms
from fleet.store.reads import Reads
from tests.support.model_server import script
from tests.support.real_coder_suite import STAYS_ONCE, WRITES, RealCoderSuite
from tests.support.real_coders import Bench, a_bench, a_model
from tests.support.session_host import kill

__all__ = ["a_bench", "a_model"]
pytestmark = pytest.mark.real_coders


class TestClaude(RealCoderSuite):
    """Claude Code."""

    coder = "claude"

    def test_a_list_of_tools_is_kept_to(self, bench: Bench) -> None:
        """A program on the list runs, another is denied, and the artifact directory can be written."""
        uid = bench.add("claude", "", terms=Terms(tool_profile="read-only", tools=("git",)))
        written = {"file_path": str(bench.home.task_dir(uid) / "artifacts" / "report.md"), "content": "all well"}
        steps = script("git --version", "python3 -c 'print(1)'", {"tool": "Write", "args": written}, {"text": "Done."})
        bench.describe(uid, steps)
        bench.run()
        assert bench.receipt(uid).result is Result.PASS
        ended = [said["ok"] for said in bench.said(uid) if said["kind"] == "tool_ended"]
        assert ended == [True, False, True]
        assert Path(written["file_path"]).read_text() == "all well"
        assert "denied" in [said["kind"] for said in bench.said(uid)]

    def test_it_verifies_the_work_of_another(self, bench: Bench) -> None:
        """A second conversation reads the evidence, says no, and its words reach the next attempt, which passes."""
        yes = json.dumps({"pass": True, "reason": "it is fixed"})
        no = json.dumps({"pass": False, "reason": "OUT.txt is not fixed"})
        judged = script(
            "cat OUT.txt",
            f"if grep -q fixed OUT.txt; then echo '{yes}'; else echo '{no}'; fi >$FLEET_ANSWER_FILE",
            {"text": "I have written my answer."},
        )
        terms = Terms(
            objective="Write OUT.txt.",
            scorer={"kind": "verifier_prompt", "prompt": judged},
            retry=RetryPolicy(max_attempts=2, initial_backoff_seconds=0),
        )
        uid = bench.add(
            "claude",
            script("test -e OUT.txt && echo fixed >OUT.txt || echo raw >OUT.txt", {"text": "Done."}),
            terms=terms,
        )
        bench.run()
        kinds = [(session.kind, session.coder) for session in bench.sessions(uid)]
        assert kinds == [("work", "claude"), ("verify", "claude")] * 2
        first, refused, second, final = bench.receipts(uid)
        assert [one.result.value for one in (first, refused, second, final)] == ["partial", "fail", "partial", "pass"]
        assert (final.supersedes, final.reason) == (second.id, "verifier_prompt: it is fixed")
        assert final.verify_usage.output_tokens > 0
        prompts = [str(request) for request in bench.asked()]
        assert any("An earlier attempt did not pass" in text and "OUT.txt is not fixed" in text for text in prompts)

    def test_a_plan_that_is_used_up_pauses_only_this_coder(self, bench: Bench) -> None:
        """By a subscription: the task goes back unharmed until the reset, others of claude wait, other coders work."""
        bench.talk_to("plan", CLAUDE_CODE_OAUTH_TOKEN="sk-ant-oat01-test")
        first = bench.add("claude", WRITES, priority=0)
        second = bench.add("claude", WRITES, priority=1)
        other = bench.add("command", "true", priority=2)
        bench.run(lambda reads: reads.task(other).state is TaskState.COMPLETED, max_concurrent=1)
        task = bench.task(first)
        assert [session.outcome for session in bench.sessions(first)] == ["plan_limit"]
        assert (task.state, task.charged, bench.sessions(second)) == (TaskState.QUEUED, 0, [])
        assert abs((task.not_before or 0) / 1000 - time.time() - 3600) < 60

    def test_the_windows_of_a_plan_are_told(self, bench: Bench) -> None:
        """A subscription says how much of its five hours is used; it is in the log."""
        bench.talk_to("limits", CLAUDE_CODE_OAUTH_TOKEN="sk-ant-oat01-test")
        uid = bench.add("claude", WRITES)
        bench.run()
        (limited, *_) = (said for said in bench.said(uid) if said["kind"] == "limited")
        assert (limited["window"], limited["used_pct"]) == ("five_hour", 42.0)
        assert bench.receipt(uid).result is Result.PASS

    def test_a_context_that_is_nearly_full_ends_the_session_and_a_fresh_one_goes_on(self, bench: Bench) -> None:
        """By the usage that the model reports; the fresh session has the whole prompt and nothing of the other."""
        bench.talk_to("usage:190000*1")
        uid = bench.add("claude", STAYS_ONCE)
        bench.run()
        assert [session.outcome for session in bench.sessions(uid)] == ["context", "ok"]
        assert bench.task(uid).charged == 0
        first, second, *_ = bench.asked()
        assert len(first.body["messages"]) == len(second.body["messages"])
        assert "Go on with task" not in second.text

    def test_a_prompt_that_is_too_long_makes_a_fresh_session(self, bench: Bench) -> None:
        """The model's own word, where no usage was reported before."""
        bench.talk_to("ctx*1")
        uid = bench.add("claude", WRITES)
        bench.run()
        assert [session.outcome for session in bench.sessions(uid)] == ["context", "ok"]

    def test_a_model_that_refuses_fails_the_task(self, bench: Bench) -> None:
        """At once: trying again would not help."""
        bench.talk_to("refuse")
        uid = bench.add("claude", script({"text": "No."}))
        bench.run()
        assert [session.outcome for session in bench.sessions(uid)] == ["refusal"]
        assert bench.task(uid).state is TaskState.FAILED

    def test_an_answer_that_never_comes_is_a_stall(self, bench: Bench) -> None:
        """It is silent and no tool runs: ended, and tried again in the same conversation."""
        bench.talk_to("hang*1")
        uid = bench.add("claude", WRITES)
        bench.run(idle_seconds=3, max_attempts=6)
        outcomes = [session.outcome for session in bench.sessions(uid)]
        assert set(outcomes[:-1]) == {"stalled"}  # on a machine that is slow to start it, more than once
        assert outcomes[-1] == "ok"
        assert "Go on with task" in bench.asked()[1].text

    def test_what_was_used_is_counted_once_across_a_resume(self, bench: Bench) -> None:
        """The program's sums go on over the sessions of a conversation; the receipts add up to what was asked."""
        bench.talk_to("usage:1000")
        uid = bench.add("claude", STAYS_ONCE)
        bench.run(lambda reads: _kill_in_tool(bench, reads) or reads.task(uid).state is TaskState.COMPLETED)
        used = [bench.used(session.id) for session in bench.sessions(uid)]
        assert sum(each.input_tokens + each.cached_tokens for each in used) == 1000 * len(bench.asked())


def _kill_in_tool(bench: Bench, reads: Reads) -> bool:
    marker = bench.work / "began"
    live = [each for each in reads.sessions(live=True) if each.pid]
    if marker.exists() and live and not (bench.work / "killed").exists():
        (bench.work / "killed").touch()
        kill(live[0].pid or 0)
    return False
