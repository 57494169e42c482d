"""The store of a home: which engine, opened for looking or for writing, made, brought up to date, brought back."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from fleet.config.home import Home, refuse_root_elsewhere, require
from fleet.config.settings import Settings
from fleet.errors import StoreCorrupt

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.store.engine import Engine
    from fleet.store.reads import Reads
    from fleet.store.store import Store


def open_reads(home: Home, settings: Settings) -> Reads:
    """The store, for looking only. Never creates a home or a ledger."""
    from fleet.store.reads import Reads

    require(home)
    if settings.store.url:
        return Reads(_postgres(home, settings), prefix=settings.queue.prefix)
    from fleet.store.sqlite.reader import SqliteReader

    _refuse_lost(home)
    return Reads(SqliteReader(home.db, bells=home.bells, leases=home.leases), prefix=settings.queue.prefix)


def open_store(home: Home, settings: Settings, *, grouped: bool = False) -> Store:
    """The store, for writing too. The home must be there; its schema is brought up to date."""
    require(home)
    return make_store(home, settings, grouped=grouped)


def make_store(home: Home, settings: Settings, *, grouped: bool = False) -> Store:
    """The store, made if it is not there yet."""
    refuse_root_elsewhere(home)
    from fleet.store.store import Store

    if settings.store.url:
        engine: Engine = _postgres(home, settings, create=True, grouped=grouped)
    else:
        from fleet.store.sqlite.writer import SqliteWriter

        _refuse_lost(home)
        engine = SqliteWriter(home.db, bells=home.bells, leases=home.leases, grouped=grouped)
    return Store(engine, prefix=settings.queue.prefix)


def prepare_store(home: Home, settings: Settings, *, force: bool) -> list[str]:
    """Make the store, or bring it up to date. `force` also replaces a damaged SQLite database. Returns notes."""
    notes = []
    if force and not settings.store.url:
        from fleet.store.restore import is_sound

        if _is_lost(home) or (home.db.exists() and not is_sound(home.db)):
            notes.append(_restore(home))
    with closing(make_store(home, settings)) as store:
        mirroring(home, settings, store)()
    return notes


def mirroring(home: Home, settings: Settings, reads: Reads) -> Callable[[], object]:
    """What keeps fleet.jsonl up with the ledger, or nothing."""
    wanted = settings.store.mirror == "on" or (settings.store.mirror == "auto" and not settings.store.url)
    if not wanted:
        return lambda: None
    from fleet.store.mirror import Mirror

    return Mirror(home.mirror, reads).catch_up


def _restore(home: Home) -> str:
    import time

    from fleet.store.restore import restore

    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    back = restore(home.db, home.mirror, stamp=stamp, bells=home.bells, leases=home.leases)
    lost = f", {back.dropped} could not be placed" if back.dropped else ""
    kept = ", ".join(path.name for path in back.aside)
    events = "1 event" if back.events == 1 else f"{back.events} events"
    if not kept:
        return f"the database was missing and is built anew from {events}{lost}"
    return f"the database was damaged and is built anew from {events}{lost}; the old one is kept as {kept}"


def _is_lost(home: Home) -> bool:
    """Whether the database is gone from a home whose mirror still tells of it."""
    return not home.db.exists() and home.mirror.exists() and home.mirror.stat().st_size > 0


def _refuse_lost(home: Home) -> None:
    """Beginning an empty ledger in the place of a lost one would hide the loss."""
    if _is_lost(home):
        raise StoreCorrupt(
            f"{home.db} is missing, but {home.mirror.name} tells of a ledger",
            hint="run `fleet init --force`: it builds the database anew from fleet.jsonl",
        )


def _postgres(home: Home, settings: Settings, *, create: bool = False, grouped: bool = False) -> Engine:
    from fleet.config.secrets import lookup
    from fleet.store.postgres.engine import PostgresEngine

    store = settings.store
    password = lookup(home, store.password_env) if store.password_env else None
    return PostgresEngine(store.url, schema=store.schema, password=password, create=create, grouped=grouped)
