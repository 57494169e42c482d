"""The files that a session left on its host: found and read through the transport, bounded, never out of place."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files as resources
from typing import Literal, cast

import msgspec

from fleet.errors import TransportError
from fleet.hosts.transport import SupportsPeek, Transport

Kind = Literal["file", "directory", "absent", "outside", "other"]
KINDS = ("file", "directory", "absent", "outside", "other")
MOST_LISTED = 1 << 20  # bytes of the list, as look.sh cuts it off: some ten thousand names
CHUNK = 1 << 20


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """Where a session's files may be, on its host."""

    artifacts: str
    workspace: str
    reference: str  # a file that is as old as the session


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A file, or what is in its place."""

    kind: Kind
    path: str  # where it really is
    size: int = 0
    fresh: bool = False  # not older than the session


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """What a look found. Of a path that is a directory, all files below it follow it."""

    artifacts: tuple[Seen, ...]
    asked: tuple[tuple[Seen, ...], ...]  # for each path, in the order asked
    cut_off: bool = False  # there are more files than can be listed
    roots: tuple[str, str] = ("", "")  # where the artifact directory and the workspace really are


async def look(transport: Transport, places: Places, paths: Sequence[str] = ()) -> Looked:
    """The files in the artifact directory, and those at some paths of the workspace.

    Links are followed only where they stay within the two directories. Paths with a NUL or a `..` are not looked for.
    Most sessions leave no file, and where that can be seen it costs no program.
    """
    sound = [path for path in paths if is_sound(path)]
    if not sound and isinstance(transport, SupportsPeek) and await transport.is_empty(places.artifacts):
        return Looked(artifacts=(), asked=tuple((Seen(kind="outside", path=path),) for path in paths))
    words = [places.reference, places.artifacts, places.workspace, *sound]
    done = await transport.run(["sh", "-c", _program(), "look", *words])
    if done.code < 0 or (done.code and not done.stdout):
        raise TransportError(f"cannot look for files in {places.workspace}: code {done.code}")
    seen = _parsed(done.stdout)
    found = {index: tuple(each) for index, each in seen.items()}
    numbers = {path: str(n) for n, path in enumerate(sound)}
    asked = [
        found.get(numbers[path], (Seen(kind="absent", path=path),))
        if path in numbers
        else (Seen(kind="outside", path=path),)
        for path in paths
    ]
    return Looked(
        artifacts=found.get("-", ()),
        asked=tuple(asked),
        cut_off=len(done.stdout) >= MOST_LISTED,
        roots=(found["a"][0].path, found["w"][0].path),
    )


def is_sound(path: str) -> bool:
    """Whether a path may be looked for at all."""
    return bool(path) and "\0" not in path and ".." not in path.split("/")


async def whole(transport: Transport, path: str, most: int) -> bytes:
    """What is in a file; at most one byte more than `most`, so that more than that can be told."""
    data = bytearray()
    while len(data) <= most:
        piece = await transport.get(path, offset=len(data), limit=min(CHUNK, most + 1 - len(data)))
        if not piece:
            break
        data += piece
    return bytes(data)


def _parsed(data: bytes) -> dict[str, list[Seen]]:
    found: dict[str, list[Seen]] = {}
    for record in data.split(b"\0")[:-1]:  # what follows the last NUL was cut off
        parts = record.decode("utf-8", "surrogateescape").split(" ", 4)
        if len(parts) != 5 or parts[1] not in KINDS or not parts[2].isdecimal():
            raise TransportError(f"the host says of its files: {record[:80]!r}")
        index, kind, size, fresh, path = parts
        found.setdefault(index, []).append(Seen(kind=cast("Kind", kind), path=path, size=int(size), fresh=fresh == "1"))
    if "a" not in found or "w" not in found:
        raise TransportError("the host did not say where its files are")
    return found


@cache
def _program() -> str:
    return (resources("fleet.hosts") / "look.sh").read_text("utf-8")
