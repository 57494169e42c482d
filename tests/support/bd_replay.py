"""The same calls typed to two bds, and what they answered made comparable.

What may differ is named here, with its reason; everything else must be the same: exit code, JSON, and the first clause
of every refusal.
"""

from __future__ import annotations

import re
import shlex
from typing import Any, NamedTuple, Protocol

import msgspec

from tests.support.bd import Said

# Fields that Fleet does not have. They are left out on both sides.
NOT_FLEETS = {
    "owner": "the e-mail of the git author; Fleet does not ask git who somebody is",
    "revision": "a number of Dolt's; Fleet's guard is the transaction",
    "lease_expires_at": "what a person takes has no lease: it is theirs until they put it back",
    "heartbeat_at": "the same",
    "hint": "advice is in each one's own words",
}
# Fields whose value only has to be there, or not, on both sides.
MASKED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
# Calls that are wrong usage: bd exits 1 for everything, Fleet exits 2 for words that it does not know.
USAGE = "usage"
# bd prints some refusals only in words, even with --json; Fleet always prints the envelope too.


class Typist(Protocol):
    """Somebody who types bd."""

    def bd(self, *words: str) -> Said: ...


class Step(NamedTuple):
    """One call. `{name}` stands for the id that the step called `name` got."""

    words: str
    name: str = ""  # what the created issue is called from here on
    kind: str = ""  # USAGE, or nothing


class Outcome(NamedTuple):
    """What is compared of a call."""

    code: int
    data: Any
    beside: dict[str, Any]  # what else stands in the envelope
    priorities: list[int]  # of a list, in its order; within one priority bd orders by seconds, and those are too few
    refusal: str


def play(step: Step, typist: Typist, ids: dict[str, str]) -> Outcome:
    """Type one call and make what came comparable."""
    words = [re.sub(r"\{(\w+)\}", lambda found: ids[found[1]], word) for word in shlex.split(step.words)]
    said = typist.bd(*words, "--json")
    envelope = _envelope(said)
    data = envelope.pop("data", None)
    if step.name:
        ids[step.name] = data["id"]
    refusal = ""
    if isinstance(data, dict) and "error" in data:
        failed = data.get("failed", [])
        refusal = "; ".join([data["error"], *(each["error"] for each in failed)])
        data = None
    if said.code and not refusal:
        refusal = said.err.strip()
    rows = [row["priority"] for row in data if "dependency_count" in row] if isinstance(data, list) else []
    return Outcome(said.code, _masked(data, ids), envelope, rows, _clause(_named(refusal, ids)))


def _envelope(said: Said) -> dict[str, Any]:
    """The envelope on stdout; else the one that bd puts in the last line of stderr."""
    last = said.err.strip().splitlines()[-1:]
    for text in (said.out, *last):
        try:
            value = msgspec.json.decode(text)
        except msgspec.DecodeError:
            continue
        if isinstance(value, dict) and "data" in value:
            return value
    return {"schema_version": 1}  # some refusals of bd are words only


def _masked(value: Any, ids: dict[str, str]) -> Any:
    if isinstance(value, dict):
        kept = {name: _masked(part, ids) for name, part in value.items() if name not in NOT_FLEETS}
        if {"author", "text"} <= kept.keys():
            kept["id"] = "<comment>"
        return kept
    if isinstance(value, list):
        return sorted((_masked(part, ids) for part in value), key=repr)  # the order is looked at elsewhere
    if isinstance(value, str):
        return "<time>" if MASKED.fullmatch(value) else _named(value, ids)
    return value


def _named(text: str, ids: dict[str, str]) -> str:
    """The text with every id replaced by the name of its issue."""
    for name, uid in sorted(ids.items(), key=lambda pair: -len(pair[1])):
        text = text.replace(uid, f"<{name}>")
    return text


def _clause(text: str) -> str:
    """A refusal up to its advice."""
    first = text.removeprefix("Error: ").splitlines()[0] if text else ""
    return re.split(r" \(|; (?!updating|resolving)| — |\. ", first)[0]
