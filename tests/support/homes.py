"""Homes made without the command line, and ways to damage them."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from fleet import wiring
from fleet.config.home import Home
from fleet.config.settings import Settings
from fleet.store.sqlite.writer import SqliteWriter
from fleet.store.store import Store
from fleet.testing.builders import a_task


def make(path: Path) -> Home:
    """A home with a store, and nothing in it yet."""
    path.mkdir(parents=True, mode=0o700)
    home = Home(path)
    wiring.prepare_store(home, Settings(), force=False)
    return home


@contextlib.contextmanager
def opened(home: Home, *, busy_seconds: float = 30) -> Iterator[Store]:
    """The store of a home."""
    engine = SqliteWriter(home.db, bells=home.bells, leases=home.leases, busy_seconds=busy_seconds)
    with contextlib.closing(Store(engine)) as store:
        yield store


def titles(home: Home) -> list[str]:
    """What a reader sees."""
    with contextlib.closing(wiring.open_reads(home, Settings())) as reads:
        return [task.title for task in reads.tasks()]


def add(store: Store, *names: str, **fields: object) -> list[str]:
    """Tasks, by title."""
    return [task.uid for task in store.submit([a_task(name, **fields) for name in names], by="ana").result()]


def flip(path: Path, offset: int, data: bytes) -> None:
    """Write over some bytes of a file."""
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def flip_all(path: Path, numbers: Iterable[int]) -> None:
    """Write over the beginnings of some pages."""
    for number in numbers:
        flip(path, number * 4096, b"\xff" * 100)


def page(path: Path, at: int) -> bytes:
    """One page of a database."""
    with path.open("rb") as file:
        return os.pread(file.fileno(), 4096, at)


def pages(path: Path) -> int:
    """How many pages a database has."""
    return path.stat().st_size // 4096


def copy_of(home: Home, where: Path) -> Home:
    """A home of its own."""
    shutil.copytree(home.path, where)
    return Home(where)
