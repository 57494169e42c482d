"""The brief: what a task asks for, as its agent reads it: role, objective, instructions, context, files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from fleet.model.terms import Terms


class InputFile(msgspec.Struct, frozen=True):
    """A file that an agent is given: its path in the workspace, and its first part where it is text."""

    path: str
    text: str | None = None
    whole: bool = True  # whether `text` is all of it


def brief(description: str, terms: Terms, files: Sequence[InputFile] = ()) -> str:
    """The parts that were given, each under its heading; the description alone where there is nothing else."""
    return "\n\n".join(filter(None, _parts(description, terms, files)))


def plain(title: str, description: str, terms: Terms) -> str:
    """The same for a program that is no agent: its own words and nothing around them."""
    return "\n\n".join(filter(None, (description, terms.instructions))) or terms.objective or title


def _parts(description: str, terms: Terms, files: Sequence[InputFile]) -> Iterator[str]:
    if terms.role:
        yield f"Your role: {terms.role}"
    if terms.objective:
        yield f"Objective: {terms.objective.strip()}"
    if description.strip():
        yield description.strip()
    if terms.instructions.strip():
        yield terms.instructions.strip()
    if terms.context:
        yield "What to know:\n\n" + "\n".join(f"- {text.strip()}" for text in terms.context)
    if files:
        yield "Files to begin with, relative to the working directory:\n\n" + "\n".join(f"- `{f.path}`" for f in files)
        for file in files:
            if file.text is not None:
                yield _quoted(file)
    if terms.expected_artifacts:
        yield _expected(terms.expected_artifacts)


def _quoted(file: InputFile) -> str:
    assert file.text is not None
    fence = "```"
    while fence in file.text:  # a fence that the text does not hold ends only where it should
        fence += "`"
    rest = "" if file.whole else "\n\n(This is the beginning; read the rest in the file.)"
    return f"`{file.path}`:\n\n{fence}\n{file.text.rstrip()}\n{fence}{rest}"


def _expected(kinds: Sequence[str]) -> str:
    """What is looked for at the end; the log and the receipt are Fleet's own work."""
    own = [kind for kind in kinds if kind not in ("log", "receipt")]
    if not own:
        return ""
    lines = [
        f"- `{kind}`, in the working directory"
        if "/" in kind
        else f"- a file named `{kind}`, with any ending, in the artifact directory"
        for kind in own
    ]
    return "Leave these files, or the task has failed:\n\n" + "\n".join(lines)
