"""opencode (`opencode run --format json`), as of 1.18: every step has its own usage, and there is no result line."""

from __future__ import annotations

import json
import os.path
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

import msgspec
from msgspec.structs import replace

from fleet.coders import windows
from fleet.coders.coder import Exit, Work
from fleet.coders.following import called, followed, launched
from fleet.coders.judging import by_error, by_exit, by_finish, by_stop
from fleet.coders.permissions import judged, limited, named, refuse
from fleet.coders.reading import Line, count, micro, number, reader, table, words
from fleet.coders.shortening import one_line, short, short_json
from fleet.model.launch import Launch
from fleet.model.outcome import Outcome, OutcomeKind
from fleet.model.permission import Permission
from fleet.model.stream import (
    AnySaid,
    Context,
    Denied,
    Started,
    Text,
    Thinking,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    Used,
)

SECRETS = ("OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY")
ENV = {"OPENCODE_DISABLE_AUTOUPDATE": "1"}
READING = ("read", "glob", "grep", "list", "todowrite", "todoread", "task", "external_directory")
KINDS = {"read": (), "edit": ("edit",), "shell": ("bash",), "web": ("webfetch", "websearch")}
RULES = "its permission rules"
DENIALS = ("The user has specified a rule which prevents you", "Model tried to call unavailable tool")
NAMED = {
    "ContextOverflowError": OutcomeKind.CONTEXT,
    "MessageOutputLengthError": OutcomeKind.CONTEXT,
    "ContentFilterError": OutcomeKind.REFUSAL,
    "ProviderAuthError": OutcomeKind.AUTH,
    "MessageAbortedError": OutcomeKind.INTERRUPTED,
}
FINISHED = {
    "content-filter": (OutcomeKind.REFUSAL, "the provider's content filter stopped it"),
    "length": (OutcomeKind.CONTEXT, "its reply was cut at the longest one allowed"),
}


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error line, in what decides."""

    name: str = ""
    status: int | None = None
    text: str = ""


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the parser is."""

    coder_session: str | None = None
    finish: str = ""  # why the last step ended; `stop` is the end of the turn
    failure: Failure | None = None  # an error that no step has followed
    open_calls: tuple[str, ...] = ()
    tools_ok: int = 0
    denied: str = ""  # the last tool that was not allowed
    final_text: str = ""


class Spoken(Line, frozen=True):
    """The fields of a line that are used."""

    session: Any = msgspec.field(default=None, name="sessionID")
    part: Any = None
    error: Any = None


Step = tuple[State, tuple[AnySaid, ...]]
read = reader(Spoken)


class Opencode:
    """The open coding agent for many providers."""

    name = "opencode"
    secrets = SECRETS
    default_model: str | None = None
    state_type = State
    resumable = True

    def permissions(self, tools: tuple[str, ...], profile: str | None) -> tuple[Permission, ...]:
        """Both, by its rules: what they do not allow is denied."""
        return judged(tools, profile, tools_by=RULES, profile_by=RULES)

    def launch(self, work: Work) -> Launch:
        """`opencode run`. The prompt goes to stdin: as an argument with blanks it is put in quotes."""
        refuse(self, work)
        argv = [work.program or "opencode", "run", "--format", "json", "--thinking", "--auto"]
        argv += ["--model", work.model] if work.model else []
        argv += ["--session", work.resume] if work.resume else []
        return launched(work, argv, on_stdin=True, env=ENV | _permission(work), secrets=SECRETS)

    def begin(self, before: State | None = None) -> State:  # noqa: ARG002 (the contract gives it)
        """Nothing to carry: usage comes by the step."""
        return State()

    def parse(self, state: State, line: bytes) -> tuple[State, tuple[AnySaid, ...]]:
        """One line of `--format json`."""
        spoken = read(line)
        session = words(spoken.session) if spoken is not None and spoken.type in STEPS else ""
        if not session or session == state.coder_session:
            return followed(STEPS, state, spoken)
        state, said = followed(STEPS, replace(state, coder_session=session), spoken)
        return state, (Started(coder_session=session), *said)

    def outcome(self, state: State, exit: Exit, stderr: str) -> Outcome:
        """By the last error, then by how the last step ended, then by the exit code and stderr."""
        if stopped := by_stop(exit, stderr):
            return stopped
        if state.failure:
            return _by_failure(state.failure)
        if state.finish == "stop":
            return by_finish(state.final_text, denied=state.denied, worked=state.tools_ok > 0)
        if state.finish in FINISHED:
            kind, reason = FINISHED[state.finish]
            return Outcome(kind=kind, reason=reason)
        return by_exit(exit, stderr)

    def context_limit(self, model: str | None) -> int | None:
        """The model's window, where the name tells its vendor."""
        return windows.any_vendor(model)


def _permission(work: Work) -> dict[str, str]:
    """Its rules, of which the last that fits counts: reading, what is named, and no more. A repository has no say."""
    if not limited(work):
        return {}
    wanted = named(work.tools)
    rules: dict[str, Any] = {"*": "deny", **dict.fromkeys(READING, "allow"), **dict.fromkeys(wanted.own, "allow")}
    rules["edit"] = {"*": "deny"} | {
        f"{path}/**": "allow" for place in work.writable for path in _seen(place, work.cwd)
    }
    rules["bash"] = {"*": "deny"} | {line: "allow" for each in wanted.programs for line in (each, f"{each} *")}
    rules["bash"]["*>*"] = "deny"  # a redirection writes, whatever the program
    rules |= {tool: "allow" for kind in wanted.kinds for tool in KINDS[kind]}
    return {"OPENCODE_PERMISSION": json.dumps(rules), "OPENCODE_DISABLE_PROJECT_CONFIG": "1"}


def _seen(place: str, cwd: str) -> list[str]:
    """A directory as its rules may see it: from the repository's root, which is the task's directory or above it."""
    here = PurePosixPath(cwd)
    return [os.path.relpath(place, above) for above in (here, *here.parents)]


def _by_failure(failure: Failure) -> Outcome:
    if failure.name in NAMED:
        return Outcome(kind=NAMED[failure.name], reason=failure.text or failure.name)
    return by_error(failure.text or failure.name, failure.status)


def _step_start(state: State, _line: Spoken) -> Step:
    if not state.finish and state.failure is None:
        return state, ()
    return replace(state, finish="", failure=None), ()


def _text(state: State, line: Spoken) -> Step:
    text = short(words(table(line.part).get("text")))
    return (replace(state, final_text=text), (Text(text=text),)) if text else (state, ())


def _reasoning(state: State, line: Spoken) -> Step:
    text = short(words(table(line.part).get("text")))
    return state, (Thinking(text=text),) if text else ()


def _tool_use(state: State, line: Spoken) -> Step:
    """A call is mostly told when it is over: its start is told with it."""
    part = table(line.part)
    call, tool, now = words(part.get("callID")), words(part.get("tool")), table(part.get("state"))
    status, error = now.get("status"), words(now.get("error"))
    ended = None
    if status in ("completed", "error"):
        ended = ToolEnded(id=call, ok=status == "completed", output=short(words(now.get("output")) or error))
    calls, said = called(state.open_calls, ToolStarted(id=call, name=tool, input=short_json(now.get("input"))), ended)
    if error.startswith(DENIALS):
        return replace(state, open_calls=calls, denied=tool), (*said, Denied(tool=tool, reason=one_line(error)))
    right = state.tools_ok + (ended is not None and ended.ok)
    if (calls, right) == (state.open_calls, state.tools_ok):
        return state, said
    return replace(state, open_calls=calls, tools_ok=right), said


def _step_finish(state: State, line: Spoken) -> Step:
    part = table(line.part)
    tokens = table(part.get("tokens"))
    cache = table(tokens.get("cache"))
    used = Used(
        input_tokens=count(tokens.get("input")) + count(cache.get("write")),
        cached_tokens=count(cache.get("read")),
        output_tokens=count(tokens.get("output")) + count(tokens.get("reasoning")),
        cost_microusd=micro(part.get("cost")),
    )
    reason = words(part.get("reason"))
    said: list[AnySaid] = [used] if used != Used() else []
    if total := number(tokens.get("total")):
        said.append(Context(tokens=total))
    if reason == "stop":
        said.append(TurnEnded(ok=True, reason=reason, final_text=state.final_text or None))
    return replace(state, finish=reason), tuple(said)


def _error(state: State, line: Spoken) -> Step:
    error = table(line.error)
    data = table(error.get("data"))
    text = one_line(words(data.get("message")) or words(error.get("message")))
    failure = Failure(name=words(error.get("name")), status=number(data.get("statusCode")), text=text)
    return replace(state, failure=failure), (TurnEnded(ok=False, reason=text or failure.name),)


STEPS: dict[str, Callable[[State, Any], Step]] = {
    "step_start": _step_start,
    "text": _text,
    "reasoning": _reasoning,
    "tool_use": _tool_use,
    "step_finish": _step_finish,
    "error": _error,
}
