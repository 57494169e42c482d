"""What `fleet run` prints while it runs: a line for each thing that happens to its tasks, or the events themselves."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

from fleet.cli.event_words import short, told, used, worded
from fleet.cli.transcript import one_line
from fleet.cli.words import count, printable
from fleet.config.clock import utc_ms
from fleet.errors import FleetError
from fleet.model import event as ev
from fleet.model.receipt import Usage
from fleet.model.states import TaskState

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.model.event import Entry
    from fleet.supervisor.house import House
    from fleet.supervisor.supervisor import Supervised

TITLE = 60  # characters
MOST = 20  # tasks of one state at the end
# What a person who looks on waits to hear of a task.
NEWS = (
    *(ev.TaskClaimed, ev.SessionAdopted, ev.SessionStopping, ev.TaskSettled, ev.TaskUnsettled),
    *(ev.TaskRequeued, ev.TaskBlocked, ev.TaskAnswered, ev.AlertRaised),
)
# Of the supervisor's own log, what a person who looks on should know, in words.
SAID = {
    "queue_failed": "bd does not answer and is asked again: {error}",
    "queue_back": "bd answers again",
    "issue_refused": "{issue} cannot be taken from bd: {reason}",
    "settings_broken": "fleet.toml cannot be used, what was in force stays: {error}",
    "settings_reloaded": "fleet.toml was read again",
    "loop_delayed": "held up, and tried again: {error}",
    "session_delayed": "{session} is held up, and tried again: {error}",
    "host_silent": "the host of {session} does not answer: {error}",
    "lease_not_renewed": "the lease could not be renewed yet: {error}",
    "session_fenced": "{session} was taken over by another supervisor",
    "supervisor_gone": "supervisor {supervisor} is gone; its sessions are taken over",
    "supervisor_failed": "the supervisor fails: {error}",
    "prune_failed": "old sessions and logs could not be taken away: {error}",
}
REMEDIES = {TaskState.FAILED: "why", TaskState.PARTIAL: "show", TaskState.BLOCKED: "show"}
CALM = frozenset({"queue_back", "settings_reloaded"})


class Live:
    """Follows what one supervisor does. Words go to stderr; with --json the events of the ledger go to stdout."""

    def __init__(self, context: Context, *, quiet: bool) -> None:
        self._context = context
        self._quiet = quiet
        self._colour = context.colours(context.err)
        self._house: House | None = None
        self._position = ""
        self._titles: dict[str, str] = {}
        self._sessions: set[str] = set()  # ours
        self._tasks: set[str] = set()  # that we had a session of
        self._last: dict[str, str] = {}  # the last thing said of the supervisor itself, by kind
        self._usage = Usage()
        self._began = utc_ms()

    def begin(self, house: House) -> None:
        """From here on."""
        self._house = house
        self._position = house.store.end()

    def heard(self, event: str, fields: dict[str, Any]) -> None:
        """A line of the supervisor's own log: said if a person should know, and not twice in a row."""
        if event == "supervisor_started" and self._house is not None:
            house = self._house
            text = f"{count(house.slots, 'slot')}, coder {house.defaults.coder}"
            self._say("", "started", f"supervisor {house.name} (process {fields.get('pid')}): {text}")
        words = SAID.get(event)
        if words is None:
            return
        text = words.format_map(fields)
        if self._last.get(event) != text:
            self._say("", "note" if event in CALM else "warning", text)
        self._last = {**({} if event in CALM else self._last), event: text}

    def step(self) -> None:
        """The events since the last time. A store that does not answer is asked the next time."""
        if self._quiet or self._house is None:
            return
        with contextlib.suppress(FleetError):
            while (batch := self._house.store.feed(self._position)).entries:
                self._position = batch.position
                for entry in batch.entries:
                    self._tell(entry)

    def conclude(self, done: Supervised) -> None:
        """The sum of it."""
        self.step()
        if self._quiet or self._context.json:
            return
        took = used(self._usage, utc_ms() - self._began)
        waits = f"{done.waiting} wait{'s' if done.waiting == 1 else ''} for you"
        parts = [f"{count(done.completed, 'task')} completed", f"{done.failed} failed", waits]
        self._note(f"{', '.join(parts)}; {count(done.sessions, 'session')}" + (f" ({took})" if took else ""))
        if self._house is None:
            return
        known = self._house.store.tasks_by_uid(self._tasks).values()
        for state, remedy in REMEDIES.items():
            found = [task for task in known if task.state is state]
            for task in found[:MOST]:
                why = short(task.block.text if task.block else task.reason)
                told = f"{task.uid} {self._title(task.uid)}: {why} (fleet {remedy} {task.uid})"
                self._note(f"  {state.value}: {printable(told)}")
            if len(found) > MOST:
                self._note(f"  and {len(found) - MOST} more: fleet tasks --status {state.value}")

    # what is said

    def _tell(self, entry: Entry) -> None:
        event = entry.event
        match event:
            case ev.TaskClaimed(session=session) if self._house and session.supervisor == self._house.name:
                self._sessions.add(session.id)
                self._tasks.add(session.task)
            case ev.SessionAdopted(session=name, supervisor=who) if self._house and who == self._house.name:
                self._sessions.add(name)
                self._tasks.add(event.subject)
        if self._context.json:
            self._print_event(entry)
        elif event.subject in self._tasks and isinstance(event, NEWS):
            self._say(event.subject, *told(event), at=event.at)
        if isinstance(event, ev.SessionEnded) and event.session in self._sessions:
            self._usage = _sum(self._usage, event.usage)

    def _say(self, uid: str, what: str, text: str, at: int = 0) -> None:
        if self._quiet or (self._context.json and what != "warning"):
            return
        word = worded(what, colour=self._colour)
        clock = time.strftime("%H:%M:%S", time.localtime(at / 1000 if at else None))
        who = f"{uid}  " if uid else ""
        title = f"{self._title(uid)}: " if uid else ""
        self._note(f"{clock}  {who}{word} {printable(title)}{printable(text)}")

    def _title(self, uid: str) -> str:
        if uid not in self._titles and self._house is not None:
            found = self._house.store.tasks_by_uid([uid]).get(uid)
            self._titles[uid] = one_line(found.title, TITLE) if found else ""
        return self._titles.get(uid, "")

    def _note(self, line: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # nobody looks on any more
            self._context.err.write(f"{line}\n")  # it has our own colours
            self._context.err.flush()

    def _print_event(self, entry: Entry) -> None:
        from fleet.store.mirror import encode_line

        with contextlib.suppress(OSError, ValueError):
            self._context.out.write(encode_line(entry).decode())
            self._context.out.flush()


def _sum(one: Usage, other: Usage) -> Usage:
    names = Usage.__struct_fields__
    return Usage(**{name: getattr(one, name) + getattr(other, name) for name in names})
