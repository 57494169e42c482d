"""Migrations: from every earlier schema to the newest, on both databases, by one process or by several at once."""

from __future__ import annotations

import contextlib
import os
from importlib.resources import files
from pathlib import Path
from typing import Any

import apsw
import msgspec
import psycopg
import pytest
from psycopg import sql

from fleet.errors import StoreCorrupt, StoreError, StoreTooNew
from fleet.model.event import kind_of
from fleet.model.receipt import Awaits, Receipt
from fleet.model.session import Lane, Progress, Session
from fleet.model.states import LIVE
from fleet.model.task import Task
from fleet.model.terms import Terms
from fleet.store import migrate
from fleet.store.asks import ACTIVE_RUNS
from fleet.store.leases import Leases
from fleet.store.postgres.engine import PostgresEngine
from fleet.store.postgres.tx import PostgresTx
from fleet.store.restore import is_sound
from fleet.store.sqlite.reader import SqliteReader
from fleet.store.sqlite.tx import SqliteTx
from fleet.store.sqlite.writer import SqliteWriter, run_migrations
from fleet.store.store import Store
from fleet.testing.audit import audit
from fleet.testing.builders import EXITED, a_pass, a_task
from tests.support.children import Child
from tests.support.ledgers import KINDS, entries, populate
from tests.support.stores import PostgresStores

DIALECTS = ("sqlite", "postgres")
EARLIER = range(migrate.NEWEST)
TABLES_3 = ["events", "tasks", "links", "comments", "runs", "sessions", "receipts", "supervisors", "intents", "hosts"]
LEDGER_3 = Path(__file__).parent.parent / "support" / "ledger-0003.sql"


def test_the_newest_is_the_last_file() -> None:
    """The number in the code is that of the last file, and the numbers have no gap."""
    for dialect in DIALECTS:
        assert [step.number for step in migrate.migrations(dialect)] == list(range(1, migrate.NEWEST + 1))


def test_both_databases_take_the_same_steps() -> None:
    """Number and name of every step are the same on both databases, and no file is passed over for its name."""
    first, second = ([(step.number, step.name) for step in migrate.migrations(dialect)] for dialect in DIALECTS)
    assert first == second
    for dialect in DIALECTS:
        names = [file.name for file in files("fleet.store").joinpath("migrations", dialect).iterdir()]
        assert len([name for name in names if name.endswith(".sql")]) == migrate.NEWEST


def sqlite_at(path: Path, version: int) -> None:
    """A database as an earlier Fleet left it: its schema, and in it what that schema can hold."""
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    for step in migrate.migrations("sqlite")[:version]:
        connection.execute(step.sql)
    connection.pragma("user_version", version)
    if version:
        tx = SqliteTx(connection.cursor(), 1, Leases(path.parent))
        tx.run("INSERT INTO cursors (name, position, updated_at) VALUES ('alerts', '7', 0)")
    connection.close()


def writer(home: Path) -> Store:
    """The store of a home."""
    return Store(SqliteWriter(home / "fleet.db", bells=home / "bells", leases=home / "leases"))


@pytest.mark.parametrize("version", EARLIER)
def test_sqlite_comes_up_from_every_version(tmp_path: Path, version: int) -> None:
    """Opened for writing, an earlier schema becomes the newest, keeps what it held, and does everything."""
    sqlite_at(tmp_path / "fleet.db", version)
    with contextlib.closing(writer(tmp_path)) as store:
        assert store.cursor("alerts") == ("7" if version else "")
        populate(store)
        audit(store)
        assert {kind_of(entry.event) for entry in entries(store)} == KINDS
    with contextlib.closing(writer(tmp_path)) as store:
        audit(store)
    connection = apsw.Connection(str(tmp_path / "fleet.db"))
    assert connection.pragma("user_version") == migrate.NEWEST
    assert connection.pragma("journal_mode") == "wal"
    connection.close()


def sqlite_with_rows(path: Path) -> apsw.Connection:
    """A database at schema 3, with a ledger that a Fleet of that time wrote."""
    sqlite_at(path, 3)
    connection = apsw.Connection(str(path))
    connection.execute("DELETE FROM cursors")
    connection.execute(LEDGER_3.read_text())
    return connection


def check_all_is_there(store: Store, old: apsw.Connection) -> None:
    """What schema 3 had in rows of its own is what is read now, wherever it stands."""
    audit(store)
    rows: list[Any] = old.execute("SELECT id, doc, progress FROM sessions ORDER BY seq").fetchall()
    sessions = [msgspec.json.decode(doc, type=Session) for _, doc, _ in rows]
    assert store.sessions() == sessions
    assert {session.id for session in store.sessions(live=True)} == {each.id for each in sessions if each.state in LIVE}
    assert [store.progress(name) for name, _, _ in rows] == [msgspec.json.decode(row[2], type=Progress) for row in rows]
    receipts = [msgspec.json.decode(str(doc), type=Receipt) for (doc,) in old.execute("SELECT doc FROM receipts")]
    assert store.receipts() == receipts
    for scope in [None, *(run.id for run in store.runs())]:
        known = "SELECT key, n FROM counts WHERE scope = ? AND n <> 0"
        assert store.counts(scope) == {str(key): n for key, n in old.execute(known, (scope or "*",))}
    subjects: list[Any] = old.execute("SELECT DISTINCT subject FROM events").fetchall()
    for (subject,) in subjects:
        chain = [seq for (seq,) in old.execute("SELECT seq FROM events WHERE subject = ? ORDER BY seq", (subject,))]
        assert [entry.seq for entry in store.chain(subject)] == chain
        assert [entry.seq for entry in store.last(2, subject=subject)] == chain[-2:]
    for task in store.tasks():
        assert store.receipts(task=task.uid) == [each for each in receipts if each.task == task.uid]
    store.comment(store.tasks()[0].uid, "it goes on", by="ana").result()
    populate_more(store)
    audit(store)


def populate_more(store: Store) -> None:
    """A supervisor comes, adopts what is open, and ends it."""
    store.expire(by="sup-9").result()
    store.join("sup-9", machine="here", pid=1, seconds=60).result()
    for orphan in store.orphans():
        adopted = store.adopt(orphan.id, "sup-9").result()
        store.finish(adopted.fence, EXITED, a_pass(), by="sup-9").result()
    assert store.sessions(live=True) == []


def test_sqlite_keeps_a_ledger_of_schema_3(tmp_path: Path) -> None:
    """A home that was written at schema 3 has every event, session, receipt and count after the step, and goes on."""
    old = sqlite_with_rows(tmp_path / "old.db")
    sqlite_with_rows(tmp_path / "fleet.db").close()
    with contextlib.closing(writer(tmp_path)) as store:
        check_all_is_there(store, old)
    assert is_sound(tmp_path / "fleet.db")
    old.close()


OLDER_LANES: list[tuple[str, dict[str, Any]]] = [
    ("[null,null,null,[]]", {}),
    ('[null,"m",null,["gpu"]]', {"cwd": '/a "b" é', "host": "m", "capabilities": ("gpu",)}),
    ("[null,null,null,[]]", {"cwd": "/a", "terms": Terms(isolation="worktree")}),
    ("[null,null,null,[]]", {"cwd": "/a", "terms": Terms(tool_profile="read-only")}),
    ('[null,null,"command",[]]', {"cwd": "/a", "coder": "command"}),
    ('[null,null,"command",[]]', {"cwd": "/a", "coder": "command", "terms": Terms(writable_paths=("b",))}),
    ('[null,null,"x",[]]', {"cwd": "/a", "awaits": Awaits(kind="command", coder="x")}),
    ('[null,null,null,[],"/a"]', {"cwd": "/a"}),
]


@pytest.mark.parametrize(("lane", "fields"), OLDER_LANES)
def test_a_lane_of_before_directories_becomes_that_of_its_task(
    tmp_path: Path, lane: str, fields: dict[str, Any]
) -> None:
    """After the step every task stands in the lane that a claim of today looks in."""
    sqlite_at(tmp_path / "fleet.db", 4)
    task = Task(uid="t", task_id="t", title="t", created_at=1, created_by="ana", updated_at=1, **fields)
    with contextlib.closing(apsw.Connection(str(tmp_path / "fleet.db"))) as connection:
        connection.execute(
            "INSERT INTO tasks (uid, task_id, shelf, priority, waiting, lane, updated_at, restarts, head, hash, doc)"
            " VALUES ('t', 't', 'ready', 2, 0, ?, 1, 0, 1, x'00', ?)",
            (lane, msgspec.json.encode(task).decode()),
        )
        run_migrations(connection)
        assert connection.execute("SELECT lane FROM tasks").get == Lane.of(task).key


def test_runs_that_ended_cost_nothing_where_those_that_go_on_are_looked_for(
    tmp_path: Path, postgres_stores: PostgresStores
) -> None:
    """On both databases the runs that go on are found by an index that has no other runs."""
    sqlite_at(tmp_path / "fleet.db", migrate.NEWEST)
    with contextlib.closing(apsw.Connection(str(tmp_path / "fleet.db"))) as connection:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {ACTIVE_RUNS}").fetchall()
        assert [str(step[-1]) for step in plan] == ["SCAN runs USING INDEX runs_active"]
    postgres_at(postgres_stores, migrate.NEWEST)
    with psycopg.connect(postgres_stores.url, options=f"-c search_path={postgres_stores.schema}") as server:
        server.execute("SET enable_seqscan = off")  # it would read so small a table as a whole
        steps = server.execute(sql.SQL("EXPLAIN " + ACTIVE_RUNS)).fetchall()
        assert any("on runs_active" in str(step[0]) for step in steps)


@pytest.mark.parametrize("version", range(1, migrate.NEWEST))
def test_a_reader_leaves_an_earlier_schema_as_it_is(tmp_path: Path, version: int) -> None:
    """Reading does not migrate: it says which command does."""
    sqlite_at(tmp_path / "fleet.db", version)
    before = (tmp_path / "fleet.db").read_bytes()
    with pytest.raises(
        StoreError, match=f"has schema {version}, which this Fleet must bring up to date first"
    ) as caught:
        SqliteReader(tmp_path / "fleet.db", bells=tmp_path / "bells", leases=tmp_path / "leases")
    assert caught.value.hint == "run `fleet init`"
    assert (tmp_path / "fleet.db").read_bytes() == before


def test_a_step_that_fails_leaves_the_step_before_it(tmp_path: Path) -> None:
    """A schema in which a step cannot be taken stays where it was, and the error says that it is damaged."""
    sqlite_at(tmp_path / "fleet.db", 1)
    connection = apsw.Connection(str(tmp_path / "fleet.db"))
    connection.execute("CREATE TABLE links (in_the_way)")
    connection.close()
    with pytest.raises(StoreCorrupt, match="table links already exists"):
        writer(tmp_path)
    connection = apsw.Connection(str(tmp_path / "fleet.db"))
    assert connection.pragma("user_version") == 1
    assert connection.execute("SELECT name FROM sqlite_schema WHERE name = 'tasks'").fetchall() == []
    connection.execute("DROP TABLE links")
    connection.close()
    with contextlib.closing(writer(tmp_path)) as store:
        populate(store)
        audit(store)


@pytest.mark.parametrize("version", EARLIER)
def test_processes_that_open_a_home_at_once(tmp_path: Path, version: int) -> None:
    """Six processes that open a new home, or one of an earlier version, at the same moment all succeed."""
    if version:
        sqlite_at(tmp_path / "fleet.db", version)
    start, go = os.pipe()

    def open_and_write(saying: int) -> None:
        os.close(go)
        os.write(saying, b"here\n")
        os.read(start, 1)  # ends when the parent lets go
        with contextlib.closing(writer(tmp_path)) as store:
            store.submit([a_task("mine")], by=str(os.getpid())).result()

    children = [Child(open_and_write) for _ in range(6)]
    for each in children:
        assert each.line() == "here"
    os.close(go)
    assert [each.wait() for each in children] == [0] * 6
    os.close(start)
    with contextlib.closing(writer(tmp_path)) as store:
        assert len(store.tasks()) == 6
        audit(store)
    for each in children:
        os.close(each.said)


def postgres_at(stores: PostgresStores, version: int) -> None:
    """A schema as an earlier Fleet left it, with what it can hold."""
    with psycopg.connect(stores.url, autocommit=True, options=f"-c search_path={stores.schema}") as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(stores.schema)))
        connection.execute("CREATE TABLE schema_version (version BIGINT NOT NULL)")
        connection.execute("INSERT INTO schema_version VALUES (%s)", (version,))
        for step in migrate.migrations("postgres")[:version]:
            connection.execute(step.sql)
        if version:
            tx = PostgresTx(connection, 1, writing=True)
            tx.run("INSERT INTO cursors (name, position, updated_at) VALUES ('alerts', '7', 0)")


@pytest.mark.parametrize("version", EARLIER)
def test_postgresql_comes_up_from_every_version(postgres_stores: PostgresStores, version: int) -> None:
    """Opened for writing, an earlier schema becomes the newest, keeps what it held, and does everything."""
    postgres_at(postgres_stores, version)
    with pytest.raises(StoreError, match=f"is at version {version}, older than this Fleet"):
        PostgresEngine(postgres_stores.url, schema=postgres_stores.schema)
    store = postgres_stores.open()
    assert store.cursor("alerts") == ("7" if version else "")
    populate(store)
    audit(store)
    assert {kind_of(entry.event) for entry in entries(store)} == KINDS


def test_postgresql_keeps_a_ledger_of_schema_3(postgres_stores: PostgresStores, tmp_path: Path) -> None:
    """A schema that was written at version 3 has every event, session and receipt after the step, and goes on."""
    old = sqlite_with_rows(tmp_path / "old.db")
    postgres_at(postgres_stores, 3)
    with psycopg.connect(
        postgres_stores.url, autocommit=True, options=f"-c search_path={postgres_stores.schema}"
    ) as connection:
        for table in (
            "events",
            "tasks",
            "links",
            "comments",
            "runs",
            "sessions",
            "receipts",
            "supervisors",
            "intents",
            "hosts",
        ):
            names = [row[0] for row in old.execute("SELECT name FROM pragma_table_info(?)", (table,))]
            insert = sql.SQL("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE VALUES ({})").format(
                sql.Identifier(table),
                sql.SQL(", ").join(map(sql.Identifier, names)),
                sql.SQL(", ").join([sql.Placeholder()] * len(names)),
            )
            for row in old.execute(f"SELECT {', '.join(names)} FROM {table} ORDER BY 1"):
                connection.execute(insert, row)
        for table in ("events", "tasks"):
            last = sql.SQL("SELECT setval(pg_get_serial_sequence({}, 'seq'), (SELECT max(seq) FROM {}))")
            connection.execute(last.format(sql.Literal(table), sql.Identifier(table)))
    check_all_is_there(postgres_stores.open(), old)
    old.close()


def test_postgresql_of_a_newer_version_is_refused(postgres_stores: PostgresStores) -> None:
    """A schema that a newer Fleet made is neither read nor written."""
    postgres_stores.open().close()
    with psycopg.connect(postgres_stores.url, options=f"-c search_path={postgres_stores.schema}") as connection:
        connection.execute("UPDATE schema_version SET version = 999")
    for create in (False, True):
        with pytest.raises(StoreTooNew, match="has schema 999"):
            PostgresEngine(postgres_stores.url, schema=postgres_stores.schema, create=create)


def test_processes_that_open_a_postgresql_schema_at_once(postgres_stores: PostgresStores) -> None:
    """Six processes that open a schema that nobody has made yet all succeed, and it is made once."""

    def open_it(_: int) -> None:
        engine = PostgresEngine(postgres_stores.url, schema=postgres_stores.schema, create=True)
        Store(engine).submit([a_task("mine")], by=str(os.getpid())).result()
        engine.close()

    children = [Child(open_it) for _ in range(6)]
    assert [each.wait() for each in children] == [0] * 6
    store = postgres_stores.open()
    assert len(store.tasks()) == 6
    audit(store)
    for each in children:
        os.close(each.said)
