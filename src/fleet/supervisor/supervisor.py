"""The supervisor's life: join, rescue, loop, leave."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, cast

import msgspec

from fleet.config.load import load
from fleet.errors import ConfigError, Fenced, FleetError, HomeError, LeaseLost, LedgerBroken, StoreError, may_pass
from fleet.model.session import Session
from fleet.model.states import LIVE, TaskState
from fleet.model.task import Task
from fleet.store.engine import Bell
from fleet.supervisor.alerter import Alerter
from fleet.supervisor.claimer import Claimer
from fleet.supervisor.feeder import Feeder
from fleet.supervisor.house import House, Only
from fleet.supervisor.intents import Intents
from fleet.supervisor.lease import keep_lease
from fleet.supervisor.pruner import Pruner
from fleet.supervisor.record import Overtaken
from fleet.supervisor.refusing import refuse, refuse_after
from fleet.supervisor.remaining import anything_left
from fleet.supervisor.rescuer import Rescuer
from fleet.supervisor.runner import SessionRunner
from fleet.supervisor.sweeper import Sweeper
from fleet.supervisor.wish import Wish

LOOK_SECONDS = 1.0  # the safety net; the bell wakes us at once
ROUND_SECONDS = 0.02  # from one round to the next: a thousand agents that talk ring the bell as often
RESCUE_SECONDS = 10.0
STOP_SECONDS = 20.0  # for agents to end, beside their graces
AGAIN_SECONDS = 1.0  # after something that may be better by then
MIRROR_SECONDS = 0.5
FAULT_SECONDS = 0.5  # after a round that met what nobody expected
MOST_FAULTS = 5  # rounds in a row that met what nobody expected: then it is no accident, and must be seen
OF_ALL = (StoreError, HomeError, LedgerBroken)  # no fault of one session

Work = Callable[[], Coroutine[Any, Any, None]]


class Supervised(msgspec.Struct, frozen=True, kw_only=True):
    """What a supervisor did, when it ends."""

    sessions: int
    left_running: int
    completed: int  # of the tasks that it had a session of
    failed: int
    waiting: int  # for a person, or for a verifier


class Supervisor:
    """Takes ready tasks and drives their sessions until it is told to stop."""

    def __init__(self, house: House, *, drain: bool = False) -> None:
        self.house = house
        self._drain = drain
        self._claimer = Claimer(house)
        self._sweeper = Sweeper(house)
        self._intents = Intents(house, self._sweeper)
        self._alerter = Alerter(house)
        self._feeder = Feeder(house, house.source) if house.source is not None else None
        self._running: dict[str, SessionRunner] = {}  # by session
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._rescuer = Rescuer(house, self._go_on, self._tasks)
        self._stopping = asyncio.Event()
        self._stop_agents = False
        self._sessions = 0
        self._failure: BaseException | None = None
        self._toml_seen: tuple[int, int, int] | None = None
        self._mirror_at = 0.0
        self._driven: set[str] = set()  # the tasks that we had a session of

    def stop(self, *, agents: bool = False) -> None:
        """Stop claiming and leave; the agents run on unless they are to be stopped too."""
        self._stop_agents = self._stop_agents or agents
        self._stopping.set()
        self.house.wake.set()

    async def run(self) -> Supervised:
        """The whole life. What ended a loop is raised at the end of it."""
        house = self.house
        await house.store.join(house.name, machine=house.place, pid=os.getpid(), seconds=house.lease_seconds)
        house.log("supervisor_started", supervisor=house.name, pid=os.getpid())
        await self._alerter.begin()
        bell = house.store.listen()
        loop = asyncio.get_running_loop()
        loop.add_reader(bell.fileno(), self._rung, bell)
        beside = [loop.create_task(self._watched(duty)) for duty in self._duties()]
        try:
            await self._watched(self._main_loop())
            await self._shut_down()
            if self._drain and not self._stopping.is_set():
                await self._alerter.flush()
        finally:
            for duty in beside:
                duty.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            await self._let_go()
            loop.remove_reader(bell.fileno())
            bell.close()
            with contextlib.suppress(FleetError):
                await house.store.leave(house.name, reason="ended")
                await self._mirror(now=True)
            house.log("supervisor_ended", supervisor=house.name, left_running=len(self._running))
        if self._failure is not None:
            raise self._failure
        states = [task.state for task in house.store.tasks_by_uid(self._driven).values()]
        return Supervised(
            sessions=self._sessions,
            left_running=len(self._running),
            completed=states.count(TaskState.COMPLETED),
            failed=states.count(TaskState.FAILED),
            waiting=sum(state in (TaskState.BLOCKED, TaskState.PARTIAL) for state in states),
        )

    def _duties(self) -> list[Coroutine[Any, Any, None]]:
        """The loops beside the main one."""
        pruner = Pruner(self.house, lambda: [runner.attempt.hosted for runner in self._running.values()])
        feeding = [self._feeder.run()] if self._feeder is not None else []
        return [
            keep_lease(self.house),
            pruner.run(),
            self.house.hosts.run(),
            self._alerter.run(),
            self._sweeper.run(),
            *feeding,
        ]

    async def _watched(self, loop: Coroutine[Any, Any, None]) -> None:
        """A loop whose death ends the supervisor: it is written down, then raised at the end."""
        try:
            await loop
        except Exception as exc:
            self._fail(exc)

    def _fail(self, exc: BaseException, **where: str) -> None:
        self.house.log("supervisor_failed", error=f"{type(exc).__name__}: {exc}", **where)
        self._failure = self._failure or exc
        self.stop()

    async def _main_loop(self) -> None:
        rescue_at, faults = 0.0, 0
        loop = asyncio.get_running_loop()
        while not self._stopping.is_set():
            self.house.wake.clear()
            round_ends = loop.time() + ROUND_SECONDS
            try:
                self._reload_settings()
                if loop.time() >= rescue_at:
                    await self._rescuer.run_once()
                    rescue_at = loop.time() + min(RESCUE_SECONDS, self.house.lease_seconds / 3)
                await self._intents.run_once(self._running)
                await self._claim()
                await self._mirror()
                if self._drain and self._is_done():
                    return
                faults = 0
            except Exception as exc:
                faults = 0 if may_pass(exc) else faults + 1
                if faults == MOST_FAULTS or isinstance(exc, LeaseLost) or (faults and isinstance(exc, OF_ALL)):
                    raise
                if faults:
                    self.house.log_fault("round_failed", exc, times=faults)
                    await asyncio.sleep(FAULT_SECONDS)
                else:
                    self.house.log("loop_delayed", error=str(exc))
                rescue_at = 0.0  # what we asked for may have been done all the same
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self.house.wake.wait()
            await asyncio.sleep(max(0.0, round_ends - loop.time()))

    async def _mirror(self, *, now: bool = False) -> None:
        """Keep fleet.jsonl up with the ledger, in a thread and now and then: nobody waits for it."""
        loop = asyncio.get_running_loop()
        if now or loop.time() >= self._mirror_at:
            self._mirror_at = loop.time() + MIRROR_SECONDS
            await asyncio.to_thread(self.house.mirror)

    async def _claim(self) -> None:
        running = [runner.session for runner in self._running.values()]
        for claimed in await self._claimer.run_once(running):
            self._start(claimed.task, claimed.session, attach=False)

    def _is_done(self) -> bool:
        """Whether nothing is left to do: of all, or of the one run that we are there for."""
        only = self.house.only
        if isinstance(only, Only):
            busy = any(runner.session.run == only.run for runner in self._running.values())
        else:
            busy = bool(self._tasks)
        if busy or self._rescuer.is_watching() or anything_left(self.house):
            return False
        return only is not None or self._feeder is None or self._feeder.quiet()

    def _go_on(self, session: Session) -> None:
        """With a session that another supervisor left."""
        self._start(self.house.store.task(session.task), session, attach=True)

    def _start(self, task: Task, session: Session, *, attach: bool) -> None:
        self._sessions += 1
        self._driven.add(session.task)
        work = self._work(task, session, attach=attach)
        if session.epoch > 1 and not attach:
            work = partial(self._once_swept, session.task, work)
        self._tasks[session.id] = asyncio.get_running_loop().create_task(self._drive(session.id, work))

    def _work(self, task: Task, session: Session, *, attach: bool, wish: Wish | None = None) -> Work:
        """What there is to do with a session; one that nobody here can drive is refused."""
        try:
            runner = SessionRunner(self.house, task, session)
        except Exception as exc:
            if isinstance(exc, FleetError) and not may_pass(exc):  # its coder is not there, or is broken
                return partial(refuse, self.house, session, str(exc))
            return partial(_meet, exc)
        if wish is not None:
            runner.end(wish)
        self._running[session.id] = runner
        return runner.attach if attach else runner.run

    async def _once_swept(self, task: str, work: Work) -> None:
        await self._sweeper.sweep_first(task)
        await work()

    async def _drive(self, session: str, work: Work | None) -> None:
        """One session's task. A fence is not an error: somebody else has it now. Anything else must be seen."""
        broken, again = False, cast("Work", partial(self._again, session))
        while work is not None:
            try:
                await work()
                work = None
            except Overtaken as exc:  # by whom, only the store can say
                self.house.log("log_overtaken", session=session, error=str(exc))
                work = again
            except Fenced as exc:
                self.house.log("session_fenced", session=session, error=str(exc))
                work = None
            except asyncio.CancelledError:
                return
            except Exception as exc:
                if may_pass(exc):
                    self.house.log("session_delayed", session=session, error=str(exc))
                    await asyncio.sleep(AGAIN_SECONDS)
                    work = again
                elif broken or isinstance(exc, OF_ALL):
                    self._fail(exc, session=session)
                    return
                else:
                    broken = True
                    work = again = partial(refuse_after, self.house, session, exc)
        self._running.pop(session, None)
        self._tasks.pop(session, None)
        self.house.wake.set()

    async def _again(self, session: str) -> None:
        """Go on with a session of ours after an error that may have passed, as a successor would."""
        store = self.house.store
        found = store.session(session)
        if found.state in LIVE and found.supervisor == self.house.name:
            before = self._running.get(session)
            wish = before.wish if before is not None else None
            await self._work(store.task(found.task), found, attach=True, wish=wish)()

    async def _shut_down(self) -> None:
        """End the agents if we are to; else they are left running, and what has not begun does not. Neither costs an
        attempt."""
        if self._failure is not None:
            return
        ending = [runner for runner in self._running.values() if self._stop_agents or runner.attempt.is_preparing]
        for runner in ending:
            told = "was told to stop its agents" if self._stop_agents else "ended before it began"
            runner.end(Wish("shutdown", f"the supervisor {told}"))
        waited = self._tasks if self._stop_agents else {runner.session.id for runner in ending}
        driving = [task for session, task in self._tasks.items() if session in waited]
        with contextlib.suppress(TimeoutError):  # a host that does not answer keeps its agent
            async with asyncio.timeout(STOP_SECONDS + 3 * self.house.settings.supervisor.grace_seconds):
                await asyncio.gather(*driving, return_exceptions=True)

    async def _let_go(self) -> None:
        for driving in list(self._tasks.values()):
            driving.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _reload_settings(self) -> None:
        """Take an edit of fleet.toml; one that is broken keeps what is in force, and says where the error is."""
        try:
            found = self.house.home.toml.stat()
        except OSError:
            return
        seen = (found.st_ino, found.st_mtime_ns, found.st_ctime_ns)  # a file that may be read again counts, too
        if seen == self._toml_seen:
            return
        first, self._toml_seen = self._toml_seen is None, seen
        try:
            self.house.take(load(self.house.home))
            if not first:
                self.house.log("settings_reloaded")
        except (ConfigError, HomeError) as exc:
            self.house.log("settings_broken", error=str(exc))

    def _rung(self, bell: Bell) -> None:
        bell.wait(0)
        self.house.wake.set()
        self._alerter.wake.set()
        if self._feeder is not None:
            self._feeder.wake.set()


async def _meet(exc: Exception) -> None:
    """In the task of the session that it concerns: there it is dealt with."""
    raise exc
