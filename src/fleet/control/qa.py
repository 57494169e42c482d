"""`artifacts/Q&A.md`: what an agent asked and a person answered, in the order it was said."""

from __future__ import annotations

import os
import time

from fleet.config.home import Home
from fleet.errors import FleetError
from fleet.model.task import Task

NAME = "Q&A.md"


def append(home: Home, task: Task, text: str, *, at: int) -> None:
    """Add an answer, after its question when the agent has not written it there itself."""
    directory = home.task_dir(task.uid) / "artifacts"
    file = directory / NAME
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        existing = file.read_bytes() if file.exists() else b""
        temporary = directory / f".{NAME}.{os.getpid()}"
        temporary.write_bytes(_with_answer(existing, task.block.text if task.block else "", text, at))
        temporary.replace(file)
    except OSError as exc:
        raise FleetError(
            f"{task.uid} is answered, but {file} cannot be written: {exc.strerror}",
            hint="the answer is kept in the ledger; add it to the file by hand",
        ) from exc


def _with_answer(existing: bytes, question: str, text: str, at: int) -> bytes:
    """The file with one more answer; what was in it stays as it is, whatever it is."""
    parts = [existing.rstrip() + b"\n\n"] if existing.strip() else []
    if question and question.encode() not in existing:
        parts.append(f"## Q: {question}\n\n".encode())
    stamp = time.strftime("%Y-%m-%d %H:%M", time.gmtime(at / 1000))
    parts.append(f"## A: {stamp}\n\n{text.rstrip()}\n".encode())
    return b"".join(parts)
