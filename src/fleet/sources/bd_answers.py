"""What bd says: its JSON with or without the envelope, its version, and its refusals by their words.

Exit codes and the place of an error differ between versions of bd and between its verbs, so nothing here trusts them.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any

import msgspec

Version = tuple[int, int, int]

FLOOR: Version = (1, 0, 4)  # the first with `ready --claim`, a compare-and-swap claim and today's shapes
OLDEST: Version = (0, 50, 0)  # before it, failures exit 0 and a claim can have two winners


class Trouble(StrEnum):
    """Why bd did not do what was asked."""

    CLAIMED = "claimed"  # somebody else has it
    NOT_CLAIMABLE = "not_claimable"  # its status does not allow a claim
    NOT_FOUND = "not_found"
    BLOCKED = "blocked"  # open blockers or children
    BUSY = "busy"  # locked, or a lost race inside bd: worth another try
    NO_QUEUE = "no_queue"  # there is no database
    UNKNOWN = "unknown"  # it was cut off: it may have happened
    OTHER = "other"


_SIGNS: tuple[tuple[Trouble, tuple[str, ...]], ...] = (
    (Trouble.CLAIMED, ("already claimed", "claimed by a different actor", "cannot reassign")),
    (Trouble.NOT_CLAIMABLE, ("issue not claimable",)),
    (Trouble.NOT_FOUND, ("no issue found matching", "no issues found matching")),
    (Trouble.BLOCKED, ("cannot close blocked issue", "blocked by open issues", "open child issue")),
    (Trouble.BUSY, ("error 1213", "error 1205", "serialization failure", "database is locked")),
    (Trouble.NO_QUEUE, ("no beads database found",)),
)


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What one call of bd brought."""

    code: int
    stdout: str
    stderr: str
    data: Any = None  # the payload, out of its envelope; None where stdout was not JSON
    trouble: Trouble | None = None

    @property
    def text(self) -> str:
        """bd's own words for what went wrong."""
        if isinstance(self.data, dict) and self.data.get("error"):
            return str(self.data["error"])
        return self.stderr.strip() or self.stdout.strip() or f"bd exited with {self.code} and said nothing"


def read(code: int, stdout: str, stderr: str) -> Answer:
    """What a call that ended says."""
    data = unwrap(stdout)
    refused = isinstance(data, dict) and "error" in data
    answer = Answer(code=code, stdout=stdout, stderr=stderr, data=data)
    if code == 0 and not refused:
        return answer
    return msgspec.structs.replace(answer, trouble=classify(f"{answer.text}\n{stderr}"))


def unwrap(stdout: str) -> Any:
    """The payload of bd's JSON, whether it came in an envelope or bare; None for what is not JSON."""
    try:
        value = msgspec.json.decode(stdout)
    except msgspec.DecodeError:
        return None
    if isinstance(value, dict) and "schema_version" in value:
        rest = {name: part for name, part in value.items() if name != "schema_version"}
        return rest.get("data", rest)
    return value


def classify(text: str) -> Trouble:
    """What a refusal means, by the words that bd uses for it."""
    lowered = text.lower()
    for trouble, signs in _SIGNS:
        if any(sign in lowered for sign in signs):
            return trouble
    return Trouble.OTHER


def version_in(text: str) -> Version | None:
    """The version in `bd version`, with or without --json."""
    data = unwrap(text)
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", str(data.get("version", "")) if isinstance(data, dict) else text)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None
