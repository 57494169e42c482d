"""Runs of a spec end to end: what a task costs must not grow with the number of tasks in its run."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import time
from pathlib import Path

from bench.report import Figure
from bench.supervisor_bench import fleet, home_with

MANY = int(os.environ.get("FLEET_BENCH_RUN", "10000"))
FEW = MANY // 10
SLOTS = 16
WIDE = 8  # chains beside each other


def spec_of(tasks: int, path: Path) -> Path:
    """A spec of no-op tasks: chains, so that every task but the first few needs another."""
    made = [
        {"id": f"t{n}", "command": "true", "cwd": "/", **({"needs": [f"t{n - WIDE}"]} if n >= WIDE else {})}
        for n in range(tasks)
    ]
    file = path / f"{tasks}.json"
    file.write_text(json.dumps({"name": "chains", "tasks": made}))
    return file


def used() -> float:
    """The processor time of our children, in seconds."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def per_task(tasks: int) -> tuple[float, float, float]:
    """Of a run: processor time per task, wall time per task, and processor time of the submission per task."""
    home = home_with(0, SLOTS)
    try:
        spec = spec_of(tasks, home)
        before = used()
        subprocess.run(fleet(home, "run", str(spec), "--dry-run", "--json"), check=True, stdout=subprocess.DEVNULL)
        read = used() - before
        before, began = used(), time.perf_counter()
        words = ["run", str(spec), "--max-workers", str(SLOTS), "--json"]
        done = subprocess.run(fleet(home, *words), check=True, capture_output=True)
        spent, took = used() - before, time.perf_counter() - began
        assert json.loads(done.stdout)["run"]["counts"]["completed"] == tasks
        return spent / tasks, took / tasks, read / tasks
    finally:
        shutil.rmtree(home, ignore_errors=True)


def run() -> list[Figure]:
    """A long run against a short one."""
    few, many = per_task(FEW), per_task(MANY)
    ratio, reading = many[0] / few[0], many[2] / few[2]
    return [
        Figure(
            f"a run of {MANY:,} dependent no-op tasks: processor time per task, to a run of {FEW:,}",
            f"{ratio:.2f} x ({many[0] * 1000:.1f} ms, {many[1] * MANY:.0f} s in all)",
            "<= 1.25 x",
            ratio <= 1.25,
            f"{SLOTS} slots, {WIDE} chains",
        ),
        Figure(
            f"a spec of {MANY:,} tasks: processor time per task to read and plan it, to one of {FEW:,}",
            f"{reading:.2f} x ({many[2] * 1e6:.0f} us)",
            "<= 1.25 x",
            reading <= 1.25,
            "--dry-run, with the start of Python in both",
        ),
    ]
