"""`dep` and `link`: what a task needs, and how tasks are related otherwise."""

from __future__ import annotations

from fleet.cli.beads import vocabulary
from fleet.cli.beads.call import Call, Refused
from fleet.cli.beads.flags import REAL_BD, Flag, Takes
from fleet.errors import CycleError, NotFound, UsageError
from fleet.model.states import ENDED, IN_PROGRESS
from fleet.model.task import BLOCKS, Task
from fleet.projections import beads

FLAGS = (
    Flag("type", "t", Takes.TEXT, "the kind of relation (blocks if not given); only blocks holds work back"),
    Flag("blocked-by", "", Takes.TEXT, "add: the issue that must be done first"),
    Flag("depends-on", "", Takes.TEXT, "add: the same"),
    Flag("blocks", "b", Takes.TEXT, "dep ID --blocks OTHER: OTHER must wait for ID"),
    Flag("direction", "", Takes.TEXT, "list, tree: down (what it depends on) or up (what depends on it)"),
    Flag("max-depth", "d", Takes.NUMBER, "tree: so many levels (50 if not given)"),
)
LINK_FLAGS = FLAGS[:1]


def dep(call: Call) -> int:
    """Relate issues; after `dep add A B`, A waits for B."""
    verb, rest = (call.words[0], call.words[1:]) if call.words else ("", [])
    if verb in ACTIONS:
        return ACTIONS[verb](call, rest)
    if verb and not rest and (blocked := call.given.text("blocks")):
        return _add(call, [blocked, verb])
    raise UsageError(f"unknown command `bd dep {verb}`", hint=f"add, remove, list, tree, cycles. {REAL_BD}")


def link_two(call: Call) -> int:
    """The same as `dep add`."""
    return _add(call, call.words)


def link(call: Call, uid: str, other: str, kind: str) -> Task:
    """Relate two tasks; the refusals are bd's."""
    try:
        return call.control.link(uid, other, kind)
    except CycleError as exc:
        raise Refused("adding dependency would create a cycle") from exc


def refuse_new_need(task: Task) -> None:
    """A task that runs or has ended gets no more needs."""
    if task.state in IN_PROGRESS | ENDED:
        raise Refused(f"{task.uid} is {task.state.value}; it can get no new needs")


def _add(call: Call, words: list[str]) -> int:
    words = words + list(filter(None, [call.given.text("blocked-by") or call.given.text("depends-on")]))
    if len(words) != 2:
        raise UsageError(
            f"requires 2 arg(s), received {len(words)} (or use --blocked-by/--depends-on flag)",
            hint="fleet bd dep add WAITING NEEDED",
        )
    kind = vocabulary.link_kind(call.given.text("type") or BLOCKS)
    task, other = _pair(call, words)
    if task.uid == other.uid:
        raise Refused(f"cannot add self-dependency: {task.uid} cannot depend on itself")
    for known in task.links:
        if known.other == other.uid and known.kind != kind:
            raise Refused(
                f'dependency {task.uid} -> {other.uid} already exists with type "{known.kind}" (requested "{kind}");'
                " remove it first with 'bd dep remove' then re-add"
            )
    link(call, task.uid, other.uid, kind)
    data = {"depends_on_id": other.uid, "issue_id": task.uid, "status": "added", "type": kind}
    return call.answer(data, f"Added dependency: {_named(task)} depends on {_named(other)} ({kind})")


def _remove(call: Call, words: list[str]) -> int:
    if len(words) != 2:
        raise UsageError(f"accepts 2 arg(s), received {len(words)}", hint="fleet bd dep remove WAITING NEEDED")
    task, other = _pair(call, words)
    try:
        call.control.unlink(task.uid, other.uid)
    except NotFound:  # there is no such relation: what was asked for is so
        call.note(f"{task.uid} had no dependency on {other.uid}")
    data = {"depends_on_id": other.uid, "issue_id": task.uid, "status": "removed"}
    return call.answer(data, f"Removed dependency: {_named(task)} → {_named(other)}")


def _pair(call: Call, words: list[str]) -> tuple[Task, Task]:
    resolving = f"resolving issue ID {words[0]}: "
    task = call.whole(words[0], before=resolving)
    return task, call.whole(words[1], before=f"resolving dependency ID {words[1]}: resolving issue ID {words[1]}: ")


def _list(call: Call, words: list[str]) -> int:
    if not words:
        raise UsageError("requires at least 1 arg(s), only received 0", hint="fleet bd dep list ID")
    tasks = [call.find(word, before=f"resolving {word}: ") for word in words]
    wanted = call.given.text("type")
    if len(tasks) > 1:
        records = [edge for task in tasks for edge in beads.edges(task) if wanted in (None, edge["type"])]
        return call.answer(
            records, *(f"{each['issue_id']} → {each['depends_on_id']} {each['type']}" for each in records)
        )
    up = _upward(call)
    ends = call.reads.dependents(tasks[0].uid) if up else [(each.other, each.kind) for each in tasks[0].links]
    found = beads.relatives([(uid, kind) for uid, kind in ends if wanted in (None, kind)], call.reads, now=call.now)
    none = f"{tasks[0].uid} has no {'dependents' if up else 'dependencies'}"
    return call.answer(found, *(_line(each) for each in found) if found else (none,))


def _tree(call: Call, words: list[str]) -> int:
    if len(words) != 1:
        raise UsageError(f"accepts 1 arg(s), received {len(words)}", hint="fleet bd dep tree ID")
    task = call.find(words[0], before=f"resolving {words[0]}: ")
    depth = call.given.number("max-depth")
    nodes = beads.tree(task, call.reads, up=_upward(call), most=50 if depth is None else depth, now=call.now)
    lines = []
    for node in _in_order(nodes):
        edge = f" [{node['edge_from_parent']}]" if "edge_from_parent" in node else ""
        lines.append(
            "    " * node["depth"] + f"{node['id']}: {node['title']} [P{node['priority']}] ({node['status']}){edge}"
        )
    return call.answer(nodes, *lines)


def _in_order(nodes: list[beads.Json], above: str = "") -> list[beads.Json]:
    """Each node before those that hang on it."""
    ordered = []
    for node in nodes:
        if node["parent_id"] == above:
            ordered += [node, *_in_order(nodes, node["id"])]
    return ordered


def _cycles(call: Call, words: list[str]) -> int:
    """None: a circle of needs is refused when it would be closed."""
    return call.answer([], "No dependency cycles")


def _upward(call: Call) -> bool:
    direction = call.given.text("direction") or "down"
    if direction not in ("down", "up"):
        raise UsageError(f"--direction is down or up, not `{direction}`")
    return direction == "up"


def _line(relative: beads.Json) -> str:
    kind = relative["dependency_type"]
    return f"  {relative['id']}: {relative['title']} [P{relative['priority']}] ({relative['status']}) via {kind}"


def _named(task: Task) -> str:
    return f"{task.uid} ({task.title})"


ACTIONS = {"add": _add, "remove": _remove, "rm": _remove, "list": _list, "tree": _tree, "cycles": _cycles}
