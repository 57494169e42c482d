"""A supervisor's life: slots, settings that change, what people ask for, leaving and coming back, and dying aloud."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fleet.config import secrets
from fleet.errors import FleetError, StoreBusy, StoreUnreachable
from fleet.model.reach import Reach
from fleet.model.run import NewRun, Run, RunWorker
from fleet.model.session import Fence, Progress, task_of
from fleet.model.states import SessionState, TaskState
from fleet.policy.limits import used_by
from fleet.store import taskfile
from fleet.store.store import Store
from fleet.supervisor.house import House
from fleet.supervisor.supervisor import Supervisor
from fleet.testing.builders import a_task
from tests.support.inhouse import InHouse
from tests.support.session_host import until
from tests.support.strangers import register

WAITS = 'until [ -e "$FLEET_TASK_DIR/go" ]; do sleep 0.05; done; echo gone'


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[InHouse]:
    """A home whose supervisors run in this process; nothing of its sessions is left afterwards."""
    made = InHouse(tmp_path)
    yield made
    made.close()


def go(inside: InHouse, *uids: str) -> None:
    """Let agents that wait go on."""
    for uid in uids:
        inside.home.task_dir(uid).mkdir(parents=True, exist_ok=True)
        (inside.home.task_dir(uid) / "go").touch()


def running(inside: InHouse) -> int:
    """How many agents run."""
    return sum(session.state is SessionState.RUNNING for session in inside.store.sessions(live=True))


async def run_through(house: House) -> None:
    """Supervise what there is, in a house that was made faulty, to its end."""
    try:
        async with asyncio.timeout(20):
            await Supervisor(house, drain=True).run()
    finally:
        house.store.close()


def test_a_supervisor_that_leaves_hands_its_agents_to_the_next(inside: InHouse) -> None:
    """Agents outlive a supervisor that stops; the next takes them over, and each task is completed by one session."""
    uids = [inside.add(command=WAITS) for _ in range(2)]

    async def work() -> None:
        async with inside.supervising():
            await inside.until(lambda: running(inside) == 2, "two agents")
        assert len(inside.store.sessions(live=True)) == 2
        assert inside.left()
        go(inside, *uids)
        async with inside.supervising():
            for uid in uids:
                await inside.until_state(uid, TaskState.COMPLETED)

    asyncio.run(work())
    for uid in uids:
        assert len(inside.store.sessions(task=uid)) == 1
        assert [said["text"] for said in inside.said(uid)] == ["gone"]


def test_time_in_which_nobody_saw_that_an_agent_had_ended_is_not_its_own(inside: InHouse) -> None:
    """An agent that ends while there is no supervisor has run for as long as its host says, whatever the clock does."""
    uid, ran = inside.add(command=WAITS), list[int]()

    async def work() -> None:
        async with inside.supervising():
            await inside.until(lambda: running(inside) == 1, "an agent")
        go(inside, uid)
        record = await inside.until(lambda: [*inside.home.path.rglob(f"{uid}.*/exit")], "the record of its end")
        (line,) = [line for line in record[0].read_text().splitlines() if line.startswith("ran=")]
        ran.append(int(line[4:]))
        long_ago = inside.store.sessions()[0].claimed_at / 1000 - 3600  # as if the clock had been set meanwhile
        os.utime(record[0], (long_ago, long_ago))
        async with inside.supervising():
            await inside.until_state(uid, TaskState.COMPLETED)

    asyncio.run(work())
    (session,) = inside.store.sessions(task=uid)
    (receipt,) = inside.store.receipts(task=uid)
    assert ran[0] > 0
    assert [session.ran_ms, receipt.duration_ms, used_by([session]).running_ms] == ran * 3


def test_agents_that_are_stopped_with_their_supervisor_cost_nothing(inside: InHouse) -> None:
    """Told to end its agents too, a supervisor leaves no process, and the tasks are queued without a charge."""
    uid = inside.add(command=WAITS)

    async def work() -> None:
        async with inside.supervising() as supervisor:
            await inside.until(lambda: running(inside) == 1, "an agent")
            supervisor.stop(agents=True)

    asyncio.run(work())
    task = inside.task(uid)
    assert (task.state, task.charged, task.receipts) == (TaskState.QUEUED, 0, 0)
    until(lambda: not inside.left(), "the end of the watch over them")


def test_slots_are_respected_and_follow_the_settings(inside: InHouse) -> None:
    """Never more sessions than max_concurrent, which may be changed in fleet.toml while it runs."""
    inside.set(max_concurrent=1)
    uids = [inside.add(command=WAITS) for _ in range(4)]

    async def work() -> None:
        async with inside.supervising():
            await inside.until(lambda: running(inside) == 1, "an agent")
            inside.set(max_concurrent=3)
            await inside.until(lambda: running(inside) == 3, "three agents")
            assert len(inside.store.sessions(live=True)) == 3
            assert len({session.worker for session in inside.store.sessions(live=True)}) == 3
            go(inside, *uids)
            for uid in uids:
                await inside.until_state(uid, TaskState.COMPLETED)

    asyncio.run(work())
    assert inside.logged("settings_reloaded")


def test_an_edit_of_a_coder_counts_for_the_next_task(inside: InHouse) -> None:
    """A coder of the settings that was used before is used as fleet.toml says now, without a restart."""
    kept = inside.home.toml.read_text()

    def declare(word: str) -> None:
        inside.home.toml.write_text(f'{kept}[coders.mine]\nargv = ["sh", "-c", "echo {word}"]\n')

    declare("before")

    async def work() -> list[str]:
        async with inside.supervising():
            first = inside.add(coder="mine")
            await inside.until_state(first, TaskState.COMPLETED)
            declare("after")
            await inside.until(lambda: inside.logged("settings_reloaded"), "a word about it")
            second = inside.add(coder="mine")
            await inside.until_state(second, TaskState.COMPLETED)
        return [first, second]

    uids = asyncio.run(work())
    assert [[said["text"] for said in inside.said(uid)] for uid in uids] == [["before"], ["after"]]


def test_a_broken_plugin_needs_a_person_and_ends_nobody(
    inside: InHouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task whose coder cannot be imported waits for a person, who reads why; the supervisor does the others."""
    register(tmp_path, monkeypatch, "coders", "broken", "import a_library_that_is_not_there\n")
    broken, sound = inside.add(coder="broken"), inside.add({"say": "hello"})
    inside.drain()
    block = inside.task(broken).block
    assert block is not None
    assert "No module named 'a_library_that_is_not_there'" in block.text
    assert inside.task(sound).state is TaskState.COMPLETED


def test_a_broken_edit_keeps_the_settings_and_is_told(inside: InHouse) -> None:
    """A fleet.toml that cannot be used changes nothing, and the log says where the error is."""

    async def work() -> None:
        async with inside.supervising() as supervisor:
            await inside.until(lambda: inside.logged("supervisor_started"), "a supervisor")
            inside.home.toml.write_text("[supervisor]\nmax_concurrent = lots\n")
            await inside.until(lambda: inside.logged("settings_broken"), "a word about it")
            assert supervisor.house.settings.supervisor.coder == "scripted"
            await inside.until_state(inside.add({"say": "still here"}), TaskState.COMPLETED)

    asyncio.run(work())
    assert "fleet.toml:2" in inside.logged("settings_broken")[0]["error"]


def test_settings_that_cannot_be_read_are_waited_for(inside: InHouse) -> None:
    """A fleet.toml that the system does not let us read ends nobody: what is in force stays, and the log tells why."""
    text = inside.home.toml.read_text()

    async def work() -> None:
        async with inside.supervising():
            await inside.until(lambda: inside.logged("supervisor_started"), "a supervisor")
            inside.home.toml.unlink()
            inside.home.toml.mkdir()
            await inside.until(lambda: inside.logged("settings_broken"), "a word about it")
            await inside.until_state(inside.add({"say": "still here"}), TaskState.COMPLETED)
            inside.home.toml.rmdir()
            inside.home.toml.write_text(text)
            await inside.until(lambda: inside.logged("settings_reloaded"), "the settings")

    asyncio.run(work())
    assert "cannot read" in inside.logged("settings_broken")[0]["error"]


def test_secrets_that_others_may_read_keep_their_tasks_waiting(inside: InHouse) -> None:
    """A task whose coder needs a secret from a file that is open to others is not begun, and told how to mend it; it
    costs no attempt, ends nobody, and goes on by itself once that was done."""
    inside.home.toml.write_text(
        inside.home.toml.read_text() + '[coders.mine]\nargv = ["sh", "-c", "echo $MY_KEY"]\nsecrets = ["MY_KEY"]\n'
    )
    secrets.put(inside.home, "MY_KEY", "found")
    inside.home.secrets.chmod(0o644)
    uid = inside.add(coder="mine")

    async def work() -> None:
        async with inside.supervising():
            await inside.until(lambda: "others may read" in inside.task(uid).reason, "a word about it")
            assert "chmod 600" in inside.task(uid).reason
            inside.home.secrets.chmod(0o600)
            await inside.until_state(uid, TaskState.COMPLETED)

    asyncio.run(work())
    assert inside.task(uid).charged == 0
    assert [said["text"] for said in inside.said(uid)] == ["found"]


def test_an_edit_of_the_task_file_counts_when_the_task_is_claimed(inside: InHouse) -> None:
    """A coder written into task.json by hand is the one that runs; one that does not exist needs a person."""
    known, unknown = inside.add({"say": "hello"}), inside.add({"say": "hello"})
    for uid, coder in ((known, "command"), (unknown, "nosuch")):
        taskfile.write(inside.home, inside.task(uid))
        file = taskfile.path(inside.home, uid)
        file.write_text(json.dumps(json.loads(file.read_text()) | {"coder": coder}))
    inside.drain()
    assert inside.store.sessions(task=known)[0].coder == "command"
    block = inside.task(unknown).block
    assert block is not None
    assert block.kind == "needs_human"
    assert "nosuch" in block.text
    assert inside.store.sessions(task=unknown) == []


def test_a_coder_that_is_not_there_needs_a_person(inside: InHouse) -> None:
    """A task whose coder cannot be loaded waits for a person; the supervisor goes on with the others."""
    lost = inside.add(coder="nosuch")
    found = inside.add({"say": "hello"})
    inside.drain()
    block = inside.task(lost).block
    assert block is not None
    assert (block.kind, inside.task(found).state) == ("needs_human", TaskState.COMPLETED)


@pytest.mark.parametrize(
    ("verb", "state", "outcome"),
    [
        ("interrupt", TaskState.BLOCKED, "done"),
        ("stop", TaskState.CANCELLED, "done"),
        ("restart", TaskState.QUEUED, "done"),
    ],
)
def test_what_people_ask_for_is_carried_out(inside: InHouse, verb: str, state: TaskState, outcome: str) -> None:
    """A session is ended as was asked, its task stands where it should, uncharged, and the intent says so."""
    inside.set(max_concurrent=1)
    uid = inside.add(command=WAITS, priority=0)
    dependent = inside.add({"say": "after"}, needs=(uid,))
    after: list[TaskState] = []

    async def work() -> None:
        async with inside.supervising() as supervisor:
            await inside.until(lambda: running(inside) == 1, "an agent")
            with inside.control() as control:
                getattr(control.steer, verb)(uid, "because")
            await inside.until(lambda: inside.store.intents(target=uid)[0].outcome, "an outcome")
            after.append(inside.task(uid).state)
            supervisor.stop(agents=True)

    asyncio.run(work())
    (intent,) = inside.store.intents(target=uid)
    task = inside.task(uid)
    assert (intent.outcome, task.charged) == (outcome, 0)
    assert after[0] is state or (verb == "restart" and after[0] is TaskState.RUNNING)
    if verb == "restart":
        assert task.state is TaskState.QUEUED
    if verb == "interrupt":
        assert task.block is not None
        assert (task.block.kind, task.block.text) == ("interrupted", "because")
    if verb == "stop":
        assert inside.task(dependent).skipped_for == uid


def test_a_wish_is_not_forgotten_when_its_session_ends_first(inside: InHouse) -> None:
    """A stop that finds its task back in the queue cancels it there."""
    uid = inside.add(command=WAITS)

    async def work() -> None:
        async with inside.supervising() as supervisor:
            await inside.until(lambda: running(inside) == 1, "an agent")
            supervisor.stop(agents=True)
        inside.store.intend("stop", uid, by="ana").result()
        async with inside.supervising():
            await inside.until_state(uid, TaskState.CANCELLED)
            await inside.until(lambda: inside.store.intents(target=uid)[0].outcome == "done", "an outcome")

    asyncio.run(work())


def test_a_restart_ends_one_session_only(inside: InHouse) -> None:
    """A restart is carried out by the session that begins then: that one is not ended for the same wish again."""
    uid = inside.add(command=WAITS)

    async def work() -> None:
        async with inside.supervising() as supervisor:
            fulfil = supervisor.house.store.fulfil

            async def lost_at_first(*args: Any, **fields: Any) -> Any:  # as if it had been killed just then
                begun = len(inside.store.sessions(task=uid)) > 1
                return await fulfil(*args, **fields) if begun else None

            supervisor.house.store.fulfil = lost_at_first  # type: ignore[method-assign,assignment]
            await inside.until(lambda: running(inside) == 1, "an agent")
            with inside.control() as control:
                control.steer.restart(uid, "because")
            await inside.until(lambda: inside.store.intents(target=uid)[0].outcome == "done", "an outcome")
            go(inside, uid)
            await inside.until_state(uid, TaskState.COMPLETED)

    asyncio.run(work())
    assert [session.outcome for session in inside.store.sessions(task=uid)] == ["interrupted", "ok"]


def test_a_drain_ends_though_a_task_waits_for_a_person(inside: InHouse) -> None:
    """A queued task whose need is blocked does not keep a draining supervisor; one that is due later does."""
    asked = inside.add({"ask": "Which?"})
    behind = inside.add({"say": "after"}, needs=(asked,))
    later = inside.add({"end": "crashed"})
    inside.set(max_attempts=2, backoff_seconds=1)
    inside.drain()
    assert inside.task(behind).state is TaskState.QUEUED
    assert inside.task(later).state is TaskState.FAILED


class Faulty:
    """A store with a fault that nobody expects, in what it does for one task."""

    def __init__(self, store: Store, uid: str) -> None:
        self._store, self._uid = store, uid

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def record(self, fence: Fence, progress: Progress) -> Any:
        if task_of(fence.session) == self._uid:
            raise ZeroDivisionError("a fault of our own")
        return self._store.record(fence, progress)


def test_a_fault_in_a_session_is_never_silent_and_ends_nobody_else(inside: InHouse) -> None:
    """What nobody expected is logged with its place, and its task waits for a person; the supervisor does the others,
    and whoever comes next finds nothing that would end it."""
    faulty, sound = inside.add({"say": "hello"}), inside.add({"say": "hello"})

    async def work() -> None:
        house = inside.house()
        house.store = Faulty(house.store, faulty)  # type: ignore[assignment]
        await run_through(house)

    asyncio.run(work())
    block = inside.task(faulty).block
    assert block is not None
    assert "ZeroDivisionError: a fault of our own (test_supervisor_life.py" in block.text
    assert inside.task(sound).state is TaskState.COMPLETED
    (logged,) = inside.logged("session_failed")
    assert "in record" in "".join(logged["traceback"])
    with inside.control() as control:
        control.answer(faulty, "mended")
    inside.drain()
    assert inside.task(faulty).state is TaskState.COMPLETED


@pytest.mark.parametrize("times", [1, 100])
def test_a_fault_in_a_round_is_never_silent(inside: InHouse, times: int) -> None:
    """It is logged with its place and the next round is tried; where it stays, it ends the supervisor and is raised."""
    uid = inside.add({"say": "hello"})

    async def work() -> None:
        house = inside.house()
        claim, faults = house.store.claim, iter(range(times))

        def faulty(*args: Any) -> Any:
            if next(faults, None) is not None:
                raise ZeroDivisionError("a fault of our own")
            return claim(*args)

        house.store.claim = faulty  # type: ignore[method-assign,assignment]
        await run_through(house)

    if times == 1:
        asyncio.run(work())
        assert inside.task(uid).state is TaskState.COMPLETED
    else:
        with pytest.raises(ZeroDivisionError):
            asyncio.run(work())
        assert inside.logged("supervisor_failed")
    assert "in faulty" in "".join(inside.logged("round_failed")[0]["traceback"])


def test_a_claim_whose_answer_was_lost_is_found_again(inside: InHouse) -> None:
    """A session that the store gave us, though we were not told, is gone on with: it waits for nobody else."""
    uid = inside.add({"say": "hello"})

    async def work() -> None:
        house = inside.house()
        claim = house.store.claim
        lost: list[Any] = []

        async def unheard(*args: Any) -> Any:
            claimed = await claim(*args)
            if claimed and not lost:
                lost.append(claimed)
                raise StoreUnreachable("the connection broke")
            return claimed

        house.store.claim = unheard  # type: ignore[method-assign,assignment]
        await run_through(house)

    asyncio.run(work())
    assert inside.task(uid).state is TaskState.COMPLETED
    assert inside.logged("session_found")


def test_a_fault_in_the_lease_keeper_is_never_silent(inside: InHouse) -> None:
    """When the lease cannot be kept, the supervisor ends and says so."""

    async def work() -> None:
        house = inside.house(lease_seconds=0.3)

        def broken(*_: object, **__: object) -> None:
            raise RuntimeError("a fault in the keeper")

        house.store.renew = broken  # type: ignore[method-assign,assignment]
        try:
            async with asyncio.timeout(10):
                await Supervisor(house).run()
        finally:
            house.store.close()

    with pytest.raises(RuntimeError, match="a fault in the keeper"):
        asyncio.run(work())
    assert inside.logged("supervisor_failed")


def test_errors_that_pass_are_waited_out(inside: InHouse) -> None:
    """A store that is busy for a moment delays a session and ends nothing; each line is still logged once."""
    uid = inside.add({"lines": 3}, {"sleep": 0.3}, {"lines": 3})
    failures = iter([True, False, True])

    async def work() -> None:
        house = inside.house()
        record, claim = house.store.record, house.store.claim
        busy = iter([True])

        def sometimes(*args: Any) -> Any:
            if next(failures, False):
                raise StoreBusy
            return record(*args)

        def at_first(*args: Any) -> Any:
            if next(busy, False):
                raise StoreBusy
            return claim(*args)

        house.store.record, house.store.claim = sometimes, at_first  # type: ignore[method-assign,assignment]
        await run_through(house)

    asyncio.run(work())
    assert inside.task(uid).state is TaskState.COMPLETED
    texts = [said["text"] for said in inside.said(uid) if said["kind"] == "text"]
    assert texts == ["line 1", "line 2", "line 3"] * 2
    assert inside.logged("session_delayed")
    assert inside.logged("loop_delayed")
    assert issubclass(StoreBusy, FleetError)


class WithoutRuns:
    """A store that at times cannot say anything of a run, and counts how often it was asked then."""

    def __init__(self, store: Store) -> None:
        self.is_away, self.asked = False, 0
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def run(self, run: str) -> Run:
        if self.is_away:
            self.asked += 1
            raise StoreUnreachable("the database does not answer")
        return self._store.run(run)


def far_away(name: str) -> NewRun:
    """A run whose one worker is on a machine that does not answer."""
    way = {"kind": "ssh", "host": "127.0.0.1", "port": 1, "user": "ana", "agent_binary": "sh"}
    reach = msgspec.convert(way | {"working_directory": "/nowhere"}, Reach)
    return NewRun(name=name, workers=(RunWorker(name="far", reach=reach),))


def test_a_run_keeps_its_workers_however_many_came_after_it(inside: InHouse) -> None:
    """The machine of a run's own worker is asked for its tasks, also when a thousand runs are newer."""
    (old,) = inside.store.submit([a_task("work", coder="scripted")], by="ana", run=far_away("old")).result()
    later = [a_task("later", host="elsewhere")]
    for submitted in [inside.store.submit(later, by="ana", run=NewRun(name="newer")) for _ in range(1000)]:
        submitted.result()

    async def scene() -> None:
        async with inside.supervising():
            await inside.until(lambda: inside.logged("host_probed"), "a probe")

    asyncio.run(scene())
    assert {line["host"] for line in inside.logged("host_probed")} == {f"{old.run}/far"}


def test_a_store_that_is_away_while_hosts_are_probed(inside: InHouse) -> None:
    """How the machine of a run is reached is in the store: while that is away, all else goes on."""
    inside.store.submit([a_task("work", coder="scripted")], by="ana", run=far_away("away")).result()

    async def scene() -> None:
        async with inside.supervising() as supervisor:
            store = WithoutRuns(supervisor.house.store)
            setattr(supervisor.house, "store", store)  # noqa: B010  # it is a store in all but its type
            await inside.until(lambda: inside.logged("host_probed"), "a probe")
            store.is_away = True
            await inside.until(lambda: store.asked, "another one")
            store.is_away = False
            other = inside.add({"say": "hello"})
            await inside.until_state(other, TaskState.COMPLETED)

    asyncio.run(scene())
