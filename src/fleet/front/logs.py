"""The logs of a home as files: what the agents of a task said and wrote, and the supervisor's own."""

from __future__ import annotations

import fnmatch
import os
import re
import time
from codecs import getincrementaldecoder
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.config.files import failed
from fleet.config.home import require
from fleet.errors import Conflict, FleetError
from fleet.front.views import LogView, SupervisorLog, TaskFile

if TYPE_CHECKING:
    from fleet.config.home import Home

FILES = {
    "log": "log.jsonl",
    "plan": "artifacts/PLAN_AND_STATUS.md",
    "knowledge": "artifacts/KNOWLEDGE.md",
    "qa": "artifacts/Q&A.md",
    "stderr": "stderr.log",
}
MOST_TEXT = 8 << 20  # bytes of one that are shown: an agent may write any amount
OLD_STDERR = "log.stderr"  # where an older supervisor wrote it
SESSION = re.compile(r"(.+)\.\d+")
BREAK = re.compile(r"\r\n?")


def log_view(home: Home, uid_of: Callable[[str], str], word: str) -> LogView:
    """Where the log of a task, or of one of its sessions, is."""
    found = None if os.path.isdir(home.tasks / word) else SESSION.fullmatch(word)
    uid = uid_of(found[1] if found else word)
    file = home.task_dir(uid) / FILES["log"]
    try:
        size: int | None = file.stat().st_size
    except FileNotFoundError:
        size = None
    session = f"{uid}.{word.rpartition('.')[2]}" if found else None
    return LogView(task=uid, session=session, file=str(file), size=size)


def task_file(home: Home, uid: str, what: str, most: int | None = None) -> TaskFile:
    """What an agent wrote of its task, or its program complained about; its beginning, where it is longer than `most`.
    An agent cannot make it another's file."""
    directory = home.task_dir(uid)
    file = directory / FILES[what]
    if what == "stderr" and not file.exists():
        file = directory / OLD_STDERR
    if not Path(os.path.realpath(file)).is_relative_to(os.path.realpath(directory)):
        raise Conflict(f"{file} leads out of the files of its task")
    try:
        with open(file, "rb", opener=_open_at_once) as opened:
            data = opened.read(most or MOST_TEXT) or b""
            left_out = os.fstat(opened.fileno()).st_size - len(data)
    except FileNotFoundError:
        return TaskFile(task=uid, file=str(file), text=None)
    except OSError as exc:
        raise FleetError(f"{file} cannot be read: {exc.strerror}") from exc
    decoder = getincrementaldecoder("utf-8")("replace")
    text = BREAK.sub("\n", decoder.decode(data, final=left_out <= 0))  # a letter that was cut is left out too
    return TaskFile(task=uid, file=str(file), text=text, left_out=max(0, left_out))


def _open_at_once(path: str, flags: int) -> int:
    """A pipe in the place of a file has nothing to say, and is not waited for."""
    return os.open(path, flags | os.O_NONBLOCK)


def supervisor_log(home: Home, lines: int | None) -> SupervisorLog:
    """The newest file, whole or its last lines."""
    require(home)
    file = _newest([home.logs, home.old_logs])
    if file is None:
        return SupervisorLog(file=None, lines=[])
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            return SupervisorLog(file=str(file), lines=[line.rstrip("\n") for line in deque(opened, maxlen=lines)])
    except OSError as exc:
        raise failed(exc, "read", file) from exc


def _newest(directories: list[Path]) -> Path | None:
    """The log file that was written last; one that was written tomorrow only where there is no other."""
    now, found = time.time(), [file for directory in directories for file in _logs(directory)]
    return max(found, key=lambda file: _recency(file.stat().st_mtime, now), default=None)


def _recency(written: float, now: float) -> tuple[bool, float]:
    return written <= now + 60, written


def _logs(directory: Path) -> list[Path]:
    """Those of a directory; one that is not there has none, one that may not be read is an error."""
    try:
        return [directory / name for name in fnmatch.filter(os.listdir(directory), "fleet-*.jsonl")]
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise failed(exc, "read", directory) from exc
