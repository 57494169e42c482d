"""The store: a task's life against bare commits, many callers at once, many processes claiming."""

from __future__ import annotations

import multiprocessing as mp
import statistics
import tempfile
import time
from pathlib import Path

import apsw

from bench.report import Figure, median_seconds, percentile
from fleet.config.clock import Clock, utc_ms
from fleet.model.session import Claimed
from fleet.store.sqlite.writer import SqliteWriter
from fleet.store.store import Store
from fleet.testing.builders import DEFAULTS, EXITED, a_pass, a_task, slots

TASKS = 10  # in one turn; the turns of both are short and alternate, so that both see the same disk
PAIRS = 201
CALLERS = 64
CLAIMERS = 8
CLAIMS = 2400
CLAIM_ROUNDS = 9  # a virtual disk pauses now and then


def open_store(home: Path, *, grouped: bool = False, clock: Clock = utc_ms) -> Store:
    """A SQLite store in a directory."""
    return Store(
        SqliteWriter(home / "fleet.db", bells=home / "bells", leases=home / "leases", grouped=grouped, clock=clock)
    )


def open_bare(home: Path) -> apsw.Connection:
    """A database of one table, with nothing of ours."""
    bare = apsw.Connection(str(home / "bare.db"))
    bare.pragma("journal_mode", "wal")
    bare.pragma("synchronous", "full")
    bare.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT)")
    return bare


def commit(bare: apsw.Connection) -> None:
    """One bare commit."""
    bare.execute("BEGIN IMMEDIATE")
    bare.execute("INSERT INTO t (body) VALUES (?)", ("x" * 300,))
    bare.execute("COMMIT")


def longest_pause(home: Path) -> float:
    """The longest that one bare commit takes among as many as a round of claims: what the disk is good for now."""
    bare = open_bare(home)
    longest = max(median_seconds(lambda: commit(bare), 1) for _ in range(CLAIMS))
    bare.close()
    return longest


def life_cycle() -> Figure:
    """Submit, claim, finish, one after the other, against three bare commits (FULL) of a small row each."""
    with tempfile.TemporaryDirectory(prefix="fleet-bench-") as directory:
        home = Path(directory)
        store = open_store(home)
        store.join("sup", machine="here", pid=1, seconds=60).result()
        bare = open_bare(home)

        def ours() -> None:
            for _ in range(TASKS):
                store.submit([a_task()], by="ana").result()
                (claimed,) = store.claim("sup", slots(1), DEFAULTS).result()
                store.finish(claimed.session.fence, EXITED, a_pass(), by="sup").result()

        def theirs() -> None:
            for _ in range(TASKS * 3):
                commit(bare)

        ours()
        theirs()
        pairs = [(median_seconds(ours, 1), median_seconds(theirs, 1)) for _ in range(PAIRS)]
        ratio = sorted(theirs_s / ours_s for ours_s, theirs_s in pairs)[PAIRS // 2]
        rate = TASKS / sorted(ours_s for ours_s, _ in pairs)[PAIRS // 2]
        store.close()
    return Figure(
        "a task's life (submit, claim, finish), alone, to three bare commits",
        f"{ratio:.2f} x ({rate:,.0f} tasks/s)",
        ">= 0.50 x",
        ratio >= 0.5,
        f"each synced before it is answered, {PAIRS} pairs of turns, median",
    )


def many_callers() -> Figure:
    """The same life, by 64 callers at once, through the writer thread."""
    with tempfile.TemporaryDirectory(prefix="fleet-bench-") as directory:
        store = open_store(Path(directory), grouped=True)
        store.join("sup", machine="here", pid=1, seconds=60).result()

        async def live(n: int) -> None:
            for _ in range(n):
                await store.submit([a_task()], by="ana")
                claimed: list[Claimed] = []
                while not claimed:
                    claimed = await store.claim("sup", slots(1), DEFAULTS)
                await store.finish(claimed[0].session.fence, EXITED, a_pass(), by="sup")

        async def everybody(n: int) -> None:
            import asyncio

            await asyncio.gather(*(live(n) for _ in range(CALLERS)))

        def round_of(n: int) -> float:
            import asyncio

            began = time.perf_counter()
            asyncio.run(everybody(n))
            return CALLERS * n / (time.perf_counter() - began)

        round_of(5)
        rate = sorted(round_of(40) for _ in range(5))[2]
        store.close()
    return Figure(
        f"the same by {CALLERS} callers at once (group commit)",
        f"{rate:,.0f} tasks/s",
        ">= 3,000 tasks/s",
        rate >= 3000,
        "median of 5 rounds",
    )


def _claimer(home: str, n: int, go: object, out: object) -> None:
    store = open_store(Path(home))
    store.join(f"sup-{n}", machine="here", pid=n, seconds=600).result()
    go.wait()  # type: ignore[attr-defined]
    times: list[float] = []
    while True:
        began = time.perf_counter()
        claimed = store.claim(f"sup-{n}", slots(1), DEFAULTS).result()
        times.append(time.perf_counter() - began)
        if not claimed:
            break
    store.close()
    out.put((n, times))  # type: ignore[attr-defined]


def many_claimers() -> list[Figure]:
    """Eight processes empty one queue; the time of each claim, and who got how much."""
    context = mp.get_context("spawn")
    rounds: list[tuple[float, float, float, float]] = []
    for _ in range(CLAIM_ROUNDS):
        with tempfile.TemporaryDirectory(prefix="fleet-bench-") as directory:
            store = open_store(Path(directory))
            store.submit([a_task(f"task {n}") for n in range(CLAIMS)], by="ana").result()
            store.close()
            go, out = context.Event(), context.Queue()
            workers = [context.Process(target=_claimer, args=(directory, n, go, out)) for n in range(CLAIMERS)]
            for worker in workers:
                worker.start()
            time.sleep(2)  # let all of them join before the start
            go.set()
            results = [out.get(timeout=120) for _ in workers]
            for worker in workers:
                worker.join()
            paused = longest_pause(Path(directory))
        times = [t for _, found in results for t in found]
        shares = [len(found) for _, found in results]
        rounds.append((percentile(times, 0.99), max(times), max(shares) / max(1, min(shares)), paused))
    p99, worst, unfair, paused = (statistics.median(values) for values in zip(*rounds, strict=True))
    return [
        Figure(
            "8 processes claiming at once: p99",
            f"{p99 * 1000:.1f} ms",
            "<= 10 ms",
            p99 <= 0.010,
            f"{CLAIMS:,} claims, median of {CLAIM_ROUNDS} runs",
        ),
        Figure(
            "8 processes claiming at once: worst",
            f"{worst * 1000:.1f} ms",
            "<= 50 ms",
            worst <= 0.050,
            f"median of {CLAIM_ROUNDS} runs; the worst of as many bare commits, alone: {paused * 1000:.1f} ms",
        ),
        Figure(
            "8 processes claiming at once: largest to smallest share",
            f"{unfair:.2f}",
            "none starved (<= 2)",
            unfair <= 2,
        ),
    ]


def run() -> list[Figure]:
    """All figures of the store."""
    return [life_cycle(), many_callers(), *many_claimers()]
