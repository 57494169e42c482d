"""Google's gemini CLI (`--output-format stream-json`), as of 0.61.

Its sums come once, at the end, and are of this process alone; the size of its context is in a file of its own. Its exit
code is the HTTP status modulo 256, and 0 when a signal ended it. A rate limit is waited out in silence, with a word on
stderr.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from fleet.coders import windows
from fleet.coders.argv import fits
from fleet.coders.coder import Aside, Exit, Work
from fleet.coders.following import followed, launched
from fleet.coders.judging import by_error, by_exit, by_finish, by_status, by_stop, by_words
from fleet.coders.permissions import judged, limited, named, refuse
from fleet.coders.reading import Line, count, number, reader, table, words
from fleet.coders.shortening import LONGEST, last_line, one_line, short, short_json
from fleet.coders.tally import Tally
from fleet.model.launch import Launch
from fleet.model.outcome import Outcome, OutcomeKind
from fleet.model.permission import Permission
from fleet.model.stream import AnySaid, Context, Denied, Notice, Started, Text, ToolEnded, ToolStarted, TurnEnded

SECRETS = ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_CLOUD_PROJECT")
ENV = {
    "GEMINI_CLI_NO_RELAUNCH": "true",  # else the parent ignores signals and a child does the work
    "GEMINI_TELEMETRY_ENABLED": "false",
}
KINDS = {
    "read": (),
    "edit": ("write_file", "replace"),
    "shell": ("run_shell_command",),
    "web": ("web_fetch", "google_web_search"),
}
CONSENT = "its approval mode"
DENIALS = ("policy_violation", "tool_not_registered")  # it takes away what it would have to ask for
CONFIRMATION = "requires user confirmation"
# Prints the path of the newest file of the conversation that begins with $1.
FIND = 'ls -t "$HOME"/.gemini/tmp/*/chats/session-*-"$1".jsonl 2>/dev/null | head -n 1'
STATUS_OF = {status % 256: status for status in (400, 401, 403, 404, 413, 429, 500, 502, 503, 504)}
CODES = {
    41: (OutcomeKind.AUTH, "no way to sign in is configured"),
    53: (OutcomeKind.BUDGET, "it reached its limit of turns"),
    130: (OutcomeKind.INTERRUPTED, "it was interrupted, not by Fleet"),
}


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the parser is."""

    coder_session: str | None = None
    told: Tally = Tally()
    final_text: str = ""  # the words since the last tool
    noted: int = 0  # bytes of its own file of the conversation that have been read
    context: int = 0  # tokens, as last told: it writes a reply down more than once
    open_tools: tuple[tuple[str, str], ...] = ()  # ids and names of calls that have not ended
    tools_ok: int = 0
    denied: str = ""  # the last tool that was not allowed
    failed: str | None = None  # what the result failed with; empty: success; None: there is no result


class Spoken(Line, frozen=True):
    """The fields of a line that are used."""

    session_id: Any = None
    model: Any = None
    role: Any = None
    content: Any = None
    tool_name: Any = None
    tool_id: Any = None
    parameters: Any = None
    status: Any = None
    output: Any = None
    error: Any = None
    message: Any = None
    stats: Any = None
    tokens: Any = None


Step = tuple[State, tuple[AnySaid, ...]]
read = reader(Spoken)


class Gemini:
    """Google's coding agent."""

    name = "gemini"
    secrets = SECRETS
    default_model: str | None = None
    state_type = State
    resumable = True

    def permissions(self, tools: tuple[str, ...], profile: str | None) -> tuple[Permission, ...]:
        """Both: what would need a person's consent is denied. It can then write no file, not even artifacts."""
        return judged(tools, profile, tools_by=CONSENT, profile_by=CONSENT, writing=KINDS["edit"] + KINDS["shell"])

    def launch(self, work: Work) -> Launch:
        """`gemini -p`; a prompt that is no argument is read from stdin."""
        refuse(self, work)
        on_stdin = not fits(work.prompt)
        argv = [work.program or "gemini", "--output-format", "stream-json", "--skip-trust", *_approval(work)]
        argv += ["-m", work.model] if work.model else []
        if work.resume:
            argv += ["--resume", work.resume]
        elif work.new_uuid:
            argv += ["--session-id", work.new_uuid]
        if not on_stdin:
            argv.append(f"--prompt={work.prompt}")  # in one piece: the prompt may begin with a dash
        return launched(work, argv, on_stdin=on_stdin, env=ENV, secrets=SECRETS, conversation=work.new_uuid or None)

    def begin(self, before: State | None = None) -> State:  # noqa: ARG002 (the contract gives it)
        """Nothing told: every process counts from nothing."""
        return State()

    def parse(self, state: State, line: bytes) -> tuple[State, tuple[AnySaid, ...]]:
        """One line of stream-json."""
        return followed(STEPS, state, read(line))

    def aside(self, state: State) -> Aside | None:
        """The file in which it keeps the conversation; only there it tells the size of each prompt."""
        session = state.coder_session
        return Aside(("sh", "-c", FIND, "sh", session[:8]), state.noted) if session else None

    def parse_aside(self, state: State, line: bytes) -> tuple[State, tuple[AnySaid, ...]]:
        """One line of that file: a reply of the model, or something else."""
        state = replace(state, noted=state.noted + len(line) + 1)
        kept = read(line) if b'"tokens"' in line else None
        used = number(table(kept.tokens).get("total")) if kept is not None and kept.type == "gemini" else None
        if kept is None or not used or used == state.context:
            return state, ()
        return replace(state, context=used), (Context(tokens=used, window=windows.gemini(words(kept.model))),)

    def outcome(self, state: State, exit: Exit, stderr: str) -> Outcome:
        """By the result, then by the exit code, which is no ordinary one."""
        if stopped := by_stop(exit, stderr):
            return stopped
        if state.failed == "":
            return by_finish(state.final_text, denied=state.denied, worked=state.tools_ok > 0)
        return by_error(state.failed, STATUS_OF.get(exit.code or 0)) if state.failed else _by_code(exit, stderr)

    def context_limit(self, model: str | None) -> int | None:
        """The model's window."""
        return windows.gemini(model)


def _approval(work: Work) -> list[str]:
    """Everything; or what needs no consent, and what is named."""
    if not limited(work):
        return ["--yolo"]
    wanted = named(work.tools)
    allowed = [tool for kind in wanted.kinds for tool in KINDS[kind]]
    allowed += [f"run_shell_command({program})" for program in wanted.programs]
    return ["--approval-mode=default", *(f"--allowed-tools={tool}" for tool in (*allowed, *wanted.own))]


def _by_code(exit: Exit, stderr: str) -> Outcome:
    if exit.signal is not None or exit.code is None:
        return by_exit(exit, stderr)
    said = last_line(stderr)
    if exit.code == 0:
        return Outcome(
            kind=OutcomeKind.INTERRUPTED, reason="it ended without a result and with exit code 0, as on a signal"
        )
    if exit.code in CODES:
        kind, reason = CODES[exit.code]
        return Outcome(kind=kind, reason=f"{reason}: {said}" if said else reason)
    status = STATUS_OF.get(exit.code)
    if status is None:
        return by_exit(exit, stderr)
    kind = by_words(stderr, status) or by_status(status) or OutcomeKind.CRASHED
    return Outcome(kind=kind, reason=f"exit code {exit.code} (HTTP {status}): {said}".rstrip(": "))


def _init(state: State, line: Spoken) -> Step:
    session = words(line.session_id) or None
    return replace(state, coder_session=session), (Started(coder_session=session, model=words(line.model) or None),)


def _message(state: State, line: Spoken) -> Step:
    text = words(line.content)
    if line.role != "assistant" or not text:
        return state, ()
    return replace(state, final_text=(state.final_text + text)[-LONGEST:]), (Text(text=short(text)),)


def _tool_use(state: State, line: Spoken) -> Step:
    call, name = words(line.tool_id), words(line.tool_name)
    opened = replace(state, final_text="", open_tools=(*state.open_tools[-63:], (call, name)))
    return opened, (ToolStarted(id=call, name=name, input=short_json(line.parameters)),)


def _tool_result(state: State, line: Spoken) -> Step:
    call, error = words(line.tool_id), table(line.error)
    ok, output = line.status == "success", words(line.output) or words(error.get("message"))
    ended = ToolEnded(id=call, ok=ok, output=short(output))
    tool = next((name for known, name in state.open_tools if known == call), "")
    left = tuple(each for each in state.open_tools if each[0] != call)
    if ok or not (error.get("type") in DENIALS or CONFIRMATION in output):
        return replace(state, open_tools=left, tools_ok=state.tools_ok + ok), (ended,)
    return replace(state, open_tools=left, denied=tool or "a tool"), (ended, Denied(tool=tool, reason=one_line(output)))


def _error(state: State, line: Spoken) -> Step:
    text = words(line.message) or words(table(line.error).get("message"))
    return state, (Notice(text=one_line(text)),) if text else ()


def _result(state: State, line: Spoken) -> Step:
    """Thoughts are in the total alone, so the output is what the input leaves of it."""
    stats = table(line.stats)
    prompt, cached = count(stats.get("input_tokens")), count(stats.get("cached"))
    output = max(count(stats.get("output_tokens")), count(stats.get("total_tokens")) - prompt)
    total = Tally(max(0, prompt - cached), cached, output)
    failed = "" if line.status == "success" else one_line(words(table(line.error).get("message"))) or "it failed"
    ended = TurnEnded(ok=not failed, reason=failed or "success", final_text=state.final_text or None)
    return replace(state, told=total.at_least(state.told), failed=failed), (*total.beyond(state.told), ended)


STEPS: dict[str, Callable[[State, Any], Step]] = {
    "init": _init,
    "message": _message,
    "tool_use": _tool_use,
    "tool_result": _tool_result,
    "error": _error,
    "result": _result,
}
