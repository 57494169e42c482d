"""Writers are killed at random moments, again and again. Nothing that was acknowledged is lost, nothing is half done.

FLEET_CHAOS_ROUNDS makes it longer, FLEET_CHAOS_SEED makes it repeat itself as far as the kernel lets it.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
from pathlib import Path

import pytest

from fleet import wiring
from fleet.config.edit import set_values
from fleet.config.home import Home
from fleet.config.load import load
from fleet.config.settings import Settings
from fleet.control.home import prepare
from fleet.errors import FleetError
from fleet.model.session import Claimed, Progress
from fleet.model.states import LIVE, TaskState
from fleet.store.restore import is_sound
from fleet.store.store import Store
from fleet.testing.audit import audit
from fleet.testing.builders import CRASHED, DEFAULTS, EXITED, a_fail, a_partial, a_pass, a_task, slots
from tests.support.children import Child
from tests.support.cli import FLEET, Cli
from tests.support.ledgers import exported

ROUNDS = int(os.environ.get("FLEET_CHAOS_ROUNDS", "5"))
SEED = int(os.environ.get("FLEET_CHAOS_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
WRITERS = 4
COMMANDS = 2


@pytest.fixture
def chance() -> random.Random:
    """Chance, whose seed is printed when a test fails."""
    print(f"FLEET_CHAOS_SEED={SEED}")
    return random.Random(SEED)


class Writer:
    """One process that does what supervisors and people do, and says what was committed after it was."""

    def __init__(self, store: Store, chance: random.Random, saying: int) -> None:
        self._store = store
        self._chance = chance
        self._saying = saying
        self._me = f"sup-{os.getpid()}"

    def run(self) -> None:
        """Until killed. What the state of the queue forbids is passed over, and so is what others did first."""
        self._store.join(self._me, machine="here", pid=os.getpid(), seconds=60).result()
        self._store.expire(by=self._me).result()
        for orphan in self._store.orphans():
            with contextlib.suppress(FleetError):
                self._store.adopt(orphan.id, self._me).result()
        acts = (self._submit, self._submit, self._comment, self._work, self._work, self._steer)
        while True:
            with contextlib.suppress(FleetError):
                self._chance.choice(acts)()

    def _say(self, *words: str) -> None:
        os.write(self._saying, (" ".join(words) + "\n").encode())

    def _some(self, *states: TaskState) -> str:
        found = self._store.tasks(frozenset(states) or None, limit=50, newest_first=True)
        return self._chance.choice(found).uid if found else "nothing"

    def _submit(self) -> None:
        needs = tuple({self._some(TaskState.QUEUED) for _ in range(self._chance.randrange(3))} - {"nothing"})
        new = [a_task(f"task {n}", needs=needs) for n in range(self._chance.randint(1, 3))]
        for task in self._store.submit(new, by=self._me).result():
            self._say("task", task.uid)

    def _comment(self) -> None:
        uid = self._some()
        self._say("comment", uid, self._store.comment(uid, "a remark", by=self._me).result().id)

    def _work(self) -> None:
        for claimed in self._store.claim(self._me, slots(self._chance.randint(1, 3)), DEFAULTS).result():
            self._say("session", claimed.session.id)
            self._finish(claimed)

    def _finish(self, claimed: Claimed) -> None:
        fence = claimed.session.fence
        self._store.started(fence, os.getpid(), by=self._me).result()
        self._store.record(fence, Progress(cursor=self._chance.randrange(1000))).result()
        end = self._chance.randrange(5)
        if end == 0:
            self._store.retry(fence, CRASHED, verdict=a_fail(), reason="again", by=self._me).result()
        elif end == 1:
            self._store.pause(fence, EXITED, "question", "Which one?", by=self._me).result()
        else:
            verdict = (a_pass(), a_fail(), a_partial())[end - 2]
            self._store.finish(fence, EXITED, verdict, by=self._me).result()
        self._say("ended", claimed.session.id)

    def _steer(self) -> None:
        if self._chance.random() < 0.5:
            self._store.answer(self._some(TaskState.BLOCKED), "that one", by=self._me).result()
        elif self._chance.random() < 0.5:
            self._store.requeue(self._some(TaskState.FAILED, TaskState.CANCELLED), "again", by=self._me).result()
        else:
            self._store.cancel(self._some(TaskState.QUEUED), "not wanted", by=self._me).result()


def test_killed_writers_lose_and_halve_nothing(tmp_path: Path, chance: random.Random) -> None:
    """All that was acknowledged is there, the ledger holds, the mirror is the ledger, and files are whole or absent."""
    cli = Cli(tmp_path)
    cli.ok("init")
    said: set[tuple[str, ...]] = set()
    for number in range(ROUNDS):
        children = [_start(cli.home, chance.randrange(1 << 32), grouped=n % 2 == 0) for n in range(WRITERS)]
        commands = [_add(cli, f"by command {number}.{n}") for n in range(COMMANDS)]
        for command in commands:
            said |= _killed(command, chance.uniform(0.02, 0.4))
        for each in children:
            each.kill_after(chance.uniform(0.0, 0.3))
        for each in children:
            said |= {tuple(line.split()) for line in each.heard()}
        _check(cli.home, said)
    assert {words[0] for words in said} >= {"task", "comment", "session", "ended"}
    assert _holders(cli.home.path) == []
    assert cli.ok("ledger", "verify").out.startswith("OK: ")
    assert cli.add("goes on")


def _start(home: Home, seed: int, *, grouped: bool) -> Child:
    def write(saying: int) -> None:
        Writer(wiring.open_store(home, Settings(), grouped=grouped), random.Random(seed), saying).run()

    return Child(write)


def _add(cli: Cli, title: str) -> subprocess.Popen[str]:
    argv = [*FLEET, "add", title, "-d", "x" * 3000]
    return subprocess.Popen(argv, env=cli.env, cwd=cli.cwd, stdout=subprocess.PIPE, text=True)


def _killed(command: subprocess.Popen[str], seconds: float) -> set[tuple[str, ...]]:
    """Kill a command after that long, unless it has ended; what it said was done."""
    try:
        out, _ = command.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        command.kill()
        out, _ = command.communicate()
    return {("task", out.split()[1].rstrip(":"))} if out.startswith("Created ") and out.endswith("\n") else set()


def _check(home: Home, said: set[tuple[str, ...]]) -> None:
    with contextlib.closing(wiring.open_store(home, Settings())) as store:
        tasks = {task.uid for task in store.tasks()}
        sessions = {session.id: session for session in store.sessions()}
        comments = {(uid, comment.id) for uid in tasks for comment in store.comments(uid)}
        for kind, *words in said:
            if kind == "task":
                assert words[0] in tasks
            elif kind == "comment":
                assert (words[0], words[1]) in comments
            else:
                assert words[0] in sessions
                assert kind == "session" or sessions[words[0]].state not in LIVE
        audit(store)
        wiring.mirroring(home, Settings(), store)()
        assert home.mirror.read_bytes() == exported(store)
        assert not home.mirror.with_name("fleet.jsonl.1").exists()
        for file in home.tasks.glob("*/task.json"):
            assert json.loads(file.read_bytes())["id"] in tasks
    assert is_sound(home.db)


def _holders(path: Path) -> list[str]:
    """The processes that have a file below a directory open."""
    found = []
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if os.readlink(link).startswith(f"{path}/"):
                found.append(str(link))
    return found


def test_a_migration_that_is_killed_is_finished_by_the_next(tmp_path: Path, chance: random.Random) -> None:
    """Whenever the making of a store is killed, the next process makes the rest and everything works."""
    for number in range(4 * ROUNDS):
        home = Home(tmp_path / str(number))
        home.path.mkdir()
        maker = Child(lambda _, home=home: wiring.make_store(home, Settings()).close())  # type: ignore[misc]
        maker.kill_after(chance.uniform(0.0, 0.02))
        os.close(maker.said)
        with contextlib.closing(wiring.make_store(home, Settings())) as store:
            store.submit([a_task("works")], by="ana").result()
            audit(store)
        assert is_sound(home.db)


def test_an_init_that_is_killed_can_be_run_again(tmp_path: Path, chance: random.Random) -> None:
    """Whenever `fleet init` is killed, running it again gives a home that works."""
    for number in range(ROUNDS):
        cli = Cli(tmp_path / str(number))
        command = subprocess.Popen([*FLEET, "init"], env=cli.env, cwd=cli.cwd, stdout=subprocess.PIPE, text=True)
        _killed(command, chance.uniform(0.05, 0.3))
        cli.ok("init")
        cli.add("works")


def test_a_config_set_that_is_killed_leaves_the_old_file_or_the_new(tmp_path: Path, chance: random.Random) -> None:
    """Whenever an edit of fleet.toml is killed the file is whole, says what it said or what it should, and is free."""
    home = Home(tmp_path / "home")
    prepare(home)

    def set_for_ever(saying: int) -> None:
        n = load(home).supervisor.max_concurrent
        while True:
            n = n % 1000 + 1
            set_values(home, [f"max_concurrent={n}"], None)
            os.write(saying, f"{n}\n".encode())

    for _ in range(2 * ROUNDS):
        before = load(home).supervisor.max_concurrent
        setter = Child(set_for_ever)
        setter.kill_after(chance.uniform(0.0, 0.08))
        last = [before, *map(int, setter.heard())][-1]
        assert load(home).supervisor.max_concurrent in (last, last % 1000 + 1)
        set_values(home, ["max_concurrent=1"], None)
        assert load(home).supervisor.max_concurrent == 1
