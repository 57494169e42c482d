"""The running counts of a SQLite database, so that status costs the same at any size.

What an event changes in them stands in its own row, whose page the commit writes anyway. The table takes it over now
and then: a count is what the table has, and what the events after those that it has taken over say.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, TypeAlias

import apsw
import msgspec

Counts: TypeAlias = "dict[tuple[str, str], int]"  # by scope (a run, or * for all) and key

_TAKEN_OVER = ("", "taken")  # the row that says up to which event
BEHIND = 512  # events that the table may be behind: a reader goes through no more of them
_TAKEN = "SELECT n FROM counts WHERE scope = '' AND key = 'taken'"
_LATER = f"SELECT counted FROM events WHERE seq > ({_TAKEN}) AND counted IS NOT NULL"
_ADD = "INSERT INTO counts (scope, key, n) VALUES (?, ?, ?) ON CONFLICT (scope, key) DO UPDATE SET n = n + excluded.n"
_encode = msgspec.json.Encoder().encode
_changes = msgspec.json.Decoder(list[tuple[str, str, int]]).decode


def encode(changes: Counts) -> str | None:
    """Changes, as an event's row has them."""
    found = [(scope, key, by) for (scope, key), by in changes.items() if by]
    return _encode(found).decode() if found else None


def later(connection: apsw.Connection) -> Counts:
    """What events say that the table has not taken over yet."""
    totals: Counts = {}
    found: list[Any] = connection.execute(_LATER).fetchall()
    for (told,), times in Counter(found).items():  # most of them say the same
        for scope, key, by in _changes(told):
            totals[scope, key] = totals.get((scope, key), 0) + by * times
    return totals


def of_scope(connection: apsw.Connection, scope: str) -> dict[str, int]:
    """The counts of a run, or of all."""
    found: list[Any] = connection.execute("SELECT key, n FROM counts WHERE scope = ?", (scope,)).fetchall()
    totals: dict[str, int] = dict(found)
    for (where, key), by in later(connection).items():
        if where == scope:
            totals[key] = totals.get(key, 0) + by
    return {key: n for key, n in totals.items() if n}


def everything(connection: apsw.Connection) -> Counts:
    """The counts of all scopes."""
    totals = later(connection)
    found: list[Any] = connection.execute("SELECT scope, key, n FROM counts WHERE scope <> ''").fetchall()
    for scope, key, n in found:
        totals[scope, key] = totals.get((scope, key), 0) + n
    return {name: n for name, n in totals.items() if n}


def keep_up(connection: apsw.Connection, newest: int, besides: Counts) -> int:
    """Bring the table up to date where it is far behind the newest event, or there is something that no event says.

    Returns the sequence of the event up to which it is.
    """
    taken = _number(connection, _TAKEN)
    if not besides and newest - taken < BEHIND:
        return taken
    totals = later(connection)
    for name, by in besides.items():
        totals[name] = totals.get(name, 0) + by
    last = _number(connection, "SELECT max(seq) FROM events")
    totals[_TAKEN_OVER] = last - taken
    connection.executemany(_ADD, [(*name, by) for name, by in totals.items() if by])
    return last


def _number(connection: apsw.Connection, sql: str) -> int:
    found: Any = connection.execute(sql).get
    return int(found or 0)
