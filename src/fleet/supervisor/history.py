"""What a task's earlier sessions mean for the one that begins or ends now."""

from __future__ import annotations

from typing import Any

from fleet.coders.contained import ContainedCoder
from fleet.model.outcome import OutcomeKind
from fleet.model.session import Session
from fleet.policy.limits import Used, used_by
from fleet.store.reads import Reads

RESUMED_AFTER = frozenset({"transient", "interrupted", "plan_limit", "stalled", "crashed", "stopped"})
FRUITLESS = frozenset({"transient", "interrupted", "crashed"})
ASKED_WITH = frozenset({"ok", "denied"})  # what becomes of a session that asked and then ended, as it was told to


class History:
    """The sessions of a task before one of them."""

    def __init__(self, reads: Reads, session: Session, coder: ContainedCoder) -> None:
        self._reads = reads
        self._session = session
        self._coder = coder
        self._known: list[Session] | None = None

    def resumable(self) -> str | None:
        """The conversation to go on with: only where the coder can, and where its last session did not spoil it."""
        last = self._last()
        if last is None or last.kind == "verify" or not self._coder.resumable:
            return None
        if last.outcome not in RESUMED_AFTER and not (last.outcome in ASKED_WITH and self.asked()):
            return None
        progress = self._reads.progress(last.id)
        return progress.coder_session if progress.cursor else None  # one that said nothing has no conversation

    def asked(self) -> bool:
        """Whether the session before this one ended to ask a person something."""
        last = self._last()
        return last is not None and self._reads.progress(last.id).asked_kind is not None

    def parser_state(self) -> Any:
        """The last parser state of the conversation that goes on: vendors count on across sessions."""
        last = self._last()
        if last is None or self.resumable() is None:
            return None
        return self._coder.unpacked(self._reads.progress(last.id).parser)

    def full_contexts(self) -> int:
        """How many sessions ended because their context was full."""
        return sum(found.outcome == OutcomeKind.CONTEXT.value for found in self._before())

    def used(self) -> Used:
        """What they consumed, all together."""
        return used_by(self._before())

    def began(self) -> bool:
        """Whether one of them was started."""
        return any(found.started_at is not None for found in self._before())

    def failed_starts(self) -> int:
        """How many sessions in a row, until now, did not start though they were told to."""
        known, count = self._before(), 0
        while known and (last := known.pop()).started_at is None and last.outcome == OutcomeKind.TRANSIENT.value:
            count += 1
        return count

    def fruitless(self) -> int:
        """How many verifiers, since the work that they were to judge, ended without a verdict though they began."""
        known, count = self._reads.sessions(task=self._session.task), 0
        for found in reversed([one for one in known if one.id != self._session.id]):
            if found.kind == "work":
                break
            count += found.started_at is not None and found.outcome in FRUITLESS
        return count

    def _before(self) -> list[Session]:
        """The sessions before this one, of its kind: a verifier is not the task's own doing."""
        if self._known is None:  # read once: they have all ended
            known = self._reads.sessions(task=self._session.task)
            self._known = [one for one in known if one.id != self._session.id and one.kind == self._session.kind]
        return list(self._known)

    def _last(self) -> Session | None:
        """The session before this one that began, if it was by the same coder and on the same host."""
        began = [found for found in self._before() if found.started_at is not None]
        last = began[-1] if began else None
        same = last is not None and (last.coder, last.host) == (self._session.coder, self._session.host)
        return last if same else None
