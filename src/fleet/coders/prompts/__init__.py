"""The prompt of a session: what the task is, then how to work under Fleet. The texts are the pages beside this file."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

PLACE = re.compile(r"\{\{(\w+)\}\}")


def compose_prompt(
    *,
    task: str,
    title: str,
    description: str,
    cwd: str,
    task_dir: str,
    artifact_dir: str,
    attempt: int = 1,
    resumed: bool = False,
) -> str:
    """The whole prompt; a short one when the coder goes on with its own conversation, which has the long one in it."""
    values = {
        "task": task,
        "title": " ".join(title.split()),
        "description": description.strip() or "(There is no description: the title says it all.)",
        "cwd": cwd,
        "task_dir": task_dir,
        "artifact_dir": artifact_dir,
        "attempt": str(attempt),
    }
    if resumed:
        return _filled("resumed", values)
    return f"{_filled('header', values)}\n{page('instructions')}"


@cache
def page(name: str) -> str:
    """A page of this directory."""
    return (files("fleet.coders.prompts") / f"{name}.md").read_text("utf-8")


def _filled(name: str, values: dict[str, str]) -> str:
    """A page with its places filled once: what stands in the values is not looked at again."""
    return PLACE.sub(lambda place: values[place[1]], page(name))
