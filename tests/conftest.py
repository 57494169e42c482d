"""Fixtures that several floors share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.postgres_server import postgres_server
from tests.support.programs import find_postgres, need
from tests.support.stores import PostgresStores, SqliteStores


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A real PostgreSQL server, started once."""
    programs = need("PostgreSQL", find_postgres(), "run `sh scripts/tools`")
    with postgres_server(Path(programs)) as url:
        yield url


@pytest.fixture
def sqlite_stores(tmp_path: Path) -> Iterator[SqliteStores]:
    """Handles on one SQLite home."""
    stores = SqliteStores(tmp_path)
    yield stores
    stores.close()


@pytest.fixture
def postgres_stores(postgres_url: str) -> Iterator[PostgresStores]:
    """Handles on one PostgreSQL schema."""
    stores = PostgresStores(postgres_url)
    yield stores
    stores.close()
