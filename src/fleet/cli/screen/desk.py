"""What the screen works with: looks at the store, and the verbs of control. It blocks; called from one thread."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

from fleet import wiring
from fleet.cli.cost import midnight
from fleet.cli.steering import asked_words
from fleet.config.load import load
from fleet.errors import ConfigError, FleetError, NoHome
from fleet.hosts.machine import local_host
from fleet.model.intent import Intent
from fleet.projections.board import Board, board

if TYPE_CHECKING:
    from fleet.cli.logs import Follower
    from fleet.config.home import Home
    from fleet.control.control import Control
    from fleet.model.states import TaskState
    from fleet.projections.cost import Cost, Spending
    from fleet.store.engine import Bell
    from fleet.store.reads import Reads


class Shown(NamedTuple):
    """A task at its head: what it is, where it stands, and why."""

    uid: str
    state: TaskState
    title: str
    said: str


class AnyDesk(Protocol):
    """One person's view of a fleet. What fails is raised, and is tried anew by the next call. A verb returns what there
    is to say about it."""

    @property
    def what(self) -> str:
        """What has failed when a look does."""

    @property
    def flags(self) -> list[str]:
        """What names the fleet to another command."""

    @property
    def bell(self) -> Bell | None:
        """Rings when there may be something to see; who listens closes it."""

    def look(self, now: int) -> Board: ...

    def spent(self, now: int) -> Cost:
        """What ended since midnight came to, and what runs."""

    def task(self, uid: str) -> Shown: ...

    def follow(self, uid: str, lines: int) -> tuple[list[str] | None, Follower]: ...

    def attaching(self, uid: str) -> list[str]: ...

    def answer(self, uid: str, text: str) -> str: ...

    def interrupt(self, uid: str) -> str: ...

    def restart(self, uid: str) -> str: ...

    def stop(self, uid: str) -> str: ...

    def close(self) -> None: ...


class Desk:
    """Of a home here."""

    what = "the store cannot be read"

    def __init__(self, home: Home, *, machine: str | None = None) -> None:
        self.home = home
        self.flags = ["--home", str(home.path)]
        self._machine = machine or local_host()
        self.bell: Bell | None = None  # of the store that is open, if it has one; who listens closes it
        self._settings = load(home)
        self._reads: Reads | None = None
        self._spending: tuple[int, Spending] | None = None  # of the day that began then, and of this ledger
        self._files: tuple[int, ...] = ()  # which ledger and which settings were opened

    def look(self, now: int) -> Board:
        """Where everything stands."""
        reads = self._open()
        try:
            return board(reads, self._settings, self.home, machine=self._machine, now=now)
        except FleetError:
            self.close()
            raise

    def spent(self, now: int) -> Cost:
        """What was spent today; asked again, it reads only what has ended since."""
        from fleet.projections.cost import Spending

        reads, today = self._open(), midnight()
        if self._spending is None or self._spending[0] != today:
            self._spending = (today, Spending(today, "coder"))
        return self._spending[1].cost(reads, now)

    def task(self, uid: str) -> Shown:
        """One task as it stands."""
        task = self._open().task(uid)
        said = f"{task.block.kind}: {task.block.text}" if task.block else task.reason
        return Shown(task.uid, task.state, task.title, said)

    def follow(self, uid: str, lines: int) -> tuple[list[str] | None, Follower]:
        """The end of what a task's agents said, and how to read on."""
        from fleet.cli.logs import following

        file = self.home.task_dir(uid) / "log.jsonl"
        return following(lambda: file.open("rb"), lines)

    def attaching(self, uid: str) -> list[str]:
        """The command that shows a task's session: the terminal of a pool's worker, else the log."""
        from fleet.policy.allocation import all_members

        reads = self._open()
        session = reads.task(uid).session
        worker = reads.session(session).worker.partition("#")[0] if session else ""
        if any(member.worker == worker for member in all_members(self._settings)):
            return ["pool", "attach", worker]
        return ["logs", uid, "-f"]

    def answer(self, uid: str, text: str) -> str:
        """Answer what a task asks; what there is to say about it."""
        with self._control() as control:
            task = control.answer(uid, text)
            return f"Answered {task.uid}: it is {task.state.value} again"

    def interrupt(self, uid: str) -> str:
        """End the session of a task."""
        with self._control() as control:
            return self._asked(control.steer.interrupt(uid, "interrupted by a person"))

    def restart(self, uid: str) -> str:
        """Run a task again."""
        with self._control() as control:
            done = control.steer.restart(uid, "restarted by a person")
            if isinstance(done, Intent):
                return self._asked(done)
            return f"Restarted {done.uid}: it is {done.state.value} again"

    def stop(self, uid: str) -> str:
        """Cancel a task."""
        with self._control() as control:
            done, *others = control.steer.stop(uid, "stopped by a person")
            if isinstance(done, Intent):
                return self._asked(done)
            return f"Stopped {done.uid}" + (f", and skipped {len(others)} that need it" if others else "")

    def close(self) -> None:
        """Let go of the store; the next look opens it anew, with another bell."""
        reads, self.bell, self._reads, self._spending = self._reads, None, None, None
        if reads is not None:
            with contextlib.suppress(FleetError):
                reads.close()

    def _asked(self, intent: Intent) -> str:
        alone = "" if self._open().supervisors() else "; none is running: it is done as soon as one is"
        return asked_words(intent) + alone

    @contextlib.contextmanager
    def _control(self) -> Iterator[Control]:
        with contextlib.closing(wiring.open_control(self.home, self._settings)) as control:
            yield control

    def _open(self) -> Reads:
        """The store as it is there now: one that was removed or replaced is not read on from its grave."""
        found = self._found()
        if self._reads is not None and self._files != found:
            self.close()
        if self._reads is None:
            with contextlib.suppress(ConfigError):  # a broken edit: what was in force stays
                self._settings = load(self.home)
            self._files = found
            self._reads = wiring.open_reads(self.home, self._settings)
            with contextlib.suppress(FleetError):  # a home that cannot be written: it is asked again and again
                self.bell = self._reads.listen()
        return self._reads

    def _found(self) -> tuple[int, ...]:
        """What the settings and the ledger are now; either may be replaced under a screen that stays up for days."""
        edited = self.home.toml.stat().st_mtime_ns if self.home.toml.exists() else 0
        if self._settings.store.url:
            return (edited,)
        try:
            found = self.home.db.stat()
        except OSError as exc:
            self.close()
            raise NoHome(f"there is no ledger at {self.home.db}") from exc
        return (edited, found.st_dev, found.st_ino)
