"""What was measured, against what was promised."""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """One promise and what was measured."""

    what: str
    measured: str
    promised: str
    kept: bool
    note: str = ""


def median_seconds(act: Callable[[], object], rounds: int) -> float:
    """The median time of an act."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        act()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def percentile(values: list[float], share: float) -> float:
    """The value below which that share of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def write(path: Path, figures: list[Figure]) -> None:
    """The results, as a table."""
    lines = [
        "# Results",
        "",
        "Written by `make bench`. Ratios are taken within one run; absolute figures are of the machine named here.",
        "",
        f"{_day()}, {platform.system()} {platform.machine()}, Python {platform.python_version()}, {_cores()} cores",
        "",
        "| what | measured | promised | kept | note |",
        "|---|---|---|---|---|",
    ]
    lines += [f"| {f.what} | {f.measured} | {f.promised} | {'yes' if f.kept else 'NO'} | {f.note} |" for f in figures]
    path.write_text("\n".join(lines) + "\n", "utf-8")


def _day() -> str:
    return time.strftime("%Y-%m-%d", time.gmtime())


def _cores() -> int:
    import os

    return os.cpu_count() or 1
