"""The pruner: takes away what nobody needs any more, a bounded number at a time, each with a line in the log.

Of a session that is its directory, here or on another host, once its task has ended for long enough and all of its
output was read. What was said and what went to stderr is in the task's own directory, and stays. Of a task that is the
copy of its files on another host, and what was put aside when its worktree went. Nothing of a task that has not ended
is touched, and no machine is woken for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from fleet.config.clock import unhurried
from fleet.errors import Conflict, Fenced, FleetError, NotFound, TransportError
from fleet.hosts.session import HostedSession
from fleet.hosts.transport import SupportsSight
from fleet.hosts.workspace import Workspaces
from fleet.model.session import Session
from fleet.model.states import ENDED, LIVE
from fleet.policy.placement import task_there
from fleet.supervisor.clearing import Clearing
from fleet.supervisor.gathering import MOST_TEXT
from fleet.supervisor.house import House
from fleet.supervisor.record import has_stderr_of
from fleet.supervisor.site import Site

FIRST_SECONDS, EVERY_SECONDS, SOON_SECONDS = 2.0, 600.0, 5.0
MOST = 50  # directories in one round
FREED_BYTES = 64 << 20  # space behind the cursor that is worth a process to give it back
LONGEST_ERR = 10 << 20
DAY_MS = 86_400_000
LOG = re.compile(r"fleet-\d{4}-\d{2}-\d{2}\.jsonl")


class Pruned(msgspec.Struct, frozen=True, kw_only=True):
    """What one round took away, and how many bytes it gave back of sessions that run."""

    sessions: int = 0
    copies: int = 0  # of tasks' files, on other hosts
    dropped: int = 0  # tasks whose worktrees went long ago, and had left something
    logs: int = 0
    freed: int = 0


class Pruner:
    """Prunes one home, and what its sessions left on other hosts. `running`: the live sessions that we drive."""

    def __init__(
        self,
        house: House,
        running: Callable[[], Iterable[HostedSession]],
        *,
        clock: Callable[[], int] | None = None,
        worth_bytes: int = FREED_BYTES,
        kept_bytes: int = MOST_TEXT,
    ) -> None:
        self._house = house
        self._running = running
        self._clock = clock or unhurried()
        self._worth_bytes = worth_bytes
        self._kept_bytes = kept_bytes  # the end of what was said is evidence
        self._clearing = Clearing(house)
        self._freed: dict[str, int] = {}  # by session, up to which offset
        self._kept: set[str] = set()  # directories that could not be taken away; said once

    async def run(self) -> None:
        """Prune now and then. What fails is told and tried again later."""
        wait = FIRST_SECONDS
        while True:
            await asyncio.sleep(wait)
            wait = EVERY_SECONDS
            try:
                done = await self.run_once()
            except (FleetError, OSError, TimeoutError) as exc:
                self._house.log("prune_failed", error=str(exc) or "no answer in time")
                continue
            except Exception as exc:  # nobody's session ends for it
                self._house.log_fault("prune_failed", exc)
                continue
            wait = SOON_SECONDS if max(done.sessions, done.copies, done.dropped) >= MOST else EVERY_SECONDS

    async def run_once(self) -> Pruned:
        """One round."""
        freed = await self._free()
        configured = self._house.settings.supervisor
        days = configured.keep_sessions_days
        before = self._clock() - days * DAY_MS if days else None
        gone = await self._prune_elsewhere(before)
        sessions, dropped = gone.sessions, gone.dropped
        if before is not None:
            sessions += await self._forget_old(before)
            if await self._is_here("clones"):
                await self._sweep(self._house.hosts.here)
        if await self._is_here("dropped"):
            dropped += await self._clear_aside(self._house.hosts.here)
        logs = await asyncio.to_thread(self._prune_logs, configured.keep_logs_days)
        return Pruned(sessions=sessions, copies=gone.copies, dropped=dropped, logs=logs, freed=freed)

    # the directories of sessions

    async def _forget_old(self, before: int) -> int:
        here, count = self._house.hosts.here, 0
        for name in await asyncio.to_thread(self._older_directories, before):
            count += await self._forget(here, name, before)
            if count == MOST:
                break
        return count

    async def _prune_elsewhere(self, before: int | None) -> Pruned:
        """The same on every host that is up and awake, and then the copies of tasks that have no session there any
        more; one that does not answer is asked again in the next round. `before` None: these are kept for ever."""
        sessions = copies = dropped = 0
        for name, known in dict(self._house.hosts.health).items():
            if known.state != "up":
                continue
            site = self._house.hosts.site(name)
            try:
                if await self._is_asleep(site):
                    continue
                if before is not None:
                    async with asyncio.timeout(self._house.settings.timeouts.command_exec):
                        sessions += await self._forget_on(site, before)
                    await self._sweep(site)
                    copies += await self._clearing.run_once(site, before, most=MOST)
                dropped += await self._clear_aside(site)
            except (TransportError, TimeoutError) as exc:
                self._house.log("prune_failed", host=name, error=str(exc) or "no answer in time")
        return Pruned(sessions=sessions, copies=copies, dropped=dropped)

    async def _is_here(self, name: str) -> bool:
        return await asyncio.to_thread((self._house.home.path / name).is_dir)

    async def _clear_aside(self, site: Site) -> int:
        """What git ignored in worktrees that went long ago, of tasks of ours that have ended."""
        days, count = self._house.settings.supervisor.keep_dropped_days, 0
        if not days:
            return 0
        spaces, store = Workspaces(site.transport), self._house.store
        async with asyncio.timeout(self._house.settings.timeouts.command_exec):
            for name in await spaces.aside(site.state, days):
                uid = name if site.is_here else task_there(name, self._clearing.sessions)
                task = store.tasks_by_uid([uid]).get(uid) if uid is not None else None
                if task is None or task.state not in ENDED or count == MOST:
                    continue
                try:
                    await spaces.clear_aside(site.state, name, days)
                except Conflict as exc:
                    self._house.log("dropped_kept", task=task.uid, host=site.name, reason=str(exc))
                    continue
                self._house.log("dropped_removed", task=task.uid, host=site.name)
                count += 1
        return count

    async def _sweep(self, site: Site) -> None:
        """What is left of clones whose supervisor was killed, where nobody tried again since."""
        async with asyncio.timeout(self._house.settings.timeouts.command_exec):
            for task in await Workspaces(site.transport).sweep(site.state):
                self._house.log("half_clone_removed", task=task, host=site.name)

    async def _is_asleep(self, site: Site) -> bool:
        return isinstance(site.transport, SupportsSight) and (await site.transport.seen()).asleep

    async def _forget_on(self, site: Site, before: int) -> int:
        done = await site.transport.run(["sh", "-c", 'ls "$1" 2>/dev/null; exit 0', "ls", site.sessions])
        count = 0
        for name in done.stdout.decode("utf-8", "replace").split():
            if name not in self._kept:
                count += await self._forget(site, name, before)
            if count == MOST:
                break
        return count

    def _older_directories(self, before: int) -> list[str]:
        """Those in which nothing was written since; a cheap look that leaves out nearly all. The oldest come first."""
        found = []
        with contextlib.suppress(FileNotFoundError), os.scandir(self._house.home.sessions) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue  # what the sessions share
                with contextlib.suppress(FileNotFoundError):
                    written = entry.stat(follow_symlinks=False).st_mtime_ns // 1_000_000
                    if written < before and entry.name not in self._kept and entry.is_dir(follow_symlinks=False):
                        found.append((written, entry.name))
        return [name for _, name in sorted(found)]

    async def _forget(self, site: Site, name: str, before: int) -> bool:
        """Take a directory away, if it is the one of a session that ended long ago, of a task that has ended."""
        store = self._house.store
        try:
            session = store.session(name)
            task = store.task(session.task)
        except NotFound:  # on another host it may be that of another home
            return self._keep(name, "no session of this name is known") if site.is_here else False
        if (
            not self._house.hosts.is_at(session.host, site)
            or session.state in LIVE
            or task.state not in ENDED
            or (session.ended_at or before) >= before
        ):
            return False  # its time has not come
        try:
            took = await self._collected(site, session)
        except Fenced:
            return self._keep(name, "a newer supervisor has it")
        except (Conflict, TransportError) as exc:
            if isinstance(exc, Conflict) or site.is_here:
                return self._keep(name, str(exc))
            self._house.log("prune_failed", host=site.name, session=name, error=str(exc))  # it is asked again
            return False
        if took:
            self._house.log("session_forgotten", session=name, task=session.task, host=site.name)
        return took

    async def _collected(self, site: Site, session: Session) -> bool:
        """Let the host remove it. It refuses when there is more output than we say that we have."""
        home = self._house.home
        hosted = site.hosted(session)
        seen = await hosted.observe()
        if seen.stderr_bytes and not has_stderr_of(home.task_dir(session.task), session.id):
            return self._keep(session.id, "its stderr was not kept")
        cursor = self._house.store.progress(session.id).cursor
        await hosted.forget(stdout_bytes=cursor, stderr_bytes=seen.stderr_bytes)
        return True

    def _keep(self, name: str, why: str) -> bool:
        self._kept.add(name)
        self._house.log("session_kept", session=name, reason=why)
        return False

    # the space of sessions that run

    async def _free(self) -> int:
        """Give back the space behind what was read and committed of long sessions."""
        total = 0
        for hosted in list(self._running()):
            upto = self._house.store.progress(hosted.session).cursor - self._kept_bytes
            behind = upto - self._freed.get(hosted.session, 0)
            if behind < self._worth_bytes:
                continue
            try:
                await hosted.free(upto)
            except (Conflict, TransportError) as exc:
                self._house.log("not_freed", session=hosted.session, error=str(exc))
                continue
            self._freed[hosted.session] = upto
            total += behind
            self._house.log("space_freed", session=hosted.session, bytes=behind)
        return total

    # logs

    def _prune_logs(self, days: int) -> int:
        """Remove logs whose day is long past, and begin a new file where one has grown too long."""
        logs, count = self._house.home.logs, 0
        if not logs.is_dir():
            return 0
        before = self._clock() - days * DAY_MS
        for file in sorted(logs.iterdir()) if days else ():
            if LOG.fullmatch(file.name) and file.stat().st_mtime_ns // 1_000_000 < before and count < MOST:
                file.unlink(missing_ok=True)
                self._house.log("log_removed", file=file.name)
                count += 1
        self._turn_over(logs / "supervisor.err")
        return count

    def _turn_over(self, file: Path) -> None:
        with contextlib.suppress(FileNotFoundError):
            if file.stat().st_size > LONGEST_ERR:
                file.replace(file.with_name(f"{file.name}.1"))
                self._house.log("log_turned_over", file=file.name)
