"""What claude's screen says, as it was recorded from version 2.1.325, and what a session on a terminal comes to."""

from __future__ import annotations

import json

import pytest

from fleet.coders import hooks
from fleet.coders.claude import Claude
from fleet.coders.coder import Exit, Work
from fleet.coders.terminal import State, TerminalCoder, plain_screen
from fleet.model.outcome import OutcomeKind

RULE = "─" * 120
TRUST = f"""
{RULE}
 Accessing workspace:

 /srv/kite

 Quick safety check: Is this a project you created or one you trust? (Like your own code, a well-known open source
 project, or work from your team). If not, take a moment to review what's in this folder first.

 Claude Code'll be able to read, edit, and execute files here.

 Security guide

 ❯ No, exit
   Yes, I trust this folder

 Enter to confirm · Esc to cancel
"""
KEY = f"""{RULE}
  Detected a custom API key in your environment
  ANTHROPIC_API_KEY: sk-ant-...abcdefghij1234567890
  Do you want to use this API key?
    Yes
  ❯ No (recommended)
  Enter to confirm · Esc to cancel
"""
READY = f"""
 ▐▛███▛█   Claude Code v2.1.325
▝▜██████▀  Haiku 4.5 · API Usage Billing
 ▝▝   ▝▝   /srv/kite

{RULE}
❯ {{typed}}
{RULE}
  ⏵⏵ bypass permissions on (shift+tab to cycle) · ← for agents
"""
BUSY = f"""
  Running echo hi > OUT.txt; sleep 3
  ⎿  $ echo hi > OUT.txt; sleep 3

* Infusing… (1s · ↓ 10 tokens)

{RULE}
❯\u00a0
{RULE}
  paste again to expand
"""
DONE = f"""
● All done.

✻ Cogitated for 4s · done 9:10 PM

{RULE}
❯\u00a0
{RULE}
  ⏵⏵ bypass permissions on (shift+tab to cycle)
"""
LOGIN = READY.replace("/srv/kite", "/srv/kite\n          Not logged in · Run /login")
SCREENS = [
    (TRUST, "trust", ("Down", "Enter"), ""),
    (TRUST.replace("❯ No", "  No").replace("  Yes", "❯ Yes"), "trust", ("Enter",), ""),
    (KEY, "question", ("Up", "Enter"), ""),
    (READY.format(typed=""), "ready", (), ""),
    (READY.format(typed="[Pasted text #1 +3 lines]"), "ready", (), "[Pasted text #1 +3 lines]"),
    (BUSY, "busy", (), ""),
    (DONE, "ready", (), ""),
    (LOGIN.format(typed=""), "login", (), ""),
    ("", "starting", (), ""),
    (" loading", "starting", (), ""),
]


@pytest.mark.parametrize(("text", "kind", "keys", "typed"), SCREENS)
def test_screens(text: str, kind: str, keys: tuple[str, ...], typed: str) -> None:
    """Each screen is known for what it is, with the keys that say yes and what stands in the input."""
    seen = Claude().screen(text)
    assert (seen.kind, seen.keys, seen.typed) == (kind, keys, typed)


def test_a_program_that_nothing_is_known_of() -> None:
    """It is ready when its last line is a prompt."""
    assert plain_screen("hello\n> ").kind == "ready"
    assert plain_screen("hello\n> half a line").typed == "half a line"
    assert plain_screen("compiling 3 of 9").kind == "busy"
    assert plain_screen("").kind == "starting"


def test_its_hooks_call_the_worker() -> None:
    """Every event that the states are made of has a command, also in a directory whose name has blanks."""
    files = TerminalCoder(Claude(), "/srv/my kite").files
    told = json.loads(files["claude-hooks.json"])["hooks"]
    assert set(told) == {"UserPromptSubmit", "PostToolUse", "Notification", "Stop", "StopFailure"}
    assert told["Stop"][0]["hooks"][0]["command"] == "sh '/srv/my kite/worker.sh' hook Stop"


def test_it_is_started_without_its_task() -> None:
    """The launch has no prompt in it: that is given on the terminal."""
    coder = TerminalCoder(Claude(), "/srv/kite-1")
    launch = coder.launch(
        Work(task="t", session="t.1", prompt="secret plan", cwd="/srv", new_uuid="u-1", model="haiku")
    )
    assert launch.argv[:3] == ("claude", "--settings", "/srv/kite-1/claude-hooks.json")
    assert "secret plan" not in " ".join(launch.argv)
    assert launch.prompt == ""


def test_what_it_came_to() -> None:
    """A turn that was seen to end is ok; a program that ended by itself is not, whatever its exit code."""
    coder = TerminalCoder(Claude(), "/srv/kite-1")
    done = State(given=True, completed=True, said="All done.")
    assert coder.outcome(done, Exit(code=0), "").kind is OutcomeKind.OK
    assert coder.outcome(done, Exit(code=0), "").reason == "All done."
    assert coder.outcome(State(given=True), Exit(code=0), "").kind is OutcomeKind.CRASHED
    assert coder.outcome(State(given=True, failed="its turn failed"), Exit(code=0), "").kind is OutcomeKind.CRASHED
    assert coder.outcome(done, Exit(code=0, stopped_for="interrupted"), "").kind is OutcomeKind.INTERRUPTED


def test_what_its_hooks_tell() -> None:
    """The prompt that was submitted and the last words; what is no JSON tells nothing."""
    assert hooks.received(b'{"prompt": "fix\\nit"}') == "fix\nit"
    assert hooks.received(b"") is None
    assert hooks.received(b"{") is None
    assert hooks.last_words(b'{"last_assistant_message": "All done."}') == "All done."


def test_its_own_record_is_its_stream() -> None:
    """A line of the record is parsed as one of the stream, and the cursor counts it."""
    coder = TerminalCoder(Claude(), "/srv/kite-1")
    line = json.dumps(
        {"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": "Hi"}]}}
    ).encode()
    assert coder.aside(State()) is None
    state, said = coder.parse_aside(State(given=True), line)
    assert [getattr(each, "text", "") for each in said] == ["Hi"]
    assert (state.cursor, coder.parse_aside(state, line)[0].cursor) == (len(line) + 1, 2 * (len(line) + 1))


def test_the_prompts_in_its_record() -> None:
    """Texts of the user's turns, in either shape; results of tools and broken lines are none."""
    lines = [
        {"type": "user", "message": {"role": "user", "content": "fix\nit"}},
        {"type": "user", "message": {"content": [{"type": "text", "text": "more"}]}},
        {"type": "user", "message": {"content": [{"type": "tool_result", "content": "x"}]}},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "no"}]}},
    ]
    data = "\n".join(json.dumps(line) for line in lines).encode() + b"\n{half"
    assert Claude().asked(data) == ["fix\nit", "more"]
    assert hooks.record(b'{"transcript_path": "/x.jsonl"}') == "/x.jsonl"
    assert hooks.record(b"") == ""
