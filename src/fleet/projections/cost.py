"""What a fleet has spent: money, tokens and time of its sessions, by day, coder, model, host, label or run.

A session counts on the day on which it ended. What its coder did not tell is not known, which is not the same as
nothing: its cost stands in no sum, and how many there are of these is told beside it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal, get_args

import msgspec

from fleet.errors import UsageError
from fleet.model.receipt import Usage
from fleet.model.session import Session
from fleet.projections import feed
from fleet.store.reads import Reads, order_of

By = Literal["day", "coder", "model", "host", "label", "run"]
BY: tuple[str, ...] = get_args(By)
NONE = "-"  # the name of those without a model, a label or a run
AT_ONCE = 2000  # sessions that are read together
OVERLAP_MS = 10_000  # where several write at once, an event may come later than those behind it; by no more than this


class CostLine(msgspec.Struct, frozen=True, kw_only=True):
    """What some sessions came to. `unpriced` of them did not tell their cost; of the others it is the sum."""

    name: str
    sessions: int = 0
    unpriced: int = 0
    cost_microusd: int | None = None  # None: of none that cost anything
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    tool_calls: int = 0
    duration_ms: int = 0  # from start to end, of all together


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What ended since a moment, and beside it what runs. A session with several labels is in the line of each."""

    by: str
    since: int
    until: int
    days: tuple[str, ...]  # when each day of the lines begins
    lines: list[CostLine]  # days in their order, all else by what was spent
    total: CostLine
    running: CostLine  # so far; in no other line


class _Sum:
    """One line, while it grows."""

    def __init__(self) -> None:
        self.sessions = self.unpriced = self.duration_ms = 0
        self.usage = Usage()

    def add(self, session: Session, usage: Usage, until: int) -> None:
        self.sessions += 1
        self.unpriced += not _is_priced(session, usage)
        self.usage = self.usage.plus(usage)
        self.duration_ms += session.running_ms(until)

    def line(self, name: str) -> CostLine:
        usage = self.usage
        return CostLine(
            name=name,
            sessions=self.sessions,
            unpriced=self.unpriced,
            cost_microusd=None if self.unpriced and not usage.cost_microusd else usage.cost_microusd,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_tokens=usage.cached_tokens,
            tool_calls=usage.tool_calls,
            duration_ms=self.duration_ms,
        )


class Spending:
    """The sums of one question: since when, and how it is divided. Asked again, it reads only what has ended since.

    Days begin where whoever asks says, each with its offset from UTC: `2026-01-31T00:00:00+01:00`.
    """

    def __init__(self, since: int, by: str, days: tuple[str, ...] = ()) -> None:
        if by not in BY:
            raise UsageError(f"nothing is divided by `{by}`", hint=f"by: {', '.join(BY)}")
        self._since, self._by, self._days = since, by, days
        self._begins = _begins(since, days) if by == "day" else []
        self._sums: dict[str, _Sum] = {day[:10]: _Sum() for day in days if by == "day"}
        self._total = _Sum()
        self._final: int | None = None  # up to this event everything was counted; None: nothing was read yet
        self._late: dict[str, int] = {}  # the sessions behind it that were counted, with the sequence of their end
        self._ends: deque[tuple[int, int]] = deque()  # where the ledger ended, and when

    def cost(self, reads: Reads, now: int) -> Cost:
        """Everything up to now."""
        self._read_on(reads, now)
        lines = [found.line(name) for name, found in self._sums.items()]
        if self._by != "day":
            lines.sort(key=_order)
        return Cost(
            by=self._by,
            since=self._since,
            until=now,
            days=self._days,
            lines=lines,
            total=self._total.line("total"),
            running=_running(reads, now),
        )

    def _read_on(self, reads: Reads, now: int) -> None:
        if self._final is None:
            self._final = _seq(feed.since(reads, self._since))
        end, after = _seq(reads.end()), self._final  # the end first: what comes after it is not passed over
        while True:
            found = reads.ended(after, limit=AT_ONCE)
            self._add(reads, [(seq, session) for seq, session in found if session.id not in self._late])
            long_ago = [seq for seq, session in found if (session.ended_at or 0) <= now - OVERLAP_MS]
            self._final = max([self._final, *long_ago[-1:]])
            if len(found) < AT_ONCE:
                break
            after = found[-1][0]
        self._ends.append((now, end))
        while self._ends and self._ends[0][0] <= now - OVERLAP_MS:
            self._final = max(self._final, self._ends.popleft()[1])
        self._late = {name: seq for name, seq in self._late.items() if seq > self._final}

    def _add(self, reads: Reads, found: Sequence[tuple[int, Session]]) -> None:
        new = [session for _, session in found if (session.ended_at or 0) >= self._since]
        labels = _labels(reads, new) if self._by == "label" else {}
        for session in new:
            ended_at = session.ended_at or 0
            self._total.add(session, session.usage, ended_at)
            for name in labels.get(session.task) or (self._name(session, ended_at),):
                self._sums.setdefault(name, _Sum()).add(session, session.usage, ended_at)
        self._late |= {session.id: seq for seq, session in found}

    def _name(self, session: Session, ended_at: int) -> str:
        match self._by:
            case "day":
                return self._days[max(0, bisect_right(self._begins, ended_at) - 1)][:10]
            case "coder":
                return session.coder
            case "model":
                return session.model or NONE
            case "host":
                return session.host
            case "run":
                return session.run or NONE
            case _:
                return NONE


def _order(line: CostLine) -> tuple[int, int, str]:
    """The most money first, then the most tokens."""
    return -(line.cost_microusd or 0), -line.input_tokens - line.output_tokens, line.name


def _seq(position: str) -> int:
    return order_of(position)[-1] if position else 0


def _begins(since: int, days: tuple[str, ...]) -> list[int]:
    """When each day begins, in milliseconds."""
    try:
        found = [int(_aware(day).timestamp() * 1000) for day in days]
    except (ValueError, OverflowError) as exc:
        raise UsageError(f"a day begins at a moment such as 2026-01-31T00:00:00+01:00: {exc}") from exc
    if not found or found != sorted(set(found)) or found[0] > since:
        raise UsageError("days are given by their beginnings, in order, the first of them no later than `since`")
    return found


def _aware(day: str) -> datetime:
    moment = datetime.fromisoformat(day)
    if moment.tzinfo is None:
        raise ValueError("it has no offset from UTC")
    return moment


def _is_priced(session: Session, usage: Usage) -> bool:
    """Whether it is known what a session cost. A plain command, and what never began, cost nothing."""
    return usage.cost_microusd > 0 or session.coder == "command" or session.started_at is None


def _running(reads: Reads, now: int) -> CostLine:
    total = _Sum()
    for session in reads.sessions(live=True):
        total.add(session, reads.progress(session.id).usage, now)
    return total.line("running")


def _labels(reads: Reads, sessions: Iterable[Session]) -> dict[str, list[str]]:
    """The labels of tasks, as they stand now."""
    tasks = reads.tasks_by_uid({session.task for session in sessions})
    return {uid: [f"{name}={value}" for name, value in task.labels.items()] for uid, task in tasks.items()}
