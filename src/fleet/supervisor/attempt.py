"""An attempt: one session as the supervisor that drives it knows it, from its claim to its receipt."""

from __future__ import annotations

import asyncio
import contextlib
import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import cached_property
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from fleet.coders.contained import ContainedCoder
from fleet.config.clock import utc_ms
from fleet.config.settings import MODELLESS
from fleet.config.settings import Coder as CoderOptions
from fleet.errors import Conflict, Fenced, TransportError, UsageError
from fleet.model.alert import Alert, AlertKind
from fleet.model.reach import Reach
from fleet.model.scorer import AnyScorer, Command, VerifierPrompt, leaves, scorer_of
from fleet.model.session import Progress, Session, pool_of
from fleet.model.task import Task
from fleet.policy.ending import Allowance, allowance_of
from fleet.policy.limits import Limits, Used, limits_of, verifier_limits
from fleet.policy.placement import reach_here
from fleet.supervisor.dispatch import Dispatch
from fleet.supervisor.history import History
from fleet.supervisor.house import House
from fleet.supervisor.record import StreamRecord
from fleet.supervisor.stopwatch import stopwatch
from fleet.supervisor.wish import Wish

T = TypeVar("T")
NAMESPACE = uuid.UUID("6f1b3f0e-6f0a-4c5a-9a5e-2f6b1f0d8c11")
ATTENDED_IN_ONE = 4  # how often an agent is attended within the time that it lives without
MARGIN_SECONDS = 20.0  # for the host to notice, to end it with grace, and for what was on its way
SILENT_SECONDS = 5.0  # a host that is watched says something as often
ASK_AGAIN_SECONDS = 2.0  # a host that did not answer


class Unattended(Exception):
    """Its host is silent, and has ended it by now: that is what it agreed to do."""


class CutShort(Exception):
    """It shall end, and has not begun: what was being made ready for it was given up."""


class Attempt:
    """What the launch, the following and the end of one session share."""

    def __init__(self, house: House, task: Task, session: Session) -> None:
        self.house = house
        self.task = task
        self.session = session
        coder = house.coder(session.coder)
        self.site = house.site(session.host)
        self.hosted = self.site.hosted(session)
        self.dispatch: Dispatch | None = None  # of a worker of a pool
        if pool_of(task.capabilities) is not None and session.kind == "work":
            self.dispatch = Dispatch(self, coder)
            coder = self.dispatch.coder
        self.coder = ContainedCoder(session.coder, coder)
        self.history = History(house.store, session, self.coder)
        self.progress = Progress()
        self.state: Any = None  # of the coder's parser
        self.record = StreamRecord(house.home.task_dir(task.uid), session.id, shared=not house.alone)
        self.wish: Wish | None = None
        self._preparing: asyncio.Timeout | None = None
        self._attended_at = 0.0  # by the loop's clock: when its host may last have been told that it is attended
        self._heard_at = 0.0  # when its host was last heard, where that is another machine
        self.abandoned = False  # by a person: its host is not asked again
        self.ended_at: int | None = None  # when its agent ended, by our clock; None: its end was not seen
        self.stopwatch = stopwatch(here=self.site.is_here)
        self.left_out = 0  # bytes of its output that are not in its log; known when all was read

    @cached_property
    def before(self) -> Used:
        """What the task's earlier sessions consumed."""
        return self.history.used()

    @property
    def verifies(self) -> bool:
        """Whether it judges the work of another session."""
        return self.session.kind == "verify"

    @cached_property
    def scorer(self) -> AnyScorer | None:
        """What must be so for the result to count."""
        return scorer_of(self.task.terms.scorer) if self.task.terms.scorer else None

    @cached_property
    def leaf(self) -> Command | VerifierPrompt:
        """Of a verifier: the part of the scorer that it is."""
        at = self.task.awaits.at if self.task.awaits else ""
        found = dict(leaves(self.scorer)).get(at) if self.scorer else None
        if not isinstance(found, Command | VerifierPrompt):
            raise UsageError(f"task {self.task.uid} has no verifier to run")
        return found

    @property
    def limits(self) -> Limits:
        """The bounds in force; those of the settings may change while it runs."""
        if self.verifies:
            return verifier_limits(self.leaf.timeout_seconds, self.house.settings.supervisor)
        found = limits_of(self.task.terms, self.house.settings.supervisor)
        if self.dispatch is not None:  # what it says is on its terminal: its silence here is not idleness
            return msgspec.structs.replace(found, idle_seconds=0, budget=replace(found.budget, idle_seconds=None))
        return found

    @property
    def allowance(self) -> Allowance:
        """How often and how soon its task is tried again."""
        return allowance_of(self.task.terms, self.house.settings.supervisor)

    @property
    def elapsed_ms(self) -> int:
        """For how long its agent ran, or has been there; a millisecond at the least, as 0 would say that none did."""
        return max(1, self.stopwatch.elapsed_ms)

    @property
    def conversation(self) -> str:
        """The name that a coder is given for a new conversation: another for each session, the same after a crash."""
        return str(uuid.uuid5(NAMESPACE, f"{self.house.home.path}:{self.session.id}:{self.task.created_at}"))

    @property
    def options(self) -> CoderOptions:
        """What the settings say of this coder."""
        return self.house.settings.coders.get(self.session.coder) or CoderOptions()

    @property
    def program(self) -> str | None:
        """The program of the coder, where it is not the usual one. A command is a line for sh, on every host."""
        there = self.reach.agent_binary if self.reach is not None and self.session.coder not in MODELLESS else ""
        return there or self.options.program or None

    @property
    def reach(self) -> Reach | None:
        """What is said of its host; None: nothing, and it is this machine."""
        settings = self.house.settings
        if not self.site.is_here or not (settings.hosts or settings.workers):
            return self.site.reach
        run = self.house.store.run(self.session.run) if self.session.run else None
        return reach_here(self.session.worker, run, settings)

    @property
    def as_root(self) -> bool:
        """Whether the agent runs as root, on its host."""
        return os.geteuid() == 0 if self.site.is_here else self.site.as_root

    @property
    def isolation(self) -> str:
        """How far the work is kept apart from the checkout: the task's own choice, else the settings'."""
        return self.task.terms.isolation or self.house.settings.supervisor.isolation

    @property
    def cwd(self) -> str:
        """Where the agent works, on its host."""
        return self.progress.cwd or self.source

    @property
    def source(self) -> str:
        """The directory that the task names, on its host, or the usual one there."""
        usual = self.site.directory
        if self.site.is_here:
            usual = (self.reach.working_directory if self.reach else "") or self.task.terms.base or usual
        return os.path.join(usual, self.task.cwd or "").rstrip("/") or "/"

    @property
    def is_somewhere(self) -> bool:
        """Whether its task or its host names a directory to work in."""
        named = self.reach is not None and bool(self.reach.working_directory)
        return bool(self.task.cwd) or named or not self.site.is_here

    @property
    def task_dir(self) -> str:
        """The directory of its task, on its host."""
        return self.site.task_dir(self.session)

    @property
    def artifacts(self) -> str:
        """The artifact directory of its task, on its host."""
        return self.site.artifacts(self.session)

    @property
    def is_preparing(self) -> bool:
        """Whether its place is being made ready: nothing was started yet that would outlive us."""
        return self._preparing is not None

    @contextlib.asynccontextmanager
    async def unless_it_shall_end(self) -> AsyncIterator[None]:
        """What may take long before it begins, and is given up at once when it shall end: CutShort."""
        if self.wish is not None:
            raise CutShort
        try:
            async with asyncio.timeout(None) as self._preparing:
                yield
        except TimeoutError as exc:
            if self._preparing is not None and self._preparing.expired():
                raise CutShort from exc
            raise
        finally:
            self._preparing = None

    def heed_wish(self) -> None:
        """It shall end: give up what is being made ready for it."""
        if self._preparing is not None and self._preparing.when() is None:
            self._preparing.reschedule(asyncio.get_running_loop().time())

    def keep_state(self, state: Any) -> None:
        """The parser's state, to be committed with the progress."""
        self.state = state
        self.progress = replace(self.progress, parser=self.coder.packed(state))

    def recall_state(self) -> None:
        """The parser's state as it was committed; a new one where there is none."""
        if self.state is None:
            found = self.coder.unpacked(self.progress.parser)
            self.state = self.coder.begin() if found is None else found

    async def commit(self) -> None:
        """What was read and counted so far, with its cursor."""
        await self.house.store.record(self.session.fence, self.progress)

    async def safely(self, asked: Any) -> Any:
        """The answer, or None when the host gave none: silence is not evidence."""
        try:
            answer = await asked
        except (TransportError, Conflict) as exc:
            if isinstance(exc, Fenced):
                raise
            self.silent(exc)
            return None
        return answer

    async def insist(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The answer, however often its host has to be asked: for what the end of a session is judged by."""
        while True:
            try:
                return await ask()
            except TransportError as exc:
                self.silent(exc)
            await self.pause_after_silence()

    def attended(self) -> None:
        """From now on its agent may live for as long as its host agreed to, whatever becomes of us."""
        self._attended_at = asyncio.get_running_loop().time()

    async def attend(self) -> None:
        """Attend it in time, where its host ends agents that nobody does. Never while the host is silent: what is
        sent then may arrive, and nobody could say how long the agent lives."""
        agreed = self.site.reach.dead_man_seconds if self.site.reach is not None else 0
        now = asyncio.get_running_loop().time()
        if agreed and now - self._attended_at > agreed / ATTENDED_IN_ONE:
            self.attended()
            await self.safely(self.hosted.attend())

    def heed_dead_man(self) -> None:
        """Raise Unattended once its agent has ended for certain, though nobody saw it: as was agreed with its host."""
        agreed = self.site.reach.dead_man_seconds if self.site.reach is not None else 0
        now = asyncio.get_running_loop().time()
        self._attended_at = self._attended_at or now  # by whoever was here before us
        if agreed and now - self._attended_at > agreed * 1.1 + MARGIN_SECONDS:
            raise Unattended(
                f"host {self.site.name} gave no sign of life for {int(now - self._attended_at)} s; "
                f"it ends an agent that nobody attends for {agreed} s"
            )

    def heard(self) -> None:
        """Its host answered just now."""
        if not self.site.is_here:
            self._heard_at = asyncio.get_running_loop().time()

    async def heed_silence(self) -> None:
        """Tell a person, once, when its host gave no sign of life for too long; and note when it is back."""
        reach = self.site.reach
        if reach is None:
            return
        now = asyncio.get_running_loop().time()
        self._heard_at = max(self._heard_at or now, self.site.heard_at)
        silent = now - self._heard_at
        if silent > SILENT_SECONDS:
            self.heed_dead_man()
        if silent < reach.stale_after_seconds:
            if self.progress.stale_since is not None:
                self.progress = replace(self.progress, stale_since=None)
                await self.commit()
                self.house.log("session_heard_again", session=self.session.id, host=self.site.name)
            return
        if self.progress.stale_since is None:
            since = utc_ms() - int(silent * 1000)
            self.progress = replace(self.progress, stale_since=since)
            reason = (
                f"host {self.site.name} gives no sign of life for {int(silent)} s; its agent may live, so nothing else "
                f"is started. Given up by a person: fleet restart {self.task.uid} --abandon"
            )
            alert = Alert(AlertKind.STALE, reason)
            await self.house.store.warn(self.session.fence, self.progress, alert, by=self.house.name)
            self.house.log("session_stale", session=self.session.id, host=self.site.name, seconds=int(silent))

    def silent(self, exc: Exception) -> None:
        """The host did not answer: a line in the log, nothing more."""
        self.house.log("host_silent", session=self.session.id, error=str(exc))

    async def pause_after_silence(self) -> None:
        """Give a host that did not answer a moment before it is asked again."""
        self.heed_abandon()
        await self.heed_silence()
        await asyncio.sleep(ASK_AGAIN_SECONDS)

    def heed_abandon(self) -> None:
        """Go no further with a session that a person gave up."""
        if self.abandoned:
            raise Fenced(f"session {self.session.id} was abandoned by a person")
