"""What a command is given besides its own arguments: the home, the settings, the store, and where to print."""

from __future__ import annotations

import os
import sys
from functools import cached_property
from typing import TYPE_CHECKING, TextIO

from fleet.cli.words import escaped, printable
from fleet.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.config.home import Home
    from fleet.config.settings import Settings
    from fleet.control.control import Control
    from fleet.control.hosts import HostVerbs
    from fleet.control.landing import Landing
    from fleet.front.front import Front
    from fleet.front.remote import RemoteFront
    from fleet.store.reads import Reads


TOKEN_ENV = "FLEET_TOKEN"


class Context:
    """One invocation. Everything in it is made when first asked for."""

    def __init__(self, *, home: str | None, json: bool, out: TextIO, err: TextIO) -> None:
        self.home_flag = home
        self.url = ""  # of a fleet that is served elsewhere; empty: the home is here
        self.url_said = False  # by a flag, which has to be said again with the next command
        self.token_env = TOKEN_ENV
        self.insecure = False
        self.json = json
        self.out = out
        self.err = err

    @cached_property
    def home(self) -> Home:
        """The home that this command speaks of; it need not exist yet."""
        from fleet.config.home import resolve

        return resolve(self.home_flag)

    @cached_property
    def settings(self) -> Settings:
        """The settings of the home."""
        from fleet.config.load import load

        return load(self.home)

    @cached_property
    def front(self) -> Front:
        """Every question and verb, of the home here or of a fleet that is served elsewhere."""
        from fleet import wiring

        if self.url:
            return self.away
        return wiring.open_front(
            self.home,
            lambda: self.settings,
            reads=lambda: self.reads,
            control=lambda _: self.control,
            landing=lambda: self.landing,
        )

    @cached_property
    def away(self) -> RemoteFront:
        """The fleet that is served elsewhere."""
        from fleet import wiring

        return wiring.open_remote(self.url, self.token_env, insecure=self.insecure)

    def here(self, what: str) -> None:
        """Refuse what only a home here can do, where a fleet is meant that is served elsewhere."""
        if self.url:
            raise UsageError(f"{what} works on a home here, not on a fleet that is served elsewhere")

    @property
    def away_flags(self) -> list[str]:
        """What names the fleet that is served elsewhere, before the words of a command."""
        token = ["--token-env", self.token_env] if self.token_env != TOKEN_ENV else []
        return ["--url", self.url, *token, *(["--insecure"] if self.insecure else [])]

    @property
    def fleet(self) -> str:
        """How a command that is to be pasted begins."""
        import shlex

        return shlex.join(["fleet", *self.away_flags]) if self.url_said else "fleet"

    @property
    def bd_keeps_the_queue(self) -> bool:
        """Whether the queue of the home here is bd's."""
        return not self.url and self.settings.queue.source == "beads"

    @cached_property
    def reads(self) -> Reads:
        """The store, for looking only: never creates anything, never takes a write lock."""
        from fleet import wiring

        return wiring.open_reads(self.home, self.settings)

    @cached_property
    def control(self) -> Control:
        """Every verb that a person can issue."""
        from fleet import wiring

        return wiring.open_control(self.home, self.settings)

    @cached_property
    def landing(self) -> Landing:
        """The verbs of worktrees."""
        from fleet import wiring

        return wiring.open_landing(self.home, self.settings)

    @cached_property
    def host_verbs(self) -> HostVerbs:
        """The verbs of hosts."""
        from fleet import wiring

        return wiring.open_host_verbs(self.home, self.settings)

    def close(self) -> None:
        """Let go of what was opened."""
        for name in ("front", "away", "reads", "control", "landing", "host_verbs"):
            opened = self.__dict__.pop(name, None)
            if opened is not None:
                opened.close()

    def print(self, text: str = "") -> None:
        """Data, on stdout. What agents and machines wrote is in it, and cannot steer the terminal."""
        self.out.write(printable(text) + "\n")

    def note(self, text: str) -> None:
        """Everything that is not data, on stderr."""
        self.err.write(printable(text) + "\n")

    def print_json(self, value: object) -> None:
        """The same object that the API gives. The ledger leaves out what has its default; here every field is there."""
        from fleet.projections.whole import whole

        self.out.write(encode_json(whole(value)) + "\n")

    def print_lines(self, lines: Iterator[str]) -> None:
        """Data that may be long: written as it comes."""
        for line in lines:
            self.print_text(line + "\n")

    def print_text(self, text: str) -> None:
        """A file, or a part of one: whole for a program, and for a person without what would steer the terminal."""
        self.out.write(printable(text) if self.out.isatty() else text)

    @property
    def colour(self) -> bool:
        """Whether a person looks at stdout and has not asked for plain text."""
        return self.colours(self.out)

    def redraws(self, stream: TextIO) -> bool:
        """Whether a stream is a terminal where what was drawn can be drawn over."""
        from fleet.config.environment import environ

        return stream.isatty() and environ().get("TERM") not in ("dumb", "unknown")

    def colours(self, stream: TextIO) -> bool:
        """Whether a person looks at a stream and has not asked for plain text."""
        from fleet.config.environment import environ

        return self.redraws(stream) and not environ().get("NO_COLOR")


def encode_json(value: object) -> str:
    """JSON that a person can read too."""
    import msgspec

    return escaped(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def silence_broken_pipe() -> None:
    """After `fleet ... | head`: nothing more can be written, and that is no error."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
