"""The four verbs of a transport on a sprite: commands by websocket, files by the API."""

from __future__ import annotations

import shlex
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from types import MappingProxyType

from fleet.errors import HostAsleep, HostFull, HostGone, HostMissing, TransportError
from fleet.hosts.launch_file import LONGEST_WORD
from fleet.hosts.sprite import files
from fleet.hosts.sprite.api import SpriteApi
from fleet.hosts.sprite.awake import HOLD_SOCKET, hold_program
from fleet.hosts.sprite.presence import Doubt, Presence, Seen, check
from fleet.hosts.transport import MOST_OUTPUT, Completed, Course, too_much
from fleet.hosts.unpacking import ABSENT, launching, unpack

LONGEST_ADDRESS = 8000  # bytes of words that are sent in the address; more go on stdin
BLOCK = 4096
NOTHING: Mapping[str, str] = MappingProxyType({})
NOT_OPEN = "the sprite was still waking, or not reached"
# Words that are too many for an address come first on stdin, as a line for sh. It reads no byte more than they are.
UNPACK = 'eval "$(dd bs=1 count="$0" 2>/dev/null)"'
ABSENT_CODE = 7
TOLD = f"case $code in 0) exit 0 ;; {ABSENT}) exit {ABSENT_CODE} ;; *) exit 1 ;; esac"
FOUND = 'case $1 in */*) [ -f "$1" ] && [ -x "$1" ] ;; *) command -v "$1" >/dev/null 2>&1 ;; esac'
READ = """if [ -f "$1" ]; then exec dd if="$1" bs="$2" skip="$3" count="$4" 2>/dev/null; fi"""


class SpriteTransport:
    """Programs and files of one sprite. Whatever it does wakes the sprite, but for `seen`.

    When it is cancelled it kills what it had started there; where the connection is cut, the machine does it.
    """

    def __init__(
        self, api: SpriteApi, name: str, *, variables: Mapping[str, str] = NOTHING, hold_socket: str = HOLD_SOCKET
    ) -> None:
        self._variables = variables  # that all it runs there finds in its environment
        self._hold_socket = hold_socket
        self._api = api
        self._name = name
        self._doubt = Doubt(name)

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> Completed:
        with Course(NOT_OPEN) as course:
            code, error = await self._run(argv, stdin, course)
            asks = code in {126, 127}
            found = not asks or (await self._run(["sh", "-c", FOUND, "sh", argv[0]], b"", Course()))[0] == 0
        if not found:
            said = error or _text(bytes(course.stderr))
            raise TransportError(f"cannot run `{argv[0]}` on sprite {self._name}: {said}")
        return Completed(code, bytes(course.stdout), bytes(course.stderr))

    async def put(self, path: str, data: bytes) -> None:
        await files.write(self._api, self._name, path, data)

    async def get(self, path: str, *, offset: int = 0, limit: int = 1 << 20) -> bytes:
        """What is not at the beginning is read by a command: the API gives files only from their beginning."""
        if not offset:
            got = await files.read(self._api, self._name, path, limit)
            if got is not None:
                return got
        skip = offset // BLOCK
        count = (offset + limit + BLOCK - 1) // BLOCK - skip
        done = await self.run(["sh", "-c", READ, "sh", path, str(BLOCK), str(skip), str(count)])
        if done.code:
            raise TransportError(f"cannot read {path} on sprite {self._name}: dd ended with code {done.code}")
        begin = offset % BLOCK
        return done.stdout[begin : begin + limit]

    async def unpack(self, directory: str, files: Mapping[str, bytes], *, shared: Mapping[str, bytes]) -> None:
        self._written(directory, *await unpack(self._exchange, directory, files, shared))

    async def begin(
        self,
        directory: str,
        files: Mapping[str, bytes],
        *,
        shared: Mapping[str, bytes],
        argv: Sequence[str],
        stdin: bytes,
    ) -> bytes:
        then = launching(argv, stdin)
        return self._written(directory, *await unpack(self._exchange, directory, files, shared, then))

    async def stream(self, argv: Sequence[str]) -> AsyncIterator[bytes]:
        from fleet.hosts.sprite.command import STDOUT, running

        words, given = _handed_over(argv, b"", self._variables)
        try:
            async with running(self._api, self._name, words, given, Course(NOT_OPEN)) as command:
                while (piece := await command.next()) is not None:
                    if piece.stream == STDOUT:
                        yield piece.data
        except TransportError as exc:
            raise await self._explained(exc) from exc
        if command.code:
            raise TransportError(f"`{argv[0]}` ended with code {command.code} on sprite {self._name}")

    def hold(self, seconds: int) -> bytes:
        """What keeps it awake while a session runs."""
        return hold_program(self._hold_socket, seconds)

    async def make(self) -> None:
        """See to it that the sprite is there."""
        await self._api.create(self._name)

    async def destroy(self) -> None:
        """End the sprite, with all that is on it."""
        await self._api.destroy(self._name)

    async def seen(self) -> Seen:
        """What the API says of the sprite, without waking it; needs no websocket."""
        return await check(self._api, self._doubt, self._name, time.monotonic())

    async def _exchange(self, body: str, stdin: bytes) -> tuple[str, bytes, bytes]:
        """The code that a body left, and what it printed: by one command, whose own code can only be a number."""
        done = await self.run(["sh", "-c", body + TOLD], stdin=stdin)
        return ABSENT if done.code == ABSENT_CODE else str(done.code), done.stdout, done.stderr

    def _written(self, directory: str, code: str, stdout: bytes, stderr: bytes) -> bytes:
        """What the exchange that wrote it printed."""
        if code != "0":
            error = HostFull if b"No space left" in stderr else TransportError
            raise error(f"cannot write {directory} on sprite {self._name}: {_text(stderr) or 'it failed'}")
        return stdout

    async def _run(self, argv: Sequence[str], stdin: bytes, course: Course) -> tuple[int, str]:
        """Its code, and what the machine says about it; what it prints goes to its course."""
        from fleet.hosts.sprite.command import STDERR, STDOUT, running

        words, given = _handed_over(argv, stdin, self._variables)
        printed = {STDOUT: course.stdout, STDERR: course.stderr}
        room = True
        try:
            async with running(self._api, self._name, words, given, course) as command:
                while room and (piece := await command.next()) is not None:
                    printed[piece.stream] += piece.data
                    room = sum(map(len, printed.values())) <= MOST_OUTPUT
        except TransportError as exc:
            raise await self._explained(exc) from exc
        if command.code is None:
            raise too_much(argv[0])
        return command.code, command.error

    async def _explained(self, error: TransportError) -> TransportError:
        """The same error, or a better word for it where the API knows that the sprite sleeps, or not the sprite."""
        if type(error) not in {TransportError, HostMissing}:
            return error
        seen = await self.seen()
        if seen.asleep and not isinstance(error, HostMissing):
            return HostAsleep(
                f"sprite {self._name} is asleep ({seen.presence}) with work open on it: {error}",
                hint="what runs on it stands still until it is woken; a cold one has lost it",
            )
        if seen.presence in {Presence.MISSING_MAYBE, Presence.MISSING}:
            certain = seen.presence is Presence.MISSING
            return (HostGone if certain else HostMissing)(f"sprite {self._name} is {seen.presence}: {seen.evidence}")
        return error


def _handed_over(argv: Sequence[str], stdin: bytes, variables: Mapping[str, str]) -> tuple[Sequence[str], bytes]:
    """The words for the address, and what goes on stdin before the rest: no value of a variable is in an address."""
    if any("\0" in word for word in argv):
        raise TransportError(f"cannot run `{argv[0]}`: a word has a NUL in it")
    if any(len(word.encode("utf-8", "surrogateescape")) > LONGEST_WORD for word in argv):
        raise TransportError(f"cannot run `{argv[0]}`: a word has more than {LONGEST_WORD} bytes")
    if not variables and sum(len(word) for word in argv) <= LONGEST_ADDRESS and all(map(_is_plain, argv)):
        return argv, stdin
    exports = "".join(f"export {name}={shlex.quote(value)}; " for name, value in variables.items())
    line = (f"{exports}exec " + " ".join(map(shlex.quote, argv))).encode("utf-8", "surrogateescape")
    return ["sh", "-c", UNPACK, str(len(line))], line + stdin


def _is_plain(word: str) -> bool:
    """Whether an address can carry it: bytes that are no text may be lost on the way."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").strip()
