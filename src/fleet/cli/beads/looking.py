"""The verbs that only look: list, ready, show, search, children, blocked, count, stats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from fleet.cli.beads import text, vocabulary
from fleet.cli.beads.call import Call, Refused
from fleet.cli.beads.choosing import FILTERS, LIST_FILTERS, SHAPES, chosen, limited, tests
from fleet.cli.beads.flags import Flag, Takes
from fleet.cli.beads.moves import claim
from fleet.errors import UsageError
from fleet.model.task import Task
from fleet.projections import beads

LIST_LIMIT, READY_LIMIT = 50, 100
RECENT_MS = 48 * 3600 * 1000
OPEN = frozenset(beads.STATUSES) - {"closed"}

LIST_FLAGS = (*LIST_FILTERS, *SHAPES)
READY_FLAGS = (
    *FILTERS,
    *SHAPES,
    Flag("unassigned", "u", Takes.NOTHING, "without an assignee"),
    Flag("sort", "s", Takes.TEXT, "priority, hybrid (the last 48 hours first) or oldest"),
    Flag("claim", "", Takes.NOTHING, "take the first of them"),
)
SHOW_FLAGS = (
    Flag("id", "", Takes.TEXTS, "an id that looks like a flag"),
    Flag("short", "", Takes.NOTHING, "a line each"),
    Flag("long", "", Takes.NOTHING, "taken for bd's sake; changes nothing"),
    Flag("include-comments", "", Takes.NOTHING, "with --json: the comments too"),
    Flag("include-dependents", "", Takes.NOTHING, "with --json: what depends on it too"),
)
SEARCH_FLAGS = (Flag("query", "", Takes.TEXT, "the text, instead of the first word"), *LIST_FLAGS)
BLOCKED_FLAGS = tuple(flag for flag in FILTERS if flag.name in ("label", "label-any", "exclude-label", "parent"))
GROUPS = ("status", "priority", "type", "assignee", "label")
COUNT_FLAGS = (*LIST_FILTERS, *(Flag(f"by-{group}", "", Takes.NOTHING, f"by {group}") for group in GROUPS))


def listed(call: Call) -> int:
    """Issues that are not closed, the most urgent first."""
    _no_words(call)
    statuses = vocabulary.listed_statuses(call.given.list("status"))
    if not statuses:
        statuses = frozenset(beads.STATUSES) if call.given.on("all") else OPEN
    found = [beads.row(task, call.reads, now=call.now) for task in limited(call, chosen(call, statuses), LIST_LIMIT)]
    return call.answer(found, *(text.line(each) for each in found), *text.total(found))


def ready(call: Call) -> int:
    """What could start now; with --claim, the first of it is taken."""
    _no_words(call)
    found = _ready(call)
    if call.given.on("claim"):
        return _claim_first(call, found)
    shown = limited(call, found, READY_LIMIT)
    rows = [beads.row(task, call.reads, now=call.now) for task in shown]
    beside: beads.Json = {}
    if len(shown) < len(found):
        call.note(f"Showing {len(shown)} of {len(found)} ready issues. Use --limit 0 for all, or --limit N for more.")
        beside["pagination"] = {"returned": len(shown), "total": len(found), "truncated": True}
    last = f"Ready: {len(rows)} issues with no active blockers" if rows else "No ready work"
    return call.answer(rows, *(text.line(each) for each in rows), *(["", last] if rows else [last]), **beside)


def _ready(call: Call) -> list[Task]:
    keys: dict[str, Callable[[Task], tuple[int, ...]]] = {
        "priority": lambda task: (task.priority, task.created_at),
        "oldest": lambda task: (task.created_at,),
        "hybrid": lambda task: (
            (0, task.priority, task.created_at) if task.created_at > call.now - RECENT_MS else (1, task.created_at)
        ),
    }
    sort = call.given.text("sort") or "priority"
    if sort not in keys:
        raise Refused(f"invalid sort policy '{sort}'. Valid values: hybrid, priority, oldest")
    must = tests(call)
    return sorted((task for task in call.reads.ready() if all(test(task) for test in must)), key=keys[sort])


def _claim_first(call: Call, found: list[Task]) -> int:
    if call.given.has("assignee"):
        raise Refused("--claim cannot be combined with --assignee")
    for task in found:
        try:
            taken = claim(call, task)
        except Refused:  # somebody was faster, or it is meant for another
            continue
        return call.answer([beads.row(taken, call.reads, now=call.now)], f"Claimed issue: {taken.uid} — {taken.title}")
    return call.answer([], "No ready work to claim")


def show(call: Call) -> int:
    """Issues in full."""
    words = [*call.words, *call.given.texts("id")]
    if not words:
        raise Refused("at least one issue ID is required (use positional args or --id flag)")
    found = []
    for word in words:
        try:
            found.append(call.find(word))
        except Refused as exc:
            call.note(f"Issue {word} not found" if "no issue found" in str(exc) else str(exc))
    if not found:
        raise Refused("no issues found matching the provided IDs")
    details = [
        beads.detail(
            task,
            call.reads,
            now=call.now,
            comments=call.given.on("include-comments"),
            dependents=call.given.on("include-dependents"),
        )
        for task in found
    ]
    if call.given.on("short"):
        return call.answer(details, *(text.line(each) for each in details))
    return call.answer(details, *([] if call.json else _blocks(call, found, details)))


def _blocks(call: Call, tasks: list[Task], details: list[beads.Json]) -> list[str]:
    lines: list[str] = []
    for task, issue in zip(tasks, details, strict=True):
        behind = beads.relatives(call.reads.dependents(task.uid), call.reads, now=call.now)
        why = task.reason if issue["status"] in ("blocked", "in_progress") else ""
        own = (("cwd", task.cwd or ""), ("Coder", task.coder or ""), ("Model", task.model or ""), ("Why", why))
        lines += ["", *text.block(issue, behind, own)] if lines else text.block(issue, behind, own)
    return lines


def search(call: Call) -> int:
    """Issues of any status with a text in their title or id."""
    words = [*call.words, *filter(None, [call.given.text("query")])]
    if len(words) != 1:
        raise UsageError("search query is required", hint='fleet bd search "login"')
    sought = words[0].lower()
    statuses = vocabulary.listed_statuses(call.given.list("status")) or frozenset(beads.STATUSES)
    hits = [task for task in chosen(call, statuses) if sought in task.title.lower() or sought in task.uid]
    found = [beads.hit(task, call.reads, now=call.now) for task in limited(call, hits, LIST_LIMIT)]
    return call.answer(found, f"Found {len(found)} issues matching '{words[0]}':", *(text.line(each) for each in found))


def children(call: Call) -> int:
    """The children of an issue, closed ones too."""
    above = call.find(_one_word(call), before=f"resolving {call.words[0]}: ").uid
    found = [task for task in chosen(call, frozenset(beads.STATUSES)) if beads.parent(task) == above]
    rows = [beads.row(task, call.reads, now=call.now) for task in found]
    return call.answer(rows, *(text.line(each) for each in rows) if rows else (f"{above} has no children",))


def blocked(call: Call) -> int:
    """Queued issues that wait for others."""
    _no_words(call)
    must = tests(call)
    found = [task for task in call.reads.waiting() if all(test(task) for test in must)]
    rows = [beads.blocked_row(task, call.reads, now=call.now) for task in found]
    lines = [f"{text.line(each)}  (waits for {', '.join(each['blocked_by'])})" for each in rows]
    return call.answer(rows, *(lines or ["No blocked issues"]))


def count(call: Call) -> int:
    """How many issues there are, of any status."""
    _no_words(call)
    statuses = vocabulary.listed_statuses(call.given.list("status")) or frozenset(beads.STATUSES)
    found = chosen(call, statuses)
    group = next((group for group in GROUPS if call.given.on(f"by-{group}")), None)
    if group is None:
        return call.answer({"count": len(found)}, str(len(found)))
    names = Counter(name for task in found for name in _group(call, task, group))
    groups = [{"group": name, "count": n} for name, n in sorted(names.items())]
    lines = [f"{each['group']}: {each['count']}" for each in groups]
    return call.answer({"total": len(found), "groups": groups}, f"Total: {len(found)}", "", *lines)


def _group(call: Call, task: Task, group: str) -> list[str]:
    match group:
        case "status":
            return [beads.status(task, call.now)]
        case "priority":
            return [f"P{task.priority}"]
        case "type":
            return [task.bead.issue_type]
        case "assignee":
            return [beads.assignee(task, call.reads) or "(unassigned)"]
        case _:
            return beads.labels(task.labels) or ["(no labels)"]


def stats(call: Call) -> int:
    """How many issues there are of each status."""
    data = beads.summary(call.reads, now=call.now)
    lines = [f"{name.replace('_', ' ').capitalize()}: {n}" for name, n in data["summary"].items() if n]
    return call.answer(data, *(lines or ["No issues"]))


def _no_words(call: Call) -> None:
    if call.words:
        raise UsageError(f'unknown argument "{call.words[0]}"', hint="this verb takes only flags")


def _one_word(call: Call) -> str:
    if len(call.words) != 1:
        raise UsageError(f"accepts 1 arg(s), received {len(call.words)}", hint="give one id")
    return call.words[0]
