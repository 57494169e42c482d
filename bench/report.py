"""What was measured, against what was promised."""

from __future__ import annotations

import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


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


def write(directory: Path, part: str, figures: list[Figure]) -> None:
    """Put the figures of one part in the place of its last ones, and write the table of all."""
    kept = directory / "results.json"
    parts = json.loads(kept.read_text("utf-8")) if kept.exists() else {}
    machine = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}, {_cores()} cores"
    machine += f", files on {_filesystem()}, load {os.getloadavg()[0]:.1f} at the end"
    parts[part] = {"when": f"{_day()}, {machine}", "figures": [asdict(figure) for figure in figures]}
    kept.write_text(json.dumps(parts, indent=1) + "\n", "utf-8")
    (directory / "RESULTS.md").write_text(table(parts), "utf-8")


def table(parts: dict[str, Any]) -> str:
    """The results, for people."""
    lines = [
        "# Results",
        "",
        "Written by `make bench`. Ratios are taken within one run; absolute figures are of the machine named.",
    ]
    for name, part in parts.items():
        lines += ["", f"## {name}", "", part["when"], "", "| what | measured | promised | kept | note |"]
        lines.append("|---|---|---|---|---|")
        for figure in (Figure(**each) for each in part["figures"]):
            word = "yes" if figure.kept else "NO"
            lines.append(f"| {figure.what} | {figure.measured} | {figure.promised} | {word} | {figure.note} |")
    return "\n".join(lines) + "\n"


def _day() -> str:
    return time.strftime("%Y-%m-%d", time.gmtime())


def _cores() -> int:
    return os.cpu_count() or 1


def _filesystem() -> str:
    """Where the homes that are measured lie (TMPDIR chooses): what a commit costs depends on it."""
    there = os.path.realpath(tempfile.gettempdir())
    mounts = [line.split() for line in Path("/proc/mounts").read_text("utf-8").splitlines()]
    above = [one for one in mounts if there == one[1] or there.startswith(one[1].rstrip("/") + "/")]
    device, _, kind, *_ = max(above, key=lambda one: len(one[1]))
    journal = kind in {"ext3", "ext4"} and Path(f"/proc/fs/jbd2/{Path(device).name}-8").exists()
    return f"{kind}{' with a journal' if journal else ''}"
