"""Install the bundled skills where agents look for them. What a person has changed there is not overwritten unasked."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from fleet.config.files import read_bytes, write_atomic
from fleet.control.skills.bundled import FILE, HERE, bundled, names
from fleet.errors import Conflict, HomeError

MARK = ".fleet-skill"  # beside a skill: the sha256 of what was installed, by which an edited one is known
KEPT = f"{FILE}.old"
ABSENT, CURRENT, OLDER, EDITED = "absent", "current", "older", "edited"


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """A bundled skill, and how it stands in a directory: absent, current, older (of another Fleet), edited."""

    name: str
    description: str
    path: str
    state: str


def listed(directory: Path) -> list[Placed]:
    """Every bundled skill, as a directory has it."""
    return [_placed(name, directory) for name in names()]


def install(chosen: Sequence[str], directory: Path, *, force: bool = False) -> list[Placed]:
    """Bring skills up to date, all that are bundled where none is chosen; told is how each stood before.

    An edited one raises Conflict before anything is written, unless forced: then what stood there is kept beside it.
    """
    before = [_placed(bundled(name).name, directory) for name in chosen or names()]
    edited = [one for one in before if one.state == EDITED]
    if edited and not force:
        first = edited[0]
        raise Conflict(
            f"{', '.join(one.path for one in edited)} was changed since it was installed",
            hint=f"compare: diff -u {first.path} {HERE / first.name / FILE}; --force replaces it, and keeps {KEPT}",
        )
    for one in before:
        _write(one)
    return before


def _placed(name: str, directory: Path) -> Placed:
    skill, path = bundled(name), directory / name / FILE
    return Placed(name=name, description=skill.description, path=str(path), state=_state(path, skill.text))


def _state(path: Path, text: str) -> str:
    found = read_bytes(path)
    if found is None:
        return ABSENT
    if found == text.encode():
        return CURRENT
    return OLDER if read_bytes(path.parent / MARK) == _digest(found) else EDITED


def _write(one: Placed) -> None:
    path, data = Path(one.path), bundled(one.name).text.encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if one.state == EDITED:
            path.replace(path.parent / KEPT)
        if one.state != CURRENT:
            write_atomic(path, data)
        write_atomic(path.parent / MARK, _digest(data))
    except OSError as exc:
        raise HomeError(f"{path} cannot be written: {exc.strerror}", hint="--dir names another directory") from exc


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode() + b"\n"
