"""Issues as lines for people, made from what --json would print."""

from __future__ import annotations

from collections.abc import Iterable

from fleet.projections.beads import Json

MARKS = {"open": "○", "in_progress": "◐", "blocked": "●", "closed": "✓", "deferred": "❄"}
KINDS = {"blocks": "DEPENDS ON", "parent-child": "PARENT", "discovered-from": "DISCOVERED FROM"}


def line(issue: Json) -> str:
    """One issue in one line: mark, id, priority, title."""
    kind = "" if issue["issue_type"] == "task" else f" [{issue['issue_type']}]"
    who = f"  @{issue['assignee']}" if issue.get("assignee") else ""
    return f"{MARKS[issue['status']]} {issue['id']} P{issue['priority']}{kind} {issue['title']}{who}"


def total(issues: Iterable[Json]) -> list[str]:
    """What a list ends with."""
    found = [issue["status"] for issue in issues]
    working = found.count("in_progress")
    return ["", f"Total: {len(found)} issues ({found.count('open')} open, {working} in progress)"]


def block(issue: Json, dependents: list[Json], fleet: Iterable[tuple[str, str]]) -> list[str]:
    """One issue in full, with what Fleet knows of it besides."""
    word = issue["status"]
    head = f"{MARKS[word]} {issue['id']} · {issue['title']}   [P{issue['priority']} · {word.upper()}]"
    facts = [f"Created by: {issue.get('created_by', '-')}", f"Type: {issue['issue_type']}"]
    if issue.get("assignee"):
        facts.append(f"Assignee: {issue['assignee']}")
    lines = [head, " · ".join(facts), f"Created: {issue['created_at'][:10]} · Updated: {issue['updated_at'][:10]}"]
    lines += [f"{name}: {value}" for name, value in fleet if value]
    lines += [f"{name}: {issue[key]}" for name, key in _SHORT if issue.get(key)]
    for name, key in _LONG:
        if issue.get(key):
            lines += ["", name, *(f"  {part}" for part in str(issue[key]).splitlines())]
    if issue.get("labels"):
        lines += ["", f"LABELS: {', '.join(issue['labels'])}"]
    lines += _relatives(issue.get("dependencies", []), KINDS, "→")
    lines += _relatives(dependents, {"blocks": "BLOCKS", "parent-child": "CHILDREN"}, "←")
    if issue["comment_count"]:
        lines += ["", f"COMMENTS: {issue['comment_count']} (bd comments {issue['id']})"]
    return lines


_SHORT = (("Close reason", "close_reason"), ("Deferred until", "defer_until"), ("External ref", "external_ref"))
_LONG = (
    ("DESCRIPTION", "description"),
    ("DESIGN", "design"),
    ("ACCEPTANCE CRITERIA", "acceptance_criteria"),
    ("NOTES", "notes"),
)


def _relatives(issues: list[Json], names: dict[str, str], arrow: str) -> list[str]:
    lines = []
    for kind in dict.fromkeys(issue["dependency_type"] for issue in issues):
        lines += ["", names.get(kind, kind.upper())]
        lines += [f"  {arrow} {line(issue)}" for issue in issues if issue["dependency_type"] == kind]
    return lines


def comment(said: Json) -> list[str]:
    """A remark, with who said it and when."""
    when = said["created_at"].replace("T", " ")[:16]
    return [f"[{said['author']}] at {when}", *(f"  {part}" for part in said["text"].splitlines()), ""]
