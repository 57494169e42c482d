"""What a transport must do that has further powers, each a suite of its own: subclass them beside TransportContract."""

from __future__ import annotations

import asyncio
from typing import ClassVar

import pytest

from fleet.errors import TransportError
from fleet.hosts.transport import (
    MOST_OUTPUT,
    SupportsBegin,
    SupportsLaunch,
    SupportsUnpack,
    Transport,
    course_behind,
)
from fleet.testing.transport_contract import EVERY_BYTE, are_dead, until, until_written


class Power:
    """The fixtures that every suite needs."""

    @pytest.fixture
    def transport(self) -> Transport:
        raise NotImplementedError

    @pytest.fixture
    def place(self) -> str:
        raise NotImplementedError


class BoundContract(Power):
    """Every transport has a bound on what a run prints. To reach it takes seconds: once for each kind is enough."""

    def test_what_prints_without_end_is_ended(self, transport: Transport, place: str) -> None:
        """Output has a bound on every way: beyond it the program is ended, and its course tells that it had begun."""

        async def scene() -> None:
            with pytest.raises(TransportError, match="printed more than") as caught:
                await transport.run(["sh", "-c", f"echo $$ >{place}/pid; exec yes {'x' * 1000}"])
            course = course_behind(caught.value)
            assert course is not None
            assert len(course.stdout) > MOST_OUTPUT
            pid = (await transport.get(f"{place}/pid")).decode().strip()
            await until(lambda: are_dead(transport, [pid]))

        asyncio.run(scene())


class CourseContract(Power):
    """Of a transport that tells how far a run had come when it was cancelled."""

    def test_a_cancelled_run_tells_what_had_arrived(self, transport: Transport, place: str) -> None:
        """The cause of the cancellation knows that it began, and what it had printed by then."""

        async def scene() -> None:
            script = f"echo out; echo err >&2; echo x >{place}/printed; exec sleep 1000"
            task = asyncio.create_task(transport.run(["sh", "-c", script]))
            await until_written(transport, f"{place}/printed")
            await transport.run(["true"])  # what was printed before it has had its time on the way
            task.cancel()
            with pytest.raises(asyncio.CancelledError) as caught:
                await task
            course = course_behind(caught.value)
            assert course is not None
            assert (course.began, bytes(course.stdout), bytes(course.stderr)) == (True, b"out\n", b"err\n")

        asyncio.run(scene())


class UnpackContract(Power):
    """Of a transport that writes the files of a directory at once."""

    PROGRAMS: ClassVar = {"tool": b"#!/bin/sh\necho tool\n", "bin/one": b"1'\\\n", "bin/two": EVERY_BYTE[:1000]}

    def unpacked(self, transport: Transport, place: str, files: dict[str, bytes]) -> None:
        assert isinstance(transport, SupportsUnpack)
        asyncio.run(transport.unpack(place, files, shared=self.PROGRAMS))

    def test_unpack_writes_all(self, transport: Transport, place: str) -> None:
        """Files of any bytes, directories and shared programs are there, in two directories beside each other."""
        files = {"box/": b"", "every": EVERY_BYTE, "empty": b"", "it's": b"x"}
        for name in ("one", "two"):
            self.unpacked(transport, f"{place}/{name}", files)
            for file, data in (files | self.PROGRAMS).items():
                if not file.endswith("/"):
                    assert asyncio.run(transport.get(f"{place}/{name}/{file}")) == data
            assert asyncio.run(transport.run(["ls", "-A", f"{place}/{name}/box"])).stdout == b""
            assert asyncio.run(transport.run([f"{place}/{name}/tool"])).stdout == b"tool\n"

    def test_unpack_may_be_repeated(self, transport: Transport, place: str) -> None:
        """The second time replaces the files, and leaves nothing else behind."""
        for text in (b"a longer text", b"short"):
            self.unpacked(transport, f"{place}/one", {"file": text})
            assert asyncio.run(transport.get(f"{place}/one/file")) == text
        listed = asyncio.run(transport.run(["ls", "-A", f"{place}/one"])).stdout.split()
        assert sorted(listed) == [b"bin", b"file", b"tool"]

    def test_unpack_is_private(self, transport: Transport, place: str) -> None:
        """Only the user may read what was unpacked."""
        self.unpacked(transport, f"{place}/one", {"file": b"x"})
        assert asyncio.run(transport.run(["ls", "-l", f"{place}/one/file"])).stdout.startswith(b"-rw-------")

    def test_unpack_of_many_at_once(self, transport: Transport, place: str) -> None:
        """Directories that are unpacked at once, the first of their kind, are each complete."""

        async def scene() -> list[bytes]:
            assert isinstance(transport, SupportsUnpack)
            names = [f"{place}/{number}" for number in range(6)]
            await asyncio.gather(*(transport.unpack(name, {"file": b"x"}, shared=self.PROGRAMS) for name in names))
            return await asyncio.gather(*(transport.get(f"{name}/bin/two") for name in names))

        assert set(asyncio.run(scene())) == {self.PROGRAMS["bin/two"]}

    def test_unpack_that_cannot_be_raises(self, transport: Transport, place: str) -> None:
        """Nothing can be unpacked below a file; the error is of the transport."""
        asyncio.run(transport.put(f"{place}/file", b"x"))
        with pytest.raises(TransportError):
            self.unpacked(transport, f"{place}/file/below", {"file": b"x"})


class BeginContract(Power):
    """Of a transport that unpacks and launches in one exchange."""

    def test_begin_unpacks_then_launches(self, transport: Transport, place: str) -> None:
        """The program finds the files and its input, answers with its first line, and lives on apart; twice as well."""
        assert isinstance(transport, SupportsBegin)
        goal = f"{place}/goal"
        script = (
            f"cat >{place}/given; cat {goal}/file; exec >/dev/null 2>&1; until [ -e {place}/go ]; do sleep 0.05; done"
        )
        for line in (b"one\n", b"two\n"):
            begun = transport.begin(
                goal,
                {"box/": b"", "file": line},
                shared={"tool": b"#!/bin/sh\n"},
                argv=["sh", "-c", f"{script}; echo >>{place}/done"],
                stdin=EVERY_BYTE,
            )
            assert asyncio.run(begun) == line
            assert asyncio.run(transport.get(f"{place}/given")) == EVERY_BYTE

        async def ended() -> bool:
            return await transport.get(f"{place}/done") == b"\n\n"

        asyncio.run(transport.put(f"{place}/go", b""))
        asyncio.run(until(ended))

    def test_begin_that_cannot_unpack_launches_nothing(self, transport: Transport, place: str) -> None:
        """The error is of the transport."""
        assert isinstance(transport, SupportsBegin)
        asyncio.run(transport.put(f"{place}/file", b"x"))
        launch = ["touch", f"{place}/launched"]
        with pytest.raises(TransportError):
            asyncio.run(transport.begin(f"{place}/file/x", {"f": b""}, shared={"t": b""}, argv=launch, stdin=b""))
        assert b"launched" not in asyncio.run(transport.run(["ls", place])).stdout


class LaunchContract(Power):
    """Of a transport that starts what outlives it; over ssh, on a host whose env can make signals fresh."""

    def launched(self, transport: Transport, script: str, stdin: bytes = b"") -> bytes:
        assert isinstance(transport, SupportsLaunch)
        return asyncio.run(transport.launch(["sh", "-c", script], stdin=stdin))

    def test_launch_answers_with_the_first_line(self, transport: Transport, place: str) -> None:
        """The first line comes at once, with all of stdin read; the program lives on, apart, to its own end."""
        script = f"cat >{place}/given; echo $$; exec >/dev/null 2>&1; until [ -e {place}/go ]; do sleep 0.05; done"
        pid = self.launched(transport, f"{script}; touch {place}/done", EVERY_BYTE).decode().strip()
        assert asyncio.run(transport.get(f"{place}/given")) == EVERY_BYTE
        leads = ["sh", "-c", 'ps -o sid= -p "$0"', pid]
        assert asyncio.run(transport.run(leads)).stdout.split() == [pid.encode()]

        async def ended() -> bool:
            return b"done" in (await transport.run(["ls", place])).stdout

        asyncio.run(transport.put(f"{place}/go", b""))
        asyncio.run(until(ended))

    def test_launch_of_what_says_nothing(self, transport: Transport) -> None:
        """A program that ends without a word, or is not there, gives none."""
        assert self.launched(transport, "exit 3") == b""
        assert isinstance(transport, SupportsLaunch)
        assert asyncio.run(transport.launch(["sh", "/no/such/script"], stdin=b"")) == b""
