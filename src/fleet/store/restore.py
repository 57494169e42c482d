"""Restoring: a new database from the events that can still be read, in a damaged one or in the mirror.

Rows are the fold of events, so events are all that is needed. Lost are only how far running sessions had been read and
how far readers of the feed had come: both are found again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import apsw
import msgspec

from fleet.errors import FleetError, LedgerBroken
from fleet.model import event as ev
from fleet.model.host import Host
from fleet.model.session import Progress
from fleet.store import ledger, migrate
from fleet.store.filelock import FileLock
from fleet.store.leases import Leases
from fleet.store.mirror import decode_line
from fleet.store.rebuild import Rebuilt
from fleet.store.sqlite import counts
from fleet.store.sqlite.faults import refuse_damaged_version
from fleet.store.sqlite.tx import SqliteTx
from fleet.store.sqlite.writer import SqliteWriter, run_migrations

WAIT_SECONDS = 30
_EVENTS = "SELECT seq, hash, body FROM events ORDER BY seq"
_EVENTS_AS_BYTES = "SELECT seq, hash, CAST(body AS BLOB) FROM events ORDER BY seq"
_ELSEWHERE = frozenset(
    {"cursors", "counts", "progress", "probes", "events.counted", "hosts.doc", "supervisors.lease_until"}
)
_BESIDE = (("SELECT doc FROM progress", Progress), ("SELECT doc FROM hosts", Host))


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
            connection.execute("BEGIN")  # one snapshot, whoever writes meanwhile
            return _is_sound(path, connection)
        finally:
            connection.close()
    except (apsw.Error, FleetError, msgspec.DecodeError, UnicodeDecodeError):
        return False


def _is_sound(path: Path, connection: apsw.Connection) -> bool:
    if connection.execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
        return False
    version = connection.pragma("user_version")
    if version <= 0:
        refuse_damaged_version(path, connection)
        return not connection.execute("SELECT 1 FROM sqlite_schema").fetchall()
    if version != migrate.NEWEST:
        return True  # steps are missing and come first, or it is not ours to judge
    return _agrees(connection)


def _agrees(connection: apsw.Connection) -> bool:
    """Whether the events, put into a new database, give what stands in this one."""
    fresh = apsw.Connection(":memory:")
    try:
        run_migrations(fresh)
        rebuilt, tx = Rebuilt(), SqliteTx(fresh.cursor(), 0, Leases(Path()))
        rebuilt.into(tx, ([ledger.entry(row)] for row in connection.execute(_EVENTS)))
        same = all(fresh.execute(sql).fetchall() == connection.execute(sql).fetchall() for sql in _folded(fresh))
    finally:
        fresh.close()
    for sql, kind in _BESIDE:
        for row in connection.execute(sql):
            msgspec.json.decode(row[0], type=kind)  # raises when it cannot be read
    return same and counts.everything(connection) == tx.counted and not rebuilt.dropped


def _folded(connection: apsw.Connection) -> Iterator[str]:
    """A query for each table, of all that its rows have from the ledger and from nowhere else."""
    for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        names = [row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))]
        columns = ", ".join(name for name in names if f"{table}.{name}" not in _ELSEWHERE)
        if table not in _ELSEWHERE:
            yield f"SELECT {columns} FROM {table} ORDER BY {columns}"


def restore(path: Path, mirror: Path, *, stamp: str, bells: Path, leases: Path) -> Restored:
    """Put a new database in the place of a damaged one, which is kept beside it. A crash on the way loses nothing."""
    fresh = path.with_name(f"{path.name}.restoring")
    for old in _family(fresh):
        old.unlink(missing_ok=True)
    rebuilt = Rebuilt()
    lock = FileLock(Path(f"{path}.lock"), WAIT_SECONDS)
    try:
        with lock:  # no other process writes meanwhile
            writer = SqliteWriter(fresh, bells=bells, leases=leases)
            try:
                writer.write(lambda tx: rebuilt.into(tx, _readable(path, mirror))).result()
            finally:
                writer.close()
            aside = _keep_aside(path, stamp)
            os.replace(fresh, path)
    finally:
        lock.close()
        for left in _family(fresh):
            left.unlink(missing_ok=True)
    return Restored(rebuilt.events, rebuilt.dropped, aside)


def _family(path: Path) -> list[Path]:
    return [Path(f"{path}{end}") for end in ("", "-wal", "-shm", ".lock", ".lock.next")]


def _keep_aside(path: Path, stamp: str) -> list[Path]:
    """Give the damaged files a second name. The first stays until the new database takes it."""
    kept, number = path.with_name(f"{path.name}.damaged-{stamp}"), 1
    while kept.exists():
        number += 1
        kept = path.with_name(f"{path.name}.damaged-{stamp}-{number}")
    aside = []
    if path.exists():
        _second_name(path, kept)
        aside.append(kept)
    for old, new in zip(_family(path)[1:3], _family(kept)[1:3], strict=True):
        if old.exists():  # it must not be taken for the new database's
            os.replace(old, new)
            aside.append(new)
    return aside


def _second_name(path: Path, name: Path) -> None:
    try:
        os.link(path, name)
    except OSError:  # a filesystem that has none
        import shutil

        shutil.copyfile(path, name)


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
