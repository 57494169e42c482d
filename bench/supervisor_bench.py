"""The supervisor end to end: no-op tasks through the real loops, the real runner and the real store."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.report import Figure, percentile
from bench.store_bench import open_store
from fleet.testing.builders import a_task

MANY = int(os.environ.get("FLEET_BENCH_TASKS", "1000"))
PROBES = 30
ROUNDS = 5


def home_with(tasks: int, slots: int) -> Path:
    """A home with that many tasks that do nothing."""
    home = Path(tempfile.mkdtemp(prefix="fleet-bench-"))
    (home / "fleet.toml").write_text(f'[supervisor]\ncoder = "command"\nmax_concurrent = {slots}\n')
    for name in ("logs", "tasks", "sessions", "bells", "leases"):
        (home / name).mkdir()
    store = open_store(home)
    if tasks:
        store.submit([a_task(f"no-op {n}", description="true", cwd="/") for n in range(tasks)], by="bench").result()
    store.close()
    return home


def fleet(home: Path, *words: str) -> list[str]:
    """The command, on a home."""
    return [sys.executable, "-m", "fleet", "--home", str(home), *words]


def drained(tasks: int, slots: int) -> float:
    """How long a supervisor takes to run that many, from its start to its end."""
    home = home_with(tasks, slots)
    try:
        began = time.perf_counter()
        subprocess.run(fleet(home, "run", "--drain", "-q"), check=True, stdout=subprocess.DEVNULL)
        took = time.perf_counter() - began
        store = open_store(home)
        assert store.counts() == {"completed": tasks}, store.counts()
        store.close()
        return took
    finally:
        remove(home)


def remove(home: Path) -> None:
    """Take a home away, once the watch over its sessions has ended and cleaned up behind them."""
    deadline = time.monotonic() + 30
    while (home / "sessions" / ".watch").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    shutil.rmtree(home, ignore_errors=True)


def few() -> Figure:
    """Twenty tasks, four at a time."""
    took = statistics.median(drained(20, 4) for _ in range(5))
    return Figure("20 no-op tasks at 4 slots, end to end", f"{took:.2f} s", "<= 1.5 s", took <= 1.5, "median of 5")


def many() -> Figure:
    """Many tasks, sixteen at a time, against xargs."""
    ratios = []
    for _ in range(ROUNDS):
        ours = drained(MANY, 16)
        began = time.perf_counter()
        words = "\n".join(["true"] * MANY)
        subprocess.run(["xargs", "-P16", "-I{}", "sh", "-c", "{}"], input=words, text=True, check=True)
        ratios.append((ours / (time.perf_counter() - began), ours))
    ratio, took = sorted(ratios)[ROUNDS // 2]
    return Figure(
        f"{MANY:,} no-op tasks at 16 slots, with receipts, to `xargs -P16`",
        f"{ratio:.1f} x ({took:.1f} s)",
        "<= 12 x",
        ratio <= 12,
        f"median of {ROUNDS}, interleaved",
    )


def latency() -> list[Figure]:
    """From the moment a task is added to the moment its process is there, with an idle supervisor."""
    home = home_with(0, 4)
    supervisor = subprocess.Popen(fleet(home, "run", "-q"), stdout=subprocess.DEVNULL)
    store = open_store(home)
    took = []
    try:
        while not store.supervisors():
            time.sleep(0.05)
        for n in range(PROBES):
            (task,) = store.submit([a_task(f"probe {n}", description="sleep 0.2", cwd="/")], by="bench").result()
            while not (found := store.sessions(task=task.uid)) or found[0].started_at is None:
                time.sleep(0.001)
            took.append((found[0].started_at - task.created_at) / 1000)
            time.sleep(0.25)
    finally:
        supervisor.terminate()
        supervisor.wait(30)
        store.close()
        remove(home)
    p50, p99 = statistics.median(took), percentile(took, 0.99)
    note = f"{PROBES} probes, idle supervisor"
    return [
        Figure("added to started: p50", f"{p50 * 1000:.0f} ms", "<= 50 ms", p50 <= 0.050, note),
        Figure("added to started: p99", f"{p99 * 1000:.0f} ms", "<= 150 ms", p99 <= 0.150, note),
    ]


def run() -> list[Figure]:
    """All figures of the supervisor."""
    return [few(), many(), *latency()]
