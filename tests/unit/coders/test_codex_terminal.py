"""What codex shows on a terminal, as it was recorded from version 0.166, and what its file of a thread tells."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fleet.coders.coder import Exit, Work
from fleet.coders.codex import Codex
from fleet.coders.terminal import State, TerminalCoder
from fleet.errors import UsageError
from fleet.model.outcome import OutcomeKind
from fleet.model.stream import AnySaid, Text, ToolEnded, ToolStarted, TurnEnded, Used

LOADING = """
  >_ OpenAI Codex (v0.166.0)
     /srv/kite

› Ask Codex to do anything

  ? for shortcuts
"""
TRUST = """
  Folder access
  /srv/kite
  Trust this folder? Codex can read, edit, and run files here, subject to your permission settings.

› 1. Trust and continue
  2. Quit

  enter continue · esc quit
"""
MODEL = """
  Meet GPT-6 Sol

  Our latest Sol is more intelligent and more efficient so your usage limits go further.

› 1. Try new model
  2. Use existing model

  enter/esc confirm · ^c quit
"""
READY = """
› say hi

• There is no script in the prompt.
  Worked for <1s • 03:54

› {typed}

  GPT-5.5 default · /srv/kite
  ? for shortcuts                                                                              ⚠ 3 warnings · f2 to view
"""
BUSY = """
• Ran echo x >OUT
  └ (no output)

• Working (3s • esc to interrupt) · 1 background terminal running · /ps to view · /stop to close

› Ask Codex to do anything

  GPT-5.5 default · /srv/kite
"""
LOGIN = """
  Welcome to Codex, OpenAI's command-line coding agent
  Choose how you want to use Codex.
> 1. Sign in with ChatGPT
  2. Sign in with Device Code
  Press enter to continue
"""
SCREENS = [
    (LOADING, "starting", (), ""),
    (TRUST, "trust", ("Enter",), ""),
    (TRUST.replace("› 1", "  1").replace("  2. Quit", "› 2. Quit"), "trust", ("Up", "Enter"), ""),
    (MODEL, "question", ("Down", "Enter"), ""),
    (READY.format(typed="Ask Codex to do anything"), "ready", (), ""),
    (READY.format(typed="[Pasted Content 10123 chars]"), "ready", (), "[Pasted Content 10123 chars]"),
    (BUSY, "busy", (), ""),
    (LOGIN, "login", (), ""),
    ("", "starting", (), ""),
]
USAGE = {"input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 7}


def line(kind: str, **payload: Any) -> bytes:
    """A line of its file of a thread."""
    return json.dumps({"timestamp": "2026-11-16T03:54:18.566Z", "type": kind, "payload": payload}).encode()


def message(role: str, text: str) -> bytes:
    """A line with a message."""
    return line("response_item", type="message", role=role, content=[{"type": "input_text", "text": text}])


@pytest.mark.parametrize(("text", "kind", "keys", "typed"), SCREENS)
def test_screens(text: str, kind: str, keys: tuple[str, ...], typed: str) -> None:
    """Each screen is known for what it is, with the keys that say yes and what stands in the input."""
    seen = Codex().screen(text)
    assert (seen.kind, seen.keys, seen.typed) == (kind, keys, typed)


def test_its_hooks_are_among_its_words() -> None:
    """They call the worker, also in a directory whose name has blanks; its task is not there."""
    coder = TerminalCoder(Codex(), "/srv/my kite")
    launch = coder.launch(Work(task="t", session="t.1", prompt="secret plan", cwd="/srv", model="gpt-5.5"))
    stop = """hooks.Stop=[{hooks=[{type="command",command="sh '/srv/my kite/worker.sh' hook Stop",timeout=20}]}]"""
    assert stop in launch.argv
    assert "--dangerously-bypass-hook-trust" in launch.argv
    assert launch.argv[launch.argv.index("-m") + 1] == "gpt-5.5"
    assert "secret plan" not in " ".join(launch.argv)
    assert coder.files == {}


def test_one_that_may_only_read_is_refused() -> None:
    """The hooks that a repository brings would run outside of its sandbox."""
    work = Work(task="t", session="t.1", prompt="look", cwd="/srv", tool_profile="read-only")
    with pytest.raises(UsageError, match="codex` on a terminal cannot be kept from writing"):
        TerminalCoder(Codex(), "/srv/kite").launch(work)


@pytest.mark.parametrize(
    ("home", "file", "env"),
    [("/root", "/root/.codex/auth.json", {}), ("", "/srv/k/codex/auth.json", {"CODEX_HOME": "/srv/k/codex"})],
)
def test_its_login_is_a_file(home: str, file: str, env: dict[str, str]) -> None:
    """On a machine of its own it lies where codex looks; else in the worker's directory, which codex is told of."""
    coder = TerminalCoder(Codex(), "/srv/k", home=home, secret='{"OPENAI_API_KEY": "sk"}')
    assert coder.files == {file: b'{"OPENAI_API_KEY": "sk"}'}
    assert coder.launch(Work(task="t", session="t.1", prompt="x", cwd="/srv")).env == env


def test_its_file_of_a_thread_tells_a_turn() -> None:
    """What it says, its tools with their ends, the tokens as differences, and the end of its turn."""
    coder, state = TerminalCoder(Codex(), "/srv/k"), State(given=True)
    told: list[AnySaid] = []
    call = {"call_id": "c1", "name": "exec_command", "arguments": '{"cmd": "false"}'}
    output = "Chunk ID: 1\nWall time: 0.0 seconds\nProcess exited with code 1\nOutput:\nno"
    lines = [
        message("user", "fix it"),
        line("response_item", type="function_call", **call),
        line("response_item", type="function_call_output", call_id="c1", output=output),
        line("event_msg", type="token_count", info={"total_token_usage": USAGE}),
        line("event_msg", type="token_count", info={"total_token_usage": USAGE | {"output_tokens": 9}}),
        message("assistant", "All done."),
        line("event_msg", type="task_complete", last_agent_message="All done."),
        b"{half",
    ]
    for each in lines:
        state, said = coder.parse_aside(state, each)
        told += said
    assert told == [
        ToolStarted(id="c1", name="shell", input='{"cmd": "false"}'),
        ToolEnded(id="c1", ok=False, output=output),
        Used(input_tokens=60, cached_tokens=40, output_tokens=7),
        Used(output_tokens=2),
        Text(text="All done."),
        TurnEnded(ok=True, reason="completed", final_text="All done."),
    ]
    assert state.cursor == sum(len(each) + 1 for each in lines)
    assert state.error == ""


def test_a_turn_that_failed() -> None:
    """No hook tells of it: its own file does, and its words say of what kind it is. A later turn counts."""
    coder = TerminalCoder(Codex(), "/srv/k")
    error = {"message": "unexpected status 401 Unauthorized: Incorrect API key provided"}
    failed, _ = coder.parse_aside(
        State(given=True), line("event_msg", type="task_complete", last_agent_message=None, error=error)
    )
    assert failed.error == error["message"]
    assert coder.outcome(failed, Exit(code=0), "").kind is OutcomeKind.AUTH
    better, _ = coder.parse_aside(failed, line("event_msg", type="task_complete", last_agent_message="Done."))
    assert better.error == ""


def test_the_prompts_in_its_record() -> None:
    """Those of its user; what codex itself says in the user's name, and what others say, are none."""
    lines = [
        message("user", "<environment_context>\n  <cwd>/srv</cwd>"),
        message("user", "fix\nit"),
        message("developer", "be good"),
        message("assistant", "no"),
        b"{half",
    ]
    assert Codex().asked(b"\n".join(lines)) == ["fix\nit"]
