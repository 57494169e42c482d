"""What was spent: sums over ended sessions by day, coder, model, host, label and run, on both stores."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from fleet.errors import UsageError
from fleet.model.receipt import Usage
from fleet.model.session import Progress
from fleet.projections.cost import OVERLAP_MS, Cost, Spending
from fleet.store.store import Store
from fleet.testing.builders import CRASHED, DEFAULTS, EXITED, a_pass, a_slot, a_task
from tests.support.stores import PostgresStores, SqliteStores

HOUR = 3600
PRICED = Usage(input_tokens=100, output_tokens=10, cached_tokens=1000, tool_calls=2, events=5, cost_microusd=250_000)
UNPRICED = Usage(input_tokens=7, output_tokens=3, events=4)


class Counted:
    """A store that counts the ended sessions that are read from it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.read = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def ended(self, after: int, *, limit: int) -> object:
        found = self._store.ended(after, limit=limit)
        self.read += len(found)
        return found


def work(store: Store, usage: Usage | None, *, host: str = "local@here", begun: bool = True, **fields: Any) -> str:
    """A session that has ended with this usage; None: it goes on, and has used what has a price."""
    store.submit([a_task(**fields)], by="ana").result()
    (claimed,) = store.claim("sup", [a_slot(host=host)], DEFAULTS).result()
    fence = claimed.session.fence
    if begun:
        store.started(fence, 1, by="sup").result()
    if usage is None:
        store.record(fence, Progress(usage=PRICED)).result()
    elif begun:
        store.finish(fence, replace(EXITED, usage=usage), a_pass(), by="sup").result()
    else:
        store.retry(fence, CRASHED, reason="no launch", charged=False, by="sup").result()
        store.cancel(claimed.task.uid, "enough", by="ana").result()
    return claimed.session.id


def told(found: Cost) -> dict[str, tuple[int, int, int | None]]:
    return {line.name: (line.sessions, line.unpriced, line.cost_microusd) for line in found.lines}


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_sums(kind: str, request: pytest.FixtureRequest) -> None:
    """Each way to divide gives what was used; a cost that was not told is unknown, and nothing where nothing ran."""
    stores: SqliteStores | PostgresStores = request.getfixturevalue(f"{kind}_stores")
    store = stores.open()
    store.join("sup", machine="here", pid=1, seconds=10**9).result()
    work(store, PRICED, coder="claude")
    stores.tick(HOUR)
    since = stores.now()
    work(store, PRICED, coder="claude", model="big", labels={"team": "web", "kind": "bug"}, host="local@here")
    work(store, PRICED, coder="claude", model="big", labels={"team": "web"}, host="builder")
    work(store, UNPRICED, coder="codex", host="builder")
    work(store, Usage(), coder="command")
    work(store, Usage(), coder="codex", begun=False)
    work(store, None, coder="claude")

    def ask(by: str) -> Cost:
        return Spending(since, by).cost(store, stores.now())

    assert told(ask("coder")) == {"claude": (2, 0, 500_000), "codex": (2, 1, None), "command": (1, 0, 0)}
    assert told(ask("model")) == {"big": (2, 0, 500_000), "-": (3, 1, None)}
    assert told(ask("host")) == {"builder": (2, 1, 250_000), "local@here": (3, 0, 250_000)}
    assert told(ask("label")) == {"team=web": (2, 0, 500_000), "kind=bug": (1, 0, 250_000), "-": (3, 1, None)}
    assert told(ask("run")) == {"-": (5, 1, 500_000)}
    found = ask("coder")
    assert (found.total.sessions, found.total.unpriced, found.total.cost_microusd) == (5, 1, 500_000)
    assert (found.total.input_tokens, found.total.output_tokens, found.total.cached_tokens) == (207, 23, 2000)
    assert (found.running.sessions, found.running.cost_microusd, found.running.input_tokens) == (1, 250_000, 100)
    stores.tick(HOUR)
    assert told(Spending(stores.now(), "coder").cost(store, stores.now())) == {}
    work(store, UNPRICED, coder="codex")
    assert told(Spending(stores.now() - 1000, "coder").cost(store, stores.now())) == {"codex": (1, 1, None)}


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_asked_again(kind: str, request: pytest.FixtureRequest) -> None:
    """Who asks again is told the same as who asks for the first time, and what is known for long is not read again."""
    stores: SqliteStores | PostgresStores = request.getfixturevalue(f"{kind}_stores")
    store = stores.open()
    store.join("sup", machine="here", pid=1, seconds=10**9).result()
    spending = Spending(0, "coder")
    counted = Counted(store)
    for n in range(1, 8):
        work(store, PRICED)
        counted.read = 0
        found = spending.cost(counted, stores.now())  # type: ignore[arg-type]
        assert told(found) == {"scripted": (n, 0, n * 250_000)}
        assert found.lines == Spending(0, "coder").cost(store, stores.now()).lines
        assert counted.read <= 2
        stores.tick(OVERLAP_MS / 1000)
    stores.tick(OVERLAP_MS / 1000)
    for _ in range(2):
        counted.read = 0
        assert told(spending.cost(counted, stores.now())) == {"scripted": (7, 0, 7 * 250_000)}  # type: ignore[arg-type]
    assert counted.read == 0


def test_days_begin_where_they_are_said_to(sqlite_stores: SqliteStores) -> None:
    """A session counts on the day on which it ended, by the offset of whoever asks; what is no day is refused."""
    from datetime import datetime, timedelta, timezone

    store = sqlite_stores.open()
    store.join("sup", machine="here", pid=1, seconds=10**9).result()
    work(store, PRICED)
    at = datetime.fromtimestamp(sqlite_stores.now() / 1000, timezone(timedelta(hours=5, minutes=30)))
    today = at.replace(hour=0, minute=0, second=0, microsecond=0)
    days = [(today + timedelta(days=later)).isoformat() for later in (-1, 0, 1)]
    since = int(datetime.fromisoformat(days[0]).timestamp() * 1000)
    found = Spending(since, "day", tuple(days)).cost(store, sqlite_stores.now())
    assert [(line.name, line.sessions) for line in found.lines] == list(
        zip((day[:10] for day in days), (0, 1, 0), strict=True)
    )
    wrong = [(), tuple(reversed(days)), ("2026-01-31",), ("soon",), (days[0], days[0]), (days[1],)]
    for given in wrong:
        with pytest.raises(UsageError, match="day"):
            Spending(since, "day", given)
    with pytest.raises(UsageError, match="nothing is divided by `mood`"):
        Spending(0, "mood")
