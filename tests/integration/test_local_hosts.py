"""Hosts of kind local: what the settings say of this machine holds for the workers that are on it."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fleet import wiring
from fleet.config.load import load
from fleet.hosts.local import LocalTransport
from fleet.hosts.probe import probe
from fleet.model.reach import Reach
from fleet.model.run import NewRun, RunWorker
from fleet.model.states import TaskState
from fleet.model.terms import Terms
from fleet.projections.hosts import hosts
from fleet.projections.why import why
from fleet.testing.builders import a_task
from tests.support.away import table
from tests.support.inhouse import InHouse


class Here(InHouse):
    """A home with workers on this machine that are declared."""

    def __init__(self, path: Path) -> None:
        self.tables: list[str] = []
        super().__init__(path)

    def set(self, **settings: Any) -> None:
        super().set(**settings)
        with self.home.toml.open("a") as file:
            file.write("\n".join(["", *self.tables]))

    def declare(self, section: str, **fields: Any) -> None:
        """One more table of fleet.toml."""
        self.tables.append(table(section, fields))
        self.set()


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    """Nothing of its sessions is left afterwards."""
    made = Here(tmp_path)
    yield made
    made.close()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A directory to work in."""
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def an_agent(path: Path) -> str:
    """A program that says who it is, what it was given, and where it works."""
    path.write_text('#!/bin/sh\necho "mine $PROFILE in $PWD"\n')
    path.chmod(0o755)
    return str(path)


def test_what_a_local_host_says_holds_for_a_worker_that_names_it(
    here: Here, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its program is the agent's, its variables reach it, and a task without a directory works in its own."""
    monkeypatch.setenv("PROFILE", "dark")
    monkeypatch.setenv("OTHER", "not passed on")
    program = an_agent(tmp_path / "agent")
    said = {"working_directory": str(work), "agent_binary": program, "env_allowlist": ["PROFILE"]}
    here.declare("hosts", name="desk", kind="local", **said)
    here.declare("workers", id="w", host="desk", capabilities=["mine"])
    with here.home.toml.open("a") as file:
        file.write('\n[coders.own]\nargv = ["no-such-program", "{prompt}"]\n')
    agent = here.store.submit([a_task("x", coder="own", capabilities=("mine",))], by="ana").result()[0].uid
    shell = here.add(command='echo "$PROFILE${OTHER-} in $PWD"', capabilities=("mine",))
    needs = here.add(command="pwd", capabilities=("mine",), terms=Terms(required_environment=("PROFILE",)))
    placed = here.add(command="pwd", capabilities=("mine",), cwd=str(tmp_path), host=here.house().machine)
    here.drain()
    said_by = {uid: here.said(uid)[0]["text"] for uid in (agent, shell, needs, placed)}
    assert said_by == {
        agent: f"mine dark in {work}",
        shell: f"dark in {work}",
        needs: str(work),
        placed: str(tmp_path),
    }
    assert {one.worker for uid in said_by for one in here.store.sessions(task=uid)} == {"w#1"}


def test_so_does_what_a_worker_says_of_it_in_a_table(here: Here, work: Path) -> None:
    """A worker may describe this machine itself, with the same words."""
    here.tables.append(
        f'[[workers]]\nid = "w"\ncapabilities = ["mine"]\nhost.kind = "local"\nhost.working_directory = "{work}"\n'
    )
    here.set()
    uid = here.add(command="pwd", capabilities=("mine",))
    here.drain()
    assert here.said(uid)[0]["text"] == str(work)


def test_a_worker_is_shown_with_what_people_call_it(here: Here) -> None:
    """Beside its id, by which it is known."""
    here.declare("hosts", name="desk", kind="local")
    here.declare("workers", id="w", host="desk", name="Ana's desk")
    (shown,) = hosts(here.store, load(here.home), machine="local@here")
    assert (shown.workers, shown.titles) == (("local", "w"), ("local", "w (Ana's desk)"))


def test_a_local_host_with_an_agent_is_a_worker_itself(here: Here, work: Path) -> None:
    """As any host that no worker names: it takes as many tasks at once as it says."""
    fields = {"working_directory": str(work), "agent_binary": "/bin/sh", "capabilities": ["mine"]}
    here.declare("hosts", name="desk", kind="local", max_concurrent_tasks=2, **fields)
    uids = [here.add(command="pwd", capabilities=("mine",)) for _ in range(4)]
    here.drain()
    assert {here.said(uid)[0]["text"] for uid in uids} == {str(work)}
    assert {one.worker for uid in uids for one in here.store.sessions(task=uid)} == {"desk#1", "desk#2"}


def test_a_worker_of_a_run_may_name_it(here: Here, work: Path) -> None:
    """Its tasks go to that worker alone, under its name, also where the run bounds how many run at once."""
    here.declare("hosts", name="desk", kind="local", working_directory=str(work))
    run = NewRun(name="r", workers=(RunWorker(name="w", host="desk", capabilities=("mine",)),), max_workers=3)
    new = [a_task("x", description="pwd", coder="command", task_id=f"t{n}") for n in range(2)]
    made = here.store.submit(new, run=run, by="ana").result()
    here.drain()
    for task in made:
        assert here.task(task.uid).state is TaskState.COMPLETED
        assert here.said(task.uid)[0]["text"] == str(work)
        assert [one.worker for one in here.store.sessions(task=task.uid)] == ["w#1"]
    assert why(here.store, load(here.home), here.task(made[0].uid), now=0).state is TaskState.COMPLETED


def test_work_in_its_directory_can_be_kept_apart_and_landed(here: Here, work: Path) -> None:
    """A worktree is made of the checkout that the host names, and its work lands there."""
    identity = ["-c", "user.name=Ana", "-c", "user.email=ana@example.com"]
    for words in (["init", "-q", "-b", "main"], [*identity, "commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", "-C", str(work), *words], check=True)
    for name, value in (("user.name", "Ana"), ("user.email", "ana@example.com")):
        subprocess.run(["git", "-C", str(work), "config", name, value], check=True)
    here.declare("hosts", name="desk", kind="local", working_directory=str(work))
    here.declare("workers", id="w", host="desk", capabilities=["mine"])
    uid = here.add(command="echo new >file", capabilities=("mine",), terms=Terms(isolation="worktree"))
    here.drain()
    assert here.task(uid).state is TaskState.COMPLETED
    assert not (work / "file").exists()
    landing = wiring.open_landing(here.home, load(here.home))
    try:
        landed = landing.land(uid, "merge")
    finally:
        landing.close()
    assert (landed.into, (work / "file").read_text()) == (str(work), "new\n")


def test_a_probe_makes_no_directory_of_fleets_own_here(work: Path) -> None:
    """It only looks whether one can write there: what Fleet keeps of this machine is in the home."""
    reach = Reach(kind="local", working_directory=str(work), agent_binary="/bin/sh")
    found = asyncio.run(probe("desk", reach, LocalTransport(), seconds=20))
    assert (found.host.state, list(work.iterdir())) == ("up", [])
