"""Placement: which workers are offered the next tasks, in which order, and why the others are not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from fleet.config.settings import Settings
from fleet.errors import NotFound
from fleet.model.host import Host, is_local
from fleet.model.reach import Reach
from fleet.model.run import Run
from fleet.model.session import Session, Slot, name_there
from fleet.model.task import Task
from fleet.policy.allocation import all_members

RUN_ON = frozenset({"ssh", "sprite"})  # kinds of hosts, beside this machine, that sessions run on


class Crew(msgspec.Struct, frozen=True, kw_only=True):
    """A worker, as placement sees it: so many slots on one host."""

    name: str
    title: str = ""  # the same with what people call it
    host: str  # its name; empty: this machine
    most: int
    capabilities: frozenset[str] | None = None  # None: every one that no other has to itself
    run: str | None = None  # the run that brought it, and whose tasks alone it takes
    pool: str | None = None  # the pool that it belongs to, and whose tasks alone it takes
    made: bool = False  # its host is made when it is first needed, so that it need not answer before


class Withheld(msgspec.Struct, frozen=True):
    """A worker that takes nothing now, and why."""

    worker: str
    host: str  # empty: this machine
    reason: str
    full: bool = False  # it could, and will when a slot is free


class Offered(msgspec.Struct, frozen=True):
    """The slots that are free, the least loaded first, and who is not among them."""

    slots: tuple[Slot, ...]
    withheld: tuple[Withheld, ...] = ()


def hosts_of(settings: Settings) -> dict[str, Reach]:
    """The machines that the settings name or describe, by name; a worker's own machine has the worker's name."""
    own = {each.id: each.host for each in settings.workers if not isinstance(each.host, str)}
    named: dict[str, Reach] = {host.name: host for host in settings.hosts}
    return {name: reach for name, reach in (own | named).items() if reach.kind in RUN_ON}


def reach_of(name: str, settings: Settings, run: Callable[[str], Run]) -> Reach | None:
    """How a host is reached: by the settings, or by the run that brought it; None: nothing describes it any more.

    `run` gives a run by its id, and may raise NotFound.
    """
    run_id, slash, worker_id = name.rpartition("/")
    if not slash:
        return hosts_of(settings).get(name) or pool_host(settings, name)
    try:
        workers = run(run_id).workers
    except NotFound:
        return None
    return next((worker.reach for worker in workers if worker.name == worker_id), None)


def pool_host(settings: Settings, name: str) -> Reach | None:
    """The machine that a worker of a pool has to itself; None: there is no such worker."""
    return next((each.own for each in all_members(settings) if each.host == name and each.own is not None), None)


def reach_here(worker: str, run: Run | None, settings: Settings) -> Reach | None:
    """What the settings say of this machine for a worker of it, by the name of its slot; None: nothing."""
    name = worker.partition("#")[0]
    local = {host.name: host for host in settings.hosts if host.kind == "local"}
    for brought in run.workers if run is not None else ():
        if brought.name == name:
            return local.get(brought.host)
    for declared in settings.workers:
        if declared.id == name:
            host = declared.host
            found = local.get(host) if isinstance(host, str) else host
            return found if found is not None and found.kind == "local" else None
    return local.get(name)


def task_there(name: str, sessions: Callable[[str], Iterable[Session]]) -> str | None:
    """Whose directory it is on a host that homes may share, of our tasks; None: of none. `sessions`: of a task."""
    uid = name.partition("@")[0]
    ours = any(name_there(one.id) == name and not is_local(one.host) for one in sessions(uid))
    return uid if ours else None


def crews_of(settings: Settings) -> tuple[Crew, ...]:
    """The workers of the settings. A host that no worker names is a worker itself, if it has an agent.

    A sprite may be declared only to be watched: no task shall wake it then.
    """
    hosts = {host.name: host for host in settings.hosts}
    crews = []
    for worker in settings.workers:
        reach = hosts[worker.host] if isinstance(worker.host, str) else worker.host
        name = worker.host if isinstance(worker.host, str) else worker.id
        able = frozenset((*worker.capabilities, *reach.capabilities))
        host = "" if reach.kind == "local" else name
        most = worker.max_concurrent_tasks
        crews.append(Crew(name=worker.id, title=worker.title, host=host, most=most, capabilities=able))
    manned = {worker.host for worker in settings.workers if isinstance(worker.host, str)}
    for name, reach in hosts.items():
        if reach.agent_binary and name not in manned:
            able = frozenset(reach.capabilities)
            host = "" if reach.kind == "local" else name
            crews.append(Crew(name=name, host=host, most=reach.max_concurrent_tasks, capabilities=able))
    return tuple(crews)


def crews_of_pools(settings: Settings) -> tuple[Crew, ...]:
    """The workers of pools: each takes one task at a time, the first that is free first."""
    return tuple(
        Crew(
            name=each.worker,
            host=each.host,
            most=1,
            capabilities=each.capabilities,
            pool=each.pool,
            made=each.own is not None,
        )
        for each in all_members(settings)
    )


def crews_of_run(run: Run, settings: Settings) -> tuple[Crew, ...]:
    """The workers that a run brought with it and that are on a host that is described. Those that are merely on this
    machine are named by its room."""
    local = {host.name for host in settings.hosts if host.kind == "local"}
    return tuple(
        Crew(
            name=worker.name,
            host="" if worker.host in local else worker.host_in(run.id),
            most=worker.max_tasks,
            capabilities=frozenset(worker.capabilities),
            run=run.id,
        )
        for worker in run.workers
        if not worker.is_here
    )


def offer(
    here: Sequence[Slot],
    crews: Iterable[Crew],
    hosts: Mapping[str, Host],
    busy: Collection[tuple[str, str]],
    *,
    machine: str,
    like: Slot,
) -> Offered:
    """The free slots of this machine and of every worker whose host is up. `busy`: host and slot of live sessions.

    `like` has what all slots share. A worker of a run takes the tasks of that run alone, all others none of them.
    """
    crews = tuple(crews)
    spoken_for = frozenset(crew.run for crew in crews if crew.run)
    named = frozenset(name for crew in crews if crew.run is None for name in crew.capabilities or ())
    ranked: list[tuple[float, int, Slot]] = [
        (n / len(here), 0, msgspec.structs.replace(slot, lacks=named)) for n, slot in enumerate(here)
    ]
    withheld = []
    for place, crew in enumerate(crews, 1):
        host = crew.host or machine
        reason = unfit(hosts.get(crew.host)) if crew.host and not crew.made else ""
        free = [name for name in _names(crew) if (host, name) not in busy]
        if reason or not free:
            withheld.append(Withheld(crew.name, host, reason or _in_use(crew.most), full=not reason))
            continue
        for n, name in enumerate(free):
            slot = msgspec.structs.replace(
                like,
                worker=name,
                host=host,
                here=not crew.host,
                declared=True,
                capabilities=crew.capabilities,
                runs=_runs(crew, like),
                not_runs=frozenset() if crew.run or crew.pool else like.not_runs | spoken_for,
                pool=crew.pool,
            )
            ranked.append(((crew.most - len(free) + n) / crew.most, place, slot))
    ranked.sort(key=lambda each: each[:2])
    return Offered(tuple(slot for _, _, slot in ranked), tuple(withheld))


def refusals(
    task: Task, crews: Iterable[Crew], hosts: Mapping[str, Host], live: Iterable[Session], *, room_here: int
) -> tuple[Withheld, ...]:
    """Why each worker that could be asked does not take a task now; empty: one of them may. `room_here`: how many
    usual slots this machine has; none where the task's run has its workers elsewhere."""
    crews = tuple(crews)
    own = [crew for crew in crews if crew.run is not None and crew.run == task.run]
    asked = own or [crew for crew in crews if crew.run is None]
    busy = [(one.host, one.worker) for one in live]
    wanted = frozenset(task.capabilities)
    found = [_refusal(crew, task, wanted, hosts, busy) for crew in asked]
    if room_here:
        named = frozenset(name for crew in crews if crew.run is None for name in crew.capabilities or ())
        ours = {crew.name for crew in crews if not crew.host}
        usual = [name for host, name in busy if is_local(host) and name.partition("#")[0] not in ours]
        found.append(_refusal_here(task, wanted & named, len(usual), room_here))
    return () if None in found else tuple(each for each in found if each is not None)


def _refusal(
    crew: Crew, task: Task, wanted: frozenset[str], hosts: Mapping[str, Host], busy: Collection[tuple[str, str]]
) -> Withheld | None:
    lacks = wanted - crew.capabilities if crew.capabilities is not None else frozenset()
    reason = unfit(hosts.get(crew.host)) if crew.host and not crew.made else ""
    if lacks:
        reason = _lacks(lacks)
    elif task.host is not None and crew.host and task.host != crew.host:
        reason = f"the task's directory is on {task.host}"
    names = frozenset(_names(crew))
    used = sum(name in names and (host == crew.host if crew.host else is_local(host)) for host, name in busy)
    if reason or used >= crew.most:
        return Withheld(crew.name, crew.host, reason or _in_use(crew.most), full=not reason)
    return None


def _refusal_here(task: Task, lacks: frozenset[str], used: int, room: int) -> Withheld | None:
    elsewhere = task.host is not None and not is_local(task.host)
    reason = _lacks(lacks) if lacks else f"the task's directory is on {task.host}" if elsewhere else ""
    if reason or used >= room:
        return Withheld("local", "", reason or _in_use(room), full=not reason)
    return None


def _lacks(capabilities: frozenset[str]) -> str:
    return f"it lacks {', '.join(sorted(capabilities))}"


def _in_use(slots: int) -> str:
    return f"all {slots} of its slots are in use"


def unfit(host: Host | None) -> str:
    """Why a host takes no new work; empty: it does."""
    if host is None or host.state == "unknown":
        return "it has not answered a probe yet"
    if host.draining:
        return "it drains: a person said that it takes no new work"
    return "" if host.state == "up" else f"it is {host.state}: {host.evidence}"


def _runs(crew: Crew, like: Slot) -> frozenset[str] | None:
    if crew.pool:
        return None
    return frozenset({crew.run}) if crew.run else like.runs


def _names(crew: Crew) -> Iterator[str]:
    return (f"{crew.name}#{n}" for n in range(1, crew.most + 1))
