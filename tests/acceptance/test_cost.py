"""What was spent, as a person asks for it: by day in the local time zone, by coder, as JSON."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone

import pytest
from msgspec.structs import replace

from fleet.model.receipt import Usage
from fleet.store.sqlite.writer import SqliteWriter
from fleet.store.store import Store
from fleet.testing.builders import DEFAULTS, EXITED, a_pass, a_slot, a_task
from tests.support.cli import Cli

CLAUDE = Usage(input_tokens=12_000, output_tokens=500, cached_tokens=90_000, events=9, cost_microusd=1_250_000)
CODEX = Usage(input_tokens=800, output_tokens=20, events=9)


def noon() -> timezone:
    """A zone where it is about noon, half an hour off the full one: no midnight falls into a test."""
    return timezone(timedelta(hours=12 - datetime.now(UTC).hour, minutes=30))


def posix(zone: timezone) -> str:
    """A zone as the environment has it."""
    minutes = int(zone.utcoffset(None).total_seconds() // 60)
    sign, (hours, rest) = "-" if minutes >= 0 else "+", divmod(abs(minutes), 60)
    return f"XYZ{sign}{hours:02}:{rest:02}"


@pytest.fixture
def fleet(cli: Cli) -> Cli:
    """Somebody whose agents ended shortly before and after the last midnight; and long ago."""
    zone = noon()
    midnight = datetime.now(zone).replace(hour=0, minute=0, second=0, microsecond=0)
    clock = [0]
    engine = SqliteWriter(cli.home.db, bells=cli.home.bells, leases=cli.home.leases, clock=lambda: clock[0])
    with closing(Store(engine)) as store:
        for coder, usage, begins in (
            ("claude", CLAUDE, timedelta(days=-40)),
            ("claude", CLAUDE, timedelta(minutes=-10)),
            ("claude", CLAUDE, timedelta(minutes=5)),
            ("codex", CODEX, timedelta(minutes=6)),
        ):
            clock[0] = int((midnight + begins).timestamp() * 1000)
            if coder == "claude" and begins < timedelta(days=-1):
                store.join("sup", machine="here", pid=1, seconds=60).result()
            store.submit([a_task(coder=coder)], by="ana").result()
            (claimed,) = store.claim("sup", [a_slot()], DEFAULTS).result()
            store.started(claimed.session.fence, 1, by="sup").result()
            clock[0] += 90_000
            store.finish(claimed.session.fence, replace(EXITED, usage=usage), a_pass(), by="sup").result()
    cli.env["TZ"] = posix(zone)
    return cli


def test_by_day(fleet: Cli) -> None:
    """A line for each of seven days as they are here, one without sessions too, and the sum; the zone is said."""
    today = datetime.now(noon()).date()
    done = fleet.ok("cost")
    assert done.err == ""
    assert done.lines[0].split() == ["DAY", "COST", "SESSIONS", "INPUT", "CACHED", "OUTPUT", "TIME"]
    assert [line.split()[0] for line in done.lines[1:8]] == [str(today - timedelta(days=k)) for k in range(6, -1, -1)]
    assert done.lines[6].split()[1:] == ["$1.25", "1", "12,000", "90,000", "500", "1m30s"]
    assert done.lines[7].split()[1:] == [">", "$1.25", "2", "12,800", "90,000", "520", "3m00s"]
    assert done.lines[8].split() == ["total", ">", "$2.50", "3", "24,800", "180,000", "1,020", "4m30s"]
    assert done.lines[10] == "1 session did not tell the cost, which is in no sum."
    offset = datetime.now(noon()).isoformat()[-6:]
    assert done.lines[11] == (
        f"What ended since {today - timedelta(days=6)} 00:00:00 (UTC{offset}). Days begin at midnight here."
    )


def test_by_coder(fleet: Cli) -> None:
    """Today alone, the dearest first; a coder that tells no cost is unknown, never free of charge."""
    done = fleet.ok("cost", "--since", "today", "--by", "coder")
    assert [line.split()[:3] for line in done.lines[1:4]] == [
        ["claude", "$1.25", "1"],
        ["codex", "unknown", "1"],
        ["total", ">", "$1.25"],
    ]
    told = fleet.json("cost", "--by", "coder", "--since", "60d")
    assert [(line["name"], line["sessions"], line["cost_microusd"]) for line in told["lines"]] == [
        ("claude", 3, 3_750_000),
        ("codex", 1, None),
    ]
    assert (told["total"]["unpriced"], told["running"]["sessions"], told["days"]) == (1, 0, [])


def test_wrong_words(fleet: Cli) -> None:
    """What is no time, no way to divide, or too many days is refused; a home without sessions has spent nothing."""
    assert fleet.run("cost", "--since", "soon").code == 2
    assert fleet.run("cost", "--by", "mood").code == 2
    done = fleet.run("cost", "--since", "2020-01-01")
    assert (done.code, "are too many lines" in done.err) == (2, True)
    assert fleet.ok("cost", "--since", "2100-01-01", "--by", "model").lines[1].split() == [
        *("total", "-", "0", "-", "-", "-", "-")
    ]
