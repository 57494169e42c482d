"""TemplateCoder: a coder from settings alone, without a line of Python."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from fleet.coders import BUILT_IN, spoken, windows
from fleet.coders.argv import fits
from fleet.coders.coder import Coder, Exit, Work
from fleet.coders.permissions import judged, refuse
from fleet.errors import UsageError
from fleet.model.launch import Launch
from fleet.model.outcome import Outcome
from fleet.model.permission import Permission
from fleet.model.stream import AnySaid

PLACE = re.compile(r"\{(prompt|model|cwd|resume|role)\}")
OWN = ("text", "jsonl")
STREAMS = ("agy", "claude", "codex", "gemini", "opencode")


class TemplateCoder:
    """A program, its arguments with {prompt}, {model}, {cwd}, {role} and {resume} in them, and how its output reads.

    An argument whose place has no value is left out, with the flag before it. Without {prompt}, or with one that is too
    long for an argument, the prompt goes to stdin. `output` is `text` (every line is words), `jsonl` (lines of Fleet's
    vocabulary, others are words), or the name of a coder whose stream the program speaks.
    """

    default_model: str | None = None

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        output: str = "text",
        env: dict[str, str] | None = None,
        secrets: Sequence[str] = (),
        context_limit: int | None = None,
    ) -> None:
        if not argv or PLACE.search(argv[0]):
            raise UsageError(f"the coder `{name}` needs a program as the first of its argv")
        if output not in (*OWN, *STREAMS):
            raise UsageError(
                f"unknown output `{output}` of the coder `{name}`", hint=f"one of {', '.join(OWN + STREAMS)}"
            )
        self.name = name
        self.argv = tuple(argv)
        self.env = dict(env or {})
        self.secrets = tuple(secrets)
        self.limit = context_limit
        self.plain = output == "text"
        self.resumable = any("{resume}" in item for item in self.argv)
        self.stream: Coder | None = _built_in(output) if output in STREAMS else None
        self.state_type: type[Any] = self.stream.state_type if self.stream else spoken.State

    def permissions(self, tools: tuple[str, ...], profile: str | None) -> tuple[Permission, ...]:
        """Neither: a template has no place for them."""
        return judged(tools, profile)

    def launch(self, work: Work) -> Launch:
        """The template with its places filled."""
        refuse(self, work)
        in_argv = any("{prompt}" in item for item in self.argv) and fits(work.prompt)
        values = {
            "prompt": work.prompt if in_argv else None,
            "model": work.model,
            "cwd": work.cwd,
            "resume": work.resume,
            "role": work.role,
        }
        argv = _filled(self.argv, values)
        return Launch(
            argv=(work.program or argv[0], *argv[1:]),
            cwd=work.cwd,
            env=dict(self.env),
            secrets=self.secrets,
            prompt=work.prompt,
            prompt_on_stdin=not in_argv,
            coder_session=work.resume,
        )

    def begin(self, before: Any = None) -> Any:
        """As the coder whose stream it speaks."""
        return self.stream.begin(before) if self.stream else spoken.State()

    def parse(self, state: Any, line: bytes) -> tuple[Any, tuple[AnySaid, ...]]:
        """As the coder whose stream it speaks, else by Fleet's vocabulary and words."""
        if self.stream:
            return self.stream.parse(state, line)
        event = None if self.plain else spoken.read(line)
        said = spoken.words_of(line) if event is None else (event,)
        for each in said:
            state = spoken.note(state, each)
        return state, said

    def outcome(self, state: Any, exit: Exit, stderr: str) -> Outcome:
        """As the coder whose stream it speaks, else by the last end of a turn and the exit code."""
        return self.stream.outcome(state, exit, stderr) if self.stream else spoken.outcome(state, exit, stderr)

    def context_limit(self, model: str | None) -> int | None:
        """The number from the settings, else what is known of the model."""
        return self.limit or windows.any_vendor(model)


def _filled(template: tuple[str, ...], values: dict[str, str | None]) -> list[str]:
    argv: list[str] = []
    for item in template:
        names = PLACE.findall(item)
        if any(not values[name] for name in names):
            if len(argv) > 1 and item == f"{{{names[0]}}}" and argv[-1].startswith("-") and argv[-1] != "--":
                argv.pop()  # the flag whose value this would have been
            continue
        argv.append(PLACE.sub(lambda found: values[found[1]] or "", item))
    return argv


def _built_in(name: str) -> Coder:
    module, _, attribute = BUILT_IN[name].partition(":")
    coder: Coder = getattr(import_module(module), attribute)()
    return coder
