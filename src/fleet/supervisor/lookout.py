"""The lookout of one session: signs that its agent lives, and for how long there have been none.

Times are by the loop's clock, which nobody sets: a wrong clock ends no session.
"""

from __future__ import annotations

import asyncio

from fleet.config.clock import steady_ms, utc_ms
from fleet.hosts.facts import Exit, HostState, Observed
from fleet.model.session import Session
from fleet.supervisor.attempt import Attempt

OBSERVE_SECONDS, SELDOM_SECONDS = 2.0, 30.0  # after its last word, then less and less often
SETTLE_SECONDS = 2.0  # after a host was silent: until all that it had to tell is here
GAP_SECONDS = 10.0  # twice as long as a host that is watched says nothing
OVER = frozenset({HostState.GONE, HostState.EXITED, HostState.ABSENT})


class Lookout:
    """What is known of one agent's life. Its host is asked only where neither words nor an exit tell."""

    def __init__(self, attempt: Attempt, *, gap_seconds: float = GAP_SECONDS) -> None:
        self._attempt = attempt
        self._gap_seconds = gap_seconds
        self._observe_at = 0.0  # at once
        self._observe_every = OBSERVE_SECONDS
        self._followed_at = self._silent_at = 0.0
        self._spoke = 0.0
        self._lived_at = 0  # when it had not ended yet, by the clock that goes on while a machine sleeps
        self._vanished = False  # its processes
        self._told = 0.0  # until when it is known whether its agent spoke

    @property
    def idle_ms(self) -> int:
        """For how long its agent had said nothing when that was looked at; silence of its host does not count."""
        return max(0, int((self._told - self._spoke) * 1000))

    def begins(self) -> None:
        """The session was started just now."""
        self._spoke = _now()
        self._lived_at = steady_ms()
        self._attempt.stopwatch.begin()
        self._postpone()

    def resumes(self, seen: Observed, session: Session) -> None:
        """It was found as its host has it. Without a clock there that nobody sets, the ledger says when it began."""
        if seen.ran_ms is None:
            began_at = session.started_at or session.claimed_at
            self._attempt.stopwatch.begin(max(0, self._attempt.house.store.now() - began_at))
        self._knows(seen)
        self._spoke = _now() - min(seen.idle_ms, self._attempt.stopwatch.elapsed_ms) / 1000
        self._lived_at = steady_ms()
        if seen.runner_lives:
            self._postpone()

    def follows(self) -> None:
        """From now on all that its host tells is heard."""
        self._followed_at = self._silent_at = _now()

    def looks(self) -> None:
        """What its agent has said so far is read now. Whether it speaks after its host last did nobody knows."""
        site, before = self._attempt.site, self._told
        self._told = _now() if site.is_here else site.heard_at
        if before and not site.is_here and self._told - before > self._gap_seconds:
            self._silent_at = _now()  # the host has much to tell, or we were frozen and have much to hear

    async def sees(self, exit_record: Exit | None) -> None:
        """Whether there is a record of its end. When nobody could look for long, its host says how old that is."""
        attempt = self._attempt
        if exit_record is None:
            silent = 0.0 if attempt.site.is_here else _now() - attempt.site.heard_at
            self._lived_at = max(self._lived_at, steady_ms() - int(silent * 1000))
        elif attempt.ended_at is None:
            if steady_ms() - self._lived_at >= self._gap_seconds * 1000:
                self._knows(await self.until_known())
            attempt.ended_at = attempt.ended_at or utc_ms()
            attempt.stopwatch.end()
            if exit_record.ran_ms is not None:
                attempt.stopwatch.measured(exit_record.ran_ms)

    def _knows(self, seen: Observed) -> None:
        """How long it ran, and how long ago it ended, is by its host's clocks: that ours differ is nothing to it."""
        attempt, ago = self._attempt, seen.ended_ms_ago
        if seen.ran_ms is not None:
            attempt.stopwatch.begin(seen.ran_ms + (ago or 0))
        if ago is not None:
            attempt.ended_at = utc_ms() - ago
            attempt.stopwatch.end(ago)

    def speaks(self) -> None:
        """Its agent has said something."""
        self._spoke = _now()

    def lives(self, *, moved: bool) -> None:
        """Something of it was read: no need to ask its host at once, but soon again when it falls silent."""
        if not self._observe_at:  # it is not known yet whether it lives at all
            return
        self._observe_every = OBSERVE_SECONDS
        if moved:
            self._postpone()

    async def until_known(self) -> Observed:
        """What its host says of it, however often that has to be asked."""
        while True:
            seen: Observed | None = await self._attempt.safely(self._attempt.hosted.observe())
            if seen is not None:
                self._attempt.heard()
                return seen
            await self._attempt.pause_after_silence()

    async def sees_it_ended(self, *, vanished: bool) -> bool:
        """Has it ended without its runner's last word? Then what it left behind is ours to end.

        Asked now and then; at once when its processes are not to be seen any more, and then often: it is nearly over.
        """
        now = _now()
        if vanished and not self._vanished:
            self._observe_at = now
        self._vanished = vanished
        if now < self._observe_at:
            return False
        self._observe_at = now + self._observe_every
        self._observe_every = OBSERVE_SECONDS if vanished else min(SELDOM_SECONDS, self._observe_every * 2)
        seen: Observed | None = await self._attempt.safely(self._attempt.hosted.observe())
        if seen is not None:
            self._attempt.heard()
        if seen is None or seen.runner_lives or seen.state not in OVER:
            return False
        if seen.state is not HostState.ABSENT:
            grace = self._attempt.house.settings.supervisor.grace_seconds
            return await self._attempt.safely(self._attempt.hosted.sweep(grace_seconds=grace)) is not None
        return True

    def is_host_silent(self) -> bool:
        """Whether its host was silent until a moment ago: its last words, and its end, may be on their way still."""
        if self._attempt.site.is_here:
            return False
        now = _now()
        if not self._attempt.site.is_heard_since(self._followed_at):
            self._silent_at = now
        if now - self._silent_at < SETTLE_SECONDS:
            self._spoke = now  # silence of the host is not silence of its agent
            return True
        return False

    def _postpone(self) -> None:
        self._observe_every = OBSERVE_SECONDS
        self._observe_at = _now() + OBSERVE_SECONDS


def _now() -> float:
    return asyncio.get_running_loop().time()
