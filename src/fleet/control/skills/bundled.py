"""The skills that are bundled: their names, what each is for, and their text."""

from __future__ import annotations

from pathlib import Path

import msgspec

from fleet.errors import NotFound

FILE = "SKILL.md"
HERE = Path(__file__).parent
FENCE = "---\n"


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """A skill, by the name that an agent calls it by."""

    name: str
    description: str
    text: str  # the whole file


def names() -> list[str]:
    """The names of all that are bundled."""
    return sorted(path.parent.name for path in HERE.glob(f"*/{FILE}"))


def bundled(name: str) -> Skill:
    """A skill by its name."""
    if name not in names():
        raise NotFound(f"no skill `{name}` comes with Fleet", hint=f"there are: {', '.join(names())}")
    text = (HERE / name / FILE).read_text("utf-8")
    head = text.removeprefix(FENCE).partition(f"\n{FENCE}")[0]
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    return Skill(name=fields["name"], description=fields["description"], text=text)


def text_of(name: str) -> str:
    """What a skill says, without the head that is for the program that loads it."""
    return bundled(name).text.removeprefix(FENCE).partition(f"\n{FENCE}")[2].lstrip()
