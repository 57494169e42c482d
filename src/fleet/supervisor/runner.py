"""Following one session: reading what its agent says, dealing with what it asks, and bringing about its end.

We may be killed on any line. Until `start` returned the session is either startable once or not at all; while it runs,
what was read is committed with the cursor; its end is written in one transaction. Whoever comes next finds one of
these and goes on from there. `house.at` names the places where that is tried.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any

from fleet.errors import HomeError, NotFound, NotStarted, PluginError, TransportError, UsageError
from fleet.hosts.facts import Cause, HostState
from fleet.hosts.follower import Followed
from fleet.model.receipt import Verdict
from fleet.model.session import Ending, Session
from fleet.model.states import Result, SessionState, Source
from fleet.model.task import Task
from fleet.policy import ending, limits
from fleet.supervisor import verifying
from fleet.supervisor.attempt import Attempt, CutShort, Unattended
from fleet.supervisor.beside import Beside
from fleet.supervisor.concluding import break_off, conclude, cut_short, give_up, refuse_over_budget, settle
from fleet.supervisor.dispatch import Dispatch, NeedsPerson, Occupied
from fleet.supervisor.house import House
from fleet.supervisor.interactive import Interactive
from fleet.supervisor.keeping import Keeper
from fleet.supervisor.launching import launch
from fleet.supervisor.lookout import OVER, Lookout
from fleet.supervisor.requests import Requests
from fleet.supervisor.wish import Wish, kept, recalled
from fleet.supervisor.workplace import Unmet

QUICK_SECONDS = 0.02  # until a start that is under way is looked at again
LOOK_SECONDS = 1.0  # its host wakes us when it says something; its limits are looked at as often
TURNED_AWAY_SECONDS = 2.0  # until a task is placed again whose host fell silent before it began
OCCUPIED_SECONDS = 60.0  # until a worker is asked again that a person uses


class SessionRunner:
    """Drives one session. `wish` ends it; cancelling only stops looking: the agent runs on."""

    def __init__(self, house: House, task: Task, session: Session) -> None:
        self.house = house
        self.attempt = Attempt(house, task, session)
        self._requests = Requests(house, task, session, self.attempt.hosted)
        self._keeper = Keeper(self.attempt)
        self._beside = Beside(self.attempt, self._keeper)
        self._interactive = Interactive(self.attempt)
        self._followed: Followed | None = None
        self._stopped = False
        self._more = False  # what was read last was not all there is
        self._capped = False  # its host ended it, since it printed too much
        self._skipped = False  # what it printed beyond its bound was passed over
        self._lookout = Lookout(self.attempt)

    @property
    def session(self) -> Session:
        """The session as it stands."""
        return self.attempt.session

    @property
    def wish(self) -> Wish | None:
        """That it shall end, if so."""
        return self.attempt.wish

    def end(self, wish: Wish) -> None:
        """Ask it to end; the first wish counts. One that a crash left without its intent is given it."""
        before = self.wish
        if before is None or (before.intent is None and before.verb == wish.verb):
            self.attempt.wish = wish
            self.attempt.heed_wish()
            if self._followed is not None:
                self._followed.wake()

    # the life of a session, in order

    async def run(self) -> None:
        """A session that was just claimed."""
        await self._to_its_end(self._run())

    async def attach(self) -> None:
        """A session that another supervisor left: find out what became of it, then go on."""
        await self._to_its_end(self._attach())

    async def _to_its_end(self, life: Coroutine[Any, Any, None]) -> None:
        try:
            await life
        except Unattended as exc:
            await give_up(self.attempt, str(exc))
        except PluginError as exc:
            await break_off(self.attempt, exc)

    async def _run(self) -> None:
        if await refuse_over_budget(self.attempt):
            return
        try:
            await launch(self.attempt)
        except (UsageError, NotFound) as exc:  # it can never be launched as it is
            verdict = Verdict(result=Result.FAIL, source=Source.TASK, reason=f"it cannot be launched: {exc}")
            await self._unlaunched(ending.Finish(verdict), Ending(outcome="crashed"))
            return
        except CutShort:
            await cut_short(self.attempt)
            return
        except Unmet as exc:
            skipped = ending.Finish(Verdict(result=Result.SKIP, reason=str(exc)))
            await settle(self.attempt, skipped, Ending(outcome="unmet"))
            return
        except NeedsPerson as exc:
            await self._ask(exc)
            return
        except Occupied as exc:
            self.house.occupied[self.session.worker] = asyncio.get_running_loop().time() + OCCUPIED_SECONDS
            again = ending.Retry(reason=str(exc), charged=False)
            await self._unlaunched(again, Ending(outcome="interrupted", state=SessionState.LOST))
            return
        except (NotStarted, HomeError) as exc:  # HomeError: what it needs of the home cannot be read
            why = f"{exc}; {exc.hint}" if exc.hint else str(exc)
            decision = ending.after_no_start(why, 1 + self.attempt.history.failed_starts())
            await self._unlaunched(decision, Ending(outcome="transient", state=SessionState.LOST))
            return
        except TransportError as exc:
            if self.attempt.site.is_here:
                raise
            await self._turned_away(exc)
            return
        self._lookout.begins()
        await self._follow()

    async def _turned_away(self, exc: TransportError) -> None:
        """Its host fell silent before it was told to start anything: another may take the task; no attempt is used."""
        self.house.hosts.doubt(self.session.host, str(exc))
        reason = f"host {self.session.host} did not answer before it began: {exc}"
        again = ending.Retry(reason=reason, charged=False, after_seconds=TURNED_AWAY_SECONDS)
        await self._unlaunched(again, Ending(outcome="interrupted", state=SessionState.LOST))

    async def _attach(self) -> None:
        attempt = self.attempt
        attempt.progress = self.house.store.progress(self.session.id)
        before = recalled(attempt.progress)
        if before is not None and self.wish is None:
            self.end(before)
        seen = await self._lookout.until_known()
        if seen.state in (HostState.ABSENT, HostState.PREPARED, HostState.STARTING) and await attempt.hosted.abandon():
            seen = await self._lookout.until_known()
        while seen.state is HostState.STARTING:  # its runner lives: it begins, or gives up
            await asyncio.sleep(QUICK_SECONDS)
            seen = await self._lookout.until_known()
        self._lookout.resumes(seen, self.session)
        if seen.state in (HostState.ABANDONED, HostState.ABSENT):
            again = ending.Retry(reason="it had not started when its supervisor ended", charged=False)
            await self._unlaunched(again, Ending(outcome="interrupted", state=SessionState.LOST))
            return
        if self.session.state is SessionState.STARTING and seen.pid is not None:
            attempt.session = await self.house.store.started(self.session.fence, seen.pid, by=self.house.name)
        self.house.at("attached")
        self.house.log("session_attached", session=self.session.id, state=seen.state.value)
        await self._follow()

    async def _unlaunched(self, decision: ending.Decision, end: Ending) -> None:
        """It never began: what follows, which is another thing for a verifier."""
        if self.attempt.verifies:
            decision = verifying.unlaunched(self.attempt, decision)
        await settle(self.attempt, decision, end)

    async def _follow(self) -> None:
        """Read until the end, then settle."""
        self.attempt.recall_state()
        if not self.house.alone:
            await self.attempt.commit()  # who has lost it meanwhile leaves the log as it is
        full_from = self.attempt.progress.full_from
        self.attempt.record.rewind(self.attempt.progress.cursor if full_from is None else full_from)
        if self.attempt.dispatch is not None:
            try:
                await self._hand_over(self.attempt.dispatch)
            except NeedsPerson as exc:
                await self._ask(exc)
                return
        progress = self.attempt.progress
        self._followed = self.attempt.site.follower.follow(
            self.attempt.hosted, cursor=progress.cursor, requests=progress.requests
        )
        try:
            await self._read_to_the_end(self._followed)
        finally:
            self._followed.close()
            self._followed = None
        await self._keeper.finish()
        await conclude(self.attempt)

    async def _hand_over(self, dispatch: Dispatch) -> None:
        """A step that may be done again, until its host has answered all of it."""
        while True:
            try:
                return await dispatch.hand_over(self.attempt)
            except TransportError as exc:
                self.attempt.silent(exc)
            if (await self._lookout.until_known()).state in OVER:
                return None  # that its terminal is gone is part of its end
            await self.attempt.pause_after_silence()

    async def _ask(self, why: NeedsPerson) -> None:
        """Only a person can go on with a dispatch: its program, if there is one, stays for them."""
        attempt, dispatch = self.attempt, self.attempt.dispatch
        assert dispatch is not None
        await dispatch.failed(attempt, str(why))
        await attempt.safely(attempt.hosted.conclude())
        words = f"{why}; see it: fleet pool attach {dispatch.worker}; then: fleet answer {attempt.task.uid} done"
        await settle(attempt, ending.Ask("needs_human", words), Ending(outcome="interrupted"))

    async def _read_to_the_end(self, followed: Followed) -> None:
        """Limits and wishes may bring the end about."""
        attempt = self.attempt
        self._lookout.follows()
        ended = False
        while True:
            attempt.heed_abandon()
            exit_record = await attempt.safely(followed.exit())
            await self._lookout.sees(exit_record)
            ended = ended or (exit_record is not None and exit_record.swept)
            self._capped = exit_record is not None and exit_record.cause is Cause.CAP
            self._lookout.looks()
            moved = await self._read(followed, ended=ended)
            moved |= await self._deal_with_requests(followed, ended=ended)
            await self._beside.run_once(last=ended and not moved)
            await self._interactive.run_once()
            if ended and not moved:
                return
            if ended:
                continue
            if moved or exit_record is not None:
                self._lookout.lives(moved=moved)
            if await self._lookout.sees_it_ended(vanished=not moved and followed.vanished()):
                ended = True  # what it said last is still to be read
                continue
            await attempt.heed_silence()
            if not self._lookout.is_host_silent():
                await attempt.attend()
                if self.wish is None:
                    self._enforce_limits(followed)
            if self.wish is not None and not self._stopped and exit_record is None:
                await self._stop(self.wish)
            if not self._more:
                await followed.changed(LOOK_SECONDS)

    async def _read(self, followed: Followed, *, ended: bool) -> bool:
        """The next lines, parsed and committed with the cursor. True: there may be more."""
        attempt, self._more = self.attempt, False
        if self._has_printed_too_much(followed) and not await self._may_read_on(followed, ended=ended):
            return False
        got = await attempt.safely(followed.read(attempt.progress.cursor, ended=ended))
        if got is None:
            await attempt.pause_after_silence()
            return True
        if got.cursor == attempt.progress.cursor:
            return False
        self.house.at("read")
        self._keeper.take(got.lines, got.cursor)
        self.house.at("logged")
        self._more = got.more
        self._lookout.speaks()
        await attempt.commit()
        self.house.at("recorded")
        return True

    def _has_printed_too_much(self, followed: Followed) -> bool:
        """As far as it was read; or all in all, where there is no room for it in its log either."""
        bounds, progress = self.attempt.limits, self.attempt.progress
        if limits.overflown(bounds, progress.cursor):
            return True
        over = self._capped or limits.overflown(bounds, followed.printed) is not None
        return over and progress.full_from is not None

    async def _may_read_on(self, followed: Followed, *, ended: bool) -> bool:
        """Of what it printed beyond its bound only the end is read, once it has ended: there may be any amount."""
        if not ended:
            followed.pass_over()
            return False
        if not self._skipped:
            seen = await self._lookout.until_known()
            before = self.attempt.progress.cursor
            await self.attempt.insist(partial(self._keeper.skip, seen.stdout_bytes))
            await self.attempt.commit()
            self._skipped = True
            if self.attempt.progress.cursor > before:  # what nobody read, and nobody will
                await self.attempt.safely(self.attempt.hosted.free(self.attempt.progress.cursor, since=before))
        return True

    async def _stop(self, wish: Wish) -> None:
        """End the agent and all it started. What was intended is kept first, so that a crash does not forget it."""
        attempt, by = self.attempt, wish.by or self.house.name
        attempt.progress = kept(attempt.progress, wish)
        await attempt.commit()
        attempt.session = await self.house.store.stopping(self.session.fence, wish.reason, by=by)
        self.house.log("session_stopping", session=self.session.id, why=wish.verb, reason=wish.reason)
        self.house.at("stopping")
        grace = 0 if wish.bound == limits.OUTPUT else self.house.settings.supervisor.grace_seconds  # it prints on
        stopped = await attempt.safely(attempt.hosted.stop(grace_seconds=grace))
        self._stopped = stopped is not None
        self.house.at("stopped")

    # smaller steps

    async def _deal_with_requests(self, followed: Followed, *, ended: bool) -> bool:
        attempt = self.attempt
        after = await attempt.safely(self._requests.run_once(followed, attempt.progress, ended=ended))
        if after is None:
            await attempt.pause_after_silence()
            return True
        if after == attempt.progress:
            return False
        attempt.progress = after
        return True

    def _window(self) -> int | None:
        """How many tokens its context holds: as it reports itself, as the settings say, as its coder knows."""
        attempt = self.attempt
        known = attempt.progress.context_window or attempt.options.context_limit
        return known or attempt.coder.context_limit(self.session.model)

    def _enforce_limits(self, followed: Followed) -> None:
        crossed = limits.exceeded(
            self.attempt.limits,
            self.attempt.progress,
            elapsed_ms=self.attempt.elapsed_ms,
            idle_ms=self._lookout.idle_ms,
            in_tool=self.attempt.progress.tools_running > 0,
            window=self._window(),
            printed=followed.printed,
            before=self.attempt.before,
        )
        if crossed is not None:
            self.end(Wish("limit", crossed.reason, outcome=crossed.outcome, bound=crossed.bound))
