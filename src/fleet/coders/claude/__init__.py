"""Claude Code (`claude -p`), as of 2.1.325: its flags in launch, its JSON lines in stream, its endings in verdict,
its screens in terminal."""

from __future__ import annotations

from fleet.coders import windows
from fleet.coders.claude import terminal
from fleet.coders.claude.launch import RULES, SECRETS, WRITING, launch
from fleet.coders.claude.state import State
from fleet.coders.claude.stream import parse
from fleet.coders.claude.verdict import outcome
from fleet.coders.coder import Exit, Work
from fleet.coders.permissions import judged, refuse
from fleet.coders.terminal import Login, Screen
from fleet.model.launch import Launch
from fleet.model.outcome import Outcome
from fleet.model.permission import Permission
from fleet.model.stream import AnySaid


class Claude:
    """Anthropic's coding agent."""

    name = "claude"
    secrets = SECRETS
    default_model: str | None = None
    state_type = State
    resumable = True

    def permissions(self, tools: tuple[str, ...], profile: str | None) -> tuple[Permission, ...]:
        """Both, by its rules: what they do not allow is denied."""
        return judged(tools, profile, tools_by=RULES, profile_by=RULES, writing=WRITING)

    def launch(self, work: Work) -> Launch:
        """`claude -p`, streaming JSON, asking nobody."""
        refuse(self, work)
        return launch(work)

    def begin(self, before: State | None = None) -> State:
        """Nothing told yet, save what the conversation's earlier sessions told."""
        return State(told=before.told, told_at_result=before.told) if before else State()

    def parse(self, state: State, line: bytes) -> tuple[State, tuple[AnySaid, ...]]:
        """One line of stream-json."""
        return parse(state, line)

    def outcome(self, state: State, exit: Exit, stderr: str) -> Outcome:
        """By the last result line first: exit code 0 is also what an interrupted session gives."""
        return outcome(state, exit, stderr)

    def context_limit(self, model: str | None) -> int | None:
        """The model's window."""
        return windows.claude(model)

    def on_terminal(self, work: Work, directory: str) -> Launch:
        """The interactive program, which asks what it must know and waits for its task."""
        refuse(self, work)
        return terminal.on_terminal(work, directory)

    def terminal_files(self, directory: str) -> dict[str, bytes]:
        """Its hooks."""
        return terminal.terminal_files(directory)

    def login(self, secret: str, directory: str, home: str) -> Login:
        """Its credentials, as files."""
        return terminal.login(secret, directory, home)

    def screen(self, text: str) -> Screen:
        """What it shows."""
        return terminal.screen(text)

    def asked(self, record: bytes) -> list[str]:
        """The prompts in its record."""
        return terminal.asked(record)

    def parse_record(self, state: State, line: bytes) -> tuple[State, tuple[AnySaid, ...]]:
        """A line of its record is much like one of its stream."""
        return parse(state, line)
