"""What the screen works with where a fleet is served elsewhere: a look is one request, and its events are the bell."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fleet.cli.cost import midnight
from fleet.cli.screen.desk import Shown
from fleet.cli.steering import asked_words
from fleet.config.clock import utc_ms
from fleet.errors import FleetError
from fleet.model.intent import Intent
from fleet.projections.feed import Begin
from fleet.projections.happened import EVERYTHING

if TYPE_CHECKING:
    from fleet.cli.logs import Follower
    from fleet.front.remote import RemoteFront
    from fleet.front.stream import Stream
    from fleet.projections.board import Board
    from fleet.projections.cost import Cost

POLL_SECONDS = 2.0  # what an agent uses is no event


class AwayDesk:
    """One person's view of a fleet that is served elsewhere."""

    what = "no answer"

    def __init__(self, front: RemoteFront, flags: list[str]) -> None:
        self.flags = flags
        self.bell: Ring | None = None
        self._front = front
        self._ahead_ms = 0  # of the server's clock

    def clock(self) -> int:
        """The time there: what is shown was measured by it."""
        return utc_ms() + self._ahead_ms

    def look(self, now: int) -> Board:  # noqa: ARG002  # the server has its own
        """Where everything stands."""
        if self.bell is None or self.bell.broken:
            with contextlib.suppress(FleetError):  # too many follow it: it is asked again and again
                self.bell = Ring(self._front.follow(Begin(), EVERYTHING))
        found = self._front.board()
        self._ahead_ms = found.at - utc_ms()
        return replace(found, home=f"{found.home} at {self._front.url}")

    def spent(self, now: int) -> Cost:  # noqa: ARG002  # the server has its own
        """What was spent today, as a day is here."""
        return self._front.cost(midnight(), "coder")

    def task(self, uid: str) -> Shown:
        """One task as it stands."""
        found = self._front.task(uid)
        said = f"{found.question_kind}: {found.question}" if found.question_kind else found.reason
        return Shown(found.id, found.state, found.title, said)

    def follow(self, uid: str, lines: int) -> tuple[list[str] | None, Follower]:
        """The end of what a task's agents said, and how to read on."""
        from fleet.cli.logs import following

        view = self._front.log_view(uid)
        return following(lambda: self._front.open_log(view), lines)

    def attaching(self, uid: str) -> list[str]:
        """The command that shows a task's session: its log; the terminals of pools are there."""
        return ["logs", uid, "-f"]

    def answer(self, uid: str, text: str) -> str:
        """Answer what a task asks; what there is to say about it."""
        task = self._front.answer(uid, text)
        return f"Answered {task.id}: it is {task.state.value} again"

    def interrupt(self, uid: str) -> str:
        """End the session of a task."""
        return self._asked(self._front.interrupt(uid, "interrupted by a person"))

    def restart(self, uid: str) -> str:
        """Run a task again."""
        done = self._front.restart(uid, "restarted by a person")
        if isinstance(done, Intent):
            return self._asked(done)
        return f"Restarted {done.id}: it is {done.state.value} again"

    def stop(self, uid: str) -> str:
        """Cancel a task."""
        done, *others = self._front.stop(uid, "stopped by a person")
        if isinstance(done, Intent):
            return self._asked(done)
        return f"Stopped {done.id}" + (f", and skipped {len(others)} that need it" if others else "")

    def close(self) -> None:
        """The next look has another bell; this one is closed by who listens. The connection is another's."""
        self.bell = None

    def _asked(self, intent: Intent) -> str:
        alone = "" if self._front.supervisors() else "; none is running: it is done as soon as one is"
        return asked_words(intent) + alone


class Ring:
    """A bell that rings at each event of a fleet elsewhere, and when it is lost or back."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.broken = False  # it will not ring again

    def fileno(self) -> int:
        """For a loop's add_reader; call wait(0) to take the ring."""
        return self._stream.fileno()

    def wait(self, timeout: float) -> bool:
        """True when it rang."""
        rang = self._stream.wait(timeout)
        try:
            self._stream.more()
        except FleetError:
            self.broken = True
        return rang

    def close(self) -> None:
        """Stop listening."""
        self._stream.close()
