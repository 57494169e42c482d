"""`tasks/<id>/task.json`: a task as people and agents read it. What a person changes in it is found and taken."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import msgspec

from fleet.config.files import make_private, private
from fleet.config.home import Home
from fleet.errors import UsageError
from fleet.model.task import Task

EDITABLE = ("coder", "model", "cwd")
MOST_BYTES = 1 << 26  # a description of 10 MiB, with every character escaped, fits


class TaskFile(msgspec.Struct, kw_only=True):
    """The file. `as_written` holds the editable fields as Fleet wrote them; a difference is an edit by hand.

    Extra keys are left alone: other programs may keep their own there.
    """

    id: str
    title: str
    description: str
    cwd: str | None
    coder: str | None  # null: the configured coder
    model: str | None
    priority: int
    needs: tuple[str, ...]
    as_written: dict[str, str | None]


class Beside(msgspec.Struct):
    """What Fleet keeps beside an issue of an outside queue."""

    cwd: str | None = None
    coder: str | None = None
    model: str | None = None


class _Edited(msgspec.Struct):
    """What is read back: only the fields that may be edited, and only if they are there."""

    coder: str | msgspec.UnsetType | None = msgspec.UNSET
    model: str | msgspec.UnsetType | None = msgspec.UNSET
    cwd: str | msgspec.UnsetType | None = msgspec.UNSET
    as_written: dict[str, str | None] = {}


def path(home: Home, uid: str) -> Path:
    """Where a task's file is."""
    return home.task_dir(uid) / "task.json"


def write(home: Home, task: Task) -> None:
    """Write a task's file anew. The ledger is the truth: a file that cannot be written is written the next time.

    What a person changed in it stays until it is taken, unless the same field was set otherwise since. A file that
    cannot be read is left for them to mend.
    """
    with contextlib.suppress(OSError, msgspec.DecodeError):
        raw = _read(path(home, task.uid))
        data = _content(task, {} if raw is None else _kept(raw, task))
        if data != raw:  # most verbs change nothing that stands in it
            _put(home, task.uid, data)


def save(home: Home, task: Task) -> None:
    """Write a task's file anew, or raise OSError: for a queue whose ledger does not hold what the file says."""
    _put(home, task.uid, _content(task, {}))


def _content(task: Task, kept: dict[str, Any]) -> bytes:
    editable = {name: getattr(task, name) for name in EDITABLE}
    content = TaskFile(
        id=task.uid,
        title=task.title,
        description=task.description,
        priority=task.priority,
        needs=task.needs,
        as_written=editable,
        **editable,
    )
    return msgspec.json.format(msgspec.json.encode(msgspec.to_builtins(content) | kept), indent=2) + b"\n"


def _put(home: Home, uid: str, data: bytes) -> None:
    directory = home.task_dir(uid)
    make_private(directory / "artifacts")
    temporary = directory / f".task.json.{os.getpid()}"
    with open(temporary, "wb", opener=private) as file:
        file.write(data)
    temporary.replace(directory / "task.json")


def beside(home: Home, uid: str) -> Beside:
    """What stands in a task's file; one that is missing or broken says nothing."""
    try:
        raw = _read(path(home, uid))
        return Beside() if raw is None else msgspec.json.decode(raw, type=Beside)
    except (OSError, msgspec.DecodeError):
        return Beside()


def edits(home: Home, task: Task) -> dict[str, Any]:
    """The fields that a person changed in the file, with their new values. A file that cannot be read is an error."""
    file = path(home, task.uid)
    try:
        raw = _read(file)
        if raw is None:
            return {}
        found = msgspec.json.decode(raw, type=_Edited)
    except (msgspec.DecodeError, OSError) as exc:
        raise UsageError(
            f"{file} cannot be read: {exc}", hint="mend it, or delete it: it will be written again"
        ) from exc
    changed = {}
    for name in EDITABLE:
        value = getattr(found, name)
        if value is msgspec.UNSET or value == found.as_written.get(name, getattr(task, name)):
            continue
        changed[name] = value or None
    return changed


def _read(file: Path) -> bytes | None:
    try:
        with file.open("rb") as opened:
            return opened.read(MOST_BYTES)
    except FileNotFoundError:
        return None


def _kept(raw: bytes, task: Task) -> dict[str, Any]:
    """What a new version of a file takes over from the old one: other programs' keys, and edits not taken yet."""
    found = msgspec.json.decode(raw, type=_Edited)
    kept = {name: value for name, value in msgspec.json.decode(raw).items() if name not in TaskFile.__struct_fields__}
    for name in EDITABLE:
        value, now = getattr(found, name), getattr(task, name)
        was = found.as_written.get(name, now)
        if value is not msgspec.UNSET and value != was and was == now:
            kept[name] = value
    return kept
