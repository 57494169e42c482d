"""The words of the wire: stream numbers, times, durations, and refusals as the API makes them."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

from aiohttp import web

STDIN, STDOUT, STDERR, EXIT, STDIN_END = range(5)
VERSION = "v0.0.1-rc43"  # told only by what the machine itself answers
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def as_time(seconds: float) -> str:
    """A time as the API writes it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def as_seconds(duration: str | None, default: float) -> float:
    """A duration such as 10s, 1m30s or 200ms; a bare number is of seconds."""
    if not duration:
        return default
    if re.fullmatch(r"[\d.]+", duration):
        return float(duration)
    return sum(float(number) * UNITS[unit] for number, unit in re.findall(r"([\d.]+)(ms|s|m|h)", duration))


def refused(status: int, body: dict[str, object] | str, headers: dict[str, str] | None = None) -> web.Response:
    """A refusal: a sentence, or an object."""
    content = {"error": body} if isinstance(body, str) else body
    return web.json_response(content, status=status, headers=headers)


class Refused(Exception):
    """A refusal from deep within; the door answers with it."""

    def __init__(self, status: int, body: dict[str, object] | str, headers: dict[str, str] | None = None) -> None:
        super().__init__(json.dumps(body))
        self.answer = (status, body, headers)
