"""The verbs of pools: dispatch a task, and act on one worker: set it up, send it text, let it go, destroy it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from fleet.coders.coder import Coder
from fleet.coders.terminal import TerminalCoder
from fleet.config.settings import Settings
from fleet.errors import Conflict, NotFound, UsageError
from fleet.hosts.pool_worker import Facts, PoolWorker, key_of
from fleet.hosts.tmux import checked
from fleet.model.session import POOL, WORKER, Session
from fleet.model.task import MAX_TITLE, NewTask
from fleet.model.terms import Terms
from fleet.policy.allocation import Member, member_named, pool_named

SHOWN = 100  # characters of a command that are its title
SETTLED = "No agent is here now."


class Sent(msgspec.Struct, frozen=True):
    """A text that was put into a window."""

    worker: str
    window: str
    characters: int


def dispatched(settings: Settings, pool: str, command: str, worker: str | None, terms: Terms) -> NewTask:
    """The task that a dispatch is."""
    found = pool_named(settings, pool)
    text = checked(command)
    wanted = [f"{POOL}{pool}"]
    if worker is not None:
        if member_named(settings, worker).pool != pool:
            raise UsageError(f"{worker} is not a worker of {pool}")
        wanted.append(f"{WORKER}{worker}")
    first = " ".join(text.strip().splitlines()[0].split())
    title = first if len(first) <= SHOWN else f"{first[: SHOWN - 1]}…"
    return NewTask(
        title=title[:MAX_TITLE],
        description=text if text.strip() != title else "",
        coder=found.coder or None,
        model=found.model or None,
        capabilities=tuple(wanted),
        labels={"pool": pool},
        terms=terms,
    )


class PoolVerbs:
    """Verbs on workers, which act on their hosts at once. `live` tells which sessions are open."""

    def __init__(
        self,
        settings: Settings,
        *,
        at: Callable[[Member], PoolWorker],
        live: Callable[[], Iterable[Session]],
        secrets: Callable[[tuple[str, ...]], Mapping[str, str]],
        coder: Callable[[str], Coder],
    ) -> None:
        self._settings = settings
        self._at = at
        self._live = live
        self._secrets = secrets
        self._coder = coder

    async def setup(self, worker: str, repo: str, told: Callable[[str], object]) -> Facts:
        """Provision a worker: key, clone, setup script, tmux. What was done is not done again."""
        member = self._member(worker, repo)
        pool, found = self._settings.pools[member.pool], self._at(member)
        plot, secret = found.plot, self._secrets((pool.login,)).get(pool.login) if pool.login else None
        if pool.login and secret is None:
            raise NotFound(f"the login of the pool {repo} is in {pool.login}, which has no value")
        coder = TerminalCoder(self._coder(pool.coder), plot.directory, home=plot.home, secret=secret)
        await found.equip(key_of(pool), coder.files, coder.login.kept)
        facts = await found.setup(self._secrets(pool.env), told)
        if facts.setup != "ready":
            raise Conflict(f"{worker} cannot be set up: {facts.setup_why}", hint=f"fleet pool setup {worker} {repo}")
        return await found.open()

    async def send(self, worker: str, window: str, text: str) -> Sent:
        """Put a text into a window, and press Enter. `agent` is also a window called agent:running."""
        found = await self._known(worker)
        facts = await found.open()
        panes = {"shell": facts.shell_pane, "0": facts.shell_pane, "agent": facts.pane, "1": facts.pane}
        pane = panes.get(window.partition(":")[0])
        if not pane:
            raise NotFound(f"{worker} has no window `{window}`", hint="there are: shell, agent")
        if pane == facts.pane and facts.dead:
            raise Conflict(f"no program runs in the window agent of {worker}", hint="fleet dispatch starts one")
        await found.tmux.paste(pane, text)
        await found.tmux.press(pane, "Enter")
        return Sent(worker, window, len(text))

    async def history(self, worker: str, lines: int) -> str:
        """What went through the window of the agent."""
        found = await self._known(worker)
        facts = await found.look()
        if not facts.pane:
            raise NotFound(f"{worker} has no window agent: its tmux session is not there")
        return await found.tmux.history(facts.pane, lines)

    async def release(self, worker: str) -> Facts:
        """End the program in the agent's window. Its clone stays. Conflict: it has a task."""
        found = await self._known(worker)
        self._unused(worker)
        facts = await found.open()
        place = found.plot.place
        words = ("respawn-pane", "-k", "-t", facts.pane, "-c", place, f"printf '{SETTLED}\\n'; sleep 1")
        await found.tmux.run(*words)
        return await found.mark("none", "it was released", "")

    async def destroy(self, worker: str, *, force: bool) -> Facts:
        """Remove a worker with its clone. Conflict: it has a task, or work that is nowhere else, and no force."""
        found = await self._known(worker)
        self._unused(worker)
        facts = await found.look()
        left = [
            f"{number} {what}{'' if number == 1 else 's'}"
            for number, what in (
                (facts.unpushed, "unpushed commit"),
                (facts.dirty, "changed file"),
                (facts.stashed, "stashed change"),
            )
            if number
        ]
        if left and not force:
            raise Conflict(
                f"{worker} has {', '.join(left)}", hint=f"push them, or: fleet pool destroy {worker} --force"
            )
        await found.close()
        await found.remove()
        return facts

    def member(self, worker: str) -> Member:
        """A worker by its name."""
        return member_named(self._settings, worker)

    def _member(self, worker: str, repo: str) -> Member:
        pool_named(self._settings, repo)
        member = member_named(self._settings, worker)
        if member.pool != repo:
            raise UsageError(f"{worker} is a worker of {member.pool}, not of {repo}")
        return member

    async def _known(self, worker: str) -> PoolWorker:
        member = member_named(self._settings, worker)
        found = self._at(member)
        if not (await found.look()).setup:
            raise NotFound(f"{worker} was not set up yet", hint=f"fleet pool setup {worker} {member.pool}")
        await found.install()
        return found

    def _unused(self, worker: str) -> None:
        for session in self._live():
            if session.worker.partition("#")[0] == worker:
                raise Conflict(f"{worker} works on {session.task}", hint=f"fleet stop {session.task} ends that first")
