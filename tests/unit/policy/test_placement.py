"""Placement: slots of hosts that are up, the least loaded first; the others with their reason."""

from __future__ import annotations

from typing import Any

from fleet.model.host import Host
from fleet.model.session import Defaults, Lane, Session, Slot, first_fit
from fleet.model.task import Task
from fleet.policy.placement import Crew, offer, refusals, unfit

UP = Host(name="b", kind="ssh", state="up", since=0)
DEFAULTS = Defaults(coder="command", model="")
LIKE = Slot(worker="", host="here")


def here(n: int) -> list[Slot]:
    return [Slot(worker=f"local#{k}", host="here") for k in range(1, n + 1)]


def test_the_least_loaded_comes_first() -> None:
    """Slots are offered by how full their worker would be; of equals this machine's goes first."""
    crews = [Crew(name="b", host="b", most=4, capabilities=frozenset())]
    offered = offer(here(2), crews, {"b": UP}, {("b", "b#1")}, machine="here", like=LIKE)
    assert [slot.worker for slot in offered.slots] == ["local#1", "b#2", "local#2", "b#3", "b#4"]


def test_what_somebody_names_is_theirs() -> None:
    """A capability that a worker names is not this machine's; one that nobody names is."""
    crews = [Crew(name="b", host="b", most=1, capabilities=frozenset({"gpu"}))]
    slots = offer(here(1), crews, {"b": UP}, (), machine="here", like=LIKE).slots
    hosts = [
        found.host if (found := first_fit(slots, Lane(None, None, None, wanted), DEFAULTS)) else None
        for wanted in (("gpu",), ("other",), ("gpu", "other"))
    ]
    assert hosts == ["b", "here", None]


def test_who_takes_nothing_is_told_with_the_reason() -> None:
    """A host that is unknown, down or draining, and a worker that is full, offer nothing and say why."""
    down = Host(name="d", kind="ssh", state="down", since=0, evidence="no answer")
    drains = Host(name="e", kind="ssh", state="up", since=0, draining=True)
    crews = [Crew(name=name, host=name, most=1) for name in "abde"]
    offered = offer([], crews, {"b": UP, "d": down, "e": drains}, {("b", "b#1")}, machine="here", like=LIKE)
    assert offered.slots == ()
    assert {each.worker: each.reason for each in offered.withheld} == {
        "a": "it has not answered a probe yet",
        "b": "all 1 of its slots are in use",
        "d": "it is down: no answer",
        "e": "it drains: a person said that it takes no new work",
    }
    assert unfit(UP) == ""


def test_workers_of_a_run_keep_to_it() -> None:
    """They take the tasks of their run alone, and the workers of the settings take none of them."""
    crews = [Crew(name="b", host="b", most=1), Crew(name="w", host="r/w", most=1, run="r")]
    slots = offer([], crews, {"b": UP, "r/w": UP}, (), machine="here", like=LIKE).slots
    found = {run: first_fit(slots, Lane(run, None, None, ()), DEFAULTS) for run in ("r", "s", None)}
    assert {run: slot.worker if slot else None for run, slot in found.items()} == {"r": "w#1", "s": "b#1", None: "b#1"}


def waiting(**fields: Any) -> Task:
    """A task that could begin."""
    return Task(uid="t", task_id="t", title="x", created_at=0, created_by="ana", updated_at=0, **fields)


def at_work(host: str, worker: str) -> Session:
    """A session that has a slot."""
    return Session(id="s.1", task="s", epoch=1, worker=worker, host=host, supervisor="x", coder="y", claimed_at=0)


def test_why_nobody_takes_a_task() -> None:
    """Each worker with its reason; nothing at all where one of them could take it at any moment."""
    down = Host(name="d", kind="ssh", state="down", since=0, evidence="no answer")
    drains = Host(name="e", kind="ssh", state="up", since=0, draining=True)
    able = frozenset({"gpu"})
    crews = [Crew(name=name, host=name, most=1, capabilities=able if name != "b" else frozenset()) for name in "bdef"]
    hosts = {"b": UP, "d": down, "e": drains, "f": UP}
    busy = [at_work("f", "f#1")]
    found = refusals(waiting(capabilities=("gpu",)), crews, hosts, busy, room_here=2)
    assert {each.worker: (each.reason, each.full) for each in found} == {
        "b": ("it lacks gpu", False),
        "d": ("it is down: no answer", False),
        "e": ("it drains: a person said that it takes no new work", False),
        "f": ("all 1 of its slots are in use", True),
        "local": ("it lacks gpu", False),
    }
    assert refusals(waiting(), crews, hosts, busy, room_here=2) == ()
    assert refusals(waiting(capabilities=("gpu",)), crews, hosts, [], room_here=2) == ()


def test_a_task_that_is_bound_to_a_machine_and_one_of_a_run() -> None:
    """Others than its machine are told so; the workers of the settings are not asked about a run that has its own."""
    crews = [Crew(name="b", host="b", most=1), Crew(name="w", host="r/w", most=1, run="r")]
    hosts = {"b": UP, "r/w": Host(name="r/w", kind="ssh", state="down", since=0, evidence="refused")}
    full = [at_work("local@here", "local#1")]
    bound = refusals(waiting(host="local@here", cwd="/srv"), crews, hosts, full, room_here=1)
    assert [(each.worker, each.full) for each in bound] == [("b", False), ("local", True)]
    assert [each.worker for each in refusals(waiting(run="r"), crews, hosts, [], room_here=0)] == ["w"]
