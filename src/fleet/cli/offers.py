"""What may be given where a command asks for something: its choices, and the names of what there is."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args, get_origin

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.model.states import TaskState

MOST = 500  # of tasks and runs, the newest first


class Offer(NamedTuple):
    """A word, and a line about it."""

    word: str
    help: str = ""


Look = Callable[["Context"], Iterable[Offer]]


def of_value(action: argparse.Action, prog: str, said: Sequence[str], current: str, context: Context) -> list[Offer]:
    """What may be given for one argument of a command; nothing where only its user knows, or where a file is meant."""
    if isinstance(action, argparse._SubParsersAction):
        return [Offer(verb.dest, verb.help or "") for verb in action._choices_actions]
    if action.choices is not None:
        return [Offer(str(choice)) for choice in action.choices]
    if prog == "fleet task" and action.dest == "pairs":
        return _pairs(current, context) if "set" in said else []
    if prog == "fleet config set":
        return _assignments(current)
    look = LOOKS.get(f"{prog} {action.dest}") or LOOKS.get(action.dest)
    return [] if look is None else list(look(context))


def of_beads(before: Sequence[str], context: Context) -> list[Offer]:
    """The verbs of `fleet bd`, then ids."""
    from fleet.cli.beads.verbs import VERBS

    if not before:
        return [Offer(verb.name) for verb in VERBS]
    return [] if context.bd_keeps_the_queue else list(_any(context))


def _tasks(context: Context, states: frozenset[TaskState] | None) -> Iterator[Offer]:
    from fleet.projections.queue import Wanted

    for line in context.front.tasks(states, MOST, Wanted(newest_first=True)):
        yield Offer(line.id, f"{line.state.value}: {line.title}")


def _any(context: Context) -> Iterator[Offer]:
    return _tasks(context, None)


def _open(context: Context) -> Iterator[Offer]:
    from fleet.model.states import OPEN

    return _tasks(context, OPEN)


def _running(context: Context) -> Iterator[Offer]:
    from fleet.model.states import IN_PROGRESS

    return _tasks(context, IN_PROGRESS)


def _asking(context: Context) -> list[Offer]:
    return [Offer(one.id, one.text) for one in context.front.questions()]


def _runs(context: Context) -> list[Offer]:
    return [Offer(run.id, f"{run.name}: {run.state.value}") for run in context.front.runs(MOST).runs]


def _runs_and_tasks(context: Context) -> list[Offer]:
    return [*_runs(context), *_any(context)]


def _receipts(context: Context) -> list[Offer]:
    return [Offer("check", "whether they still hold"), *_any(context)]


def _hosts(context: Context) -> list[Offer]:
    return [Offer(host.name, f"{host.kind}, {host.state}") for host in context.front.hosts()]


def _machines(context: Context) -> list[Offer]:
    return [Offer(one.name, f"{one.kind}, {one.status}") for one in context.front.machines().machines]


def _teams(context: Context) -> list[Offer]:
    return [Offer(one.team) for one in context.front.machines().machines if one.team]


def _roles(context: Context) -> list[Offer]:
    return [Offer(one.role) for one in context.front.machines().machines if one.role]


def _coders(context: Context) -> list[Offer]:
    from fleet import plugins

    own = () if context.url else tuple(context.settings.coders)
    return [Offer(name) for name in sorted({*plugins.names("coders"), *own})]


def _pools(context: Context) -> list[Offer]:
    return [] if context.url else [Offer(name, "a pool") for name in context.settings.pools]


def _workers(context: Context) -> list[Offer]:
    from fleet.projections.pools import wanted

    members = [] if context.url else wanted(context.settings, None)
    return [Offer(member.worker, f"of {member.pool}") for member in members]


def _channels(context: Context) -> list[Offer]:
    return [Offer(name) for name in context.settings.channels]


def _keys(_: Context) -> list[Offer]:
    from fleet.config.fields import fields

    return [Offer(field.key, field.description) for field in fields()]


def _states(_: Context) -> list[Offer]:
    from fleet.model.states import TaskState

    return [*(Offer(state.value) for state in TaskState), Offer("all")]


def _kinds(_: Context) -> list[Offer]:
    from fleet.model.event import EVENTS, kind_of

    kinds = [kind_of(event) for event in EVENTS]
    families = dict.fromkeys(kind.partition(".")[0] for kind in kinds)
    return [*(Offer(family, "all of them") for family in families), *map(Offer, kinds)]


def _words(*words: str) -> Look:
    return lambda _: map(Offer, words)


def _nothing(_: Context) -> list[Offer]:
    return []


def _pairs(current: str, context: Context) -> list[Offer]:
    """`coder=codex`: the keys, then the values of those that have a few."""
    from fleet.control.setting import KEYS

    if current.startswith("coder="):
        return [one._replace(word=f"coder={one.word}") for one in _coders(context)]
    return [Offer(f"{key}=") for key in KEYS]


def _assignments(current: str) -> list[Offer]:
    """`fleet config set`: the keys, then the values of those that have a few."""
    from fleet.config.fields import bare, fields, find

    key, given, _ = current.partition("=")
    if not given:
        return [Offer(f"{field.key}=", field.description) for field in fields()]
    field = find(key)
    kind = None if field is None else bare(field.type)
    values = ("true", "false") if kind is bool else get_args(kind) if get_origin(kind) is Literal else ()
    return [Offer(f"{key}={value}") for value in values]


# By the name of an argument, or by that of its command and of it.
LOOKS: dict[str, Look] = {
    "id": _any,
    "ids": _any,
    "task": _any,
    "task_id": _any,
    "needs": _any,
    "run": _runs,
    "run_id": _runs,
    "coder": _coders,
    "host": _machines,
    "team": _teams,
    "role": _roles,
    "repo": _pools,
    "worker": _workers,
    "window": _words("agent", "shell"),
    "channel": _channels,
    "key": _keys,
    "keys": _keys,
    "fleet answer ids": _asking,
    "fleet interrupt ids": _running,
    "fleet stop ids": _open,
    "fleet wait id": _runs_and_tasks,
    "fleet receipts words": _receipts,
    "fleet run verb": _words("status", "stop"),
    "fleet tasks status": _states,
    "fleet watch kind": _kinds,
    "fleet serve verb": _words("token"),
    "fleet serve host": _nothing,
    "fleet config schema name": _words("settings", "task", "run"),
    "fleet skill install names": _words("fleet-manager", "orchestrator"),
    "fleet pool check names": _workers,
    "fleet hosts remove name": _machines,
    "fleet hosts probe names": _machines,
    "fleet hosts history name": _machines,
    "fleet hosts drain name": _hosts,
    "fleet hosts resume name": _hosts,
}
