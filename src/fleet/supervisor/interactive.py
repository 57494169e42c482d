"""Watching an agent on a terminal: what it does, by its hooks, its process and its screen; and when it is done."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from fleet.coders.shortening import one_line
from fleet.coders.terminal import State
from fleet.hosts.pool_worker import Facts
from fleet.model.alert import Alert, AlertKind
from fleet.supervisor.attempt import Attempt
from fleet.supervisor.dispatch import Dispatch

HERE_SECONDS, THERE_SECONDS = 1.0, 5.0  # between two looks at a worker
QUIET_LOOKS = 3  # at a screen that is ready, until what does not tell by itself is believed to have ended its turn


class Interactive:
    """The watch over one agent on a terminal."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._due = 0.0
        self._quiet = 0
        self._asked = ""  # of a person, with these words

    async def run_once(self) -> None:
        """Look, when it is time. Where it has ended its turn its session ends; the program stays for people."""
        attempt, dispatch = self._attempt, self._attempt.dispatch
        now = asyncio.get_running_loop().time()
        state: State = attempt.state
        if dispatch is None or now < self._due or not state.given:
            return
        self._due = now + (HERE_SECONDS if attempt.site.is_here else THERE_SECONDS)
        if state.completed or state.failed:  # its host did not hear of it, or whoever saw it was killed
            await attempt.safely(attempt.hosted.conclude())
            return
        if state.error:
            await self._conclude(replace(state, failed=state.error))
            return
        facts: Facts | None = await attempt.safely(dispatch.look())
        if facts is None or facts.session != attempt.session.id:
            return
        attempt.heard()
        if facts.state == "running":
            facts = await self._by_screen(dispatch, facts)
        if facts.state == "completed":
            await self._completed(dispatch)
        elif facts.state == "error" and facts.agent_lives:
            await self._conclude(replace(state, failed=facts.why))
        elif facts.state == "waiting":
            await self._ask(facts)
        else:
            self._asked = ""

    async def _by_screen(self, dispatch: Dispatch, facts: Facts) -> Facts:
        """Of one that says it works: its input may be open all the same. Then it was interrupted, or cannot tell."""
        screen = await self._attempt.safely(dispatch.at.tmux.screen(facts.pane))
        ready = screen is not None and dispatch.coder.screen(screen).kind == "ready"
        self._quiet = self._quiet + 1 if ready else 0
        if self._quiet < QUIET_LOOKS:
            return facts
        self._quiet = 0
        hooked = dispatch.coder.hooked
        state, why = ("waiting", "its input is open and nothing runs: its turn was interrupted")
        if not hooked:
            state, why = ("completed", "its input is open again")
        return await dispatch.at.mark(state, why, self._attempt.session.id, seen=facts)

    async def _completed(self, dispatch: Dispatch) -> None:
        heard: bytes | None = await self._attempt.safely(dispatch.at.heard("Stop"))
        if heard is None:
            return  # its last words are asked for at the next look
        said = one_line(dispatch.coder.last_words(heard)) if heard else ""
        await self._conclude(replace(self._attempt.state, completed=True, said=said))

    async def _conclude(self, state: State) -> None:
        """What was seen is kept first, so that whoever comes after us judges as we do."""
        self._attempt.keep_state(state)
        await self._attempt.commit()
        self._attempt.house.at("turned")
        await self._attempt.safely(self._attempt.hosted.conclude())

    async def _ask(self, facts: Facts) -> None:
        """It waits for a person: tell one, once for each thing that it asks."""
        attempt = self._attempt
        if self._asked == facts.why:
            return
        self._asked = facts.why
        worker = attempt.session.worker.partition("#")[0]
        alert = Alert(AlertKind.NEEDS_HUMAN, f"{worker} waits: {facts.why}; fleet pool attach {worker}")
        await attempt.house.store.warn(attempt.session.fence, attempt.progress, alert, by=attempt.house.name)
