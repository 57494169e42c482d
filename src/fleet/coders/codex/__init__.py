"""OpenAI's codex, as of 0.166: its flags in launch, its JSON lines in stream, its own file of a thread in rollout, its
screens in terminal.

Failures are told in prose, so they are judged by their words.
"""

from __future__ import annotations

from msgspec.structs import replace

from fleet.coders import clocks, windows
from fleet.coders.coder import Aside, Exit, Work
from fleet.coders.codex import rollout, terminal
from fleet.coders.codex.launch import SECRETS, launch
from fleet.coders.codex.stream import State, parse
from fleet.coders.judging import by_error, by_exit, by_finish, by_stop
from fleet.coders.permissions import judged, refuse
from fleet.coders.terminal import Login, Screen
from fleet.model.launch import Launch
from fleet.model.outcome import Outcome
from fleet.model.permission import Permission
from fleet.model.stream import AnySaid


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
        """`codex exec`, streaming JSON, asking nobody."""
        refuse(self, work)
        return launch(work)

    def begin(self, before: State | None = None) -> State:
        """Nothing told yet, save what the thread's earlier sessions told."""
        return State(coder_session=before.coder_session, told=before.told, noted=before.noted) if before else State()

    def parse(self, state: State, line: bytes) -> tuple[State, tuple[AnySaid, ...]]:
        """One line of `--json`."""
        return parse(state, line)

    def aside(self, state: State) -> Aside | None:
        """The file in which it keeps the thread, its own name for which is only known from its first line."""
        return (
            Aside(("sh", "-c", rollout.FIND, "sh", state.coder_session), state.noted) if state.coder_session else None
        )

    def parse_aside(self, state: State, line: bytes) -> tuple[State, tuple[AnySaid, ...]]:
        """One line of that file: how full the context is, what is left of the plan, and that it was compacted."""
        state, said = rollout.measured(state, line)
        return replace(state, noted=state.noted + len(line) + 1), said

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

    def on_terminal(self, work: Work, directory: str) -> Launch:
        """The interactive program, which asks what it must know and waits for its task."""
        refuse(self, work)
        return terminal.on_terminal(work, directory)

    def terminal_files(self, directory: str) -> dict[str, bytes]:  # noqa: ARG002  # its hooks are among its words
        """None."""
        return {}

    def login(self, secret: str, directory: str, home: str) -> Login:
        """Its credentials, as a file."""
        return terminal.login(secret, directory, home)

    def screen(self, text: str) -> Screen:
        """What it shows."""
        return terminal.screen(text)

    def asked(self, record: bytes) -> list[str]:
        """The prompts in its file of the thread."""
        return rollout.asked(record)

    def parse_record(self, state: State, line: bytes) -> tuple[State, tuple[AnySaid, ...]]:
        """One line of that file, where there is no stream beside it."""
        return rollout.follow(state, line)


def _resets_at(state: State, said: str, exit: Exit) -> int | None:
    """By the windows that are used up, where it wrote that down; else by its words, which give a time of day."""
    used_up = [each.resets_at for each in state.limits if each.rejected and each.resets_at]
    return max(used_up) if used_up else clocks.resets_at(said, exit.at, exit.utc_offset_seconds)
