"""What is true of every real coder under the supervisor; a module subclasses it for each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fleet.model.states import LIVE, Result, Source, TaskState
from fleet.model.terms import Terms
from fleet.store.reads import Reads
from tests.support.model_server import script
from tests.support.real_coders import SLEEPING, Bench
from tests.support.session_host import kill, lives, until

WRITES = script(
    {"sh": "echo written > OUT.txt", "say": "I write the file.", "think": "A file is asked for."},
    "fleet close 'the file is written'",
    {"text": "Done."},
)
FINISH: tuple[Any, ...] = ("echo written > OUT.txt", {"text": "Done."})
FINISHES = script(*FINISH)
# In its tool, in the first session.
STAYS = f"test -e began || echo $$ > began; case $FLEET_SESSION in *.1) {SLEEPING} ;; esac"
STAYS_ONCE = script(STAYS, *FINISH)


def began(bench: Bench) -> Callable[[Reads], bool]:
    """Whether the tool runs, and its session is known to."""
    return lambda reads: (bench.work / "began").exists() and any(each.pid for each in reads.sessions(live=True))


class RealCoderSuite:
    """The suite; `coder` is the name of the coder."""

    coder: str
    tells_calls_late = False  # only when they have ended
    told: frozenset[str] = frozenset({"started", "thinking", "text", "used", "turn_ended"})

    def test_a_task_that_edits_a_file_passes(self, bench: Bench) -> None:
        """The file is there; the receipt passes with the agent's own words and what was used; the log has the tools."""
        uid = bench.add(self.coder, WRITES)
        bench.run()
        receipt = bench.receipt(uid)
        assert (bench.work / "OUT.txt").read_text() == "written\n"
        assert (receipt.result, receipt.reason) == (Result.PASS, "the file is written")
        assert receipt.usage.tool_calls == 2
        assert min(receipt.usage.input_tokens, receipt.usage.cached_tokens, receipt.usage.output_tokens) > 0
        kinds = [said["kind"] for said in bench.said(uid)]
        assert kinds.count("tool_started") == kinds.count("tool_ended") == 2
        assert self.told <= set(kinds)

    @pytest.mark.parametrize("faults", ["429:1*1", "529*1", "500*1", "cut*1"])
    def test_what_passes_by_itself_costs_nothing(self, bench: Bench, faults: str) -> None:
        """After a rate limit, an overload, an error or a cut stream the same session goes on and passes."""
        bench.talk_to(faults)
        uid = bench.add(self.coder, WRITES)
        bench.run()
        assert bench.receipt(uid).result is Result.PASS
        assert len(bench.sessions(uid)) == 1
        assert len(bench.asked()) == 4

    def test_a_rate_limit_that_stays_is_tried_again_and_then_fails(self, bench: Bench) -> None:
        """Each attempt counts, the last receipt blames the way and not the task."""
        bench.talk_to("429")
        uid = bench.add(self.coder, WRITES)
        bench.run(max_attempts=2)
        assert [session.outcome for session in bench.sessions(uid)] == ["transient", "transient"]
        assert bench.task(uid).state is TaskState.FAILED
        assert {(each.result, each.source) for each in bench.receipts(uid)} == {(Result.FAIL, Source.TRANSPORT)}

    def test_a_key_that_is_refused_is_for_a_person(self, bench: Bench) -> None:
        """One session, no attempt after it: the task waits with the reason."""
        bench.talk_to("401")
        uid = bench.add(self.coder, WRITES)
        bench.run()
        task = bench.task(uid)
        assert [session.outcome for session in bench.sessions(uid)] == ["auth"]
        assert task.block is not None
        assert task.block.kind == "needs_human"
        assert bench.asked()[0].key.endswith("-test")

    def writing(self, path: Path) -> tuple[dict[str, Any], ...]:
        """Steps that write a file with a tool of the coder's own, where it has one."""
        tools = {
            "claude": ("Write", "file_path"),
            "gemini": ("write_file", "file_path"),
            "opencode": ("write", "filePath"),
        }
        if self.coder not in tools:
            return ()
        tool, argument = tools[self.coder]
        return ({"tool": tool, "args": {argument: str(path), "content": "written"}},)

    def test_a_task_that_may_only_read_can_write_nothing(self, bench: Bench) -> None:
        """Neither its own tool nor a command writes in its directory; what Fleet asks of an agent works."""
        steps = [*self.writing(bench.work / "OUT.txt"), {"sh": "echo no > OUT.txt"}]
        uid = bench.add(
            self.coder,
            script(*steps, "fleet close 'it is read'", {"text": "Done."}),
            terms=Terms(tool_profile="read-only"),
        )
        bench.run()
        assert not (bench.work / "OUT.txt").exists()
        assert bench.receipt(uid).reason == "it is read"
        ended = [said["ok"] for said in bench.said(uid) if said["kind"] == "tool_ended"]
        assert ended[-1]
        assert not any(ended[:-1])  # codex does not tell of a command that it refused

    def has_written_it_down(self, bench: Bench) -> bool:
        """Whether the program has put its conversation on disk: before that there is nothing to resume."""
        places = {
            "claude": ".claude/projects/*/*.jsonl",
            "codex": ".codex/sessions/**/*.jsonl",
            "gemini": ".gemini/tmp/*/chats/*.jsonl",
            "opencode": ".local/share/opencode/opencode.db*",
        }
        return any(b"test -e began" in found.read_bytes() for found in bench.user.glob(places[self.coder]))

    def test_a_conversation_is_resumed_after_a_kill_in_a_tool(self, bench: Bench) -> None:
        """kill -9 of the program: its tool is ended, and the next session goes on with the conversation."""
        uid = bench.add(self.coder, STAYS_ONCE)
        killed: list[int] = []

        def kill_once(reads: Reads) -> bool:
            if not killed and began(bench)(reads) and self.has_written_it_down(bench):
                (live,) = reads.sessions(live=True)
                killed.append(live.pid or 0)
                kill(killed[0])
            return reads.task(uid).state is TaskState.COMPLETED

        bench.run(kill_once)
        first, second = bench.sessions(uid)
        assert (first.outcome, second.outcome) == ("crashed", "ok")
        assert not lives(int((bench.work / "began").read_text()))
        assert (bench.work / "OUT.txt").exists()
        assert "Go on with task" not in bench.asked()[0].text
        assert all(words in bench.asked()[1].text for words in ("test -e began", "@@script", "Go on with task"))

    def test_a_conversation_goes_on_when_its_question_is_answered(self, bench: Bench) -> None:
        """The task waits; the next session has the answer in its prompt, in the same conversation."""
        uid = bench.add(self.coder, script("fleet ask 'Which colour?'", {"text": "I have asked."}))
        bench.run()
        (first,) = bench.sessions(uid)
        block = bench.task(uid).block
        assert block is not None
        assert (block.text, block.by) == ("Which colour?", f"{self.coder} in {first.id}")
        bench.fleet("answer", uid, f"Blue. {FINISHES}")
        bench.run()
        assert [session.outcome for session in bench.sessions(uid)] == ["ok", "ok"]
        assert (bench.work / "OUT.txt").exists()
        resumed = bench.asked()[2].text
        assert all(words in resumed for words in ("I have asked.", "## Q: Which colour?", "Blue. @@script"))

    def test_nothing_is_left_of_a_session_that_is_stopped(self, bench: Bench) -> None:
        """Told to stop its agents, the supervisor ends the program, its tool and the tool's own child; no attempt."""
        uid = bench.add(self.coder, STAYS_ONCE)
        bench.run(began(bench))
        assert bench.agents() == []
        assert not lives(int((bench.work / "began").read_text()))
        bench.nothing_left()
        assert bench.task(uid).state is TaskState.QUEUED
        assert bench.task(uid).charged == 0

    def test_an_agent_outlives_its_supervisor(self, bench: Bench) -> None:
        """kill -9 of the supervisor: the agent works on, and the next one takes it over and reads it to its end."""
        uid = bench.add(self.coder, script("touch began; until test -e go; do sleep 0.1; done", *FINISH))
        with bench.supervisor_process() as supervisor:
            until((bench.work / "began").exists, "the tool", seconds=60)
            if not self.tells_calls_late:
                until(lambda: "tool_started" in [said["kind"] for said in bench.said(uid)], "the record of the tool")
            supervisor.kill()
            supervisor.wait(10)
        (left,) = bench.sessions(uid)
        assert left.state in LIVE
        assert lives(left.pid or 0)
        (bench.work / "go").touch()
        bench.run()
        (session,) = bench.sessions(uid)
        assert (session.outcome, session.pid, session.epoch) == ("ok", left.pid, left.epoch + 1)
        assert bench.receipt(uid).usage.tool_calls == 2
        assert [said["kind"] for said in bench.said(uid)].count("tool_started") == 2

    def test_a_large_prompt_arrives_whole(self, bench: Bench) -> None:
        """200 KB, which no argument can hold."""
        text = "A long story. " * 15_000
        uid = bench.add(self.coder, f"{text}\nThe end of the story.\n{WRITES}")
        bench.run()
        assert bench.receipt(uid).result is Result.PASS
        assert text in bench.asked()[0].text
        assert "The end of the story." in bench.asked()[0].text
