"""`artifacts/Q&A.md`: what an agent asked and a person answered, in the order it was said; either may write it by hand.

A question is a block that begins with `## Q:`, its answer the `## A:` block that follows. What is after the last answer
waits for one.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from fleet.config.files import make_private, private
from fleet.config.home import Home

NAME = "Q&A.md"
QUESTION, ANSWER = re.compile(rb"^## Q:", re.MULTILINE), re.compile(rb"^## A:", re.MULTILINE)
MOST = 60_000  # bytes of its end in which an exchange is looked for


def path(home: Home, uid: str) -> Path:
    """Where it is."""
    return home.task_dir(uid) / "artifacts" / NAME


def ask(home: Home, uid: str, question: str) -> None:
    """Write a question down, unless it stands there already and waits. Raises OSError."""
    _write(path(home, uid), lambda existing: _with_question(existing, question))


def answer(home: Home, uid: str, question: str, text: str, *, at: int) -> None:
    """Add an answer, after its question when nobody has written it there. Raises OSError."""
    stamp = time.strftime("%Y-%m-%d %H:%M", time.gmtime(at / 1000))
    answered = f"## A: {stamp}\n\n{text.rstrip()}\n".encode()
    _write(path(home, uid), lambda existing: _after(_with_question(existing, question), answered))


def exchange(home: Home, uid: str) -> str:
    """The last question with what was said to it; empty where nothing was."""
    try:
        with path(home, uid).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - MOST))
            written = file.read()
    except OSError:
        return ""
    said = written[_last(QUESTION, written) :]
    return said.decode("utf-8", "replace").rstrip() if ANSWER.search(said) else ""


def _write(file: Path, change: Callable[[bytes], bytes]) -> None:
    """In one step: a reader finds the one or the other."""
    make_private(file.parent)
    existing = file.read_bytes() if file.exists() else b""
    changed = change(existing)
    if changed != existing:
        temporary = file.with_name(f".{NAME}.{os.getpid()}")
        with open(temporary, "wb", opener=private) as made:
            made.write(changed)
        temporary.replace(file)


def _with_question(existing: bytes, question: str) -> bytes:
    """With the question at its end, where it does not wait there already; what was in it stays as it is."""
    after = existing[_last(ANSWER, existing) :]
    waits = QUESTION.search(after)
    waiting = after[waits.start() :] if waits else b"" if ANSWER.search(after) else after
    if not question or question.encode() in waiting:
        return existing
    return _after(existing, f"## Q: {question}\n".encode())


def _last(heading: re.Pattern[bytes], written: bytes) -> int:
    """Where the last block of a kind begins; the beginning, where there is none."""
    return max((found.start() for found in heading.finditer(written)), default=0)


def _after(existing: bytes, block: bytes) -> bytes:
    return (existing.rstrip() + b"\n\n" if existing.strip() else b"") + block
