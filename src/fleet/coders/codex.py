"""OpenAI's codex (`codex exec --json`), as of 0.166.

Its stream has no cost, no size of the context and no sign of compaction; rollout.py reads the last two elsewhere. Usage
is the sum over the whole thread, also across `exec resume`. Failures are told in prose, so they are judged by their
words. Fleet starts it without its sandbox, save where the task may only read; a command that the sandbox refused is not
in the stream at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from fleet.coders import clocks, rollout, windows
from fleet.coders.argv import fits
from fleet.coders.coder import Aside, Exit, Work
from fleet.coders.following import called, followed, launched
from fleet.coders.judging import by_error, by_exit, by_finish, by_stop
from fleet.coders.permissions import judged, limited, refuse
from fleet.coders.reading import Line, count, number, reader, table, tables, words
from fleet.coders.shortening import one_line, short, short_json
from fleet.coders.tally import Tally
from fleet.model.launch import Launch
from fleet.model.outcome import Outcome
from fleet.model.permission import Permission
from fleet.model.stream import (
    AnySaid,
    Limited,
    Notice,
    Retrying,
    Started,
    Text,
    Thinking,
    ToolEnded,
    ToolStarted,
    TurnEnded,
)

FLAGS = (
    "--json",
    "--skip-git-repo-check",
    "--disable",
    "plugins",  # else it waits seconds for the network at its end
    "-c",
    "check_for_update_on_startup=false",
    "-c",
    "analytics.enabled=false",
    "-c",
    "allow_login_shell=false",  # a login shell sets PATH anew, and the `fleet` of the session is on it no more
)
SECRETS = ("OPENAI_API_KEY", "CODEX_API_KEY", "OPENAI_BASE_URL")
TOOLS = frozenset({"command_execution", "file_change", "mcp_tool_call", "web_search", "collab_tool_call"})
RECONNECTING = re.compile(r"Reconnecting\.\.\. (?:(\d+)/\d+ )?(?:waiting for network )?\(?(.*?)\)?$", re.DOTALL)
SAME_RESET_MS = 60_000  # two guesses of one reset differ by less


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the parser is."""

    coder_session: str | None = None
    told: Tally = Tally()  # since the thread began, over all its sessions
    noted: int = 0  # bytes of the thread's own file that have been read
    limits: tuple[Limited, ...] = ()  # of the plan, as last told
    open_calls: tuple[str, ...] = ()
    error: str = ""  # the last one that was no retry
    waiting: str = ""  # what it retries, without end when the network is gone
    failed: str | None = None  # what the last turn failed with; empty: it was completed; None: no turn has ended
    final_text: str = ""


class Spoken(Line, frozen=True):
    """The fields of a line that are used."""

    thread_id: Any = None
    item: Any = None
    usage: Any = None
    error: Any = None
    message: Any = None


Step = tuple[State, tuple[AnySaid, ...]]
read = reader(Spoken)


class Codex:
    """OpenAI's coding agent."""

    name = "codex"
    secrets = SECRETS
    default_model: str | None = None
    state_type = State
    resumable = True

    def permissions(self, tools: tuple[str, ...], profile: str | None) -> tuple[Permission, ...]:
        """The profile, by its sandbox: that limits what a command may touch, not which tools there are."""
        return judged(tools, profile, profile_by="its sandbox")

    def launch(self, work: Work) -> Launch:
        """`codex exec`, or `codex exec resume`, which takes its directory from the process."""
        refuse(self, work)
        on_stdin = not fits(work.prompt)
        argv = [work.program or "codex", "exec", *(("resume",) if work.resume else ()), *FLAGS, *_sandbox(work)]
        argv += ["-m", work.model] if work.model else []
        argv += ["--", *((work.resume,) if work.resume else ()), "-" if on_stdin else work.prompt]
        return launched(work, argv, on_stdin=on_stdin, secrets=SECRETS)

    def begin(self, before: State | None = None) -> State:
        """Nothing told yet, save what the thread's earlier sessions told."""
        return State(coder_session=before.coder_session, told=before.told, noted=before.noted) if before else State()

    def parse(self, state: State, line: bytes) -> tuple[State, tuple[AnySaid, ...]]:
        """One line of `--json`."""
        return followed(STEPS, state, read(line))

    def aside(self, state: State) -> Aside | None:
        """The file in which it keeps the thread, its own name for which is only known from its first line."""
        return (
            Aside(("sh", "-c", rollout.FIND, "sh", state.coder_session), state.noted) if state.coder_session else None
        )

    def parse_aside(self, state: State, line: bytes) -> tuple[State, tuple[AnySaid, ...]]:
        """One line of that file: how full the context is, what is left of the plan, and that it was compacted."""
        said = rollout.parse(line)
        limits = tuple(each for each in said if isinstance(each, Limited)) or state.limits
        news = tuple(each for each in said if not (isinstance(each, Limited) and _is_known(each, state.limits)))
        return replace(state, noted=state.noted + len(line) + 1, limits=limits), news

    def outcome(self, state: State, exit: Exit, stderr: str) -> Outcome:
        """By the last turn's end, then by an error without one, then by the exit code and stderr."""
        if stopped := by_stop(exit, stderr, waiting=state.waiting):
            return stopped
        if state.failed == "":
            return by_finish(state.final_text)
        if state.failed or (exit.code and (state.error or state.waiting)):
            said = state.failed or state.error or state.waiting
            return by_error(said, resets_at=_resets_at(state, said, exit))
        return by_exit(exit, stderr)

    def context_limit(self, model: str | None) -> int | None:
        """The usable part of the model's window."""
        return windows.codex(model)


def _resets_at(state: State, said: str, exit: Exit) -> int | None:
    """By the windows that are used up, where it wrote that down; else by its words, which give a time of day."""
    used_up = [each.resets_at for each in state.limits if each.rejected and each.resets_at]
    return max(used_up) if used_up else clocks.resets_at(said, exit.at, exit.utc_offset_seconds)


def _sandbox(work: Work) -> tuple[str, ...]:
    """None; or one that lets it read everything and write only where it must. `exec resume` knows no `--sandbox`."""
    if not limited(work):
        return ("--dangerously-bypass-approvals-and-sandbox",)
    files = {":root": "read", **dict.fromkeys(work.writable, "write")}
    table = ", ".join(f"{json.dumps(path)} = {json.dumps(right)}" for path, right in files.items())
    settings = {
        "approval_policy": '"never"',
        "default_permissions": '"fleet"',
        "permissions.fleet.filesystem": f"{{{table}}}",
        "permissions.fleet.network.enabled": "true",
    }
    return tuple(word for name, value in settings.items() for word in ("-c", f"{name}={value}"))


def _thread_started(state: State, line: Spoken) -> Step:
    thread = words(line.thread_id) or None
    told = state.told if thread == state.coder_session else Tally()  # another thread counts from nothing
    return replace(state, coder_session=thread, told=told), (Started(coder_session=thread),)


def _turn_started(state: State, _line: Spoken) -> Step:
    return replace(state, failed=None, error=""), ()


def _turn_completed(state: State, line: Spoken) -> Step:
    usage = table(line.usage)
    cached = count(usage.get("cached_input_tokens"))
    total = Tally(max(0, count(usage.get("input_tokens")) - cached), cached, count(usage.get("output_tokens")))
    known = state.told if total.at_least(state.told) == total else Tally()  # it shrank: counted anew
    ended = TurnEnded(ok=True, reason="completed", final_text=state.final_text or None)
    return replace(state, told=total, failed="", waiting=""), (*total.beyond(known), ended)


def _turn_failed(state: State, line: Spoken) -> Step:
    reason = one_line(words(table(line.error).get("message"))) or state.error or "the turn failed"
    return replace(state, failed=reason), (TurnEnded(ok=False, reason=reason),)


def _error(state: State, line: Spoken) -> Step:
    """A retry, or the words that `turn.failed` will repeat."""
    message = words(line.message)
    if again := RECONNECTING.match(message):
        reason = one_line(again[2])
        said = Retrying(reason=reason, attempt=int(again[1]) if again[1] else None)
        return (state if state.waiting == reason else replace(state, waiting=reason)), (said,)
    return replace(state, error=one_line(message) or "unknown error"), (Notice(text=one_line(message)),)


def _item(state: State, line: Spoken) -> Step:
    item = table(line.item)
    state = replace(state, waiting="") if state.waiting else state
    kind, text = words(item.get("type")), words(item.get("text")) or words(item.get("message"))
    if kind in TOOLS:
        return _tool(state, item, done=line.type == "item.completed")
    if line.type != "item.completed" or not text:
        return state, ()
    if kind == "agent_message":
        return replace(state, final_text=short(text)), (Text(text=short(text)),)
    if kind == "reasoning":
        return state, (Thinking(text=short(text)),)
    return state, ((Notice(text=one_line(text)),) if kind == "error" else ())


def _tool(state: State, item: dict[str, Any], *, done: bool) -> Step:
    call = words(item.get("id"))
    started = ToolStarted(id=call, name=_tool_name(item), input=_tool_input(item))
    ended = ToolEnded(id=call, ok=_went_well(item), output=_tool_output(item)) if done else None
    calls, said = called(state.open_calls, started, ended)
    return (state if calls == state.open_calls else replace(state, open_calls=calls)), said


def _went_well(item: dict[str, Any]) -> bool:
    return item.get("status") not in ("failed", "declined") and not item.get("exit_code") and not item.get("error")


def _tool_name(item: dict[str, Any]) -> str:
    if item.get("type") == "mcp_tool_call":
        return f"{words(item.get('server'))}.{words(item.get('tool'))}"
    return {"command_execution": "shell"}.get(words(item.get("type")), words(item.get("type")))


def _tool_input(item: dict[str, Any]) -> str:
    if changes := tables(item.get("changes")):
        return short(", ".join(f"{words(each.get('kind'))} {words(each.get('path'))}" for each in changes), 1024)
    return short_json(item.get("command") or item.get("query") or item.get("arguments"))


def _is_known(limit: Limited, told: tuple[Limited, ...]) -> bool:
    """Whether it was told before: codex repeats the plan's limits with every reply, and guesses the reset anew."""
    return any(
        replace(limit, resets_at=known.resets_at) == known
        and abs((limit.resets_at or 0) - (known.resets_at or 0)) <= SAME_RESET_MS
        for known in told
    )


def _tool_output(item: dict[str, Any]) -> str:
    code = number(item.get("exit_code"))
    output = short_json(item.get("aggregated_output") or item.get("error") or item.get("result"), 4096)
    return f"{output}\nexit code {code}".lstrip() if code else output


STEPS: dict[str, Callable[[State, Any], Step]] = {
    "thread.started": _thread_started,
    "turn.started": _turn_started,
    "turn.completed": _turn_completed,
    "turn.failed": _turn_failed,
    "error": _error,
    "item.started": _item,
    "item.updated": _item,
    "item.completed": _item,
}
