"""Faults: what goes wrong, written into the address as `/f/NAME[:VALUE][*TIMES]+...`.

    401 403 404 429 500 503 529    that status, at once; `429:30` has a retry-after of 30 seconds
    ctx                            the prompt is too long
    plan                           the plan is used up, and resets in an hour
    limits                         served, with the headers of a plan that is not used up
    usage:150000                   served, and said to have used that many tokens of input
    hang, slow:0.5, cut            no answer at all; so many seconds between events; the connection ends in the middle
    failed:CODE                    served, but the stream tells of a failure with this code (OpenAI)
    refuse                         the model refuses

With `*2`, only the first two requests to this address have it.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from dataclasses import dataclass, field

WRITTEN = re.compile(r"(\w+)(?::([\w.]+))?(?:\*(\d+))?")
PREFIX = re.compile(r"^/f/([^/]+)(/.*)$")


@dataclass(frozen=True)
class Reply:
    """An answer: JSON, or a stream of events, each with its name, where it has one."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: object = None
    events: tuple[tuple[str, dict[str, object] | str], ...] = ()


@dataclass
class Counts:
    """How often each fault has struck; shared by all requests of a server."""

    struck: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def strikes(self, key: str, times: int) -> bool:
        """Whether it strikes once more."""
        with self.lock:
            self.struck[key] += 1
            return self.struck[key] <= times


class Faults(dict[str, str]):
    """The faults of one request: their names, with their values."""

    @property
    def status(self) -> int | None:
        """The status of an answer that is only that."""
        return next((int(name) for name in self if name.isdigit()), None)

    @property
    def input_tokens(self) -> int | None:
        """How many tokens the prompt is said to have."""
        return int(self["usage"]) if "usage" in self else None


def split(path: str) -> tuple[str, str]:
    """The faults' part of a path, and the rest."""
    found = PREFIX.match(path)
    return (found[1], found[2]) if found else ("", path)


def striking(written: str, counts: Counts) -> Faults:
    """The faults that strike now."""
    faults = Faults()
    for part in written.split("+") if written else ():
        found = WRITTEN.fullmatch(part)
        if found is None:
            raise ValueError(f"no fault is written like `{part}`")
        name, value, times = found.groups()
        if times is None or counts.strikes(f"{written} {part}", int(times)):
            faults[name] = value or ""
    return faults
