"""Supervisors in processes of their own, to be killed; agents that watch each other; and what must be true after.

As a program it is a supervisor that ends itself with SIGKILL at a named point:

    python -m tests.support.supervised HOME [--drain] [--lease SECONDS] [--die-at POINT] [--nth N]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from fleet import wiring
from fleet.config.home import Home
from fleet.config.load import load
from fleet.hosts.kernel import cgroup_of
from fleet.model.session import Session
from fleet.model.states import LIVE, Result, TaskState
from fleet.model.task import Task
from fleet.store.store import Store
from fleet.supervisor.supervisor import Supervisor
from fleet.testing.audit import audit
from fleet.testing.builders import a_task
from tests.support.cli import Cli
from tests.support.session_host import kill, lives, processes_with, until

# Every step between the claim of a task and the note that its intent was carried out.
STEPS = ("taken", "claimed", "prepared", "launching", "launched", "started", "read", "logged", "recorded")
REQUESTS = ("applied", "answered")
ENDS = ("concluding", "scored", "settling", "settled")
RESCUES = ("adopted", "attached")
STOPS = ("stopping", "stopped")
POINTS = STEPS + REQUESTS + ENDS + RESCUES + STOPS

# It says so when another session of its task lives, then speaks, and leaves a remark in the middle.
AGENT = """
me=$FLEET_TASK_ID
if ! ln -s $$ {work}/$me.live 2>/dev/null; then
    other=/proc/$(readlink {work}/$me.live)/status
    if grep -q '^State:.[^ZX]' "$other" 2>/dev/null; then echo "$me" >>{work}/double; fi
    ln -sfn $$ {work}/$me.live
fi
echo $$ >>{work}/$me.runs
i=0
while [ $i -lt {lines} ]; do
    echo "line $i of $me"
    i=$((i + 1))
    sleep {pause}
done
fleet comment "said once by $$"
echo "the end of $me"
rm {work}/$me.live
"""


class Campaign:
    """One home whose supervisors are killed, and its tasks."""

    def __init__(self, path: Path, *, slots: int = 4, store_url: str = "", schema: str = "fleet") -> None:
        self.cli = Cli(path)
        self.cli.env["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))  # the code under test, wherever it is
        self.cli.ok("init")
        self.home = self.cli.home
        self.work = path / "work"
        self.work.mkdir()
        self.kills = 0
        self.more_runs: Counter[str] = Counter()  # of tasks that had to be begun again
        lines = ["[supervisor]", 'coder = "command"', f"max_concurrent = {slots}", "max_attempts = 50"]
        lines += ["backoff_seconds = 0", "grace_seconds = 1"]
        if store_url:
            lines += ["[store]", f'url = "{store_url}"', f'schema = "{schema}"']
        self.home.toml.write_text("\n".join(lines) + "\n")
        if store_url:
            wiring.prepare_store(self.home, load(self.home), force=False)

    @contextlib.contextmanager
    def store(self) -> Iterator[Store]:
        """The home's store."""
        with contextlib.closing(wiring.open_store(self.home, load(self.home))) as store:
            yield store

    def ask(self, question: Callable[[Store], Any]) -> Any:
        """One look at the store."""
        with self.store() as store:
            return question(store)

    def add(self, n: int = 1, *, lines: int = 8, pause: float = 0.02, **fields: Any) -> list[str]:
        """Tasks whose agents speak for a while."""
        script = AGENT.format(work=self.work, lines=lines, pause=pause)
        new = [a_task("speak", **({"description": script} | fields)) for _ in range(n)]
        with self.store() as store:
            return [task.uid for task in store.submit(new, by="ana").result()]

    @contextlib.contextmanager
    def supervisor(self, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        """A supervisor that is gone afterwards."""
        argv = [sys.executable, "-m", "tests.support.supervised", str(self.home.path), *words]
        with (self.home.path / "supervisor.err").open("ab") as errors:
            process = subprocess.Popen(argv, env=self.cli.env, cwd=Path(__file__).parents[2], stderr=errors)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()

    def killed_after(self, seconds: float) -> bool:
        """Let one work for that long, once it has begun. False: it had nothing left to do before."""
        before = self._begun()
        with self.supervisor("--drain") as process:
            until(lambda: self._begun() > before, "a supervisor")
            try:
                assert process.wait(seconds) == 0, self.errors()
            except subprocess.TimeoutExpired:
                process.kill()
                self.kills += process.wait() == -signal.SIGKILL
                return True
        return False

    def _begun(self) -> int:
        return sum(file.read_bytes().count(b'"supervisor_started"') for file in self.home.logs.glob("*.jsonl"))

    def killed_at(self, point: str, nth: int = 1) -> None:
        """Let one work until it comes to a point for the nth time."""
        with self.supervisor("--die-at", point, "--nth", str(nth)) as process:
            try:
                assert process.wait(20) == -signal.SIGKILL, self.errors()
            except subprocess.TimeoutExpired:
                raise AssertionError(f"it never came to {point}") from None
        self.kills += 1

    def killed_when_it_speaks(self, uid: str) -> None:
        """Let one work until the agent of a task has spoken."""
        with self.supervisor() as process:
            until(lambda: any(one.task == uid and self._said(one) for one in self.live()), f"the words of {uid}")
            process.kill()
        self.kills += 1

    def drain(self) -> None:
        """Let one work until all is done."""
        with self.supervisor("--drain") as process:
            assert process.wait(60) == 0, self.errors()

    def errors(self) -> str:
        """What supervisors said on stderr."""
        return (self.home.path / "supervisor.err").read_text()

    def live(self) -> list[Session]:
        """The sessions that are open."""
        found: list[Session] = self.ask(lambda store: store.sessions(live=True))
        return found

    def speaking(self, n: int) -> list[Session]:
        """Wait until that many agents live and have spoken."""

        def speak() -> list[Session]:
            found = [one for one in self.live() if self._said(one) and lives(self.agent_of(one))]
            return found if len(found) >= n else []

        return until(speak, f"the words of {n} agents")

    def _said(self, session: Session) -> bool:
        stdout = self.home.sessions / session.id / "stdout"
        return stdout.exists() and stdout.stat().st_size > 0

    def has_ended(self, session: Session) -> bool:
        """Whether there is a record of its end."""
        return (self.home.sessions / session.id / "exit").exists()

    def agent_of(self, session: Session) -> int:
        """The process of an agent."""
        return int((self.home.sessions / session.id / "pid").read_text().split()[1])

    def runner_of(self, session: Session) -> int:
        """The process that waits for an agent."""
        return int((self.home.sessions / session.id / "claim").read_text().split()[1])

    def runs(self, uid: str) -> int:
        """How often an agent of this task began."""
        return len((self.work / f"{uid}.runs").read_text().split())

    def check(self) -> None:
        """Nothing was lost, doubled or falsely done, and nothing is left."""
        assert not (self.work / "double").exists(), "two sessions of a task lived at the same time"
        with self.store() as store:
            audit(store)
            for task in store.tasks():
                self._check_task(store, task)
        until(lambda: not self.left(), "the end of all agents")
        assert [path for path in map(cgroup_of, map(str, self.home.sessions.iterdir())) if os.path.exists(path)] == []
        assert self.cli.ok("ledger", "verify").out.startswith("OK: ")

    def left(self) -> list[int]:
        """The processes that belong to this home."""
        return processes_with(os.fsencode(self.home.path))

    def _check_task(self, store: Store, task: Task) -> None:
        assert task.state is TaskState.COMPLETED, (task.state, task.reason)
        final = [receipt for receipt in store.receipts(task=task.uid) if receipt.result is Result.PASS]
        assert [receipt.id for receipt in final] == [task.receipt]
        sessions = store.sessions(task=task.uid)
        assert not [one for one in sessions if one.state in LIVE]
        for session in sessions:
            self._check_lines(session)
        if (self.work / f"{task.uid}.runs").exists():
            assert self.runs(task.uid) <= 1 + self.more_runs[task.uid], [one.outcome for one in sessions]
            last = max(sessions, key=lambda one: int(one.id.rpartition(".")[2]))
            assert self._logged(last)[-1][1] == f"the end of {task.uid}"
            remarks = [remark.text for remark in store.comments(task.uid)]
            assert len(remarks) == len(set(remarks)) >= 1

    def _check_lines(self, session: Session) -> None:
        """Every line of its output is in the log of its task, once, in order."""
        file = self.home.sessions / session.id / "stdout"
        raw = file.read_bytes() if file.exists() else b""
        expected, offset = [], 0
        for line in raw.splitlines(keepends=True):
            if session.coder == "command":
                expected.append((offset, line.decode().rstrip()))
            offset += len(line)
        logged = self._logged(session)
        assert session.coder != "command" or logged == expected, session
        assert len({place for place, _ in logged}) == len(logged), session

    def _logged(self, session: Session) -> list[tuple[int, str]]:
        log = self.home.task_dir(session.task) / "log.jsonl"
        if not log.exists():
            return []
        records = [msgspec.json.decode(line) for line in log.read_bytes().splitlines()]
        ours = [one for one in records if one["session"] == session.id and "said" in one]
        return [(one["offset"], one["said"].get("text", "")) for one in ours]


def kill_all(pids: list[int]) -> None:
    """kill -9, and wait until they are gone."""
    for pid in pids:
        kill(pid)
    until(lambda: not any(map(lives, pids)), "their end")


def main() -> None:
    """A supervisor, as a test wants it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("home", type=Path)
    parser.add_argument("--drain", action="store_true")
    parser.add_argument("--lease", type=float, default=30.0)
    parser.add_argument("--die-at", default="")
    parser.add_argument("--nth", type=int, default=1)
    args = parser.parse_args()
    home = Home(args.home)
    house = wiring.open_house(home, load(home), coder=None, model=None, echo=None)
    house.lease_seconds = args.lease
    seen: Counter[str] = Counter()

    def at(point: str) -> None:
        seen[point] += 1
        if point == args.die_at and seen[point] == args.nth:
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)  # the signal may take a moment

    house.at = at

    async def alive() -> None:
        supervisor = Supervisor(house, drain=args.drain)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, supervisor.stop)
        await supervisor.run()

    try:
        asyncio.run(alive())
    finally:
        house.store.close()


if __name__ == "__main__":
    main()
