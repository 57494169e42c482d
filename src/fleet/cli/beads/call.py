"""One call of a beads verb: what was said, the queue it acts on, and how it answers."""

from __future__ import annotations

import sys
from contextlib import ExitStack, closing
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.cli.beads.flags import Given
from fleet.config.clock import utc_ms
from fleet.errors import Conflict, NotFound
from fleet.projections import beads

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.control.control import Control
    from fleet.model.task import Task
    from fleet.store.reads import Reads


class Refused(Conflict):
    """The verb was not carried out; the message is in bd's words."""


class Call:
    """What a verb is given."""

    def __init__(self, given: Given, context: Context) -> None:
        self.given = given
        self.words = given.words
        self.json = given.on("json") or (context.json and not given.has("json"))
        self.quiet = given.on("quiet")
        self.now = utc_ms()
        self.context = context
        self._opened = ExitStack()

    def close(self) -> None:
        """Let go of what was opened."""
        self._opened.close()

    @cached_property
    def actor(self) -> str:
        """Who acts."""
        from fleet import wiring
        from fleet.config.environment import environ

        return self.given.text("actor") or environ().get("BEADS_ACTOR") or wiring.whoami()

    @cached_property
    def control(self) -> Control:
        """The verbs of Fleet, in the actor's name."""
        from fleet import wiring

        if self.given.on("readonly"):
            raise Conflict("a change is not allowed in read-only mode")
        made = wiring.open_control(self.context.home, self.context.settings, by=self.actor)
        return self._opened.enter_context(closing(made))

    @property
    def reads(self) -> Reads:
        """The queue, for looking."""
        return self.control.reads if "control" in self.__dict__ else self.context.reads

    def find(self, word: str, *, before: str = "") -> Task:
        """The task that a word stands for. `before` is how bd begins the sentence when there is none."""
        try:
            return self.reads.find(word)
        except NotFound as exc:
            raise Refused(f'{before}no issue found matching "{word}"') from exc

    def whole(self, word: str, *, before: str = "") -> Task:
        """A task that is to be changed: only its whole id will do, with or without the prefix.

        bd takes any beginning of an id here, and a word that was meant otherwise closes a stranger's task.
        """
        task = self.find(word, before=before)
        if word not in (task.uid, task.uid.removeprefix(f"{self.reads.prefix}-")):
            raise Refused(
                f'{before}no issue found matching "{word}"',
                hint=f"did you mean {task.uid}? A change needs the whole id",
            )
        return task

    def issue(self, task: Task) -> beads.Json:
        """A task as bd gives it after a change."""
        return beads.issue(task, self.reads, now=self.now)

    def answer(self, data: object, *lines: str, **beside: object) -> int:
        """Print the data with --json, else the lines. Always a success."""
        if self.json:
            self.context.print_json(beads.envelope(data, **beside))
        elif not self.quiet:
            for line in lines:
                self.context.print(line)
        return 0

    def note(self, text: str) -> None:
        """Say something that is not data."""
        self.context.note(text)


def read_file(name: str, what: str) -> str:
    """A file's text, or stdin's for `-`."""
    if name == "-":
        return sys.stdin.read()
    try:
        return Path(name).expanduser().read_text("utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise Refused(f'reading {what} "{name}": {exc}') from exc
