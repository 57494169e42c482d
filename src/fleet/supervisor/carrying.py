"""Carrying: the artifact directory goes to a task's host before each session and comes back after it.

Here is what is kept: plan, knowledge, questions and answers. A host has a copy, and another host gets the next. Both
ways are bounded, may be done again, and remove nothing on either side: old copies are cleared by the pruner.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from fleet.config.files import make_private
from fleet.errors import TransportError
from fleet.hosts.files import Seen, is_sound, look, whole
from fleet.supervisor.attempt import Attempt
from fleet.supervisor.gathering import places_of

TRIES = 3  # of a file whose checksum is not what its host says
# The copy is touched first: nobody clears one that somebody is about to rely on.
SUMS = """mkdir -p "$1" && touch "${1%/*}" && cd "$1" || exit 1
find . -type f -exec sha256sum {} + 2>/dev/null | head -c 4194304; exit 0"""  # of more files than are carried
MOST_BYTES, MOST_BYTES_OF_ALL, MOST_FILES = 16 << 20, 64 << 20, 200


async def send(attempt: Attempt) -> None:
    """Put what the agent is to find in its artifact directory on its host, before it starts.

    A verifier judges what is there: only what is not, as its copy was cleared since, is put there for it.
    """
    if attempt.site.is_here:
        return
    kept = attempt.house.home.task_dir(attempt.task.uid) / "artifacts"
    files = await asyncio.to_thread(_read_all, kept)
    there = await _sums(attempt)
    found = {name: data for name, data in files.items() if data is not None and not _is_taken(name, there)}
    _tell_left_out(attempt, "not_sent", files.keys() - found.keys())
    new = {name: data for name, data in found.items() if not _stays(attempt, there.get(name), data)}
    await _put(attempt, attempt.artifacts, new)


def _stays(attempt: Attempt, there: str | None, data: bytes) -> bool:
    return there is not None and (attempt.verifies or there == _digest(data))


def _is_taken(name: str, there: Mapping[str, str]) -> bool:
    """Whether a directory stands there where this is a file, or the other way round: what an agent made of it stays."""
    return any(other.startswith(f"{name}/") or name.startswith(f"{other}/") for other in there)


async def send_inputs(attempt: Attempt, missing: list[str]) -> list[str]:
    """Upload the input files that the workspace over there lacks, from where the task was submitted.

    Returns those that are not here either, or are too large.
    """
    base = attempt.task.terms.base
    if attempt.site.is_here or not base:
        return missing
    root = os.path.realpath(base)
    files = {name: await asyncio.to_thread(_read, root, name) for name in missing if is_sound(name)}
    found = {name: data for name, data in files.items() if data is not None}
    if sum(map(len, found.values())) > MOST_BYTES_OF_ALL:
        return missing
    await _put(attempt, attempt.cwd, found)
    return [name for name in missing if name not in found]


async def fetch(attempt: Attempt) -> None:
    """Bring back what the agent left in its artifact directory; asked for until its host answers."""
    if attempt.site.is_here or attempt.verifies:
        return
    await attempt.insist(lambda: _fetch(attempt))


async def _fetch(attempt: Attempt) -> None:
    looked = await look(attempt.site.transport, places_of(attempt))
    if not looked.artifacts:
        return
    kept = attempt.house.home.task_dir(attempt.task.uid) / "artifacts"
    sums = await _sums(attempt)
    left, left_out = MOST_BYTES_OF_ALL, set()
    for place, seen in enumerate(looked.artifacts):
        name = seen.path.removeprefix(looked.roots[0]).lstrip("/")
        if await asyncio.to_thread(has, kept, name, sums.get(name)):
            continue
        bounded = place < MOST_FILES and seen.size <= min(left, MOST_BYTES) and is_sound(name)
        data = await _content(attempt, seen, sums.get(name)) if bounded else None
        if data is None or not await asyncio.to_thread(_keep, kept, name, data):
            left_out.add(name)
            continue
        left -= len(data)
    _tell_left_out(attempt, "not_brought_back", left_out)


async def _content(attempt: Attempt, seen: Seen, expected: str | None) -> bytes | None:
    """A file as its host has it, by the host's own checksum; None where it is too large, or never comes to rest."""
    for _ in range(TRIES):
        data = await whole(attempt.site.transport, seen.path, MOST_BYTES)
        if len(data) > MOST_BYTES:
            return None
        if expected in (None, _digest(data)):
            return data
    return None


async def _sums(attempt: Attempt) -> dict[str, str]:
    """The checksums of what is in the artifact directory over there, which is made if it is not; {}: not known."""
    done = await attempt.site.transport.run(["sh", "-c", SUMS, "sums", attempt.artifacts])
    if done.code:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise TransportError(f"cannot make {attempt.artifacts} on host {attempt.site.name}: {said}")
    lines = done.stdout.decode("utf-8", "surrogateescape").splitlines()
    pairs = (line.partition("  ./") for line in lines if not line.startswith("\\"))  # that would be an odd name
    return {name: digest for digest, found, name in pairs if found}


async def _put(attempt: Attempt, directory: str, files: Mapping[str, bytes]) -> None:
    puts = (attempt.site.transport.put(f"{directory}/{name}", data) for name, data in files.items())
    for failed in await asyncio.gather(*puts, return_exceptions=True):
        if isinstance(failed, BaseException):
            raise failed


def _read_all(root: Path) -> dict[str, bytes | None]:
    """The files of a directory by name; None for one that is not carried: there is a bound."""
    found: dict[str, bytes | None] = {}
    left = MOST_BYTES_OF_ALL
    for name in _names(root):
        data = _read(str(root), name) if len(found) < MOST_FILES else None
        found[name] = data if data is not None and len(data) <= left else None
        left -= len(found[name] or b"")
    return found


def _names(root: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            yield os.path.relpath(os.path.join(folder, name), root)


def _read(root: str, name: str) -> bytes | None:
    """A file below a directory; None where it is none, leads out of it, or is too large."""
    path = os.path.realpath(os.path.join(root, name))
    if not path.startswith(f"{os.path.realpath(root)}/") or not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        data = file.read(MOST_BYTES + 1)
    return data if len(data) <= MOST_BYTES else None


def has(root: Path, name: str, digest: str | None) -> bool:
    """Whether a file is here as it is there."""
    data = _read(str(root), name) if digest else None
    return data is not None and _digest(data) == digest


def _keep(root: Path, name: str, data: bytes) -> bool:
    """Write a file, whole or not at all. False: something else stands in its place here, and stays."""
    path = root / name
    try:
        make_private(path.parent)
        if not f"{os.path.realpath(path.parent)}/".startswith(f"{os.path.realpath(root)}/"):
            return False  # a link that an agent made here leads out
        temporary = path.with_name(f".{os.getpid()}.carried")  # a name of its own may be as long as names can be
        temporary.write_bytes(data)
        if path.is_dir():
            temporary.unlink()
            return False
        temporary.replace(path)
    except (FileExistsError, NotADirectoryError):  # a file, where this needs a directory
        return False
    return True


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _tell_left_out(attempt: Attempt, event: str, names: Collection[str]) -> None:
    if names:
        shown = sorted(names)[:20]
        attempt.house.log(f"artifacts_{event}", session=attempt.session.id, files=shown, count=len(names))
