"""One worker of a pool on its host: its clone, its tmux session and the state of its agent, by way of worker.sh."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from fleet.config.pools import Pool
from fleet.errors import TransportError, UsageError
from fleet.hosts.kinds import state_directory, working_directory
from fleet.hosts.launch_file import render_secrets
from fleet.hosts.session import program
from fleet.hosts.tmux import Tmux
from fleet.hosts.transport import SupportsMaking, SupportsSight, Transport
from fleet.model.reach import Reach

NOTHING: Mapping[str, str] = {}
NO_FILES: Mapping[str, bytes] = {}
LOOK_SECONDS = 0.3  # between two looks at what a setup prints
PIECE = 1 << 16


class Plot(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is given: where it is, and what it works on."""

    worker: str
    directory: str  # its own, on its host
    place: str  # of its clone
    repo: str  # the pool's name
    url: str
    branch: str = ""
    script: str = ""
    alone: bool = False  # it has its machine to itself: then tmux's usual server is its own
    key: str = ""  # a file on its host, for git

    @property
    def session(self) -> str:
        """What its tmux session is called."""
        return f"{self.repo}-dev"

    @property
    def socket(self) -> str:
        """The name of its tmux server; empty: the usual one. Another home may have a worker of that name."""
        return "" if self.alone else f"{self.worker}-{zlib.crc32(os.fsencode(self.directory)):08x}"

    @property
    def home(self) -> str:
        """The home of a machine that it has to itself; empty: it shares one."""
        return self.place.rpartition("/")[0] if self.alone else ""

    @property
    def attach(self) -> str:
        """What shows it to a person on its machine."""
        return f"tmux {f'-L {self.socket} ' if self.socket else ''}attach -t {self.session}"


def plot_of(name: str, pool: Pool, worker: str, *, state: str, home: str = "") -> Plot:
    """The plot of a worker. `state` is Fleet's own directory there; `home` that of a machine that it has alone."""
    directory = f"{state}/pools/{worker}"
    return Plot(
        worker=worker,
        directory=directory,
        place=f"{home or directory}/{name}",
        repo=name,
        url=pool.repo,
        branch=pool.branch,
        script=pool.setup,
        alone=bool(home),
        key=f"{directory}/key" if pool.ssh_key else "",
    )


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is so of a worker, at one moment."""

    setup: str = ""  # ready, failed; empty: not begun
    setup_why: str = ""
    now: int = 0
    tmux: str = "down"
    agent_window: str = ""
    agent_name: str = ""
    pane: str = ""
    dead: bool = False
    mode: bool = False  # somebody has scrolled it
    program: str = ""
    shell_pane: str = ""
    state: str = "none"  # waiting, running, completed, error; none: no agent was started
    since: int | None = None
    session: str = ""
    why: str = ""
    log_bytes: int = 0
    commit: int | None = None  # when the last one was made, in seconds
    head: str = ""
    branch: str = ""
    dirty: int = 0
    unpushed: int = 0
    stashed: int = 0

    @property
    def agent_lives(self) -> bool:
        """Whether a program is in the agent's window."""
        return bool(self.pane) and not self.dead and self.state != "none"


class PoolWorker:
    """Verbs of one worker. TransportError: its host did not do it. Each may be repeated."""

    def __init__(self, transport: Transport, plot: Plot) -> None:
        self.plot = plot
        self.tmux = Tmux(transport, plot.socket)
        self._transport = transport

    async def equip(self, key: bytes | None, files: Mapping[str, bytes], kept: Mapping[str, bytes] = NO_FILES) -> None:
        """Make its machine, where it has one to itself, and write what it needs, private to it.

        Files are named from its directory, or by a path; those of `kept` are written only where there is none.
        """
        if self.plot.alone and isinstance(self._transport, SupportsMaking):
            await self._transport.make()
        await self.install()
        if key is not None:
            await self.put("key", key)
        for name, data in kept.items():
            if not await self._transport.get(self._path(name), limit=1):
                await self._transport.put(self._path(name), data)
        for name, data in files.items():
            await self._transport.put(self._path(name), data)

    async def install(self) -> None:
        """Write what the other verbs need."""
        plot = self.plot
        words = {
            "url": plot.url,
            "branch": plot.branch,
            "script": plot.script,
            "place": plot.place,
            "socket": plot.socket,
            "session": plot.session,
            "key": plot.key,
        }
        conf = "".join(f"{name}={shlex.quote(word)}\n" for name, word in words.items())
        await self.put("conf", conf.encode())
        await self.put("worker.sh", program("worker.sh"))

    async def setup(self, given: Mapping[str, str] = NOTHING, told: Callable[[str], object] = lambda _: None) -> Facts:
        """Clone, and run the setup script, unless that was done. `told` hears what they print, as it comes."""
        seen = (await self.look()).log_bytes
        running = asyncio.ensure_future(self._call("setup", stdin=render_secrets(given)))
        try:
            while not running.done():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await asyncio.shield(running)
                seen = await self._tell(seen, told)
            await self._tell(seen, told)
            return await running
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def give_up_setup(self) -> None:
        """Remove what is left of a setup that was cut short; what it had finished stays. Not where another is at it."""
        if await self._transport.get(self._path("worker.sh"), limit=1):
            await self._call("clear")

    async def open(self) -> Facts:
        """See to it that its tmux session is there, with its two windows."""
        return await self._call("open")

    async def look(self, *, wake: bool = True) -> Facts:
        """What is so. A worker that was never installed has no facts; one that sleeps tells them only when woken."""
        if self.plot.alone and isinstance(self._transport, SupportsSight):
            seen = await self._transport.seen()
            if seen.presence.startswith("missing"):
                return Facts()
            if seen.asleep and not wake:
                return Facts(setup="ready", state="asleep", why=f"its machine is {seen.presence}: {seen.evidence}")
        if not await self._transport.get(f"{self.plot.directory}/worker.sh", limit=1):
            return Facts()
        return await self._call("look")

    async def mark(self, state: str, why: str, session: str, *, seen: Facts | None = None) -> Facts:
        """What its agent does, as we saw it; where it was `seen` so, only if nothing new was told meanwhile."""
        return await self._call("state", state, why, session, *((seen.state, seen.session) if seen else ()))

    async def heard(self, event: str) -> bytes:
        """What its coder last said to a hook."""
        return await self.get(f"hook.{event}")

    async def forget_heard(self) -> None:
        """Before an agent begins: nothing that an earlier one said counts."""
        names = [f"{self.plot.directory}/hook.{event}" for event in ("UserPromptSubmit", "Stop", "StopFailure")]
        await self._transport.run(["rm", "-f", *names])

    async def close(self) -> None:
        """End its tmux session, and whatever runs in it."""
        await self._transport.run(["sh", f"{self.plot.directory}/worker.sh", "close"])

    async def remove(self) -> None:
        """Remove its clone and its directory; or its machine, where it has one to itself."""
        if self.plot.alone and isinstance(self._transport, SupportsMaking):
            await self._transport.destroy()
            return
        done = await self._transport.run(["rm", "-rf", "--", self.plot.place, self.plot.directory])
        if done.code:
            raise TransportError(f"{self.plot.worker} cannot be removed: {_words(done.stderr)}")

    def _path(self, name: str) -> str:
        return name if name.startswith("/") else f"{self.plot.directory}/{name}"

    async def put(self, name: str, data: bytes) -> None:
        """Write a file of its own directory."""
        await self._transport.put(f"{self.plot.directory}/{name}", data)

    async def get(self, name: str, *, offset: int = 0, limit: int = 1 << 22) -> bytes:
        """Read a file of its own directory."""
        return await self._transport.get(f"{self.plot.directory}/{name}", offset=offset, limit=limit)

    async def _tell(self, seen: int, told: Callable[[str], object]) -> int:
        while data := await self.get("setup.log", offset=seen, limit=PIECE):
            told(data.decode("utf-8", "replace"))
            seen += len(data)
        return seen

    async def _call(self, verb: str, *words: str, stdin: bytes = b"") -> Facts:
        done = await self._transport.run(["sh", f"{self.plot.directory}/worker.sh", verb, *words], stdin=stdin)
        if done.code:
            raise TransportError(f"{self.plot.worker}: {_words(done.stderr).removeprefix('error: ')}")
        return parse(done.stdout.decode("utf-8", "replace"))


def key_of(pool: Pool) -> bytes | None:
    """The key of a pool, from its file on this machine; None: it has none."""
    if not pool.ssh_key:
        return None
    try:
        return Path(pool.ssh_key).expanduser().read_bytes()
    except OSError as exc:
        raise UsageError(
            f"the key {pool.ssh_key} cannot be read: {exc.strerror}", hint="see ssh_key of the pool"
        ) from exc


def parse(text: str) -> Facts:
    """The facts, one on each line; what is empty is not known. TransportError: they were cut off."""
    said = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    if "end" not in said:
        raise TransportError(f"the worker answered what is no fact: {text[:200]!r}")
    known = {name: value for name, value in said.items() if value and name in Facts.__struct_fields__}
    for name in ("dead", "mode"):
        if name in known:
            known[name] = "true" if known[name] != "0" else "false"
    try:
        return msgspec.convert(known, Facts, strict=False)
    except msgspec.ValidationError as exc:
        raise TransportError(f"the worker answered what is no fact: {exc}") from exc


def _words(data: bytes) -> str:
    return data.decode("utf-8", "replace").strip() or "no word"


def worker_at(
    name: str, pool: Pool, worker: str, transport: Transport, *, home: str, reach: Reach | None
) -> PoolWorker:
    """A worker of a pool. `home` is Fleet's own, of a worker on this machine; `reach` is how another one is reached."""
    if reach is None:
        return PoolWorker(transport, plot_of(name, pool, worker, state=home))
    alone = working_directory(reach).rstrip("/") if reach.kind == "sprite" else ""
    return PoolWorker(transport, plot_of(name, pool, worker, state=state_directory(reach), home=alone))
