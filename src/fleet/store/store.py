"""The store: `Reads`, and a verb for every transition.

A verb is one transaction. It is durable when its `Pending` has its result; when it raises, nothing was written. Verbs
may be called from any thread or loop. A verb that was cut off (a killed process, a lost server) either happened whole
or not at all: read before saying it again. `together` puts many into one transaction, each done or refused by itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence

from fleet.model.alert import Alert
from fleet.model.delivery import Came, Delivery
from fleet.model.host import Host
from fleet.model.intent import Intent
from fleet.model.receipt import Awaits, Verdict
from fleet.model.run import NewRun, Run
from fleet.model.session import Claimed, Defaults, Ending, Fence, Progress, Session, Slot
from fleet.model.supervisor import Supervisor
from fleet.model.task import BLOCKS, Comment, NewTask, Task, TaskEdit
from fleet.store import around, deliveries, probes, queue, sessions, submission, waits
from fleet.store.pending import Pending
from fleet.store.reads import Reads


class Store(Reads):
    """Questions and verbs. A verb that raises has written nothing."""

    def unmoved(self, subject: str, seq: int) -> Store:
        """This store, for one verb that happens only while the newest event of a subject is this one."""
        from fleet.store.unmoved import Unmoved

        return Store(Unmoved(self._engine, subject, seq), prefix=self.prefix)

    @contextlib.contextmanager
    def together(self) -> Iterator[Store]:
        """This store, for many verbs in one transaction: each has its outcome after the block, done or refused by
        itself. Nothing may be waited for inside. A block that raises has written nothing."""
        from fleet.store.together import Together

        gathered = Together(self._engine)
        yield Store(gathered, prefix=self.prefix)
        gathered.commit()

    # the queue

    def submit(self, new: Sequence[NewTask], *, by: str, run: NewRun | None = None) -> Pending[list[Task]]:
        """All of the tasks enter the queue, or none does."""
        return self._engine.write(lambda tx: submission.submit(tx, new, run=run, by=by, prefix=self.prefix))

    def edit(self, uid: str, change: TaskEdit, *, by: str) -> Pending[Task]:
        """A person changes a task's own fields."""
        return self._engine.write(lambda tx: queue.edit(tx, uid, change, by=by))

    def amend(self, uid: str, change: Callable[[Task], TaskEdit], *, by: str) -> Pending[Task]:
        """A change that follows from what stands; `change` may be called again and must do nothing else."""
        return self._engine.write(lambda tx: queue.amend(tx, uid, change, by=by))

    def link(self, uid: str, other: str, *, by: str, kind: str = BLOCKS) -> Pending[Task]:
        """A relation to another task; with `blocks`, this one needs that one. Circles are refused."""
        return self._engine.write(lambda tx: queue.link(tx, uid, other, kind, by=by))

    def unlink(self, uid: str, other: str, *, by: str) -> Pending[Task]:
        """Take a relation away."""
        return self._engine.write(lambda tx: queue.unlink(tx, uid, other, by=by))

    def comment(self, uid: str, text: str, *, by: str, name: str | None = None) -> Pending[Comment]:
        """A remark on a task. One that is named is made once, however often it is said."""
        return self._engine.write(lambda tx: queue.comment(tx, uid, text, by=by, name=name))

    def block(self, uid: str, kind: str, text: str, *, by: str) -> Pending[Task]:
        """A task without a live session waits for a person."""
        return self._engine.write(lambda tx: queue.block(tx, uid, kind, text, by=by))

    def take(self, uid: str, *, by: str) -> Pending[Task]:
        """A person takes a queued task; of several who try, one gets it."""
        return self._engine.write(lambda tx: queue.take(tx, uid, by=by))

    def answer(self, uid: str, text: str, *, by: str) -> Pending[Task]:
        """A person answers a blocked task; it is queued again. The first answer wins."""
        return self._engine.write(lambda tx: queue.answer(tx, uid, text, by=by))

    def settle(self, uid: str, verdict: Verdict, *, by: str, alerts: Sequence[Alert] = ()) -> Pending[Task]:
        """A verdict on a task without a live session."""
        return self._engine.write(lambda tx: queue.settle(tx, uid, verdict, by=by, alerts=alerts))

    def unsettle(self, uid: str, awaits: Awaits, reason: str, *, by: str) -> Pending[Task]:
        """Open the verdict on a task: its verifier is to run again, or a person is to judge it."""
        return self._engine.write(lambda tx: queue.unsettle(tx, uid, awaits, reason, by=by))

    def requeue(
        self, uid: str, reason: str, *, by: str, check: Callable[[Task], object] | None = None
    ) -> Pending[Task]:
        """A task that ended or waits for a person goes back to the queue; what was skipped for it is revived.

        `check` sees it as it stands then, may raise, and must do nothing else.
        """
        return self._engine.write(lambda tx: queue.requeue(tx, uid, reason, by=by, check=check))

    def cancel(self, uid: str, reason: str, *, by: str) -> Pending[Task]:
        """A task without a live session will not run; those that need it are skipped."""
        return self._engine.write(lambda tx: queue.cancel(tx, uid, reason, by=by))

    def stop_run(self, run: str, reason: str, *, by: str) -> Pending[Run]:
        """A person stops a run; its tasks are stopped each by itself."""
        return self._engine.write(lambda tx: queue.stop_run(tx, run, reason, by=by))

    # sessions

    def claim(self, supervisor: str, slots: Sequence[Slot], defaults: Defaults) -> Pending[list[Claimed]]:
        """Fill the slots with what waits for a verifier, then with ready tasks; none is ever claimed twice."""
        return self._engine.write(lambda tx: sessions.claim(tx, supervisor, slots, defaults))

    def claim_verify(self, supervisor: str, uid: str, slot: Slot, defaults: Defaults) -> Pending[Claimed | None]:
        """Take one task for its verifier, if it waits for one now."""
        return self._engine.write(lambda tx: sessions.claim_verify(tx, supervisor, uid, slot, defaults))

    def started(self, fence: Fence, pid: int | None, *, by: str) -> Pending[Session]:
        """The agent's process is there."""
        return self._engine.write(lambda tx: sessions.started(tx, fence, pid, by=by))

    def stopping(self, fence: Fence, reason: str, *, by: str) -> Pending[Session]:
        """The agent was told to end."""
        return self._engine.write(lambda tx: sessions.stopping(tx, fence, reason, by=by))

    def record(self, fence: Fence, progress: Progress) -> Pending[None]:
        """Counters, parser state and cursor, together."""
        return self._engine.write(lambda tx: sessions.record(tx, fence, progress))

    def warn(self, fence: Fence, progress: Progress, alert: Alert, *, by: str) -> Pending[None]:
        """What a person should hear of a live session, with its progress."""
        return self._engine.write(lambda tx: sessions.warn(tx, fence, progress, alert, by=by))

    def finish(
        self,
        fence: Fence,
        ending: Ending,
        verdict: Verdict,
        *,
        by: str,
        charged: bool = False,
        alerts: Sequence[Alert] = (),
    ) -> Pending[Task]:
        """The session's end, the receipt and the task's next state."""
        return self._engine.write(
            lambda tx: sessions.finish(tx, fence, ending, verdict, charged=charged, alerts=alerts, by=by)
        )

    def retry(
        self,
        fence: Fence,
        ending: Ending,
        *,
        reason: str,
        by: str,
        verdict: Verdict | None = None,
        not_before: int | None = None,
        charged: bool = True,
        restart: bool = False,
        alerts: Sequence[Alert] = (),
    ) -> Pending[Task]:
        """The session ended and the task goes back to the queue."""
        return self._engine.write(
            lambda tx: sessions.retry(
                tx,
                fence,
                ending,
                verdict,
                reason=reason,
                not_before=not_before,
                charged=charged,
                restart=restart,
                alerts=alerts,
                by=by,
            )
        )

    def postpone(
        self, fence: Fence, ending: Ending, awaits: Awaits, *, reason: str, by: str, not_before: int | None = None
    ) -> Pending[Task]:
        """A verifier's session ended without a verdict; another will come."""
        return self._engine.write(
            lambda tx: sessions.postpone(tx, fence, ending, awaits, reason=reason, not_before=not_before, by=by)
        )

    def pause(
        self,
        fence: Fence,
        ending: Ending,
        kind: str,
        text: str,
        *,
        by: str,
        asked_by: str = "",
        alerts: Sequence[Alert] = (),
    ) -> Pending[Task]:
        """The session ended and the task waits for a person."""
        return self._engine.write(
            lambda tx: sessions.pause(tx, fence, ending, kind, text, by=by, asked_by=asked_by, alerts=alerts)
        )

    def abandon(self, uid: str, reason: str, *, by: str) -> Pending[Task]:
        """A person says that the session of a task is lost; what is left of it is swept when its host answers."""
        return self._engine.write(lambda tx: around.abandon(tx, uid, reason, by=by))

    def adopt(self, session: str, supervisor: str) -> Pending[Session]:
        """Take over a session whose holder is gone."""
        return self._engine.write(lambda tx: sessions.adopt(tx, session, supervisor))

    # around the queue

    def join(self, supervisor: str, *, machine: str, pid: int, seconds: float) -> Pending[Supervisor]:
        """A supervisor begins, under a lease."""
        return self._engine.write(lambda tx: around.join(tx, supervisor, machine, pid, seconds))

    def renew(self, supervisor: str, *, seconds: float) -> Pending[None]:
        """Extend a lease that still holds."""
        return self._engine.write(lambda tx: around.renew(tx, supervisor, seconds))

    def leave(self, supervisor: str, *, reason: str) -> Pending[None]:
        """A supervisor ends in good order."""
        return self._engine.write(lambda tx: around.leave(tx, supervisor, reason))

    def expire(self, *, by: str, only: Collection[str] | None = None) -> Pending[list[Supervisor]]:
        """Mark supervisors whose lease has ended as gone, or those of them that are named; returns them."""
        return self._engine.write(lambda tx: around.expire(tx, by=by, only=only))

    def mend_waits(self, *, by: str) -> Pending[list[Task]]:
        """Have waits that a clock set back has drawn out last as long as was meant. A second time does nothing."""
        return self._engine.write(lambda tx: waits.mend(tx, by=by))

    def intend(self, verb: str, target: str, *, by: str, args: dict[str, str] | None = None) -> Pending[Intent]:
        """A person asks for something that only a supervisor can do."""
        return self._engine.write(lambda tx: around.intend(tx, verb, target, args or {}, by=by))

    def fulfil(self, intent: str, outcome: str, *, by: str, detail: str = "") -> Pending[Intent]:
        """A supervisor did what was asked, or says why not."""
        return self._engine.write(lambda tx: around.fulfil(tx, intent, outcome, detail, by=by))

    def probed(self, host: Host, *, by: str, alert_after: int = 1, keep_days: int = probes.KEEP_DAYS) -> Pending[Host]:
        """What a probe found of a machine. That it is down is raised after so many probes in a row that found it so;
        probes that are older than so many days are forgotten."""
        return self._engine.write(
            lambda tx: around.probed(tx, host, by=by, alert_after=alert_after, keep_days=keep_days)
        )

    def drain(self, name: str, kind: str, *, draining: bool, by: str) -> Pending[Host]:
        """A person says that a host takes no new work, or that it does again."""
        return self._engine.write(lambda tx: around.drain(tx, name, kind, draining=draining, by=by))

    def advance(self, name: str, position: str) -> Pending[None]:
        """A reader of the feed has dealt with everything up to a position."""
        return self._engine.write(lambda tx: around.advance(tx, name, position))

    # alerts on their way

    def announce(
        self, new: Sequence[Delivery], *, reader: str | None = None, position: str = ""
    ) -> Pending[list[Delivery]]:
        """Alerts are about to be sent; the reader of the feed has dealt with all up to a position. Returns those that
        are the caller's to see to: an alert that was announced to a channel before is not among them."""
        return self._engine.write(lambda tx: deliveries.announce(tx, new, reader, position))

    def take_over(self, *, by: str) -> Pending[list[Delivery]]:
        """Take the deliveries of senders that are gone; each may be a repeat, and says so."""
        return self._engine.write(lambda tx: deliveries.take_over(tx, by))

    def delivered(
        self, delivery: str, outcome: Came, *, by: str, attempts: int = 0, detail: str = ""
    ) -> Pending[Delivery]:
        """What came of it. Saying it twice changes nothing."""
        return self._engine.write(
            lambda tx: deliveries.delivered(tx, delivery, outcome, attempts=attempts, detail=detail, by=by)
        )
