"""A thousand agents that talk: what the supervisor needs to follow them, and how soon a new one has taken them over."""

from __future__ import annotations

import os
import resource
import subprocess
import threading
import time
from pathlib import Path

from bench.report import Figure
from bench.store_bench import open_store
from bench.supervisor_bench import fleet, home_with, remove
from fleet.testing.builders import a_task

AGENTS = int(os.environ.get("FLEET_BENCH_AGENTS", "1000"))
SECONDS = 20
PATIENCE_SECONDS = 300
# One process without a clock of its own: it says a line for each that it is given, so that it costs next to nothing.
AGENT = 'while read -r line; do echo "$line"; done <{}'


class Prompter:
    """Gives every agent a line a second, evenly spread, through a named pipe each."""

    def __init__(self, directory: Path) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, AGENTS + 500)), hard))
        self.paths = [directory / f"pipe{n}" for n in range(AGENTS)]
        for path in self.paths:
            os.mkfifo(path)
        self._pipes = [os.open(path, os.O_RDWR) for path in self.paths]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._give)

    def begin(self) -> None:
        """Until the end."""
        self._thread.start()

    def end(self) -> None:
        """No more lines: the agents end."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        for pipe in self._pipes:
            os.close(pipe)

    def _give(self) -> None:
        number, began = 0, time.monotonic()
        while not self._over.wait(max(0.0, began + number / AGENTS - time.monotonic())):
            for _ in range(AGENTS // 100):
                os.write(self._pipes[number % AGENTS], b"line %d\n" % (number // AGENTS))
                number += 1


def cpu_seconds(pid: int) -> float:
    """What a process has used so far, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> float:
    """The most memory that it has had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1024


def wait_for(home: Path, event: str, count: int) -> None:
    """Until the supervisor has written so many lines of a kind in its log."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    word = f'"event":"{event}"'
    while sum(path.read_text().count(word) for path in (home / "logs").glob("*.jsonl")) < count:
        assert time.monotonic() < deadline, f"{event} did not come {count} times"
        time.sleep(0.1)


def run() -> list[Figure]:
    """Start them, watch them talk, and take them over."""
    home = home_with(0, AGENTS)
    prompter = Prompter(home)
    store = open_store(home)
    tasks = [a_task(f"talker {n}", description=AGENT.format(path), cwd="/") for n, path in enumerate(prompter.paths)]
    store.submit(tasks, by="bench").result()
    supervisor = subprocess.Popen(fleet(home, "run", "-q"), stdout=subprocess.DEVNULL)
    try:
        wait_for(home, "session_started", AGENTS)
        prompter.begin()
        time.sleep(5)
        used, at = cpu_seconds(supervisor.pid), time.monotonic()
        time.sleep(SECONDS)
        share = (cpu_seconds(supervisor.pid) - used) / (time.monotonic() - at)
        memory = resident_mb(supervisor.pid)
        supervisor.terminate()
        supervisor.wait(60)
        began = time.monotonic()
        supervisor = subprocess.Popen(fleet(home, "run", "-q"), stdout=subprocess.DEVNULL)
        wait_for(home, "session_attached", AGENTS)
        attached = time.monotonic() - began
    finally:
        prompter.end()
        wait_for(home, "session_ended", AGENTS)
        supervisor.terminate()
        supervisor.wait(60)
        counts = store.counts()
        store.close()
        remove(home)
    assert counts == {"completed": AGENTS}, counts
    note = f"{AGENTS:,} agents, a line a second each, {SECONDS} s"
    return [
        Figure("agents that talk: CPU of the supervisor", f"{share:.0%} of a core", "<= 35 %", share <= 0.35, note),
        Figure("agents that talk: memory of the supervisor", f"{memory:.0f} MB", "<= 250 MB", memory <= 250, note),
        Figure("agents that talk: a new supervisor has all", f"{attached:.1f} s", "<= 5 s", attached <= 5, note),
    ]
