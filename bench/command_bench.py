"""The command line: the same cost at a million events as at a thousand, and a fast start."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from bench.report import Figure
from bench.store_bench import open_store
from fleet.config.clock import utc_ms
from fleet.testing.builders import DEFAULTS, EXITED, a_pass, a_task, slots

SMALL = 1_000
LARGE = int(os.environ.get("FLEET_BENCH_EVENTS", "1000000"))
ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 31
HOUR_MS = 3_600_000


def fill(home: Path, events: int) -> int:
    """A home with at least that many events: mostly done, some queued, as a queue that was at work until an hour ago.

    Not until now: what is asked for since a moment is looked for a minute before it, and the filling takes as long.
    """
    home.mkdir(parents=True, exist_ok=True)
    (home / "fleet.toml").write_text("")
    store = open_store(home, grouped=True, clock=lambda: utc_ms() - HOUR_MS)
    store.join("sup", machine="here", pid=1, seconds=60).result()
    written = 1
    while written < events - 200:
        n = min(500, (events - written) // 5 + 1)
        store.submit([a_task(f"task {k}", cwd="/srv/app") for k in range(n)], by="ana").result()
        for claimed in store.claim("sup", slots(n), DEFAULTS).result():
            fence = claimed.session.fence
            store.started(fence, 1, by="sup")
            store.finish(fence, EXITED, a_pass(), by="sup")
        written += 5 * n
    store.submit([a_task(f"queued {k}", cwd="/srv/app") for k in range(100)], by="ana").result()
    count = store.last(1)[0].seq
    store.close()
    return count


def clean_venv(directory: Path) -> Path:
    """Fleet as a user installs it: in a fresh virtual environment, with nothing else in it."""
    subprocess.run(["sh", str(ROOT / "scripts" / "install"), "--venv", str(directory)], check=True, capture_output=True)
    return directory / "bin"


def seconds(argv: list[str], env: dict[str, str]) -> float:
    """How long a command takes, from outside."""
    began = time.perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    return time.perf_counter() - began


def compare(commands: dict[str, tuple[list[str], dict[str, str]]], rounds: int = ROUNDS) -> dict[str, float]:
    """The median time of each command, run in turn so that all see the same machine."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for name, (argv, env) in commands.items():
        seconds(argv, env)  # warm
        assert times[name] == []
    for _ in range(rounds):
        for name, (argv, env) in commands.items():
            times[name].append(seconds(argv, env))
    return {name: statistics.median(found) for name, found in times.items()}


def run() -> list[Figure]:
    """All figures of the command line."""
    directory = Path(tempfile.mkdtemp(prefix="fleet-bench-"))
    try:
        programs = clean_venv(directory / "venv")
        small, large = directory / "small", directory / "large"
        few, many = fill(small, SMALL), fill(large, LARGE)
        base = {"PATH": os.environ["PATH"], "HOME": str(directory)}

        def command(home: Path, *words: str) -> tuple[list[str], dict[str, str]]:
            return [str(programs / "fleet"), *words], {**base, "FLEET_HOME": str(home)}

        found = compare(
            {
                "python": ([str(programs / "python"), "-c", "pass"], base),
                "ready small": command(small, "ready"),
                "ready large": command(large, "ready"),
                "status small": command(small, "status", "--json"),
                "status large": command(large, "status", "--json"),
                "cost small": command(small, "cost", "--since", "1s", "--json"),
                "cost large": command(large, "cost", "--since", "1s", "--json"),
            }
        )
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    ready = found["ready large"] / found["ready small"]
    status = found["status large"] / found["status small"]
    cost = found["cost large"] / found["cost small"]
    start = found["ready small"] / found["python"]
    note = f"{many:,} events against {few:,}, medians of {ROUNDS}, interleaved"
    return [
        Figure("`fleet ready` at a million events to a thousand", f"{ready:.2f} x", "<= 1.5 x", ready <= 1.5, note),
        Figure(
            "`fleet status --json` at a million events to a thousand",
            f"{status:.2f} x",
            "<= 1.5 x",
            status <= 1.5,
            note,
        ),
        Figure(
            "`fleet cost` of the last second at a million events to a thousand",
            f"{cost:.2f} x",
            "<= 1.5 x",
            cost <= 1.5,
            note,
        ),
        Figure(
            "cold start: `fleet ready` to `python -c pass`",
            f"{start:.2f} x ({found['ready small'] * 1000:.0f} ms to {found['python'] * 1000:.0f} ms)",
            "<= 5 x",
            start <= 5,
            "the same clean virtual environment",
        ),
    ]
