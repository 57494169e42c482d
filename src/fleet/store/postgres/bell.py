"""The doorbell of a PostgreSQL store: LISTEN and NOTIFY."""

from __future__ import annotations

import select

import psycopg
from psycopg import sql

from fleet.store.engine import Row
from fleet.store.postgres.faults import translated


class PostgresBell:
    """One listener, on a connection of its own."""

    def __init__(self, connection: psycopg.Connection[Row], channel: str) -> None:
        self._connection = connection
        connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))

    def wait(self, timeout: float) -> bool:
        with translated("the listening connection"):
            rang = any(True for _ in self._connection.notifies(timeout=0))
            if not rang and timeout:
                select.select([self._connection.fileno()], [], [], timeout)
                rang = any(True for _ in self._connection.notifies(timeout=0))
            return rang

    def fileno(self) -> int:
        return self._connection.fileno()

    def close(self) -> None:
        self._connection.close()
