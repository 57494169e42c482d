"""Whether a fleet that is served elsewhere answers: told on stderr when it does not, and when it does again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from fleet.errors import ServerUnreachable

if TYPE_CHECKING:
    from fleet.cli.context import Context

T = TypeVar("T")
PAUSE_SECONDS = 1.0  # between two tries


class Contact:
    """One for a command that stays: a server that is started anew does not end it."""

    def __init__(self, context: Context, *, quiet: bool = False) -> None:
        self._context = context
        self._quiet = quiet
        self._away = False

    def heard(self, trouble: str) -> None:
        """How it stands; empty: it answers. Said once."""
        if bool(trouble) == self._away:
            return
        self._away = bool(trouble)
        if not self._quiet:
            text = f"{trouble}; it is asked again until it answers" if trouble else "it answers again"
            self._context.note(f"{time.strftime('%H:%M:%S')}  {text}")
            self._context.err.flush()

    def attempt(self, question: Callable[[], T], otherwise: T) -> T:
        """The answer; or something else where there is none at present."""
        try:
            found = question()
        except ServerUnreachable as exc:
            self.heard(str(exc))
            return otherwise
        self.heard("")
        return found

    def insist(self, question: Callable[[], T]) -> T:
        """The answer, however long that takes."""
        while True:
            try:
                found = question()
            except ServerUnreachable as exc:
                self.heard(str(exc))
                time.sleep(PAUSE_SECONDS)
            else:
                self.heard("")
                return found
