"""The file that a person wants an answer in: looked at before the question is asked, replaced in one step."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from fleet.errors import FleetError


def check(path: Path) -> None:
    """Refuse what could not be written in the end, before anybody waits for an answer. Nothing is made on the way."""
    above = Path(os.path.realpath(path)).parent
    if path.is_dir():
        raise _refused(path, "it is a directory", f"name a file in it, as {path / 'fleet-report.json'}")
    if path.exists() and not os.access(path, os.W_OK):
        raise _refused(path, "you may not write to it", "check its owner and mode")
    if _in_place(path):
        return
    if not above.exists():
        raise _refused(path, f"{above} does not exist", f"make it first: mkdir -p {shlex.quote(str(above))}")
    if not above.is_dir():
        raise _refused(path, f"{above} is not a directory", "name another place")
    if not os.access(above, os.W_OK | os.X_OK):
        how = "a file is replaced in one step, by one that is made beside it"
        raise _refused(path, f"you may not make files in {above}", f"{how}; name another place")


def _refused(path: Path, why: str, hint: str) -> FleetError:
    return FleetError(f"cannot write {path}: {why}", hint=hint)


def write(path: Path, data: bytes) -> None:
    """Put it there: whoever reads the file sees what it was, or all of this. A pipe or a device is written to."""
    from fleet.config.files import write_atomic

    if _in_place(path):
        with path.open("wb", buffering=0) as file:
            left = memoryview(data)
            while left:
                left = left[file.write(left) :]
        return
    write_atomic(path, data, mode=None if path.exists() else _usual_mode())


def _in_place(path: Path) -> bool:
    """It is there and no file, as /dev/stdout: to put a file in its place would take it away."""
    return path.exists() and not (path.is_file() or path.is_dir())


def _usual_mode() -> int:
    """Of a new file: what the user gives any file. What is written there is for others to read, and holds no secret."""
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask
