"""Sessions on a host: prepare, start, observe, read, stop, forget; written once over the four verbs of a transport."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

import msgspec

from fleet.errors import Conflict, Fenced, HostFull, NotStarted, TransportError
from fleet.hosts.facts import Exit, HostState, Killed, Observed, parse, parse_exit
from fleet.hosts.launch_file import DEFAULT_RULES, Rules, render, render_secrets
from fleet.hosts.lines import CHUNK, Line, Read, read_lines
from fleet.hosts.observing import observers
from fleet.hosts.outbox import LONGEST, Request, parse_request, render_answer
from fleet.hosts.transport import (
    SupportsBegin,
    SupportsHold,
    SupportsLaunch,
    SupportsRunners,
    SupportsUnpack,
    Transport,
)
from fleet.model.ids import check_token
from fleet.model.launch import Launch

SHIMS = ("fleet", "bd")
FAILED, FENCED, REFUSED = 1, 3, 4  # exit codes of the runner
CODES = {"error": FAILED, "fenced": FENCED}  # of what it says of one session among many
LONGEST_RECORD = 8192
MOST_REQUESTS = 100
NO_SECRETS: Mapping[str, str] = MappingProxyType({})
# A directory without a runner is one that the host knows nothing of; what is in it is not said to be removed.
CALL = """if [ -f "$2/runner.sh" ]; then exec {shell} "$2/runner.sh" "$@"; fi
if [ "$1" = forget ] && [ -d "$2" ] && ! rmdir "$2" 2>/dev/null; then
    echo "refused: there is no runner in $2, but something else" >&2
    exit 4
fi
echo state=absent"""


class Started(msgspec.Struct, frozen=True):
    """A session that has begun; not necessarily by this start, and it may have ended by now."""

    pid: int
    observed: Observed


class Stopped(msgspec.Struct, frozen=True):
    """A session of which nothing lives any more, but what could not be ended."""

    observed: Observed
    killed: tuple[Killed, ...]
    left: int


class HostedSession:
    """One session in its directory on a host, acted upon with one epoch.

    An agent that fails is a value. TransportError: the host did not do it, or it is not known whether it did.
    Fenced: a higher epoch was here. Every verb may be repeated; none runs an agent twice.
    """

    def __init__(
        self, transport: Transport, root: str, session: str, epoch: int, *, shell: tuple[str, ...] = ("sh",)
    ) -> None:
        self.session = check_token(session, "session")
        self.directory = f"{root.rstrip('/')}/{session}"
        self.epoch = epoch
        self._transport = transport
        self._shell = shell
        self._cgroup = ""  # what the launcher shall call it
        self._terminal = False  # whether the agent is to have one
        self._unwritten: dict[str, bytes] | None = None  # files that the start brings with it

    async def prepare(self, launch: Launch, rules: Rules = DEFAULT_RULES, *, at_start: bool = False) -> None:
        """Write the directory. The launch file comes last: with it the session can be started.

        `at_start`: nobody needs the directory before. Where that saves an exchange, it is written by the start.
        """
        self._cgroup = self.session if rules.use_cgroup else ""
        self._terminal = bool(launch.terminal)
        launch_file = {"launch": render(self.session, launch, rules, self._shell, epoch=self.epoch)}
        own = {"prompt": launch.prompt.encode("utf-8", "surrogateescape")} if launch.prompt_on_stdin else {}
        if isinstance(self._transport, SupportsHold):
            own["hold"] = self._transport.hold(rules.awake_seconds)
        if isinstance(self._transport, SupportsUnpack):
            unpacked = {"outbox/": b""} | own | launch_file
            if at_start and not self._terminal and isinstance(self._transport, SupportsBegin):
                self._unwritten = unpacked
            else:
                await self._transport.unpack(self.directory, unpacked, shared=programs())
            return
        puts = (self._put(name, data) for name, data in (programs() | own).items())
        for failed in await asyncio.gather(*puts, return_exceptions=True):
            if failed:
                raise failed
        await self._put("launch", launch_file["launch"])

    async def start(self, secrets: Mapping[str, str] = NO_SECRETS) -> Started:
        """Start the agent, unless it has been. NotStarted: it did not begin, and never will in this directory."""
        seen = await self._launch(render_secrets(secrets)) or await self._call("start", stdin=render_secrets(secrets))
        if seen.state == HostState.ABANDONED:
            raise NotStarted(f"session {self.session} did not start: {seen.reason}")
        if seen.pid is None:
            raise TransportError(f"it is not known yet whether session {self.session} started")
        return Started(seen.pid, seen)

    async def observe(self) -> Observed:
        """What is so. An epoch that is higher than any before shuts the lower ones out."""
        line = await observers(self._transport).ask(self._shell, self.directory, self.epoch)
        return self._facts("observe", line, CODES.get(line.partition(":")[0], 0))

    async def abandon(self) -> bool:
        """See to it that the agent never runs. False: it has begun, or is about to."""
        if not await self._transport.get(f"{self.directory}/runner.sh", limit=1):
            await self._put("runner.sh", program("runner.sh"))
        return (await self._call("abandon")).state == HostState.ABANDONED

    async def stop(self, *, grace_seconds: float) -> Stopped:
        """End the agent and all it started: INT, then TERM, then KILL, with the grace between.

        Without a grace it stands still before anything else is done, and is not asked to end.
        """
        return _stopped(await self._call("stop", str(int(grace_seconds * 1000))))

    async def attend(self) -> Observed:
        """Let an agent that ends when nobody attends it live on for as long again. No other verb does that."""
        return await self._call("attend")

    async def conclude(self) -> Observed:
        """The agent on a terminal did what it was given: that is its end. Its process stays, for whoever looks."""
        return await self._call("conclude")

    async def sweep(self, *, grace_seconds: float) -> Stopped:
        """End what an agent left behind. Conflict: it still runs."""
        return _stopped(await self._call("sweep", str(int(grace_seconds * 1000))))

    async def exit(self) -> Exit | None:
        """The record of its end, read without a process on the host; None while there is none."""
        return parse_exit(await self._get("exit", limit=LONGEST_RECORD))

    async def read(self, cursor: int, *, ended: bool = False, chunk: int = CHUNK) -> Read:
        """The next lines of stdout. `ended`: nothing more can come, so an unfinished last line is a line too."""
        return await read_lines(self._transport, f"{self.directory}/stdout", cursor, ended=ended, chunk=chunk)

    async def lines(self, cursor: int = 0, *, every_seconds: float = 0.1) -> AsyncIterator[Line]:
        """All lines from the cursor on, as they come, until the record of the end says that nothing more can come.

        Who needs to know of a host that lost the agent asks `observe` beside it.
        """
        while True:
            exit_record = await self.exit()  # before the read: what was written before the end is then in it
            ended = exit_record is not None and exit_record.swept
            got = await self.read(cursor, ended=ended)
            for line in got.lines:
                yield line
            if got.cursor == cursor:
                if ended:
                    return
                await asyncio.sleep(every_seconds)
            cursor = got.cursor

    async def stderr_tail(self, most: int = 65_536) -> bytes:
        """The last of what the agent wrote to stderr."""
        size = (await self.observe()).stderr_bytes
        return await self._get("stderr", offset=max(0, size - most), limit=most)

    async def requests(self, after: int) -> list[Request]:
        """What the agent asked for since request number `after`, in order; not more than are dealt with at once."""
        found: list[Request] = []
        for number in range(after + 1, after + 1 + MOST_REQUESTS):
            data = await self._get(f"outbox/{number}", limit=LONGEST)
            if not data:
                break
            found.append(parse_request(number, data))
        return found

    async def answer(self, request: int, text: str, *, code: int = 0) -> None:
        """Let the agent's command end. May be repeated."""
        await self._put(f"outbox/{request}.answer", render_answer(code, text))

    async def free(self, cursor: int, *, since: int = 0) -> None:
        """Give back the disk space of stdout below the cursor, where the host can. Offsets stay as they are."""
        await self._call("free", str(cursor), str(since))

    async def forget(self, *, stdout_bytes: int, stderr_bytes: int) -> None:
        """Remove the directory. Conflict: something in it lives, was not collected or is not ours, and all is left."""
        await self._call("forget", str(stdout_bytes), str(stderr_bytes))

    def clear(self) -> None:
        """Nothing of it lives: give back what the host kept of it in memory, where that takes no process there."""
        if isinstance(self._transport, SupportsRunners):
            self._transport.clear(self.directory)

    async def _launch(self, stdin: bytes) -> Observed | None:
        """The runner itself, without a shell that starts it, where the transport can; None: ask by the usual way."""
        if self._terminal:
            return None
        argv = [*self._shell, f"{self.directory}/runner.sh", "run", self.directory, str(self.epoch)]
        if self._unwritten is not None and isinstance(self._transport, SupportsBegin):
            said = await self._transport.begin(
                self.directory, self._unwritten, shared=programs(), argv=argv, stdin=stdin
            )
            self._unwritten = None
        elif isinstance(self._transport, SupportsRunners):
            said = await self._transport.launch_runner(argv, stdin=stdin, session=self._cgroup)
        elif isinstance(self._transport, SupportsLaunch):
            said = await self._transport.launch(argv, stdin=stdin)
        else:
            return None
        return parse(said.decode("utf-8", "replace")) if said.endswith(b"\n") else None

    async def _call(self, verb: str, *arguments: str, stdin: bytes = b"") -> Observed:
        words = [verb, self.directory, str(self.epoch), *arguments]
        script = CALL.format(shell=" ".join(self._shell))
        done = await self._transport.run([*self._shell, "-c", script, "runner", *words], stdin=stdin)
        said = (done.stderr if done.code else done.stdout).decode("utf-8", "replace").strip()
        return self._facts(verb, said or f"code {done.code}", done.code)

    def _facts(self, verb: str, said: str, code: int) -> Observed:
        if code == 0:
            return parse(said)
        if code == FENCED:
            raise Fenced(f"session {self.session}: {said.removeprefix('fenced: ')}")
        if code == REFUSED:
            raise Conflict(f"session {self.session}: {said.removeprefix('refused: ')}")
        error = HostFull if "No space left" in said else TransportError
        raise error(f"cannot {verb} session {self.session}: {said.removeprefix('error: ')}")

    async def _put(self, name: str, data: bytes) -> None:
        await self._transport.put(f"{self.directory}/{name}", data)

    async def _get(self, name: str, *, offset: int = 0, limit: int = CHUNK) -> bytes:
        return await self._transport.get(f"{self.directory}/{name}", offset=offset, limit=limit)


@cache
def programs() -> dict[str, bytes]:
    """What is the same in the directory of every session."""
    return {"runner.sh": program("runner.sh")} | {f"bin/{name}": program(f"shims/{name}") for name in SHIMS}


@cache
def program(name: str) -> bytes:
    """A program for the host that ships with this package."""
    return files("fleet.hosts").joinpath(name).read_bytes()


def _stopped(seen: Observed) -> Stopped:
    return Stopped(seen, seen.killed, seen.left)
