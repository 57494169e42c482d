"""A dispatch: a task that a worker of a pool gets, on a terminal: from the worker's setup to the task in its hands."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fleet.coders.coder import Coder, Work
from fleet.coders.prompts import pool_prompt
from fleet.coders.prompts.brief import brief
from fleet.coders.terminal import Screen, State, TerminalCoder
from fleet.config.files import make_private, private
from fleet.errors import FleetError
from fleet.hosts.pool_worker import Facts, key_of, worker_at
from fleet.model.launch import Launch
from fleet.model.session import pool_of
from fleet.policy.allocation import pool_named

if TYPE_CHECKING:
    from fleet.supervisor.attempt import Attempt

READY_SECONDS = 120.0  # from its start until it takes input
ARRIVE_SECONDS = 30.0  # from a paste until it is seen, and from Enter until it is taken
PAUSE_SECONDS = 0.25
MOST_RECORD = 4 << 20
LOOKS = 12  # at a screen on which a key was pressed, until it is pressed again
PRESSES = 5  # of Enter, while the text still stands in the input
SETTLE_SECONDS = 0.3  # between a paste and Enter: programs that count the two as one take no notice of the second
ANSWERED = 20  # keys that are pressed at one question, until a person is asked


class NeedsPerson(Exception):
    """Nobody but a person can go on; this says with what."""


class Dispatch:
    """The worker's side of one attempt."""

    def __init__(self, attempt: Attempt, coder: Coder) -> None:
        name = pool_of(attempt.task.capabilities) or ""
        self.name = name
        self.pool = pool_named(attempt.house.settings, name)
        self.worker = attempt.session.worker.partition("#")[0]
        site, home = attempt.site, str(attempt.house.home.path)
        self.at = worker_at(name, self.pool, self.worker, site.transport, home=home, reach=site.reach)
        secret = attempt.house.secret(self.pool.login) if self.pool.login else None
        self.coder = TerminalCoder(coder, self.at.plot.directory, home=self.at.plot.home, secret=secret)
        self._pane = ""

    # before its agent begins

    async def make_ready(self, attempt: Attempt) -> None:
        """Set the worker up, once; then open its windows. NeedsPerson: it cannot be, until somebody mends something."""
        house, pool = attempt.house, self.pool
        if pool.login and house.secret(pool.login) is None:
            raise NeedsPerson(f"the login of the pool {self.name} is in {pool.login}, which has no value")
        await self.at.equip(key_of(pool), self.coder.files, self.coder.login.kept)
        log = house.home.task_dir(attempt.task.uid) / "setup.log"
        before = await self.at.look()
        if before.setup == "ready" and before.agent_lives and before.state in ("running", "waiting"):
            raise Occupied(f"{self.worker} is in use: its agent is {before.state}: {before.why}")
        facts = await self.at.setup(house.secrets_for(pool.env), lambda text: _append(log, text))
        if facts.setup != "ready":
            raise NeedsPerson(f"{self.worker} cannot be set up: {facts.setup_why}")
        if before.setup != "ready":
            await self.say(attempt, f"set up: {self.at.plot.place}, {facts.setup_why}")
        self._pane = (await self.at.open()).pane
        await self.at.forget_heard()
        attempt.progress = replace(attempt.progress, cwd=self.at.plot.place)

    def compose(self, attempt: Attempt, work: Work) -> Work:
        """What the coder is started for. Its task is given to it later."""
        return replace(work, prompt=self.text(attempt), model=self.pool.model or work.model, resume=None)

    def on_terminal(self, launch: Launch) -> Launch:
        """The launch, in the agent's window."""
        words = (*self.at.tmux.argv, "respawn-pane", "-k", "-t", self._pane, "-c", self.at.plot.place, "--")
        return replace(launch, terminal=words)

    def text(self, attempt: Attempt) -> str:
        """The task, as it is given to the worker."""
        task = attempt.task
        command = brief(task.description or task.title, task.terms)
        return pool_prompt(command=command, worker=self.worker, pool=self.name, minutes=self.pool.commit_minutes)

    # once its agent has begun

    async def hand_over(self, attempt: Attempt) -> None:
        """Give the task to the agent, once: who comes after us finds whether it has it. Returns when it ended, too."""
        state: State = attempt.state
        if state.given or state.completed:
            return
        text = self.text(attempt)
        if not await self._has(text):
            facts = await self.at.mark("waiting", f"{self.coder.name} was started", attempt.session.id)
            self._pane = facts.pane
            if not await self._until_ready(attempt) or not await self._deliver(attempt, text):
                return
        how = "its pane shows it"
        if self.coder.hooked:
            how = "its hook and its own record have it" if await self._is_recorded(attempt, text) else "its hook has it"
        if not self.coder.hooked:
            await self.at.mark("running", f"it was given a prompt ({how})", attempt.session.id)
        name = f"{attempt.session.id}.delivered"
        await self.say(attempt, f"the task was delivered ({how}); watch it: fleet pool attach {self.worker}", name)
        attempt.keep_state(replace(attempt.state, given=True))
        await attempt.commit()

    async def _until_ready(self, attempt: Attempt) -> bool:
        """Wait until it takes input, answering what the pool's settings allow; False: it is to end, or has ended."""
        answered: dict[str, int] = {}
        seen = Screen(kind="starting")
        try:
            async with asyncio.timeout(READY_SECONDS):
                while not await self._is_over(attempt):
                    seen = self.coder.screen(await self.at.tmux.screen(self._pane))
                    if seen.kind == "ready":
                        return True
                    if seen.kind == "login":
                        raise NeedsPerson(f"{self.coder.name} on {self.worker} is not logged in ({seen.evidence})")
                    if seen.kind in ("trust", "question"):
                        await self._answer(seen, answered)
                    await asyncio.sleep(PAUSE_SECONDS)
        except TimeoutError:
            raise NeedsPerson(
                f"{self.coder.name} on {self.worker} does not take input after {READY_SECONDS:.0f} s; "
                f"it shows: {seen.evidence or 'nothing'}"
            ) from None
        return False

    async def _answer(self, seen: Screen, answered: dict[str, int]) -> None:
        refused = seen.kind == "trust" and not self.pool.trust
        answered[seen.evidence] = answered.get(seen.evidence, 0) + 1
        if refused or not seen.keys or answered[seen.evidence] > ANSWERED:
            raise NeedsPerson(f"{self.coder.name} on {self.worker} waits for an answer ({seen.evidence})")
        # One key, then another look: a list that does not listen yet would take Enter for another answer.
        await self.at.tmux.press(self._pane, seen.keys[0])
        for _ in range(LOOKS):  # a second press would answer the next question
            await asyncio.sleep(PAUSE_SECONDS)
            if self.coder.screen(await self.at.tmux.screen(self._pane)) != seen:
                return

    async def _deliver(self, attempt: Attempt, text: str) -> bool:
        """Paste, see it there, press Enter, see that it was taken. False: it is to end, or has ended."""
        tmux, presses, pasted = self.at.tmux, 0, False
        try:
            async with asyncio.timeout(2 * ARRIVE_SECONDS):
                while not await self._is_over(attempt):
                    if presses and await self._has(text):
                        return True
                    seen = self.coder.screen(await tmux.screen(self._pane))
                    if not pasted:
                        await tmux.paste(self._pane, text)
                        pasted = True
                        await asyncio.sleep(SETTLE_SECONDS)
                    elif seen.typed and presses < PRESSES:
                        presses += 1
                        await tmux.press(self._pane, "Enter")
                        await asyncio.sleep(SETTLE_SECONDS)
                    elif presses and not self.coder.hooked:
                        return True  # its input is empty again
                    await asyncio.sleep(PAUSE_SECONDS)
        except TimeoutError:
            what = "did not take it" if presses else "does not show it"
            raise NeedsPerson(f"the task was pasted to {self.worker}, but {self.coder.name} {what}") from None
        return False

    async def _has(self, text: str) -> bool:
        """Whether its own hook told that it was given this very text."""
        told = self.coder.received(await self.at.heard("UserPromptSubmit")) if self.coder.hooked else None
        return told is not None and told.split() == text.split()

    async def _is_recorded(self, attempt: Attempt, text: str) -> bool:
        """Whether its own record of the conversation has the text; it is written a moment after the hook was told."""
        path = self.coder.record(await self.at.heard("UserPromptSubmit"))
        for _ in range(LOOKS):
            data = await attempt.site.transport.get(path, limit=MOST_RECORD) if path else b""
            if any(asked.split() == text.split() for asked in self.coder.asked(data)):
                return True
            await asyncio.sleep(PAUSE_SECONDS)
        return False

    async def _is_over(self, attempt: Attempt) -> bool:
        attempt.heed_abandon()
        return attempt.wish is not None or await attempt.hosted.exit() is not None

    # while it works

    async def look(self) -> Facts:
        """What is so of the worker."""
        return await self.at.look()

    async def say(self, attempt: Attempt, text: str, name: str | None = None) -> None:
        """A remark on the task, once if it has a name: it is in the ledger, and whoever dispatched it reads it."""
        house = attempt.house
        await house.store.comment(attempt.task.uid, f"{self.worker}: {text}", by=house.name, name=name)

    async def failed(self, attempt: Attempt, why: str) -> None:
        """What a person has to mend is seen at the worker too, as far as it can be told."""
        try:
            await self.at.mark("error", why, attempt.session.id)
        except FleetError as exc:
            attempt.silent(exc)


class Occupied(Exception):
    """Somebody else uses the worker: a person went on with an agent that had done its task."""


def _append(log: Path, text: str) -> None:
    make_private(log.parent)
    with open(log, "a", encoding="utf-8", opener=private) as file:
        file.write(text)
