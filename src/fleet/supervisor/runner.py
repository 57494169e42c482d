"""One session, from its claim to its receipt.

We may be killed on any line. Until `start` returned the session is either startable once or not at all; while it runs,
what was read is committed with the cursor; its end is written in one transaction. Whoever comes next finds one of
these and goes on from there. `house.at` names the places where that is tried.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import msgspec
from msgspec.structs import replace

from fleet.coders.coder import Coder, Work
from fleet.coders.coder import Exit as CoderExit
from fleet.coders.prompts import compose_prompt
from fleet.config.settings import Coder as CoderOptions
from fleet.errors import Conflict, Fenced, NotFound, NotStarted, TransportError, UsageError
from fleet.hosts.facts import Exit, HostState, Observed
from fleet.hosts.lines import Line
from fleet.hosts.session import HostedSession
from fleet.model import stream as st
from fleet.model.outcome import Outcome, OutcomeKind
from fleet.model.receipt import Verdict
from fleet.model.session import Ending, Progress, Session
from fleet.model.states import Result, SessionState, Source
from fleet.model.task import Task
from fleet.policy import ending, limits
from fleet.supervisor.counting import counted
from fleet.supervisor.history import History, decoded
from fleet.supervisor.house import House, now_ms
from fleet.supervisor.record import StreamRecord
from fleet.supervisor.requests import Requests

QUICK_SECONDS, CALM_SECONDS = 0.02, 0.25  # between two looks: soon after something was said, and after silence
OBSERVE_SECONDS, SELDOM_SECONDS = 2.0, 30.0  # after its last word, then less and less often
OVER = frozenset({HostState.GONE, HostState.EXITED, HostState.ABSENT})
UNSEEN = frozenset({OutcomeKind.CRASHED, OutcomeKind.INTERRUPTED})
MOST_STDERR = 65_536
ASKED_BEFORE = "asked before a restart of the supervisor"
ASK_AGAIN_SECONDS = 2.0  # a host that did not answer
NAMESPACE = uuid.UUID("6f1b3f0e-6f0a-4c5a-9a5e-2f6b1f0d8c11")


class Wish(msgspec.Struct, frozen=True):
    """That a session shall end, why, and what then becomes of its task."""

    verb: str  # stop, interrupt, restart, shutdown, limit
    reason: str
    outcome: str = "interrupted"
    by: str = ""
    intent: str | None = None


class SessionRunner:
    """Drives one session. `wish` ends it; cancelling only stops looking: the agent runs on."""

    def __init__(self, house: House, task: Task, session: Session) -> None:
        self.house = house
        self.task = task
        self.session = session
        self.coder: Coder = house.coder(session.coder)
        self.hosted = HostedSession(house.transport, str(house.home.sessions), session.id, session.epoch)
        self.history = History(house.store, session, self.coder)
        self.progress = Progress()
        self.state: Any = None
        self.record = StreamRecord(house.home.task_dir(task.uid), session.id, shared=not house.alone)
        self.requests = Requests(house, task, session, self.hosted)
        self.wish: Wish | None = None
        self._wished = asyncio.Event()
        self._stopped = False
        self._observe_at = 0.0  # at once
        self._observe_every = OBSERVE_SECONDS
        self._began = self._spoke = 0.0  # by the loop's clock, which nobody sets: a wrong clock ends no session

    def end(self, wish: Wish) -> None:
        """Ask it to end; the first wish counts. One that a crash left without its intent is given it."""
        if self.wish is None or (self.wish.intent is None and self.wish.verb == wish.verb):
            self.wish = wish
            self._wished.set()

    # the life of a session, in order

    async def run(self) -> None:
        """A session that was just claimed."""
        try:
            launched = await self._launch()
        except (UsageError, NotFound) as exc:  # it can never be launched as it is
            verdict = Verdict(result=Result.FAIL, source=Source.TASK, reason=f"it cannot be launched: {exc}")
            await self._settle(ending.Finish(verdict), Ending(outcome="crashed"))
            return
        except NotStarted as exc:
            decision = ending.after_no_start(str(exc), 1 + self.history.failed_starts())
            await self._settle(decision, Ending(outcome="transient", state=SessionState.LOST))
            return
        if launched:
            await self._follow()

    async def attach(self) -> None:
        """A session that another supervisor left: find out what became of it, then go on."""
        self.progress = self.house.store.progress(self.session.id)
        if self.progress.stopped_for is not None and self.wish is None:
            verb, _, outcome = self.progress.stopped_for.partition(":")
            self.end(Wish(verb, ASKED_BEFORE, outcome=outcome))
        seen = await self._observe_until_known()
        if seen.state in (HostState.ABSENT, HostState.PREPARED, HostState.STARTING) and await self.hosted.abandon():
            seen = await self._observe_until_known()
        while seen.state is HostState.STARTING:  # its runner lives: it begins, or gives up
            await asyncio.sleep(QUICK_SECONDS)
            seen = await self._observe_until_known()
        if seen.runner_lives:
            self._heard()
        now = asyncio.get_running_loop().time()
        self._began = now - max(0, now_ms() - (self.session.started_at or self.session.claimed_at)) / 1000
        self._spoke = max(self._began, now - seen.idle_ms / 1000)
        if seen.state in (HostState.ABANDONED, HostState.ABSENT):
            unlaunched = ending.Retry(reason="it had not started when its supervisor ended", charged=False)
            await self._settle(unlaunched, Ending(outcome="interrupted", state=SessionState.LOST))
            return
        if self.session.state is SessionState.STARTING and seen.pid is not None:
            self.session = await self.house.store.started(self.session.fence, seen.pid, by=self.house.name)
        self.house.at("attached")
        self.house.log("session_attached", session=self.session.id, state=seen.state.value)
        await self._follow()

    async def _launch(self) -> bool:
        """Prepare and start. True once the agent is known to have begun."""
        launch = self.coder.launch(self._work())
        secrets = self.house.secrets_for((*launch.secrets, *self._options.secrets))
        launch = msgspec.structs.replace(launch, secrets=tuple(secrets))  # the host refuses one that it is not given
        env = launch.env | {
            "FLEET_TASK_ID": self.task.uid,
            "FLEET_TASK_DIR": str(self.house.home.task_dir(self.task.uid)),
            "FLEET_ARTIFACT_DIR": str(self.house.home.task_dir(self.task.uid) / "artifacts"),
        }
        self.progress = replace(self.progress, coder_session=launch.coder_session)
        self._keep_state(self.coder.begin(self.history.parser_state()))
        self.house.at("claimed")
        await self.hosted.prepare(msgspec.structs.replace(launch, env=env))
        self.house.at("prepared")
        await self.house.store.record(self.session.fence, self.progress)
        self.house.at("launching")
        while True:
            try:
                started = await self.hosted.start(secrets)
                break
            except NotStarted:
                raise
            except TransportError as exc:  # it may have started: starting again cannot run it twice
                self.house.log("start_unknown", session=self.session.id, error=str(exc))
                await asyncio.sleep(ASK_AGAIN_SECONDS)
        self.house.at("launched")
        self.session = await self.house.store.started(self.session.fence, started.pid, by=self.house.name)
        self._heard()
        self._began = self._spoke = asyncio.get_running_loop().time()
        self.house.at("started")
        self.house.log("session_started", session=self.session.id, coder=self.session.coder, pid=started.pid)
        return True

    async def _follow(self) -> None:
        """Read until the end, then settle. Limits and wishes may bring the end about."""
        if self.state is None:
            self.state = self._decoded_state()
        self.record.rewind(self.progress.cursor)
        pause = QUICK_SECONDS
        ended = False
        while True:
            exit_record = await self._safely(self.hosted.exit())
            ended = ended or (exit_record is not None and exit_record.swept)
            moved = await self._read(ended=ended)
            moved |= await self._deal_with_requests()
            if ended and not moved:
                break
            if ended:
                continue
            if self._observe_at and (moved or exit_record is not None):
                self._heard(moved=moved)
            if await self._ended_unseen():
                ended = True  # what it said last is still to be read
                continue
            if self.wish is None:
                self._enforce_limits()
            if self.wish is not None and not self._stopped and exit_record is None:
                await self._stop(self.wish)
            pause = QUICK_SECONDS if moved else min(CALM_SECONDS, pause * 1.5)
            await self._wait(pause)
        await self._conclude()

    async def _read(self, *, ended: bool) -> bool:
        """The next lines, parsed and committed with the cursor. True: there may be more."""
        got = await self._safely(self.hosted.read(self.progress.cursor, ended=ended))
        if got is None:
            await asyncio.sleep(ASK_AGAIN_SECONDS)
            return True
        if got.cursor == self.progress.cursor:
            return False
        self.house.at("read")
        now = now_ms()
        said: list[tuple[int, st.AnySaid]] = []
        for line in got.lines:
            said += [(line.offset, each) for each in self._parse(line)]
        for _, each in said:
            self.progress = counted(self.progress, each)
        self.record.add(said, now)
        self.house.at("logged")
        self.progress = replace(self.progress, cursor=got.cursor, last_output_at=now)
        self._spoke = asyncio.get_running_loop().time()
        self._keep_state(self.state)
        await self.house.store.record(self.session.fence, self.progress)
        self.house.at("recorded")
        return True

    def _parse(self, line: Line) -> tuple[st.AnySaid, ...]:
        self.state, said = self.coder.parse(self.state, line.data)
        return said

    async def _stop(self, wish: Wish) -> None:
        """End the agent and all it started. What was intended is kept first, so that a crash does not forget it."""
        self.progress = replace(self.progress, stopped_for=f"{wish.verb}:{wish.outcome}")
        await self.house.store.record(self.session.fence, self.progress)
        self.session = await self.house.store.stopping(self.session.fence, wish.reason, by=wish.by or self.house.name)
        self.house.log("session_stopping", session=self.session.id, why=wish.verb, reason=wish.reason)
        self.house.at("stopping")
        stopped = await self._safely(self.hosted.stop(grace_seconds=self.house.settings.supervisor.grace_seconds))
        self._stopped = stopped is not None
        self.house.at("stopped")

    async def _conclude(self) -> None:
        """The outcome, the decision, the transaction."""
        self.house.at("concluding")
        seen = await self._exit_until_known()
        stderr = (await self._stderr()).decode("utf-8", "replace")
        self.record.keep_stderr(stderr)
        verb, _, stopped_for = (self.progress.stopped_for or "").partition(":")
        exit_facts = CoderExit(code=seen.code if seen else None, stopped_for=stopped_for or None)
        outcome = self.coder.outcome(self.state, exit_facts, stderr)
        lost = seen is None and outcome.kind in UNSEEN  # else its own words tell how it ended
        if lost and not stopped_for:
            outcome = Outcome(kind=OutcomeKind.TRANSIENT, reason="its process is gone and left no record of its end")
        if self.wish is not None and verb == "limit" and self.wish.reason != ASKED_BEFORE:
            outcome = replace(outcome, reason=self.wish.reason)
        if self.wish is not None and not verb and outcome.kind is not OutcomeKind.OK:
            verb = self.wish.verb  # it ended by itself before it could be told to
        end = Ending(outcome=outcome.kind.value, state=SessionState.LOST if lost else SessionState.EXITED)
        await self._settle(self._decision(verb, outcome), end, carried_out=bool(verb))

    def _decision(self, verb: str, outcome: Outcome) -> ending.Decision:
        wish = self.wish or Wish(verb, ASKED_BEFORE)
        spent = ending.Spent(
            charged=self.task.charged,
            sessions=1 + self.history.full_contexts(),
            usage=self.progress.usage,
            duration_ms=max(0, now_ms() - (self.session.started_at or self.session.claimed_at)),
        )
        if verb == "stop":
            return ending.Finish(Verdict(result=Result.SKIP, reason=wish.reason, usage=spent.usage))
        if verb in ("restart", "shutdown"):
            return ending.Retry(reason=wish.reason, after_seconds=0, charged=False)
        if verb == "interrupt":
            return ending.Ask("interrupted", wish.reason)
        if self.progress.asked_kind:
            return ending.Ask(self.progress.asked_kind, self.progress.asked_text)
        configured = self.house.settings.supervisor
        allowance = ending.Allowance(
            max_attempts=configured.max_attempts,
            backoff_seconds=configured.backoff_seconds,
            max_backoff_seconds=configured.max_backoff_seconds,
            backoff_multiplier=configured.backoff_multiplier,
        )
        jitter = self.house.jitter()
        return ending.decide(outcome, spent, allowance, closed=self.progress.closed, jitter=jitter)

    async def _settle(self, decision: ending.Decision, end: Ending, *, carried_out: bool = False) -> None:
        """The end of the session and what becomes of the task, in one transaction."""
        store, fence, by = self.house.store, self.session.fence, self.house.name
        self.house.at("settling")
        match decision:
            case ending.Finish(verdict=verdict):
                task = await asyncio.shield(_awaited(store.finish(fence, end, verdict, by=by)))
            case ending.Ask(kind=kind, text=text):
                task = await asyncio.shield(_awaited(store.pause(fence, end, kind, text, by=by)))
            case ending.Retry():
                until = decision.pause_coder_until
                if until is not None:
                    until = until if until > now_ms() else now_ms() + ending.LIMIT_SECONDS * 1000
                    self.house.pause(self.session.coder, until)
                not_before = until or (
                    now_ms() + int(decision.after_seconds * 1000) if decision.after_seconds else None
                )
                task = await asyncio.shield(
                    _awaited(
                        store.retry(
                            fence,
                            end,
                            reason=decision.reason,
                            charged=decision.charged,
                            verdict=decision.verdict,
                            not_before=not_before,
                            by=by,
                        )
                    )
                )
        self.house.at("settled")
        if self.wish and self.wish.intent:
            did = "done" if carried_out else "refused"
            await store.fulfil(self.wish.intent, did, by=by, detail=f"the task is {task.state.value}")
        self.house.log("session_ended", session=self.session.id, outcome=end.outcome, task=task.state.value)

    # smaller steps

    def _work(self) -> Work:
        task, home = self.task, self.house.home
        resume = self.history.resumable()
        cwd = task.cwd or str(home.path)
        prompt = compose_prompt(
            task=task.uid,
            title=task.title,
            description=task.description,
            cwd=cwd,
            task_dir=str(home.task_dir(task.uid)),
            artifact_dir=str(home.task_dir(task.uid) / "artifacts"),
            attempt=task.epoch,
            resumed=resume is not None,
        )
        plain = self.session.coder in ("command", "scripted")
        return Work(
            task=task.uid,
            session=self.session.id,
            prompt=task.description or task.title if plain else prompt,
            cwd=cwd,
            model=self.session.model,
            program=self._options.program or None,
            as_root=is_root(),
            new_uuid=str(uuid.uuid5(NAMESPACE, f"{home.path}:{self.session.id}:{task.created_at}")),
            resume=resume,
        )

    @property
    def _options(self) -> CoderOptions:
        """What the settings say of this coder."""
        return self.house.settings.coders.get(self.session.coder) or CoderOptions()

    def _decoded_state(self) -> Any:
        found = decoded(self.coder, self.progress.parser)
        return self.coder.begin() if found is None else found

    def _keep_state(self, state: Any) -> None:
        self.state = state
        self.progress = replace(self.progress, parser=msgspec.Raw(msgspec.json.encode(state)))

    async def _stderr(self) -> bytes:
        """The last of it; most are short, and then no process is needed to know how long."""
        path = f"{self.hosted.directory}/stderr"
        head: bytes = await self._safely(self.house.transport.get(path, limit=MOST_STDERR)) or b""
        return head if len(head) < MOST_STDERR else await self._safely(self.hosted.stderr_tail(MOST_STDERR)) or head

    async def _deal_with_requests(self) -> bool:
        after = await self._safely(self.requests.run_once(self.progress))
        if after is None:
            await asyncio.sleep(ASK_AGAIN_SECONDS)
            return True
        if after == self.progress:
            return False
        self.progress = after
        return True

    def _enforce_limits(self) -> None:
        configured = self.house.settings.supervisor
        bounds = limits.Limits(
            seconds=configured.timeout_seconds,
            idle_seconds=configured.idle_seconds,
            context_pct=configured.context_pressure_threshold_pct,
        )
        now = asyncio.get_running_loop().time()
        crossed = limits.exceeded(
            bounds,
            self.progress,
            elapsed_ms=int((now - self._began) * 1000),
            idle_ms=int((now - self._spoke) * 1000),
            in_tool=self.progress.tools_running > 0,
            window=self.coder.context_limit(self.session.model),
        )
        if crossed is not None:
            self.end(Wish("limit", crossed.reason, outcome=crossed.outcome))

    def _heard(self, *, moved: bool = True) -> None:
        """It lives, or has just ended: no need to ask its host at once, but soon again when it falls silent."""
        self._observe_every = OBSERVE_SECONDS
        if moved:
            self._observe_at = asyncio.get_running_loop().time() + OBSERVE_SECONDS

    async def _ended_unseen(self) -> bool:
        """Now and then: has it ended without its runner's last word? Then what it left behind is ours to end."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._observe_at:
            return False
        self._observe_at = loop.time() + self._observe_every
        self._observe_every = min(SELDOM_SECONDS, self._observe_every * 2)
        seen: Observed | None = await self._safely(self.hosted.observe())
        if seen is None or seen.runner_lives or seen.state not in OVER:
            return False
        if seen.state is not HostState.ABSENT:
            grace = self.house.settings.supervisor.grace_seconds
            return await self._safely(self.hosted.sweep(grace_seconds=grace)) is not None
        return True

    async def _exit_until_known(self) -> Exit | None:
        """The record of its end, or None when there is none: which is not the same as no answer."""
        while True:
            try:
                return await self.hosted.exit()
            except TransportError as exc:
                self.house.log("host_silent", session=self.session.id, error=str(exc))
                await asyncio.sleep(ASK_AGAIN_SECONDS)

    async def _observe_until_known(self) -> Observed:
        while True:
            seen: Observed | None = await self._safely(self.hosted.observe())
            if seen is not None:
                return seen
            await asyncio.sleep(ASK_AGAIN_SECONDS)

    async def _safely(self, asked: Any) -> Any:
        """The answer, or None when the host gave none: silence is not evidence."""
        try:
            return await asked
        except (TransportError, Conflict) as exc:
            if isinstance(exc, Fenced):
                raise
            self.house.log("host_silent", session=self.session.id, error=str(exc))
            return None

    async def _wait(self, seconds: float) -> None:
        if self.wish is not None:
            await asyncio.sleep(seconds)
            return
        try:
            async with asyncio.timeout(seconds):
                await self._wished.wait()
        except TimeoutError:
            return


async def _awaited(pending: Any) -> Task:
    found: Task = await pending
    return found


def is_root() -> bool:
    """Whether the agents run as root; some must be told."""
    import os

    return os.geteuid() == 0
