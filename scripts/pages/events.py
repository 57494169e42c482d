"""The page of events: every kind, its fields, and the objects within."""

from __future__ import annotations

from fleet.model import event
from scripts.pages.words import doc, fields_of, joined, names_of, objects_in, table


def events() -> str:
    """Every kind of event, its fields, and the objects within."""
    kinds = sorted(event.EVENTS, key=event.kind_of)
    parts = [
        table(
            ("kind", "meaning"),
            [(f"[`{event.kind_of(kind)}`](#{event.kind_of(kind).replace('.', '')})", doc(kind)) for kind in kinds],
        ),
        "## Every event",
        doc(event.Event),
        fields_of(event.Event),
        "## Kinds",
    ]
    for kind in kinds:
        parts += [f"### {event.kind_of(kind)}", doc(kind)]
        parts += [fields_of(kind, without=event.Event)] * (len(names_of(kind)) > len(names_of(event.Event)))
    parts.append("## Objects")
    for found in sorted(objects_in(event.EVENTS), key=lambda each: each.__name__):
        parts += [f"### {found.__name__}", doc(found), fields_of(found)]
    return joined(parts)
