"""The fields that `update` changes: what was said, checked at once, and applied to the task as it then stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from fleet.cli.beads import vocabulary
from fleet.cli.beads.call import Refused, read_file
from fleet.cli.beads.flags import Flag, Given, Takes
from fleet.model.task import Bead, Task, TaskEdit, check_title
from fleet.projections import beads

FLAGS = (
    Flag("title", "", Takes.TEXT, "a new title"),
    Flag("description", "d", Takes.TEXT, "new details; - reads stdin"),
    Flag("body-file", "", Takes.TEXT, "read the details from a file; - reads stdin"),
    Flag("priority", "p", Takes.TEXT, "0-4 or P0-P4"),
    Flag("type", "t", Takes.TEXT, ", ".join(vocabulary.TYPES)),
    Flag("assignee", "a", Takes.TEXT, 'whom it is meant for; "" for nobody'),
    Flag("notes", "", Takes.TEXT, "notes, instead of those there"),
    Flag("append-notes", "", Takes.TEXT, "notes, below those there"),
    Flag("design", "", Takes.TEXT, "design notes"),
    Flag("acceptance", "", Takes.TEXT, "how to tell that it is done"),
    Flag("external-ref", "", Takes.TEXT, "what it is called elsewhere"),
    Flag("estimate", "e", Takes.NUMBER, "minutes"),
    Flag("add-label", "", Takes.LIST, "one more label"),
    Flag("remove-label", "", Takes.LIST, "a label less"),
    Flag("set-labels", "", Takes.LIST, "labels, instead of those there"),
    Flag("metadata", "", Takes.TEXT, "a JSON object, or @FILE; its keys are added"),
    Flag("set-metadata", "", Takes.TEXTS, "key=value"),
    Flag("unset-metadata", "", Takes.TEXTS, "a key less"),
)
_PLAIN = {  # flags whose text is the field's new value
    "assignee": "assignee",
    "notes": "notes",
    "design": "design",
    "acceptance": "acceptance_criteria",
    "external-ref": "external_ref",
}
Change = Callable[[Task], TaskEdit]


def change(given: Given) -> Change | None:
    """What the flags ask for, or None where they ask for nothing. Anything that cannot be taken is refused here."""
    if not any(given.has(flag.name) for flag in FLAGS):
        return None
    own = _own(given)
    plain: dict[str, Any] = {field: given.text(flag) for flag, field in _PLAIN.items() if given.has(flag)}
    if word := given.text("type"):
        plain["issue_type"] = vocabulary.issue_type(word, "validation failed: invalid issue type {}")
    if given.has("estimate"):
        plain["estimated_minutes"] = given.number("estimate")
    relabel, remember = _labels(given), _metadata(given)

    def apply(task: Task) -> TaskEdit:
        bead = replace(task.bead, **plain)
        if more := given.text("append-notes"):
            bead = replace(bead, notes=f"{bead.notes}\n{more}" if bead.notes else more)
        return TaskEdit(**own, labels=relabel(task.labels), bead=remember(bead))

    return apply


def _own(given: Given) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if given.has("title"):
        if not (title := given.text("title") or "").strip():
            raise Refused("title cannot be empty")
        fields["title"] = check_title(title)
    if file := given.text("body-file"):
        fields["description"] = read_file(file, "file")
    elif given.has("description"):
        fields["description"] = vocabulary.text_of(given.text("description") or "")
    if given.has("priority"):
        fields["priority"] = vocabulary.priority(given.text("priority") or "")
    return fields


def _labels(given: Given) -> Callable[[dict[str, str]], dict[str, str]]:
    added, removed = beads.labels_from(given.list("add-label")), frozenset(given.list("remove-label"))
    only = beads.labels_from(given.list("set-labels")) if given.has("set-labels") else None

    def apply(present: dict[str, str]) -> dict[str, str]:
        kept = (present if only is None else only) | added
        return {name: value for name, value in kept.items() if not removed & {name, f"{name}={value}"}}

    return apply


def _metadata(given: Given) -> Callable[[Bead], Bead]:
    added = vocabulary.metadata(text) if (text := given.text("metadata")) else {}
    added |= dict(vocabulary.metadata_pair(word) for word in given.texts("set-metadata"))
    removed = frozenset(given.texts("unset-metadata"))

    def apply(bead: Bead) -> Bead:
        kept = {name: value for name, value in (bead.metadata | added).items() if name not in removed}
        return replace(bead, metadata=kept)

    return apply
