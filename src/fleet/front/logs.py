"""The logs of a home as files: what the agents of a task said, and the supervisor's own."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from fleet.config.home import require
from fleet.front.views import LogView, SupervisorLog

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.config.home import Home

SESSION = re.compile(r"(.+)\.\d+")


def log_view(home: Home, uid_of: Callable[[str], str], word: str) -> LogView:
    """Where the log of a task, or of one of its sessions, is."""
    found = None if (home.tasks / word).is_dir() else SESSION.fullmatch(word)
    uid = uid_of(found[1] if found else word)
    file = home.task_dir(uid) / "log.jsonl"
    try:
        size: int | None = file.stat().st_size
    except FileNotFoundError:
        size = None
    session = f"{uid}.{word.rpartition('.')[2]}" if found else None
    return LogView(task=uid, session=session, file=str(file), size=size)


def supervisor_log(home: Home, lines: int | None) -> SupervisorLog:
    """The newest file, whole or its last lines."""
    require(home)
    file = _newest([home.logs, home.old_logs])
    if file is None:
        return SupervisorLog(file=None, lines=[])
    text = file.read_text("utf-8", errors="replace").splitlines()
    return SupervisorLog(file=str(file), lines=text[-lines:] if lines else text)


def _newest(directories: list[Path]) -> Path | None:
    """The log file that was written last."""
    found = [file for directory in directories for file in directory.glob("fleet-*.jsonl")]
    return max(found, key=lambda file: file.stat().st_mtime, default=None)
