"""When a plan's limit resets, from a vendor's words: a time of day, a date, or how long it takes. No clock is read."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

TIME = r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s*(?P<half>[ap]m)?"
DAY = r"(?:(?P<month>[A-Z][a-z]{2})[a-z]* (?P<day>\d{1,2})(?:st|nd|rd|th)?(?:,? (?P<year>\d{4}))?,?\s+(?:at )?)?"
AT = re.compile(rf"(?:again|resets?)\s+(?:at |on )?{DAY}{TIME}(?:\s*\((?P<zone>[\w/+-]+)\))?", re.IGNORECASE)
IN = re.compile(r"(?:again|resets?)\s+in\s+((?:\d+\s*[a-z]+[,\s]*(?:and\s+)?)+)", re.IGNORECASE)
PART = re.compile(r"(\d+)\s*([a-z])", re.IGNORECASE)
SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def resets_at(text: str, at: int | None, utc_offset_seconds: int = 0) -> int | None:
    """The moment in UTC milliseconds, of words that were said at `at` in a place with that local time."""
    if at is None:
        return None
    if span := IN.search(text):
        seconds = sum(int(count) * SECONDS.get(unit.lower(), 0) for count, unit in PART.findall(span[1]))
        return at + seconds * 1000 if seconds else None
    if (found := AT.search(text)) is None or not (found["minute"] or found["half"]):
        return None
    here = _zone(found["zone"]) or timezone(timedelta(seconds=utc_offset_seconds))
    said = datetime.fromtimestamp(at // 1000, here)
    try:
        moment = _named(found, said)
    except ValueError:  # the 31st of February, 25 o'clock
        return None
    return int(moment.astimezone(UTC).timestamp()) * 1000


def _named(found: re.Match[str], said: datetime) -> datetime:
    """The day that is named, else the next on which it is that late."""
    hour = int(found["hour"])
    if half := (found["half"] or "").lower():
        hour = hour % 12 + (12 if half == "pm" else 0)
    moment = said.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0)
    if not found["month"]:
        return moment if moment > said else moment + timedelta(days=1)
    month = MONTHS.index(found["month"].lower()) + 1
    moment = moment.replace(year=int(found["year"] or said.year), month=month, day=int(found["day"]))
    return moment if found["year"] or moment > said else moment.replace(year=said.year + 1)


def _zone(name: str | None) -> tzinfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError):
        return None
