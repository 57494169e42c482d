"""Restoring: a new database from the events that can still be read, in a damaged one or in the mirror.

Rows are the fold of events, so events are all that is needed. Lost are only how far running sessions had been read and
how far readers of the feed had come: both are found again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import apsw
import msgspec

from fleet.errors import FleetError, LedgerBroken
from fleet.model import event as ev
from fleet.model.fold import fold_session, fold_task, receipt_of
from fleet.model.session import Session
from fleet.model.states import TaskState
from fleet.model.task import Task
from fleet.store import fold_rows, ledger, migrate, rows
from fleet.store.engine import Tx
from fleet.store.filelock import FileLock
from fleet.store.mirror import decode_line
from fleet.store.sqlite import SqliteWriter, refuse_emptied

WAIT_SECONDS = 30


class Restored(NamedTuple):
    """What came back."""

    events: int
    dropped: int  # events that do not follow one that could be read
    aside: list[Path]  # the damaged files, kept


def is_sound(path: Path) -> bool:
    """Whether SQLite finds its own structures in order, every chain holds, and the rows are what the events say."""
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # to look changes nothing
        try:
            return _is_sound(path, connection)
        finally:
            connection.close()
    except (apsw.Error, FleetError, msgspec.DecodeError, UnicodeDecodeError):
        return False


def _is_sound(path: Path, connection: apsw.Connection) -> bool:
    if connection.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
        return False
    version = connection.pragma("user_version")
    if version <= 0:
        refuse_emptied(path, connection)
        return version == 0 and not connection.execute("SELECT 1 FROM sqlite_schema").fetchall()
    if version > migrate.NEWEST:
        return True  # not ours to judge
    followed = _Followed()
    if not all(followed.holds(ledger.entry(row)) for row in connection.execute(_EVENTS)):
        return False
    return version < migrate.NEWEST or followed.agrees(connection)


def restore(path: Path, mirror: Path, *, stamp: str, bells: Path, leases: Path) -> Restored:
    """Put a new database in the place of a damaged one, which is kept beside it. A crash on the way loses nothing."""
    fresh = path.with_name(f"{path.name}.restoring")
    for old in _family(fresh):
        old.unlink(missing_ok=True)
    followed = _Followed()
    lock = FileLock(Path(f"{path}.lock"), WAIT_SECONDS)
    try:
        with lock:  # no other process writes meanwhile
            writer = SqliteWriter(fresh, bells=bells, leases=leases)
            try:
                writer.write(lambda tx: followed.into(tx, _readable(path, mirror))).result()
            finally:
                writer.close()
            aside = _keep_aside(path, stamp)
            os.replace(fresh, path)
    finally:
        lock.close()
        for left in _family(fresh):
            left.unlink(missing_ok=True)
    return Restored(followed.events, followed.dropped, aside)


def _family(path: Path) -> list[Path]:
    return [path, Path(f"{path}-wal"), Path(f"{path}-shm"), Path(f"{path}.lock")]


def _keep_aside(path: Path, stamp: str) -> list[Path]:
    """Give the damaged files a second name. The first stays until the new database takes it."""
    kept, number = path.with_name(f"{path.name}.damaged-{stamp}"), 1
    while kept.exists():
        number += 1
        kept = path.with_name(f"{path.name}.damaged-{stamp}-{number}")
    try:
        os.link(path, kept)
    except OSError:  # a filesystem without second names
        import shutil

        shutil.copyfile(path, kept)
    aside = [kept]
    for old, new in zip(_family(path)[1:3], _family(kept)[1:3], strict=True):
        if old.exists():  # it must not be taken for the new database's
            os.replace(old, new)
            aside.append(new)
    return aside


def _readable(path: Path, mirror: Path) -> Iterator[list[ev.Entry]]:
    """Every event that can be read, in order: as the damaged database has it, and as the mirror does."""
    found: dict[int, list[ev.Entry]] = {}
    for entries in (_from_database(path), _from_mirror(mirror)):
        for entry in entries:
            known = found.setdefault(entry.seq, [])
            if entry not in known:
                known.append(entry)
    for seq in sorted(found):
        yield found[seq]


_EVENTS = "SELECT seq, hash, body FROM events ORDER BY seq"
_EVENTS_AS_BYTES = "SELECT seq, hash, CAST(body AS BLOB) FROM events ORDER BY seq"


def _from_database(path: Path) -> Iterator[ev.Entry]:
    """From the first to where it cannot be read, then from the last back to there."""
    for order in ("", " DESC"):
        try:
            connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        except apsw.Error:
            return
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # what is kept aside is what was found
        try:
            yield from _entries(connection, _EVENTS_AS_BYTES + order)
        except apsw.Error:
            continue
        else:
            return
        finally:
            connection.close()


def _entries(connection: apsw.Connection, sql: str) -> Iterator[ev.Entry]:
    for seq, digest, body in connection.execute(sql):
        try:
            yield ledger.entry((seq, digest, body.decode()))
        except (LedgerBroken, UnicodeDecodeError, AttributeError):
            continue  # one row of garbage


def _from_mirror(mirror: Path) -> Iterator[ev.Entry]:
    if not mirror.exists():
        return
    with mirror.open("rb") as file:
        for line in file:
            try:
                yield decode_line(line, str(mirror))
            except LedgerBroken:
                continue  # torn, or garbage


class _Followed:
    """The events that hold together, and what they fold to."""

    def __init__(self) -> None:
        self.events = 0
        self.dropped = 0
        self._chains = ledger.Chains()
        self._broken: set[str] = set()
        self._tasks: dict[str, Task] = {}
        self._sessions: dict[str, tuple[int, Session]] = {}

    def holds(self, entry: ev.Entry) -> bool:
        """Whether the entry follows those before it; if so, it is one of them."""
        event = entry.event
        if event.subject in self._broken:
            return False
        try:
            self._chains.follow([entry])
        except LedgerBroken:
            if self._chains.heads.get(event.subject) == entry.hash:
                self._broken.add(event.subject)  # it is in its place, but names an end that is not there
            return False
        if "/" not in event.subject:
            self._tasks[event.subject] = fold_task(self._tasks.get(event.subject), event)
            self._follow_session(entry.seq, event)
        return True

    def agrees(self, connection: apsw.Connection) -> bool:
        """Whether the rows of a database are what its events say."""
        tasks = {row[0]: rows.decode_task(row[1]) for row in connection.execute("SELECT uid, doc FROM tasks")}
        decode = msgspec.json.Decoder(Session).decode
        sessions = {row[0]: decode(row[1]) for row in connection.execute("SELECT id, doc FROM sessions")}
        return tasks == self._tasks and sessions == {name: found for name, (_, found) in self._sessions.items()}

    def into(self, tx: Tx, readable: Iterable[list[ev.Entry]]) -> None:
        """Write the events, of each the version that holds, then the rows."""
        for versions in readable:
            entry = next(filter(self.holds, versions), None)
            if entry is None:
                self.dropped += 1
                continue
            self._write(tx, entry)
            self.events += 1
        self._write_rows(tx)

    def _write(self, tx: Tx, entry: ev.Entry) -> None:
        event = entry.event
        tx.run(
            "INSERT INTO events (seq, subject, kind, at, hash, body) VALUES (?, ?, ?, ?, ?, ?)",
            entry.seq,
            event.subject,
            ev.kind_of(event),
            event.at,
            entry.hash,
            entry.body.decode(),
        )
        if "/" in event.subject:
            fold_rows.around(tx, entry.seq, event)
            return
        fold_rows.beside(tx, entry.seq, event)
        receipt = receipt_of(event)
        if receipt is not None:
            rows.insert_receipt(tx, receipt, entry.seq)

    def _follow_session(self, seq: int, event: ev.AnyEvent) -> None:
        name = event.session.id if isinstance(event, ev.TaskClaimed) else getattr(event, "session", None)
        if name is None:
            return
        first, known = self._sessions.get(name, (seq, None))
        folded = fold_session(known, event)
        if folded is not None:
            self._sessions[name] = (first, folded)

    def _write_rows(self, tx: Tx) -> None:
        for task in self._tasks.values():
            needed = [self._tasks.get(uid) for uid in task.needs]
            waiting = sum(need is None or need.state is not TaskState.COMPLETED for need in needed)
            rows.insert_task(tx, task, waiting)
            links = [(task.uid, link.other, link.kind) for link in task.links]
            tx.many("INSERT INTO links (task, other, kind) VALUES (?, ?, ?)", links)
        for seq, session in self._sessions.values():
            rows.insert_session(tx, session, seq)
