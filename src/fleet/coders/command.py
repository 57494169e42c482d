"""A plain command as the worker: its lines are its words, its exit code is its verdict."""

from __future__ import annotations

import msgspec

from fleet.coders.argv import fits
from fleet.coders.coder import Exit, Work
from fleet.coders.judging import by_stop
from fleet.coders.permissions import not_applicable, refuse
from fleet.coders.spoken import by_code_alone, words_of
from fleet.model.launch import Launch
from fleet.model.outcome import Outcome
from fleet.model.permission import Permission
from fleet.model.stream import AnySaid


class State(msgspec.Struct, frozen=True, kw_only=True):
    """There is nothing to remember."""


NOTHING = State()


class Command:
    """Any program."""

    name = "command"
    secrets: tuple[str, ...] = ()
    default_model: str | None = None
    state_type = State

    def permissions(self, tools: tuple[str, ...], profile: str | None) -> tuple[Permission, ...]:
        """Neither applies."""
        return not_applicable(tools, profile)

    def launch(self, work: Work) -> Launch:
        """The task's command, which may read the prompt on stdin; without one, the prompt is a script for sh."""
        refuse(self, work)
        if len(work.command) > 1:
            argv, on_stdin = work.command, True
        elif work.command:
            argv, on_stdin = ("sh", "-c", work.command[0]), True
        elif fits(work.prompt):
            argv, on_stdin = ("sh", "-c", work.prompt), False
        else:
            argv, on_stdin = ("sh", "-s"), True
        if work.program:
            argv = (work.program, *argv[1:])
        return Launch(argv=argv, cwd=work.cwd, prompt=work.prompt, prompt_on_stdin=on_stdin)

    def begin(self, before: State | None = None) -> State:  # noqa: ARG002 (the contract gives it)
        """Nothing."""
        return NOTHING

    def parse(self, state: State, line: bytes) -> tuple[State, tuple[AnySaid, ...]]:
        """Every line is text."""
        return state, words_of(line)

    def outcome(self, state: State, exit: Exit, stderr: str) -> Outcome:  # noqa: ARG002 (the contract gives it)
        """By our own stop, else by the exit code."""
        return by_stop(exit, stderr) or by_code_alone(exit, stderr)

    def context_limit(self, model: str | None) -> int | None:  # noqa: ARG002 (the contract gives it)
        """A command has no context."""
        return None
