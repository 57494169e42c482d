"""The words of beads: priorities, types, statuses, kinds of relation, times, metadata. Refusals are in bd's words."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from fleet.cli.beads.call import Refused, read_file
from fleet.model.task import BLOCKS
from fleet.projections.beads import STATUSES

TYPES = {
    "task": "General work item (default)",
    "bug": "A defect",
    "feature": "Something new",
    "chore": "Upkeep",
    "epic": "A body of work with children",
    "decision": "A decision and its reasons",
    "spike": "A look into something unknown, in limited time",
    "story": "A feature as its user sees it",
    "milestone": "A mark that several issues lead up to",
}
_TYPE_ALIASES = {"enhancement": "feature", "feat": "feature", "dec": "decision", "adr": "decision"}
_NEEDS = ("blocks", "blocked-by", "depends-on")  # three words for one relation
LINKS = (
    *("approved-by", "assigned-to", "attests", "authored-by", "blocked-by", "blocks", "caused-by"),
    *("conditional-blocks", "delegated-from", "depends-on", "discovered-from", "duplicates", "parent-child"),
    *("related", "relates-to", "replies-to", "supersedes", "tracks", "until", "validates", "waits-for"),
)
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def priority(word: str) -> int:
    """`0` to `4`, or `P0` to `P4`."""
    found = re.fullmatch(r"[Pp]?([0-4])", word.strip())
    if not found:
        raise Refused(f'invalid priority "{word}" (expected 0-4 or P0-P4, not words like high/medium/low)')
    return int(found[1])


def issue_type(word: str, refusal: str = "invalid issue type: {}") -> str:
    """A type of issue, by its name or an alias."""
    name = _TYPE_ALIASES.get(word.strip().lower(), word.strip().lower())
    if name not in TYPES:
        raise Refused(refusal.format(word), hint=f"types: {', '.join(TYPES)}")
    return name


def new_status(word: str) -> str:
    """A status that an issue is to get."""
    if word not in STATUSES:
        raise Refused(f'invalid status "{word}" (built-in: {", ".join(STATUSES)})')
    if word in ("pinned", "hooked"):
        raise Refused(f'status "{word}" has no meaning on Fleet\'s own queue', hint="open, blocked or deferred may do")
    return word


def listed_statuses(words: list[str]) -> frozenset[str]:
    """The statuses of a filter; `all` stands for every one."""
    for word in words:
        if word not in (*STATUSES, "all"):
            among = " in multi-status filter" if len(words) > 1 else ""
            raise Refused(f'invalid status "{word}"{among} (valid: {", ".join(STATUSES)})')
    return frozenset(STATUSES) if "all" in words else frozenset(words)


def link_kind(word: str) -> str:
    """A kind of relation; three words stand for `blocks`."""
    if word not in LINKS:
        raise Refused(f'unknown dependency type "{word}"; valid types: {", ".join(LINKS)}')
    return BLOCKS if word in _NEEDS else word


def later(word: str, now: int, flag: str) -> int:
    """A moment: `+6h`, `+1d`, `tomorrow`, `2027-01-15`, or RFC 3339; in milliseconds."""
    at = datetime.fromtimestamp(now / 1000, UTC)
    if found := re.fullmatch(r"\+(\d{1,6})([mhdw])", word):
        return _ms(at + timedelta(**{_UNITS[found[2]]: int(found[1])}))
    if word == "tomorrow":
        return _ms(at + timedelta(days=1))
    try:
        moment = datetime.fromisoformat(word)
    except ValueError as exc:
        raise Refused(f'invalid {flag} format "{word}". Examples: +1h, +2d, tomorrow, 2027-01-15') from exc
    return _ms(moment if moment.tzinfo else moment.astimezone())


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def metadata(word: str) -> dict[str, Any]:
    """A JSON object, or the one in @FILE."""
    try:
        text = Path(word[1:]).expanduser().read_text("utf-8") if word.startswith("@") else word
        value = msgspec.json.decode(text)
    except (OSError, UnicodeDecodeError) as exc:
        raise Refused(f"failed to read metadata file {word[1:]}: {exc}") from exc
    except msgspec.DecodeError as exc:
        raise Refused("invalid JSON in --metadata: must be valid JSON") from exc
    if not isinstance(value, dict):
        raise Refused('invalid JSON in --metadata: Fleet keeps an object, such as \'{"team": "web"}\'')
    return value


def metadata_pair(word: str) -> tuple[str, Any]:
    """`key=value`; a number, true, false or null is one, anything else is text."""
    key, eq, text = word.partition("=")
    if not eq or not key:
        raise Refused(f'invalid --set-metadata "{word}": expected key=value')
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        value = text
    return key, value if value is None or isinstance(value, (bool, int, float)) else text


def text_of(value: str) -> str:
    """Text as given, or all of stdin for `-`."""
    if value != "-":
        return value
    read = read_file("-", "stdin")
    if not read.strip():
        raise Refused('empty description from stdin/file (say --description "" for none)')
    return read
