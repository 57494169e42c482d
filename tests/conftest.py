"""Fixtures that several floors share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

from tests.support.leftovers import LEFT
from tests.support.postgres_server import postgres_server
from tests.support.programs import find_postgres, need
from tests.support.stores import PostgresStores, SqliteStores

settings.register_profile("fleet", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("fleet")  # that a machine is slow is no finding

TESTS = Path(__file__).parent
QUICK_FLOORS = {"unit", "golden"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, then all others well mixed, the quick ones last: no worker is left alone with the rest.

    In the order of their names, all that start a coder, or a browser, would do so at the same time.
    """
    items.sort(key=lambda item: _turn(item.path))


@cache
def _turn(file: Path) -> tuple[bool, bool, int]:
    floor = file.relative_to(TESTS).parts[0]
    return floor in QUICK_FLOORS, floor != "chaos", crc32(os.fsencode(file.relative_to(TESTS)))


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    """What the tests of a file left running has ended when the file has."""
    yield
    LEFT.wait()


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
