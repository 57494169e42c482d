"""Which tasks a list shows, and in which order."""

from __future__ import annotations

from collections.abc import Callable

from fleet.cli.beads import vocabulary
from fleet.cli.beads.call import Call, Refused
from fleet.cli.beads.flags import Flag, Given, Takes
from fleet.model.states import TaskState
from fleet.model.task import Task
from fleet.projections import beads

Test = Callable[[Task], bool]

FILTERS = (
    Flag("assignee", "a", Takes.TEXT, "of this person or slot"),
    Flag("label", "l", Takes.LIST, "with all of these labels"),
    Flag("label-any", "", Takes.LIST, "with one of these labels"),
    Flag("exclude-label", "", Takes.LIST, "with none of these labels"),
    Flag("priority", "p", Takes.TEXT, "of this priority"),
    Flag("type", "t", Takes.TEXT, "of this type"),
    Flag("exclude-type", "", Takes.LIST, "not of these types"),
    Flag("parent", "", Takes.TEXT, "children of this issue"),
    Flag("limit", "n", Takes.NUMBER, "at most so many; 0 for all"),
)
LIST_FILTERS = (
    Flag("status", "s", Takes.LIST, "of these statuses, with commas between"),
    Flag("all", "", Takes.NOTHING, "closed ones too"),
    *FILTERS,
    Flag("no-assignee", "", Takes.NOTHING, "without an assignee"),
    Flag("no-labels", "", Takes.NOTHING, "without labels"),
    Flag("no-parent", "", Takes.NOTHING, "that are no one's children"),
    Flag("priority-min", "", Takes.TEXT, "of this priority or a less urgent one"),
    Flag("priority-max", "", Takes.TEXT, "of this priority or a more urgent one"),
    Flag("id", "", Takes.LIST, "of these ids"),
    Flag("title", "", Takes.TEXT, "with this text in the title"),
    Flag("title-contains", "", Takes.TEXT, "the same"),
    Flag("desc-contains", "", Takes.TEXT, "with this text in the description"),
    Flag("notes-contains", "", Takes.TEXT, "with this text in the notes"),
    Flag("external-ref", "", Takes.TEXT, "with this external reference"),
    Flag("sort", "", Takes.TEXT, "by priority, created, updated, closed, status, id, title, type or assignee"),
    Flag("reverse", "r", Takes.NOTHING, "the other way round"),
)
SHAPES = tuple(  # bd's ways to draw a list; here there is one
    Flag(name, "", Takes.NOTHING, "taken for bd's sake; changes nothing")
    for name in ("flat", "tree", "pretty", "plain", "long", "no-pager")
)


def tests(call: Call) -> list[Test]:
    """What a task must meet, by the flags of a list."""
    given = call.given
    made: list[Test] = [
        *_labels(given),
        *_persons(call),
        *_texts(given),
        *_kinds(given),
        *_priorities(given),
        *_family(call),
    ]
    if ids := frozenset(given.list("id")):
        made.append(lambda task: task.uid in ids)
    return made


def _labels(given: Given) -> list[Test]:
    wanted, some, none = (frozenset(given.list(name)) for name in ("label", "label-any", "exclude-label"))
    made: list[Test] = []
    if wanted:
        made.append(lambda task: wanted.issubset(beads.labels(task.labels)))
    if some:
        made.append(lambda task: not some.isdisjoint(beads.labels(task.labels)))
    if none:
        made.append(lambda task: none.isdisjoint(beads.labels(task.labels)))
    if given.on("no-labels"):
        made.append(lambda task: not task.labels)
    return made


def _persons(call: Call) -> list[Test]:
    made: list[Test] = []
    if who := call.given.text("assignee"):
        made.append(lambda task: beads.assignee(task, call.reads) == who)
    if call.given.on("no-assignee") or call.given.on("unassigned"):
        made.append(lambda task: not beads.assignee(task, call.reads))
    return made


def _texts(given: Given) -> list[Test]:
    places: dict[str, Callable[[Task], str]] = {
        "title": lambda task: task.title,
        "title-contains": lambda task: task.title,
        "desc-contains": lambda task: task.description,
        "notes-contains": beads.notes,
    }
    sought = [(place, text.lower()) for name, place in places.items() if (text := given.text(name))]
    made: list[Test] = [lambda task, place=place, text=text: text in place(task).lower() for place, text in sought]  # type: ignore[misc]
    if ref := given.text("external-ref"):
        made.append(lambda task: task.bead.external_ref == ref)
    return made


def _kinds(given: Given) -> list[Test]:
    made: list[Test] = []
    if word := given.text("type"):
        kind = vocabulary.issue_type(word, f'invalid issue type "{{}}" (valid: {", ".join(vocabulary.TYPES)})')
        made.append(lambda task: task.bead.issue_type == kind)
    if none := frozenset(given.list("exclude-type")):
        made.append(lambda task: task.bead.issue_type not in none)
    return made


def _priorities(given: Given) -> list[Test]:
    exact, least, most = (
        vocabulary.priority(word) if (word := given.text(name)) else None
        for name in ("priority", "priority-min", "priority-max")
    )
    made: list[Test] = []
    if exact is not None:
        made.append(lambda task: task.priority == exact)
    if least is not None:
        made.append(lambda task: task.priority >= least)
    if most is not None:
        made.append(lambda task: task.priority <= most)
    return made


def _family(call: Call) -> list[Test]:
    made: list[Test] = []
    if word := call.given.text("parent"):
        above = call.find(word).uid
        made.append(lambda task: beads.parent(task) == above)
    if call.given.on("no-parent"):
        made.append(lambda task: beads.parent(task) is None)
    return made


def chosen(call: Call, statuses: frozenset[str]) -> list[Task]:
    """All tasks of some statuses that meet the flags, in bd's order: by priority, the newest first."""
    states = frozenset[TaskState]().union(*(beads.STATES_OF.get(word, ()) for word in statuses))
    must = tests(call)
    found = [
        task
        for task in call.reads.tasks(states)
        if beads.status(task, call.now) in statuses and all(test(task) for test in must)
    ]
    return in_order(call, found)


def in_order(call: Call, tasks: list[Task]) -> list[Task]:
    """Sorted as --sort says. Dates begin with the newest."""
    keys: dict[str, Callable[[Task], object]] = {
        "": lambda task: (task.priority, -task.created_at),
        "priority": lambda task: (task.priority, -task.created_at),
        "created": lambda task: -task.created_at,
        "updated": lambda task: -task.updated_at,
        "closed": lambda task: -(task.ended_at or 0),
        "status": lambda task: beads.status(task, call.now),
        "id": lambda task: task.uid,
        "title": lambda task: task.title.lower(),
        "type": lambda task: task.bead.issue_type,
        "assignee": lambda task: beads.assignee(task, call.reads),
    }
    word = call.given.text("sort") or ""
    if word not in keys:
        raise Refused(f"invalid sort field '{word}'. Valid values: {', '.join(filter(None, keys))}")
    key = keys[word]
    return sorted(tasks, key=lambda task: (key(task), task.uid), reverse=call.given.on("reverse"))


def limited(call: Call, tasks: list[Task], default: int) -> list[Task]:
    """The first of them; 0 stands for all."""
    most = call.given.number("limit")
    most = default if most is None else most
    return tasks[:most] if most > 0 else tasks
