"""The store contract, over both stores."""

from __future__ import annotations

import pytest

from fleet.testing.store_contract import StoreContract
from fleet.testing.store_suite import Stores
from tests.support.stores import PostgresStores, SqliteStores


class TestSqlite(StoreContract):
    """SQLite in a home."""

    @pytest.fixture
    def stores(self, sqlite_stores: SqliteStores) -> Stores:
        return sqlite_stores


class TestPostgres(StoreContract):
    """A real PostgreSQL server."""

    @pytest.fixture
    def stores(self, postgres_stores: PostgresStores) -> Stores:
        return postgres_stores
