"""A coder on a terminal: how it is started there, what its screen says, and how its session ends."""

from __future__ import annotations

import re
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec
from msgspec.structs import replace

from fleet.coders import hooks
from fleet.coders.coder import Aside, Coder, Exit, Work
from fleet.coders.contained import ask
from fleet.coders.judging import by_error, by_exit, by_finish, by_stop
from fleet.errors import UsageError
from fleet.model.launch import Launch
from fleet.model.outcome import Outcome, OutcomeKind
from fleet.model.permission import Permission
from fleet.model.stream import AnySaid, TurnEnded

RECORD = "hook.UserPromptSubmit"  # in the worker's directory: where its hook keeps what it was told
# Prints where the conversation's record is, as the file $1 tells it.
FIND = """sed -n 's/.*"transcript_path" *: *"\\([^"]*\\)".*/\\1/p' "$1" 2>/dev/null | head -n 1 | tr -d '\\n'"""
PROMPT = re.compile(r"^\s*[❯›>$%#]\s*(?P<typed>.*)$")


class Screen(msgspec.Struct, frozen=True, kw_only=True):
    """What a program shows: it starts, waits for input, works, or asks something that is not the task."""

    kind: Literal["starting", "ready", "busy", "trust", "question", "login"]
    evidence: str = ""
    keys: tuple[str, ...] = ()  # that say yes
    typed: str = ""  # what stands in its input, not yet sent


@runtime_checkable
class SupportsTerminal(Protocol):
    """A coder that is known well on a terminal. Its hooks tell what it does in the words of `hooks`."""

    def on_terminal(self, work: Work, directory: str) -> Launch:
        """The program to run, without its task. `directory` is the worker's, where the files are."""

    def terminal_files(self, directory: str) -> dict[str, bytes]:
        """What must be in the worker's directory before that, by name."""

    def login(self, secret: str, directory: str, home: str) -> Login:
        """What logs it in. `home` is that of a machine that it has to itself; empty: it gets a place in `directory`."""

    def screen(self, text: str) -> Screen:
        """What its screen says."""

    def asked(self, record: bytes) -> list[str]:
        """The prompts in its own record."""

    def parse_record(self, state: Any, line: bytes) -> tuple[Any, tuple[AnySaid, ...]]:
        """One line of its own record, by the state of its own parser."""


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """The login of a coder, as files of its machine."""

    files: dict[str, bytes] = {}
    kept: dict[str, bytes] = {}  # written only where there is none
    env: dict[str, str] = {}  # that makes the program find them


NO_LOGIN = Login()


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a session on a terminal has come."""

    given: bool = False  # the task was delivered
    completed: bool = False
    said: str = ""
    failed: str = ""  # as it was seen
    error: str = ""  # what its last turn failed with, as its own record tells
    cursor: int = 0  # in its own record of the conversation
    inner: msgspec.Raw = msgspec.Raw(b"null")  # what the coder's own parser knows


class TerminalCoder:
    """Any coder, on a terminal. What is said there is for people: its own record tells us, where it keeps one."""

    state_type = State

    def __init__(self, coder: Coder, directory: str, *, home: str = "", secret: str | None = None) -> None:
        self.login = NO_LOGIN
        if secret is not None:
            if not isinstance(coder, SupportsTerminal):
                raise UsageError(
                    f"it is not known where {coder.name} keeps its login", hint="leave out login of the pool"
                )
            self.login = ask(coder.name, coder, "login", secret, directory, home, may_refuse=True)
        self.name = coder.name
        self.secrets = coder.secrets
        self.default_model = coder.default_model
        self._coder = coder
        self._known = coder if isinstance(coder, SupportsTerminal) else None
        self._directory = directory

    @property
    def hooked(self) -> bool:
        """Whether it tells by itself what it does."""
        return self._known is not None

    @property
    def files(self) -> dict[str, bytes]:
        """What must be in the worker's directory."""
        own: dict[str, bytes] = self._ask("terminal_files", self._directory) if self._known else {}
        return own | self.login.files

    def permissions(self, tools: tuple[str, ...], profile: str | None) -> tuple[Permission, ...]:
        """As the coder itself."""
        return self._coder.permissions(tools, profile)

    def launch(self, work: Work) -> Launch:
        """The program alone: its task is given to it when it is ready."""
        if self._known:
            launch: Launch = self._ask("on_terminal", work, self._directory)
            return replace(launch, env=launch.env | self.login.env)
        return Launch(argv=(work.program or self.name,), cwd=work.cwd, secrets=self.secrets)

    def begin(self, before: Any = None) -> State:  # noqa: ARG002 (the contract gives it)
        """Nothing has happened."""
        return State()

    def parse(self, state: State, line: bytes) -> tuple[State, tuple[AnySaid, ...]]:  # noqa: ARG002
        """Nothing comes on stdout: that is the terminal."""
        return state, ()

    def aside(self, state: State) -> Aside | None:
        """Its own record, once it has told where that is."""
        if not self._known or not state.given:
            return None
        return Aside(("sh", "-c", FIND, "find", f"{self._directory}/{RECORD}"), state.cursor)

    def parse_aside(self, state: State, line: bytes) -> tuple[State, tuple[AnySaid, ...]]:
        """A line of its record."""
        if self._known is None:
            return state, ()
        inner = msgspec.json.decode(state.inner, type=self._coder.state_type | None) or self._coder.begin()
        inner, said = self._known.parse_record(inner, line)
        raw, error = msgspec.Raw(msgspec.json.encode(inner)), state.error
        for each in said:
            if isinstance(each, TurnEnded):
                error = "" if each.ok else each.reason
        return replace(state, cursor=state.cursor + len(line) + 1, inner=raw, error=error), said

    def outcome(self, state: State, exit: Exit, stderr: str) -> Outcome:
        """It was seen to end its turn; else by how its program ended, which is never good."""
        if (stopped := by_stop(exit, stderr)) is not None:
            return stopped
        if state.error and not state.completed:
            return by_error(state.error)
        if state.failed:
            return Outcome(kind=OutcomeKind.CRASHED, reason=state.failed)
        return by_finish(state.said) if state.completed else by_exit(exit, stderr)

    def context_limit(self, model: str | None) -> int | None:
        """As the coder itself."""
        return self._coder.context_limit(model)

    def screen(self, text: str) -> Screen:
        """What its screen says; of a program that is not known, whether its last line is a prompt."""
        seen: Screen = self._ask("screen", text) if self._known else plain_screen(text)
        return seen

    def received(self, heard: bytes) -> str | None:
        """The prompt that it says it was given."""
        return hooks.received(heard) if self._known else None

    def record(self, heard: bytes) -> str:
        """Where its own record is."""
        return hooks.record(heard) if self._known else ""

    def asked(self, record: bytes) -> list[str]:
        """The prompts in its own record."""
        found: list[str] = self._ask("asked", record) if self._known else []
        return found

    def last_words(self, heard: bytes) -> str:
        """What it said at the end of its turn."""
        return hooks.last_words(heard) if self._known else ""

    def _ask(self, method: str, *given: Any) -> Any:
        return ask(self.name, self._coder, method, *given, may_refuse=method == "on_terminal")


def plain_screen(text: str) -> Screen:
    """The screen of a program that nothing is known of: it is ready when its last line is a prompt."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    found = PROMPT.match(lines[-1]) if lines else None
    if found is None:
        return Screen(kind="busy" if lines else "starting", evidence=lines[-1].strip()[:100] if lines else "")
    return Screen(kind="ready", evidence="its last line is a prompt", typed=found["typed"].strip())


def choose(lines: list[str], wanted: str, mark: str = "❯") -> tuple[str, ...]:
    """The keys that choose the option with these words, from where the mark stands; (): it is not there."""
    begin = next((n for n, line in enumerate(lines) if line.strip().startswith(mark)), None)
    target = next((n for n, line in enumerate(lines) if wanted in line.replace(mark, " ")), None)
    if begin is None or target is None:
        return ()
    key = "Down" if target > begin else "Up"
    return (*[key] * abs(target - begin), "Enter")
