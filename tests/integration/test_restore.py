"""Damage to the database of a home, and how all that was in it comes back."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet import wiring
from fleet.config.home import Home
from fleet.config.settings import Settings
from fleet.errors import FleetError, LedgerBroken, NoHome, StoreCorrupt, StoreError
from fleet.store.restore import is_sound
from fleet.testing.audit import audit
from tests.support.children import child
from tests.support.cli import Cli
from tests.support.homes import add, copy_of, flip, flip_all, make, opened, page, pages, titles
from tests.support.ledgers import contents, exported, populate

DAMAGE: dict[str, Callable[[Path], object]] = {
    "not a database": lambda db: db.write_bytes(b"once upon a time " * 1000),
    "zero length": lambda db: db.write_bytes(b""),
    "a byte": lambda db: db.write_bytes(b"x"),
    "cut in half": lambda db: os.truncate(db, pages(db) // 2 * 4096),
    "cut within a page": lambda db: os.truncate(db, db.stat().st_size - 1000),
    "only the first page": lambda db: os.truncate(db, 4096),
    "no magic": lambda db: flip(db, 0, b"\0" * 16),
    "no schema": lambda db: flip(db, 100, b"\xff" * 3996),
    "no header": lambda db: flip(db, 0, b"\xff" * 100),
    "zeroes in the middle": lambda db: flip(db, pages(db) // 3 * 4096, bytes(3 * 4096)),
    "noise in the middle": lambda db: flip(db, pages(db) // 2 * 4096, os.urandom(2 * 4096)),
    "the last page": lambda db: flip(db, (pages(db) - 1) * 4096, b"\xa5" * 4096),
    "every second page": lambda db: flip_all(db, range(1, pages(db), 2)),
    "a version below zero": lambda db: flip(db, 60, b"\xff\xff\xff\xff"),
    "a version of zero": lambda db: flip(db, 60, b"\0\0\0\0"),
}


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with something of everything, closed and mirrored. Copied, never used itself."""
    home = make(tmp_path_factory.mktemp("full") / "home")
    with opened(home) as store:
        populate(store)
        wiring.mirroring(home, Settings(), store)()
    assert is_sound(home.db)
    return home


def all_of(home: Home) -> dict[str, object]:
    """All that can be read."""
    with contextlib.closing(wiring.open_reads(home, Settings())) as reads:
        return contents(reads)


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_told_and_mended(full: Home, tmp_path: Path, damage: str) -> None:
    """A damaged database is StoreCorrupt; --force builds it anew with all that was in it and keeps the damaged one."""
    expected = all_of(full)
    home = copy_of(full, tmp_path / "home")
    DAMAGE[damage](home.db)
    damaged = home.db.read_bytes()
    with pytest.raises((StoreCorrupt, LedgerBroken)) as caught:
        all_of(home)
    assert "fleet init --force" in caught.value.hint
    assert home.db.read_bytes() == damaged
    (note,) = wiring.prepare_store(home, Settings(), force=True)
    assert f"built anew from {len(full.mirror.read_bytes().splitlines())} events" in note
    assert all_of(home) == expected
    (kept,) = home.path.glob("fleet.db.damaged-*[!wsh][!ahm][!lm]")
    assert kept.read_bytes() == damaged
    assert stat.S_IMODE(home.db.stat().st_mode) == 0o600
    with opened(home) as store:
        audit(store)
        add(store, "goes on")
        wiring.mirroring(home, Settings(), store)()
        assert home.mirror.read_bytes() == exported(store)
    assert wiring.prepare_store(home, Settings(), force=True) == []


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_damage_anywhere_never_confuses(full: Home, tmp_path: Path, data: st.DataObject) -> None:
    """Whatever bytes are overwritten: reading gives a Fleet error or an answer, and --force brings all of it back."""
    expected = all_of(full)
    home = copy_of(full, Path(tempfile.mkdtemp(dir=tmp_path)) / "home")
    size = home.db.stat().st_size
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(100, size - 1))  # the header has tests of its own
        flip(home.db, at, data.draw(st.binary(min_size=1, max_size=min(600, size - at))))
    with contextlib.suppress(FleetError):
        all_of(home)
    wiring.prepare_store(home, Settings(), force=True)
    assert all_of(home) == expected


def test_without_a_mirror_the_database_itself_is_salvaged(full: Home, tmp_path: Path) -> None:
    """What a damaged database still has is enough, where the damage is not in the events."""
    expected = all_of(full)
    home = copy_of(full, tmp_path / "home")
    home.mirror.unlink()
    connection = apsw.Connection(str(home.db))
    for statement in ("DROP TABLE tasks", "DROP TABLE heads", "DROP TABLE counts"):
        connection.execute(statement)
    connection.close()
    with pytest.raises(StoreCorrupt, match="no such table"):
        all_of(home)
    wiring.prepare_store(home, Settings(), force=True)
    assert all_of(home) == expected


def test_events_are_salvaged_from_both_sides_of_the_damage(tmp_path: Path) -> None:
    """A hole in the table of events costs the chains that run through it; those before and after it come back."""
    home = make(tmp_path / "home")
    with opened(home) as store:
        for n in range(60):
            add(store, f"task {n}", description="z" * 2000)
    holding = [at // 4096 for at in range(0, home.db.stat().st_size, 4096) if b'"kind":"task' in page(home.db, at)]
    flip(home.db, holding[len(holding) // 2] * 4096, b"\xff" * 4096)
    assert not is_sound(home.db)
    home.mirror.unlink()
    (note,) = wiring.prepare_store(home, Settings(), force=True)
    found = titles(home)
    assert 40 < len(found) < 60, note
    assert {"task 0", "task 59"} <= set(found)
    with opened(home) as store:
        audit(store)
        add(store, "goes on")


@pytest.mark.parametrize("what", ["an event", "a row", "a mirror line"])
def test_of_two_versions_of_an_event_the_one_that_holds_is_taken(full: Home, tmp_path: Path, what: str) -> None:
    """Where database and mirror differ the hash decides, event by event."""
    expected = all_of(full)
    home = copy_of(full, tmp_path / "home")
    connection = apsw.Connection(str(home.db))
    connection.execute("DROP TRIGGER events_stay")
    if what == "an event":
        connection.execute("UPDATE events SET body = replace(body, 'remark 0', 'REMARK 0')")
        connection.execute("UPDATE events SET body = '{' WHERE seq = 12")
    elif what == "a row":
        connection.execute("UPDATE comments SET doc = replace(doc, 'remark 0', 'REMARK 0')")
    else:
        lines = home.mirror.read_bytes().splitlines(keepends=True)
        home.mirror.write_bytes(b"".join([*lines[:3], b"garbage\n", *lines[4:]]))
        connection.execute("DELETE FROM counts")
    connection.close()
    assert not is_sound(home.db)
    wiring.prepare_store(home, Settings(), force=True)
    assert all_of(home) == expected


def test_a_crash_while_restoring_loses_nothing(full: Home, tmp_path: Path) -> None:
    """Whenever a restoring process is killed, the next one brings everything back."""
    expected = all_of(full)
    for number in range(12):
        home = copy_of(full, tmp_path / f"home-{number}")
        flip(home.db, 4096, b"\xff" * 8192)
        with child(lambda _, home=home: wiring.prepare_store(home, Settings(), force=True)) as restoring:  # type: ignore[misc]
            restoring.kill_after(0.002 * number)
        assert home.db.exists()
        wiring.prepare_store(home, Settings(), force=True)
        assert all_of(home) == expected


def test_who_still_has_the_damaged_database_open_writes_nothing_into_it(full: Home, tmp_path: Path) -> None:
    """A writer that was there before the database was replaced is refused: what it wrote would be lost."""
    home = copy_of(full, tmp_path / "home")
    with opened(home) as old:
        flip(home.db, 4096, b"\xff" * 8192)
        wiring.prepare_store(home, Settings(), force=True)
        with pytest.raises(StoreError, match="was replaced; nothing was written"):
            add(old, "into the void")
    with opened(home) as store:
        add(store, "kept")
        audit(store)


def test_init_force_repairs(tmp_path: Path) -> None:
    """The command says that the database is damaged, then what it rebuilt, and all is there again."""
    cli = Cli(tmp_path)
    cli.ok("init")
    uid = cli.add("precious", "-d", "x" * 5000)
    cli.home.db.write_bytes(b"garbage" * 1000)
    for argv in (["ready"], ["add", "x"], ["init"]):
        done = cli.run(*argv)
        assert done.code == 1
        assert done.err.startswith(f"error: the database at {cli.home.db} is damaged: ")
        assert "hint: run `fleet init --force`" in done.err
    done = cli.ok("init", "--force")
    assert (
        "note: the database was damaged and is built anew from 1 event; the old one is kept as fleet.db.dam" in done.err
    )
    assert [task["id"] for task in cli.json("ready")] == [uid]
    assert cli.ok("ledger", "verify").code == 0


def test_a_database_that_is_gone(full: Home, tmp_path: Path) -> None:
    """Where the mirror tells of a ledger, a missing database is an error, none is begun, and --force brings it back."""
    home = copy_of(full, tmp_path / "home")
    (home.path / "fleet.toml").touch()
    home.db.unlink()
    for act in (wiring.open_reads, wiring.open_store, lambda home, s: wiring.prepare_store(home, s, force=False)):
        with pytest.raises(StoreCorrupt, match="is missing") as caught:
            act(home, Settings())
        assert "fleet init --force" in caught.value.hint
        assert not home.db.exists()
    (note,) = wiring.prepare_store(home, Settings(), force=True)
    assert "built anew from" in note
    assert all_of(home) == all_of(full)


def test_a_database_that_never_was(tmp_path: Path) -> None:
    """Reading a home that has no ledger yet is NoHome, and makes none."""
    home = Home(tmp_path)
    (home.path / "fleet.toml").touch()
    with pytest.raises(NoHome):
        titles(home)
    assert not home.db.exists()
