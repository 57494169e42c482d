"""Google's Antigravity CLI (`agy`), by what is publicly reported of 1.1.8 to 1.2.17; check it against your version.

Fleet starts only the official program that you installed and signed in to. Its reported lies are guarded against:
its own time-out and denied tools both give exit code 0 and SUCCESS, with the truth on stderr or in `denied_actions`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from fleet.coders import windows
from fleet.coders.argv import fits
from fleet.coders.coder import Exit, Work
from fleet.coders.following import called, followed, launched
from fleet.coders.judging import by_error, by_exit, by_finish, by_stop
from fleet.coders.permissions import judged, refuse
from fleet.coders.reading import Line, count, number, reader, table, tables, words
from fleet.coders.shortening import one_line, short, short_json
from fleet.coders.tally import Tally
from fleet.model.launch import Launch
from fleet.model.outcome import Outcome, OutcomeKind
from fleet.model.permission import Permission
from fleet.model.stream import AnySaid, Context, Denied, Started, Text, ToolEnded, ToolStarted, TurnEnded

PRINT_TIMEOUT = "24h"  # of its own; the default is five minutes, and Fleet has its own clocks
EFFORT = "medium"  # a model without an effort is reported to be ignored
TIMED_OUT = re.compile(r"\[agy\] print timeout after.*")
FATAL = re.compile(r"AGY_ERROR:\s*(.*)")
QUOTA_EXIT = 3


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the parser is."""

    coder_session: str | None = None
    told: Tally = Tally()
    open_calls: tuple[str, ...] = ()
    tools_ok: int = 0
    denied: str = ""  # the last tool that was not allowed
    response: str = ""
    failed: str | None = None  # what the result failed with; empty: SUCCESS; None: there is no result


class Spoken(Line, frozen=True):
    """The fields of a line that are used; the payload stands under the event's own name."""

    type: str = msgspec.field(default="", name="event")
    conversation_id: Any = None
    init: Any = None
    step_update: Any = None
    result: Any = None


Step = tuple[State, tuple[AnySaid, ...]]
read = reader(Spoken)


class Agy:
    """Google's Antigravity agent."""

    name = "agy"
    secrets: tuple[str, ...] = ()  # it signs in by itself and is reported to ignore keys
    default_model: str | None = None
    state_type = State
    resumable = True

    def permissions(self, tools: tuple[str, ...], profile: str | None) -> tuple[Permission, ...]:
        """Neither: no flag for them is known."""
        return judged(tools, profile)

    def launch(self, work: Work) -> Launch:
        """`agy -p`; a prompt that is no argument goes to stdin as a line of its input format."""
        refuse(self, work)
        on_stdin = not fits(work.prompt)
        argv = [work.program or "agy"]
        argv += ["--input-format", "stream-json"] if on_stdin else ["-p", work.prompt]
        argv += ["--output-format", "stream-json", "--dangerously-skip-permissions"]
        argv += ["--print-timeout", PRINT_TIMEOUT, "--add-dir", work.cwd]
        argv += ["--model", work.model, "--effort", EFFORT] if work.model else []
        argv += ["--conversation", work.resume] if work.resume else []
        return launched(work, argv, on_stdin=on_stdin, prompt=_as_line(work.prompt) if on_stdin else None)

    def begin(self, before: State | None = None) -> State:  # noqa: ARG002 (the contract gives it)
        """Nothing told."""
        return State()

    def parse(self, state: State, line: bytes) -> tuple[State, tuple[AnySaid, ...]]:
        """One line of stream-json."""
        return followed(STEPS, state, read(line))

    def outcome(self, state: State, exit: Exit, stderr: str) -> Outcome:
        """By what only stderr tells, then by the result, then by the exit code."""
        if stopped := by_stop(exit, stderr):
            return stopped
        if late := TIMED_OUT.search(stderr):
            return Outcome(kind=OutcomeKind.STALLED, reason=one_line(late[0]))
        if fatal := FATAL.search(stderr):
            return _fatal(fatal[1], exit)
        if state.failed:
            return by_error(state.failed)
        if state.failed is None:
            return by_exit(exit, stderr)
        return by_finish(state.response, denied=state.denied, worked=bool(state.response and state.tools_ok))

    def context_limit(self, model: str | None) -> int | None:
        """The model's window, where the name tells its vendor."""
        return windows.any_vendor(model)


def _as_line(prompt: str) -> str:
    line = {"event": "user", "message": {"role": "user", "content": prompt}}
    return msgspec.json.encode(line).decode() + "\n"


def _fatal(text: str, exit: Exit) -> Outcome:
    """An AGY_ERROR line; with exit code 3 the quota is used up, however it is worded."""
    if exit.code == QUOTA_EXIT:
        return Outcome(kind=OutcomeKind.PLAN_LIMIT, reason=one_line(text) or "its quota is used up")
    return by_error(text or "it failed with AGY_ERROR")


def _init(state: State, line: Spoken) -> Step:
    session = words(line.conversation_id) or None
    model = words(table(line.init).get("model")) or None
    return replace(state, coder_session=session), (Started(coder_session=session, model=model),)


def _step_update(state: State, line: Spoken) -> Step:
    step = table(line.step_update)
    kind, over = step.get("step_type"), step.get("state") in ("DONE", "ERROR")
    said: list[AnySaid] = []
    if kind == "agent_response" and (text := words(step.get("text_delta"))):
        said.append(Text(text=short(text)))
    if kind in ("tool", "subagent"):
        state, told = _tool(state, step, over=over)
        said += told
    if over and (usage := table(step.get("usage"))):
        spent = _tally(usage)
        told_now = state.told.plus(spent)
        said += told_now.beyond(state.told)
        if prompt := spent.input_tokens + spent.cached_tokens:
            said.append(Context(tokens=prompt))
        state = replace(state, told=told_now)
    return state, tuple(said)


def _tool(state: State, step: dict[str, Any], *, over: bool) -> Step:
    call, info = f"step-{count(step.get('step_index'))}", table(step.get("tool_info"))
    name = words(step.get("tool_name")) or words(info.get("name")) or words(step.get("step_type"))
    ok = step.get("state") == "DONE" and not info.get("error")
    output = short_json(info.get("error") or info.get("output"), 4096)
    started = ToolStarted(id=call, name=name, input=short_json(info.get("parameters")))
    calls, said = called(state.open_calls, started, ToolEnded(id=call, ok=ok, output=output) if over else None)
    return replace(state, open_calls=calls, tools_ok=state.tools_ok + (over and ok)), said


def _tally(usage: dict[str, Any]) -> Tally:
    """Versions differ in whether the input holds what came from the cache: the total tells."""
    prompt, cached, output = (count(usage.get(f"{name}_tokens")) for name in ("input", "cache_read", "output"))
    total = number(usage.get("total_tokens"))
    apart = total is not None and total >= prompt + cached + output
    return Tally(prompt if apart else max(0, prompt - cached), cached, output)


def _result(state: State, line: Spoken) -> Step:
    result = table(line.result)
    said: list[AnySaid] = []
    for action in _actions(result.get("denied_actions")):
        said.append(Denied(tool=action))
        state = replace(state, denied=action)
    total = _tally(table(result.get("usage")))
    said += total.beyond(state.told)
    failed = "" if result.get("status") == "SUCCESS" else one_line(_error_text(result)) or "it failed"
    response = short(words(result.get("response")))
    said.append(TurnEnded(ok=not failed, reason=failed or "SUCCESS", final_text=response or None))
    return replace(state, told=total.at_least(state.told), failed=failed, response=response), tuple(said)


def _error_text(result: dict[str, Any]) -> str:
    error = result.get("error")
    return words(error) or words(table(error).get("message")) or words(result.get("response"))


def _actions(denied: Any) -> list[str]:
    """Names of denied tools; whether they are texts or objects is not told alike."""
    if not isinstance(denied, list):
        return []
    named = [words(each.get("tool_name")) or words(each.get("name")) or "a tool" for each in tables(denied)]
    return [one_line(each) for each in denied if isinstance(each, str)] + named


STEPS: dict[str, Callable[[State, Any], Step]] = {"init": _init, "step_update": _step_update, "result": _result}
