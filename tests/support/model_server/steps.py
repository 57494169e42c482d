"""Scripts: what the model does, written into the prompt as `@@script [step, ...]`.

A step is an object: `sh` (a command, or a list of commands at once) calls the client's shell, `tool` with `args` calls
a tool by its name, whether it is offered or not, `text` ends the turn.
`say` and `think` come before a call, `sleep` makes the answer late by seconds.

Nothing is remembered between requests: the step is found by counting the results of tools that came after the script.
So a request that is repeated gets the same answer, and a conversation that was resumed goes on where it was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

MARK = "@@script"
WRITTEN = re.compile(MARK + r"\s+(\[.*\])")
SHELLS = ("Bash", "exec_command", "shell_command", "shell", "exec", "run_shell_command", "bash")
COMMANDS = ("command", "cmd")
SUMMARISING = ("CONTEXT CHECKPOINT COMPACT", "Your task is to create a detailed summary")
FILLERS = {"string": "a test", "boolean": False, "integer": 60_000, "number": 60_000, "array": [], "object": {}}


class Kind(Enum):
    """Who speaks in a turn of the conversation."""

    USER = "user"
    MODEL = "model"
    TOOL = "tool"


@dataclass(frozen=True)
class Turn:
    """A piece of the conversation."""

    kind: Kind
    text: str = ""


@dataclass(frozen=True)
class Tool:
    """A tool that the client offers."""

    name: str
    schema: dict[str, Any]
    takes_code: bool = False  # JavaScript, which calls the other tools


@dataclass(frozen=True)
class Call:
    """A call of a tool."""

    name: str
    arguments: dict[str, Any]
    code: str = ""


@dataclass(frozen=True)
class Step:
    """What the model does next."""

    text: str = ""
    think: str = ""
    commands: tuple[str, ...] = ()
    direct: tuple[Call, ...] = ()
    sleep: float = 0

    @property
    def results(self) -> int:
        """How many results of tools follow it."""
        return len(self.commands) + len(self.direct)

    def calls(self, tools: Iterable[Tool]) -> list[Call]:
        """Its commands as calls of the client's shell, then what it calls by name; none where there is no tool."""
        offered = {tool.name: tool for tool in tools}
        shell = next((offered[name] for name in SHELLS if name in offered), None)
        by_shell = [_call(shell, command) for command in self.commands] if shell else []
        return by_shell + list(self.direct) if offered else []


def script(*steps: dict[str, Any] | str) -> str:
    """The line that a prompt needs; a step that is only text is a command."""
    written = [{"sh": step} if isinstance(step, str) else step for step in steps]
    return f"{MARK} {json.dumps(written)}"


def next_step(turns: list[Turn]) -> Step:
    """The step that is due in this conversation, which is told from its beginning."""
    if turns and turns[-1].kind is Kind.USER and any(words in turns[-1].text for words in SUMMARISING):
        return Step(text="<summary>What has happened so far.</summary>")
    results = 0
    for turn in reversed(turns):
        if turn.kind is Kind.TOOL:
            results += 1
        elif turn.kind is Kind.USER and (found := WRITTEN.findall(turn.text)):
            return _at(json.loads(found[-1]), results)
    return Step(text="There is no script in the prompt.")


def text_turns(kind: Kind, content: Any) -> list[Turn]:
    """The texts of a message, which is a text or a list of parts."""
    if isinstance(content, str):
        return [Turn(kind, content)]
    return [Turn(kind, part["text"]) for part in content or () if isinstance(part, dict) and part.get("text")]


def tokens(*parts: Any) -> int:
    """About how many tokens something is: a quarter of its length."""
    return sum(len(part if isinstance(part, str) else json.dumps(part)) for part in parts) // 4 + 1


def _at(steps: list[dict[str, Any]], results: int) -> Step:
    for written in steps:
        step = _step(written)
        if not step.results or results < step.results:
            return step
        results -= step.results
    return Step(text="The script is over.")


def _step(written: dict[str, Any]) -> Step:
    commands = written.get("sh", ())
    return Step(
        text=written.get("text") or written.get("say", ""),
        think=written.get("think", ""),
        commands=(commands,) if isinstance(commands, str) else tuple(commands),
        direct=(Call(written["tool"], written.get("args", {})),) if "tool" in written else (),
        sleep=written.get("sleep", 0),
    )


def _call(shell: Tool, command: str) -> Call:
    """The command in the argument that takes it, and something in every other that must be there."""
    if shell.takes_code:
        return Call(shell.name, {}, f"text(await tools.exec_command({json.dumps({'cmd': command})}))")
    fields = shell.schema.get("properties", {})
    where = next((name for name in COMMANDS if name in fields), "command")
    as_list = fields.get(where, {}).get("type") == "array"
    arguments: dict[str, Any] = {where: ["bash", "-c", command] if as_list else command}
    for name in shell.schema.get("required", ()):
        arguments.setdefault(name, FILLERS.get(fields.get(name, {}).get("type"), "a test"))
    return Call(shell.name, arguments)
