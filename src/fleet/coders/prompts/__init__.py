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
    answered: str = "",
) -> str:
    """The whole prompt; a short one when the coder goes on with its own conversation, which has the long one in it.

    `answered` is what the session before asked, with what a person said to it.
    """
    values = {
        "task": task,
        "title": " ".join(title.split()),
        "description": description.strip() or "(There is no description: the title says it all.)",
        "cwd": cwd,
        "task_dir": task_dir,
        "artifact_dir": artifact_dir,
        "attempt": str(attempt),
        "answered": answered,
    }
    came = [_filled("answered", values)] if answered else []
    if resumed:
        return "\n".join([_filled("resumed", values), *came])
    return "\n".join([_filled("header", values), *came, page("instructions")])


@cache
def page(name: str) -> str:
    """A page of this directory."""
    return (files("fleet.coders.prompts") / f"{name}.md").read_text("utf-8")


def _filled(name: str, values: dict[str, str]) -> str:
    """A page with its places filled once: what stands in the values is not looked at again."""
    return PLACE.sub(lambda place: values[place[1]], page(name))
