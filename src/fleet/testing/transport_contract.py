"""TransportContract: the four verbs, as every transport must do them. Subclass it and give it the fixtures.

What some transports can do beyond them is in `transport_powers`.

class TestMine(TransportContract):
    @pytest.fixture
    def transport(self): return MyTransport(...)

    @pytest.fixture
    def place(self): return "/a/directory/on/the/machine/that/is/empty"
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable

import pytest

from fleet.errors import TransportError
from fleet.hosts.transport import Transport

EVERY_BYTE = bytes(range(256)) * 300  # more than a pipe holds
SECONDS = 20.0


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    """Wait for a fact, and fail when it does not come."""
    async with asyncio.timeout(SECONDS):
        while not await true():
            await asyncio.sleep(0.01)


async def until_written(transport: Transport, path: str, lines: int = 1) -> None:
    """Wait until a file over there has so many whole lines."""

    async def written() -> bool:
        return (await transport.get(path)).count(b"\n") == lines

    await until(written)


async def are_dead(transport: Transport, pids: list[str]) -> bool:
    """Whether none of them lives over there; one that nobody has waited for is dead."""
    check = 'for p; do case $(ps -o stat= -p "$p") in ""|Z*) ;; *) exit 1 ;; esac; done'
    return (await transport.run(["sh", "-c", check, "sh", *pids])).code == 0


class TransportContract:
    """One suite over every implementation."""

    @pytest.fixture
    def transport(self) -> Transport:
        raise NotImplementedError

    @pytest.fixture
    def place(self) -> str:
        raise NotImplementedError

    # run

    def test_run_answers_code_and_output(self, transport: Transport) -> None:
        """A program's code, stdout and stderr come back as they are, each on its own."""
        done = asyncio.run(transport.run(["sh", "-c", "echo out; echo err >&2; exit 7"]))
        assert done == (7, b"out\n", b"err\n")

    def test_run_hands_over_words_unchanged(self, transport: Transport) -> None:
        """No shell stands between: blanks, quotes, dollars, line breaks and empty words arrive."""
        words = ["a b", "'", '"', "$HOME", "`id`", "-n", "", "x\ny", "*", "\\", "é"]
        done = asyncio.run(transport.run(["sh", "-c", 'printf "%s\\0" "$@"', "sh", *words]))
        assert done.stdout.decode().split("\0")[:-1] == words

    def test_run_hands_over_stdin(self, transport: Transport) -> None:
        """Every byte of stdin arrives, more than a pipe holds, and then its end."""
        assert asyncio.run(transport.run(["cat"], stdin=EVERY_BYTE)).stdout == EVERY_BYTE

    def test_run_without_stdin_gives_an_end(self, transport: Transport) -> None:
        """A program that reads stdin does not wait for ever when it is given none."""
        assert asyncio.run(transport.run(["cat"])).stdout == b""

    def test_run_bears_a_program_that_does_not_read(self, transport: Transport) -> None:
        """Stdin that nobody reads is no error."""
        assert asyncio.run(transport.run(["true"], stdin=EVERY_BYTE * 20)).code == 0

    @pytest.mark.parametrize("code", [1, 126, 127, 128, 137, 254, 255])
    def test_run_answers_any_code(self, transport: Transport, code: int) -> None:
        """A program may end with any code, also one by which a way there would say that it failed."""
        assert asyncio.run(transport.run(["sh", "-c", f"exit {code}"])) == (code, b"", b"")

    @pytest.mark.parametrize("argv", [["no-such-program"], ["/"], ["printf", "a\0b"], ["true", "x" * 3_000_000]])
    def test_what_cannot_run_raises(self, transport: Transport, argv: list[str]) -> None:
        """A program that cannot be started is an error of the transport, whatever the reason."""
        with pytest.raises(TransportError):
            asyncio.run(transport.run(argv))

    def test_what_leaves_lives_on(self, transport: Transport, place: str) -> None:
        """A program that went into a process session of its own is not ended with the one that started it."""

        async def scene() -> None:
            script = f"setsid sh -c 'echo $$ >{place}/away; exec sleep 1000' >/dev/null 2>&1 </dev/null & sleep 1000"
            task = asyncio.create_task(transport.run(["sh", "-c", script]))
            await until_written(transport, f"{place}/away")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            pid = (await transport.get(f"{place}/away")).decode().strip()
            assert (await transport.run(["kill", "-s", "KILL", pid])).code == 0  # it was there to be killed

        asyncio.run(scene())

    @pytest.mark.parametrize("stdin", [b"", b"some words\n"])
    def test_a_cancelled_run_is_killed(self, transport: Transport, place: str, stdin: bytes) -> None:
        """Cancelling ends the program and what it started, whether or not it was given something to read."""

        async def scene() -> None:
            script = f"echo $$ >{place}/pids; sleep 1000 & echo $! >>{place}/pids; wait"
            task = asyncio.create_task(transport.run(["sh", "-c", script], stdin=stdin))
            await until_written(transport, f"{place}/pids", 2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            pids = (await transport.get(f"{place}/pids")).decode().split()
            await until(lambda: are_dead(transport, pids))

        asyncio.run(scene())

    # put and get

    def test_put_then_get(self, transport: Transport, place: str) -> None:
        """What was put is what is got, in a directory that was not there."""
        asyncio.run(transport.put(f"{place}/new/deep/file", EVERY_BYTE))
        assert asyncio.run(transport.get(f"{place}/new/deep/file")) == EVERY_BYTE

    def test_put_replaces_and_leaves_nothing_else(self, transport: Transport, place: str) -> None:
        """A second put replaces the whole file, and no temporary file stays."""
        for data in (b"a longer text", b"short", b""):
            asyncio.run(transport.put(f"{place}/box/file", data))
            assert asyncio.run(transport.get(f"{place}/box/file")) == data
        assert asyncio.run(transport.run(["ls", "-A", f"{place}/box"])).stdout == b"file\n"

    def test_put_is_whole_or_not_at_all(self, transport: Transport, place: str) -> None:
        """A reader never sees a part of a file that is being replaced."""

        async def scene() -> None:
            path, texts = f"{place}/file", {letter * 200_000 for letter in (b"a", b"b")}
            await transport.put(path, b"a" * 200_000)

            async def write() -> None:
                for _ in range(10):
                    for text in sorted(texts):
                        await transport.put(path, text)

            writing = asyncio.create_task(write())
            while not writing.done():
                assert await transport.get(path) in texts
                await asyncio.sleep(0)
            await writing

        asyncio.run(scene())

    def test_put_is_private(self, transport: Transport, place: str) -> None:
        """Only the user may read what was put."""
        asyncio.run(transport.put(f"{place}/file", b"x"))
        assert asyncio.run(transport.run(["ls", "-l", f"{place}/file"])).stdout.startswith(b"-rw-------")

    def test_put_that_cannot_be_raises(self, transport: Transport, place: str) -> None:
        """A file cannot be put below a file; the error is of the transport."""
        asyncio.run(transport.put(f"{place}/file", b"x"))
        with pytest.raises(TransportError):
            asyncio.run(transport.put(f"{place}/file/below", b"x"))

    def test_get_is_bounded(self, transport: Transport, place: str) -> None:
        """A get starts at the offset, and ends at the limit or the end of the file."""
        asyncio.run(transport.put(f"{place}/file", b"0123456789"))
        assert asyncio.run(transport.get(f"{place}/file", offset=2, limit=3)) == b"234"
        assert asyncio.run(transport.get(f"{place}/file", offset=8, limit=100)) == b"89"

    def test_get_reads_on_in_a_large_file(self, transport: Transport, place: str) -> None:
        """Parts that are got one after the other, at any offset, make the whole."""
        whole = EVERY_BYTE * 3 + b"end"
        asyncio.run(transport.put(f"{place}/file", whole))

        async def parts() -> bytes:
            got = b""
            while more := await transport.get(f"{place}/file", offset=len(got), limit=50_001):
                got += more
            return got

        assert asyncio.run(parts()) == whole

    def test_paths_of_any_kind(self, transport: Transport, place: str) -> None:
        """A path may have blanks, quotes, dollars, dashes and line breaks in it."""
        for name in ("a b", "it's", "$HOME", "-n", "x\ny", "\\!", "é", "%s"):
            asyncio.run(transport.put(f"{place}/{name}/{name}", name.encode()))
            assert asyncio.run(transport.get(f"{place}/{name}/{name}")) == name.encode()

    def test_get_of_nothing_is_empty(self, transport: Transport, place: str) -> None:
        """An absent file, an absent directory and the end of a file all give no bytes."""
        asyncio.run(transport.put(f"{place}/file", b"x"))
        assert asyncio.run(transport.get(f"{place}/absent")) == b""
        assert asyncio.run(transport.get(f"{place}/no/such/place")) == b""
        assert asyncio.run(transport.get(f"{place}/file", offset=1)) == b""
        assert asyncio.run(transport.get(f"{place}/file", offset=1000)) == b""

    @pytest.mark.parametrize("make", ["mkdir", "mkfifo"])
    @pytest.mark.parametrize("offset", [0, 5000])
    def test_what_is_no_regular_file_is_absent(self, transport: Transport, place: str, make: str, offset: int) -> None:
        """A directory or a pipe in the place of a file gives no bytes, and keeps nobody waiting for a writer."""

        async def scene() -> bytes:
            assert (await transport.run([make, f"{place}/odd"])).code == 0
            async with asyncio.timeout(SECONDS):
                return await transport.get(f"{place}/odd", offset=offset)

        assert asyncio.run(scene()) == b""

    def test_get_of_what_cannot_be_read_raises(self, transport: Transport) -> None:
        """What cannot be read is not mistaken for what is not there: nothing is mapped where this memory begins."""
        with pytest.raises(TransportError):
            asyncio.run(transport.get("/proc/self/mem"))

    # stream

    def test_stream_gives_output_as_it_comes(self, transport: Transport, place: str) -> None:
        """The first line is there while the program waits for us to act on it."""

        async def scene() -> bytes:
            got = b""
            script = f"echo first; until [ -e {place}/go ]; do sleep 0.05; done; echo second"
            async with asyncio.timeout(SECONDS), contextlib.aclosing(self.opened(transport, script)) as chunks:
                async for chunk in chunks:
                    got += chunk
                    if got == b"first\n":
                        await transport.put(f"{place}/go", b"")
            return got

        assert asyncio.run(scene()) == b"first\nsecond\n"

    def test_a_stream_that_fails_raises(self, transport: Transport) -> None:
        """A channel that breaks is not mistaken for one that ended."""

        async def scene() -> None:
            async for _ in transport.stream(["sh", "-c", "echo x; exit 3"]):
                pass

        with pytest.raises(TransportError):
            asyncio.run(scene())

    def test_a_closed_stream_is_killed(self, transport: Transport) -> None:
        """Leaving a stream ends its program."""

        async def scene() -> None:
            async with contextlib.aclosing(self.opened(transport, "echo $$; exec sleep 1000")) as chunks:
                async for chunk in chunks:
                    pid = chunk.decode().strip()
                    break
            await until(lambda: are_dead(transport, [pid]))

        asyncio.run(scene())

    def opened(self, transport: Transport, script: str) -> AsyncGenerator[bytes, None]:
        """A stream that can be closed."""
        stream = transport.stream(["sh", "-c", script])
        assert isinstance(stream, AsyncGenerator)
        return stream
