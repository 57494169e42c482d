"""The page of specs: the fields of a run and its tasks."""

from __future__ import annotations

from fleet.model import scorer, spec
from scripts.pages.words import doc, fields_of, joined, objects_in


def spec_page() -> str:
    """The fields of a run and its tasks, then of the objects within."""
    parts = []
    for kind in (spec.RunSpec, spec.TaskSpec):
        parts += [f"## {kind.__name__}", doc(kind), fields_of(kind)]
    within = objects_in((spec.RunSpec, spec.TaskSpec)) - {spec.TaskSpec}
    for title, of in (("## Objects", False), ("## Scorers", True)):
        parts.append(title)
        for found in sorted(within, key=lambda each: each.__name__):
            if issubclass(found, scorer.Scorer) is of:
                tag = found.__struct_config__.tag
                parts += [f"### {found.__name__}", f"`kind = {tag}`" * bool(tag), doc(found), fields_of(found)]
    return joined(parts)
