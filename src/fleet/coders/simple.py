"""SimpleCoder: a coder in a few lines of Python, for plugins. Four questions, three of them with an answer already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from fleet.coders import spoken, windows
from fleet.coders.argv import fits
from fleet.coders.coder import Exit, Work
from fleet.coders.permissions import judged, refuse
from fleet.coders.reading import BROKEN
from fleet.coders.shortening import one_line
from fleet.errors import UsageError
from fleet.model.launch import Launch
from fleet.model.outcome import Outcome
from fleet.model.permission import Permission
from fleet.model.stream import AnySaid, Notice

MARK = "@@the prompt@@"  # shows whether the arguments hold the prompt
# What a plugin raises that met an unexpected field.
MISREAD = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class SimpleCoder:
    """Subclass it, name it, and say how it is started and what its events mean."""

    name = ""
    secrets: tuple[str, ...] = ()
    default_model: str | None = None
    state_type = spoken.State

    def build_argv(self, prompt: str, model: str | None, cwd: str) -> Sequence[str]:
        """The program and its arguments. Leave the prompt out of them to have it on stdin."""
        raise NotImplementedError

    def env(self) -> dict[str, str]:
        """Variables to set; never a secret: name those in `secrets`."""
        return {}

    def normalize_event(self, event: dict[str, Any]) -> AnySaid | Sequence[AnySaid] | None:
        """What a line of JSON says: events of `fleet.model.stream`, or nothing. Give usage as differences."""
        return spoken.read(msgspec.json.encode(event))

    def context_limit(self, model: str | None) -> int | None:
        """How many tokens a conversation holds."""
        return windows.any_vendor(model)

    def permissions(self, tools: tuple[str, ...], profile: str | None) -> tuple[Permission, ...]:
        """Neither: a program of its own is not known to keep to them."""
        return judged(tools, profile)

    def launch(self, work: Work) -> Launch:
        """What `build_argv` says, with the prompt on stdin unless it is an argument."""
        refuse(self, work)
        argv = tuple(self.build_argv(work.prompt, work.model, work.cwd))
        as_argument = any(MARK in item for item in self.build_argv(MARK, work.model, work.cwd))
        if as_argument and not fits(work.prompt):
            raise UsageError(
                f"the prompt is too long to be an argument of `{self.name}`",
                hint="leave the prompt out of the arguments: it is then given on stdin",
            )
        if work.program:
            argv = (work.program, *argv[1:])
        return Launch(
            argv=argv,
            cwd=work.cwd,
            env=self.env(),
            secrets=self.secrets,
            prompt=work.prompt,
            prompt_on_stdin=not as_argument,
            coder_session=work.resume,
        )

    def begin(self, before: spoken.State | None = None) -> spoken.State:  # noqa: ARG002 (the contract gives it)
        """Nothing said yet."""
        return spoken.State()

    def parse(self, state: spoken.State, line: bytes) -> tuple[spoken.State, tuple[AnySaid, ...]]:
        """A line of JSON by `normalize_event`, any other as text."""
        said = self._said(line)
        for each in said:
            state = spoken.note(state, each)
        return state, said

    def _said(self, line: bytes) -> tuple[AnySaid, ...]:
        if not line.lstrip().startswith(b"{"):
            return spoken.words_of(line)
        try:
            event = _decode(line)
        except BROKEN:
            return ()
        try:
            said = self.normalize_event(event) or ()
            return tuple(map(spoken.checked, said if isinstance(said, Sequence) else (said,)))
        except MISREAD as exc:
            return (Notice(text=one_line(f"{self.name} could not read a line: {type(exc).__name__}: {exc}")),)

    def outcome(self, state: spoken.State, exit: Exit, stderr: str) -> Outcome:
        """By the last `TurnEnded`, then by the exit code and stderr."""
        return spoken.outcome(state, exit, stderr)
