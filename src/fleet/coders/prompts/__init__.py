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
    feedback: str = "",
) -> str:
    """The whole prompt; a short one when the coder goes on with its own conversation, which has the long one in it.

    `answered` is what the session before asked, with what a person said to it; `feedback` is why its work did not pass.
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
        "feedback": feedback,
    }
    came = [_filled(name, values) for name in ("answered", "feedback") if values[name]]
    if resumed:
        return "\n".join([_filled("resumed", values), *came])
    return "\n".join([_filled("header", values), *came, page("instructions")])


def verifier_prompt(
    *,
    task: str,
    title: str,
    objective: str,
    question: str,
    cwd: str,
    artifacts: str,
    final_message: str,
    excerpt: str,
    answer_file: str,
) -> str:
    """The prompt of a session that judges another's work."""
    values = {
        "task": task,
        "title": " ".join(title.split()),
        "objective": objective.strip() or title,
        "question": question.strip(),
        "cwd": cwd,
        "artifacts": artifacts or "(none)",
        "final_message": _indented(final_message) or "    (nothing)",
        "excerpt": _indented(excerpt) or "    (nothing)",
        "answer_file": answer_file,
    }
    return _filled("verify", values)


def pool_prompt(*, command: str, worker: str, pool: str, minutes: int) -> str:
    """What is dispatched to a worker of a pool: the command as it was given, then the rules of the pool."""
    values = {"command": command.strip(), "worker": worker, "pool": pool, "minutes": str(minutes)}
    return _filled("pool", values).strip()


@cache
def page(name: str) -> str:
    """A page of this directory."""
    return (files("fleet.coders.prompts") / f"{name}.md").read_text("utf-8")


def _filled(name: str, values: dict[str, str]) -> str:
    """A page with its places filled once: what stands in the values is not looked at again."""
    return PLACE.sub(lambda place: values[place[1]], page(name))


def _indented(text: str) -> str:
    """A text that cannot be taken for a part of the page around it."""
    return "\n".join(f"    {line}" for line in text.splitlines())
