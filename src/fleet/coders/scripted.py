"""The scripted coder: does what its prompt spells out, for demos and tests. It needs no model and no key, only sh.

The prompt holds a line `@@scripted [steps]`, a JSON list of objects with one key each:

    {"say": TEXT}  {"think": TEXT}  {"lines": N}        words; many of them
    {"tool": NAME}  {"fail": NAME}  {"deny": NAME}      a call that succeeds, one that fails, one that is not allowed
    {"run": COMMAND}  {"write": [PATH, TEXT]}           calls that really happen, in the session's directory
    {"ask": QUESTION}  {"close": REASON}                `fleet ask` and `fleet close`, as an agent calls them
    {"usage": [IN, OUT, CACHED, MICRODOLLARS]}          what was used; {"context": TOKENS}: how full it is
    {"sleep": SECONDS}  {"hang": true}                  silence
    {"retry": REASON}  {"limit": RESETS_AT_MS}          a hiccup; the plan's limit, which ends it
    {"end": OUTCOME}  {"exit": CODE}                    the end: a result with that outcome, or none at all
    {"stderr": TEXT}  {"raw": LINE}                     something else on its streams
    {"spawn": SECONDS}  {"stubborn": true}              a child that stays behind; deafness to HUP, INT and TERM

Without `end`, `exit` or `limit` it ends well. Without the line it plays $FLEET_SCRIPT of its host, if set: the same
steps as plain lines (`say hello`), as in scripted.sh.
"""

from __future__ import annotations

import json
import re
import shlex
from functools import cache
from importlib.resources import files
from typing import Any

from fleet.coders import spoken
from fleet.coders.argv import fits
from fleet.coders.coder import Exit, Work
from fleet.coders.permissions import not_applicable, refuse
from fleet.errors import UsageError
from fleet.model.launch import Launch
from fleet.model.outcome import Outcome
from fleet.model.permission import Permission
from fleet.model.stream import AnySaid

LINE = re.compile(r"^@@scripted[ \t]+(.*)$", re.MULTILINE)
SPOKEN = ("say", "think", "tool", "fail", "deny", "retry", "end")
NUMBERED = ("lines", "sleep", "context", "limit", "exit", "spawn")
BARE = ("hang", "stubborn")
CONTEXT_LIMIT = 200_000


class Scripted:
    """An agent that does as it is told."""

    name = "scripted"
    secrets = ("FLEET_SCRIPT",)
    default_model: str | None = "scripted"
    state_type = spoken.State

    def permissions(self, tools: tuple[str, ...], profile: str | None) -> tuple[Permission, ...]:
        """Neither applies; it says so in its stream."""
        return not_applicable(tools, profile)

    def launch(self, work: Work) -> Launch:
        """sh with the shipped script as its argument; the steps are in its environment."""
        refuse(self, work)
        found = LINE.search(work.prompt)
        played = "\n".join(steps(found[1])) if found else ""
        if not fits(played):
            raise UsageError("the script of the scripted coder is too long for a variable")
        env = {"FLEET_SCRIPT": played} if found else {}
        if asked := _asked(work):
            env["FLEET_SCRIPT_TOOLS"] = _quoted(asked)
        return Launch(
            argv=(work.program or "sh", "-c", script(), "scripted"),
            cwd=work.cwd,
            env=env,
            secrets=() if found else self.secrets,
            prompt=work.prompt,
            prompt_on_stdin=True,
        )

    def begin(self, before: spoken.State | None = None) -> spoken.State:  # noqa: ARG002 (the contract gives it)
        """Nothing said yet."""
        return spoken.State()

    def parse(self, state: spoken.State, line: bytes) -> tuple[spoken.State, tuple[AnySaid, ...]]:
        """A line of Fleet's own vocabulary."""
        said = spoken.read(line)
        return (state, ()) if said is None else (spoken.note(state, said), (said,))

    def outcome(self, state: spoken.State, exit: Exit, stderr: str) -> Outcome:
        """By the end that the script names, then by the exit code."""
        return spoken.outcome(state, exit, stderr)

    def context_limit(self, model: str | None) -> int | None:  # noqa: ARG002 (the contract gives it)
        """A number to fill up to in tests."""
        return CONTEXT_LIMIT


@cache
def script() -> str:
    """The shipped sh program."""
    return (files("fleet.coders") / "scripted.sh").read_text("utf-8")


def steps(text: str) -> list[str]:
    """The lines for scripted.sh, from the JSON of a prompt."""
    try:
        given = json.loads(text)
    except ValueError as exc:
        raise UsageError(f"the script of the scripted coder is not JSON: {exc}") from exc
    if not isinstance(given, list):
        raise UsageError("the script of the scripted coder is not a list of steps")
    try:
        return [_step(each) for each in given]
    except (TypeError, ValueError, LookupError) as exc:
        raise UsageError(f"a step of the scripted coder cannot be taken: {exc}") from exc


def _step(step: Any) -> str:
    if not isinstance(step, dict) or len(step) != 1:
        raise UsageError(f"a step of the scripted coder has one key: {json.dumps(step)}")
    verb, value = next(iter(step.items()))
    if verb in SPOKEN:
        return f"{verb} {_quoted(str(value))}"
    if verb in NUMBERED:
        return f"{verb} {float(value):g}" if isinstance(value, float) else f"{verb} {int(value)}"
    if verb in BARE:
        return str(verb)
    if verb == "usage":
        return "usage " + " ".join(str(int(number)) for number in value)
    if verb in ("stderr", "raw"):
        return f"{verb} {_escaped(value) if verb == 'stderr' else value}"
    if verb == "write":
        return f"write {value[0]} {_escaped(value[1])}"
    if verb in ("run", "ask", "close"):
        command = value if verb == "run" else f"fleet {verb} {shlex.quote(value)}"
        return f"run {_quoted(command).replace('|', ' ')}|{_escaped(command)}"
    raise UsageError(f"the scripted coder has no step `{verb}`")


def _asked(work: Work) -> str:
    """The permissions that it records, in words."""
    fields = {"profile": work.tool_profile, "tools": " ".join(work.tools), "role": work.role}
    return ", ".join(f"{name} {value}" for name, value in fields.items() if value)


def _quoted(text: str) -> str:
    """As inside a JSON string."""
    return json.dumps(text)[1:-1]


def _escaped(text: str) -> str:
    """As printf %b takes it: on one line."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
