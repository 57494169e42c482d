"""The queue of beads as a source of tasks. A write is verified by what bd says afterwards, not by its exit code."""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from fleet.config.home import Home
from fleet.errors import Conflict, ProgramError
from fleet.sources.bd_answers import Answer, Trouble, Version
from fleet.sources.beads import Bd
from fleet.sources.source import Issue

TRIES = 5
GUARDED: Version = (1, 3, 0)  # the first whose updates can be made to depend on what stands
GUARD_FAILED = 13  # its exit code when something else stood
LONGEST = 60_000  # of a word that a process is given
REFUSED = frozenset({Trouble.CLAIMED, Trouble.NOT_CLAIMABLE, Trouble.NOT_FOUND, Trouble.BLOCKED})
CLOSED, IN_PROGRESS, BLOCKED = "closed", "in_progress", "blocked"


class BeadsSource:
    """One home's beads. bd is looked for at the first call, and again after it was not there."""

    def __init__(self, home: Home, find: Callable[[], Bd]) -> None:
        self._home = home
        self._find = find
        self._bd: Bd | None = None
        self._version: Version = (0, 0, 0)
        self._stopped = False
        self.name = own_name(home.path)

    # looking

    def ready(self) -> list[Issue]:
        found = self._rows("ready", "--limit", "0", "--exclude-type", "epic")
        return sorted(found, key=lambda issue: (issue.priority, issue.created_at, issue.id))

    def listed(self) -> list[Issue]:
        return self._rows("list", "--limit", "0")

    def find(self, issue: str) -> Issue | None:
        answer = self._call("show", issue)
        if answer.trouble is Trouble.NOT_FOUND:
            return None
        found = [one for one in _issues(answer) if one.id == issue]
        if not found and answer.trouble is None:
            return None
        return found[0] if found else _fail(answer, "show")

    def touched(self) -> object:
        with contextlib.suppress(OSError):
            return (self._home.beads / "last-touched").stat().st_mtime_ns
        return None

    # telling

    def claim(self, issue: str) -> Issue | None:
        answer = self._call("update", issue, "--claim")
        if answer.trouble in REFUSED:
            return None
        found = self.find(issue)  # the winner is who stands there afterwards
        if found is None or self._is_ours(found):
            return found
        return _fail(answer, "claim") if answer.trouble else None

    def close(self, issue: str, reason: str) -> None:
        answer = self._call("close", issue, "--reason-file", "-", stdin=(reason or "done").encode())
        if _stands(answer, issue, CLOSED):
            return
        found = self.find(issue)
        if found is None or found.status == CLOSED:
            return
        if answer.trouble is Trouble.BLOCKED:
            raise Conflict(answer.text)
        _fail(answer, "close")

    def hold(self, issue: str, note: str) -> None:
        words = ["--status", BLOCKED, f"--append-notes={note[:LONGEST]}"]
        self._change(issue, words, lambda found: found.status == BLOCKED)

    def release(self, issue: str) -> None:
        self._change(issue, ["--status", "open", "--assignee", ""], lambda found: not self._is_ours(found))

    def resume(self, issue: str) -> Issue | None:
        found = self.find(issue)
        if found is not None and found.status == CLOSED:
            self._call("reopen", issue)
            found = self.find(issue)
        if found is None or self._is_ours(found):
            return found
        if found.status == "open" and (claimed := self.claim(issue)) is not None:
            return claimed
        found = self.find(issue)
        if found is None or found.assignee not in ("", self.name):
            return None
        answer = self._call("update", issue, "--status", IN_PROGRESS, "--assignee", self.name)
        found = self.find(issue)
        return found if found is None or self._is_ours(found) else _fail(answer, "update")

    def remark(self, issue: str, text: str, name: str) -> None:
        mark = f"[{name}]"
        answer = self._call("comments", issue)
        if answer.trouble:
            _fail(answer, "comments")
        known = answer.data if isinstance(answer.data, list) else []
        if any(mark in str(one.get("text", "")) for one in known if isinstance(one, dict)):
            return
        answer = self._call("comments", "add", issue, "--", f"{text[:LONGEST]}\n\n{mark}")
        if answer.trouble:
            _fail(answer, "comment")

    def stop(self) -> None:
        self._stopped = True
        if self._bd is not None:
            self._bd.stop()

    # how

    def _change(self, issue: str, words: list[str], done: Callable[[Issue], bool]) -> None:
        """Change one that is ours; when it is not any more, whoever has it decides."""
        if self._version < GUARDED:
            before = self.find(issue)
            if before is None or not self._is_ours(before):
                return
        else:
            words = [*words, "--if-assignee", self.name, "--if-status", IN_PROGRESS]
        answer = self._call("update", issue, *words)
        if answer.code == GUARD_FAILED or answer.trouble is Trouble.NOT_FOUND:
            return
        found = self.find(issue)
        if found is not None and not done(found):
            _fail(answer, "update")

    def _is_ours(self, found: Issue) -> bool:
        return found.status == IN_PROGRESS and found.assignee == self.name

    def _rows(self, *words: str) -> list[Issue]:
        answer = self._call(*words)
        if answer.trouble or not isinstance(answer.data, list):
            _fail(answer, words[0])
        return _issues(answer)

    def _call(self, *words: str, stdin: bytes = b"") -> Answer:
        """One call; again after a lost race inside bd."""
        bd = self._known()
        for left in reversed(range(TRIES)):
            if self._stopped:
                raise ProgramError("bd is not asked any more: the supervisor ends")
            try:
                answer = bd.call(words[0], "--actor", self.name, "--json", *words[1:], stdin=stdin)
            except OSError as exc:
                self._bd = None  # it is looked for again
                raise ProgramError(f"bd cannot be started: {exc.strerror}") from exc
            if answer.trouble is not Trouble.BUSY or not left:
                break
            time.sleep(random.uniform(0.1, 0.5))
        if answer.trouble in (Trouble.NO_QUEUE, Trouble.BUSY, Trouble.UNKNOWN):
            _fail(answer, words[0])
        return answer

    def _known(self) -> Bd:
        if self._bd is None:
            self._bd = self._find()
            try:
                self._version = self._bd.version()
            except BaseException:
                self._bd = None  # it is looked for again
                raise
        return self._bd


def own_name(home: Path) -> str:
    """Who we are in bd: a name that is made once and kept in the home, so that it moves with it."""
    file = home / "beads.name"
    with contextlib.suppress(FileExistsError):
        temporary = home / f".beads.name.{os.getpid()}"
        temporary.write_text(f"fleet/{os.urandom(4).hex()}\n", encoding="ascii")
        try:
            os.link(temporary, file)
        finally:
            temporary.unlink()
    return file.read_text(encoding="ascii").strip()


def _issues(answer: Answer) -> list[Issue]:
    rows: list[Any] = answer.data if isinstance(answer.data, list) else []
    try:
        return [_issue(row) for row in rows if isinstance(row, dict) and row.get("id")]
    except msgspec.ValidationError as exc:
        raise ProgramError(f"bd said something that is not understood: {exc}") from exc


def _issue(row: dict[str, Any]) -> Issue:
    given = {name: value for name, value in row.items() if value is not None}
    return msgspec.convert(given, Issue)


def _stands(answer: Answer, issue: str, status: str) -> bool:
    """Whether bd's answer to a write shows the issue as it should be."""
    return not answer.trouble and any(one.id == issue and one.status == status for one in _issues(answer))


def _fail(answer: Answer, verb: str) -> Any:
    raise ProgramError(f"bd {verb} failed: {answer.text}", hint="`fleet doctor` checks bd; it is tried again")
