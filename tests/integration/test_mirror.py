"""The mirror: whatever happens to fleet.jsonl, the next writer makes it the whole ledger again."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from fleet.errors import LedgerBroken
from fleet.store.mirror import Mirror, decode_line, encode_line, read_lines
from fleet.store.store import Store
from fleet.testing.builders import a_task
from tests.support.children import Child
from tests.support.disks import small_disk
from tests.support.ledgers import entries, exported, populate
from tests.support.stores import PostgresStores, SqliteStores


@pytest.fixture
def store(sqlite_stores: SqliteStores) -> Store:
    """A ledger with every kind of event."""
    store = sqlite_stores.open()
    populate(store)
    return store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the mirror is."""
    return tmp_path / "fleet.jsonl"


def test_a_mirror_is_the_ledger_as_text(store: Store, path: Path) -> None:
    """A missing mirror is made, line for line what an export is, and closed to others; a second look adds nothing."""
    lines = len(entries(store))
    assert Mirror(path, store).catch_up() == lines
    assert path.read_bytes() == exported(store)
    assert path.stat().st_mode & 0o777 == 0o600
    assert Mirror(path, store).catch_up() == 0
    store.submit([a_task("one more")], by="ana").result()
    assert Mirror(path, store).catch_up() == 1
    assert path.read_bytes() == exported(store)
    path.unlink()
    assert Mirror(path, store).catch_up() == lines + 1
    assert path.read_bytes() == exported(store)


def test_a_line_comes_back_as_the_entry_it_was(store: Store, path: Path) -> None:
    """Reading a mirror gives the very entries of the ledger."""
    Mirror(path, store).catch_up()
    assert list(read_lines(path)) == entries(store)
    for entry in entries(store):
        assert decode_line(encode_line(entry), "here") == entry


def test_a_mirror_that_is_torn_at_any_byte_is_mended(store: Store, path: Path) -> None:
    """Cut off anywhere in its last three lines, or right at the start, the mirror is whole after the next writer."""
    whole = exported(store)
    lines = whole.splitlines(keepends=True)
    tail = sum(len(line) for line in lines[-3:])
    for cut in [*range(10), *range(len(whole) - tail, len(whole) + 1)]:
        path.write_bytes(whole[:cut])
        Mirror(path, store).catch_up()
        assert path.read_bytes() == whole, cut
    assert os.listdir(path.parent).count("fleet.jsonl.1") == 0


@pytest.mark.parametrize(
    "tail",
    [b"garbage", b'{"seq":', b"\0" * 5000, b"\xff" * 70_000, b"x" * 70_000],
    ids=["garbage", "half", "zeroes", "noise", "long"],
)
def test_a_tail_without_a_line_end_is_cut_off(store: Store, path: Path, tail: bytes) -> None:
    """What a crash or a bad disk left after the last whole line goes; the lines before it stay as they are."""
    whole = exported(store)
    for lines in (0, 1, 7, len(whole.splitlines())):
        kept = b"".join(whole.splitlines(keepends=True)[:lines])
        path.write_bytes(kept + tail)
        Mirror(path, store).catch_up()
        assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "tail",
    [
        b"garbage\n",
        b"\n",
        b"\0" * 5000 + b"\n",
        b'{"seq":1,"hash":"00","event":{}}\n',
        b'{"seq":0,"hash":"","event":{}}\n',
        b'{"seq":-1,"hash":"","event":null}\n',
        b'{"seq":1' + b"0" * 40 + b',"hash":"","event":{}}\n',
        b'{"seq":9999,"hash":"' + b"ab" * 32 + b'","event":{"kind":"run.resumed","subject":"run/x","at":1,"by":"x"}}\n',
    ],
)
def test_a_whole_line_that_is_not_ours_is_kept_aside(store: Store, path: Path, tail: bytes) -> None:
    """A mirror that ends in a line of something else is kept under another name, and a new one is begun."""
    whole = exported(store)
    path.write_bytes(whole + tail)
    Mirror(path, store).catch_up()
    assert path.read_bytes() == whole
    assert path.with_name("fleet.jsonl.1").read_bytes() == whole + tail


def test_the_mirror_of_another_ledger_is_kept(store: Store, path: Path, tmp_path: Path) -> None:
    """All that may be left of another ledger is kept, each time under a name that was free."""
    (tmp_path / "other").mkdir()
    others = SqliteStores(tmp_path / "other")
    other = others.open()
    populate(other)
    foreign = exported(other)
    others.close()
    for number in (1, 2, 3):
        path.write_bytes(foreign)
        Mirror(path, store).catch_up()
        assert path.read_bytes() == exported(store)
        assert path.with_name(f"fleet.jsonl.{number}").read_bytes() == foreign


def test_a_mirror_of_a_ledger_that_is_longer_is_kept(path: Path, tmp_path: Path) -> None:
    """A database that was put back to an earlier day does not cost the events that only the mirror has."""
    stores = SqliteStores(tmp_path)
    store = stores.open()
    store.submit([a_task("before")], by="ana").result()
    stores.close()
    backup = (tmp_path / "fleet.db").read_bytes()
    store = SqliteStores(tmp_path).open()
    store.submit([a_task("after")], by="ana").result()
    Mirror(path, store).catch_up()
    both = path.read_bytes()
    store.close()
    (tmp_path / "fleet.db").write_bytes(backup)
    store = SqliteStores(tmp_path).open()
    Mirror(path, store).catch_up()
    assert path.read_bytes() == exported(store)
    assert path.with_name("fleet.jsonl.1").read_bytes() == both
    store.close()


def test_processes_that_mirror_at_once_double_and_drop_nothing(tmp_path: Path) -> None:
    """Four processes that each write and mirror leave a mirror that is exactly the ledger."""

    def write(_: int) -> None:
        store = SqliteStores(tmp_path).open()
        for n in range(40):
            store.submit([a_task(f"task {n}")], by=str(os.getpid())).result()
            Mirror(tmp_path / "fleet.jsonl", store).catch_up()

    children = [Child(write) for _ in range(4)]
    assert [child.wait() for child in children] == [0] * 4
    stores = SqliteStores(tmp_path)
    store = stores.open()
    assert len(entries(store)) == 160
    assert (tmp_path / "fleet.jsonl").read_bytes() == exported(store)
    assert not (tmp_path / "fleet.jsonl.1").exists()
    stores.close()
    for child in children:
        os.close(child.said)


def test_a_mirror_that_cannot_be_written_is_no_error(store: Store, path: Path, tmp_path: Path) -> None:
    """The database has what the mirror could not take; the next writer that can brings it up to date."""
    path.mkdir()
    assert Mirror(path, store).catch_up() == 0
    path.rmdir()
    with small_disk(tmp_path / "disk", kilobytes=8) as disk:
        assert Mirror(disk / "fleet.jsonl", store).catch_up() == 0
        assert (disk / "fleet.jsonl").stat().st_size == 8192
        with contextlib.suppress(OSError):
            (tmp_path / "fleet.jsonl").write_bytes((disk / "fleet.jsonl").read_bytes())
    Mirror(path, store).catch_up()
    assert path.read_bytes() == exported(store)


def test_reading_a_file_passes_over_a_torn_end_and_nothing_else(store: Store, path: Path) -> None:
    """A torn last line is what a crash leaves; any other broken line is named with its number."""
    whole = exported(store)
    path.write_bytes(whole[:-5])
    assert list(read_lines(path)) == entries(store)[:-1]
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:4], b"{}\n", *lines[5:]]))
    with pytest.raises(LedgerBroken, match=r"fleet\.jsonl:5: this is not a line of a ledger"):
        list(read_lines(path))


def test_a_mirror_of_postgresql(postgres_stores: PostgresStores, path: Path) -> None:
    """A mirror that somebody asked for on PostgreSQL is resumed and mended like any other."""
    store = postgres_stores.open()
    populate(store)
    Mirror(path, store).catch_up()
    whole = exported(store)
    assert path.read_bytes() == whole
    for cut in (0, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        Mirror(path, store).catch_up()
        assert path.read_bytes() == whole
    store.submit([a_task("one more")], by="ana").result()
    assert Mirror(path, store).catch_up() == 1
    path.write_bytes(path.read_bytes() + b"garbage\n")
    Mirror(path, store).catch_up()
    assert path.read_bytes() == exported(store)
