"""A board as lines of text of a given width: what stands where on the screen of `fleet top`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from fleet.cli.cost import money
from fleet.cli.run_view import dollars
from fleet.cli.transcript import one_line
from fleet.cli.words import cells, count, pad, printable, span, when
from fleet.model.host import is_local
from fleet.projections.board import Board, Running, Waiting
from fleet.projections.cost import Cost
from fleet.projections.hosts import HostView
from fleet.projections.queue import Question

WIDE = 110  # columns from which on the host has one
HEAD, ROW, QUIET = "head", "row", "quiet"


class Line(NamedTuple):
    """A line of the board. One that stands for a task can be chosen."""

    text: str
    task: str = ""
    part: str = ""  # needs, running, queued
    look: str = ROW


class Column(NamedTuple):
    """A column: its name, its width, and whether it is filled from the left."""

    name: str
    width: int
    right: bool = False


def drawn(board: Board, *, width: int, now: int, only: str = "") -> list[Line]:
    """All lines, the most urgent part first. `only` leaves out the tasks and hosts that do not have these words."""
    has = _filter(only)
    needs = [each for each in board.needs_you if has(each.id, each.title, each.kind, each.text)]
    running = [each for each in board.running if has(each.id, each.title, each.coder, each.model, _where(each))]
    queued = [each for each in board.queued if has(each.id, each.title, each.coder)]
    machines = [each for each in board.hosts if has(each.name, each.kind, each.state, each.evidence)]
    counts = board.counts
    return [
        *_part("NEEDS YOU", needs, len(board.needs_you), only, lambda: _needs(needs, width, now)),
        *_part(
            "RUNNING", running, counts["running"] + counts["verifying"], only, lambda: _running(running, width, now)
        ),
        *_part("QUEUED", queued, counts["queued"], only, lambda: _queued(queued, width, now)),
        *_part("HOSTS", machines, len(board.hosts), only, lambda: _hosts(machines, width)),
    ][:-1]


def title_line(board: Board, spent: Cost | None, width: int) -> str:
    """Where this is, how much is done, what was spent, and who works on it."""
    n = board.counts
    alone = "no supervisor is running: fleet run"
    who = count(len(board.supervisors), "supervisor") if board.supervisors else alone
    if board.silent:
        who += f", {len(board.silent)} without a sign of life"
    done = f"{n['completed']} completed, {n['failed']} failed"
    return cut(f"fleet top {who} | {done} | {_spent(spent)} | {board.home}", width)


def _spent(found: Cost | None) -> str:
    """What ended today came to, and beside it what runs; a cost that was not told is not called nothing."""
    if found is None:
        return "today unknown"
    return f"today {money(found.total)}" + (f", running {money(found.running)}" if found.running.sessions else "")


def cut(text: str, width: int) -> str:
    """A text that takes at most so many columns of a terminal, on one line that does not steer it."""
    text = printable(one_line(text, 1000))
    if cells(text) <= width:
        return text
    while text and cells(text) > width - 1:
        text = text[: -max(1, (cells(text) - width) // 2)]
    return text + "…" if width > 0 else ""


def _filter(only: str) -> Callable[..., bool]:
    wanted = only.casefold().split()
    return lambda *texts: all(any(word in (text or "").casefold() for text in texts) for word in wanted)


def _part(name: str, shown: Sequence[object], total: int, only: str, lines: Callable[[], Iterable[Line]]) -> list[Line]:
    """A part with its heading. What is not shown is counted."""
    number = f"{len(shown)} of {total}" if len(shown) != total else f"{total}"
    head = Line(f"{name} ({number})", look=HEAD)
    if not shown:
        return [head, Line("  nothing that fits the filter" if only and total else "  nothing", look=QUIET), Line("")]
    return [head, *lines(), Line("")]


def _row(columns: Sequence[Column], values: Sequence[str], width: int) -> str:
    """The cells side by side; the last column takes what is left."""
    parts = []
    for column, value in zip(columns, values, strict=True):
        text = cut(value, column.width)
        parts.append(" " * (column.width - cells(text)) + text if column.right else pad(text, column.width))
    used = sum(column.width + 1 for column in columns[:-1])
    parts[-1] = cut(values[-1], max(4, width - used - 2))
    return ("  " + " ".join(parts)).rstrip()


def _table(columns: Sequence[Column], rows: Iterable[tuple[str, str, Sequence[str]]], width: int) -> Iterable[Line]:
    yield Line(_row(columns, [column.name for column in columns], width), look=QUIET)
    for task, part, values in rows:
        yield Line(_row(columns, values, width), task=task, part=part)


def _needs(found: list[Question], width: int, now: int) -> Iterable[Line]:
    title = max(16, (width - 34) // 3)
    columns = [
        Column("ID", 12),
        Column("WHAT", 11),
        Column("SINCE", 6, right=True),
        Column("TITLE", title),
        Column("WHY", 0),
    ]
    return _table(
        columns,
        ((each.id, "needs", (each.id, each.kind, span(now - each.asked_at), each.title, each.text)) for each in found),
        width,
    )


def _running(found: list[Running], width: int, now: int) -> Iterable[Line]:
    wide = width >= WIDE
    columns = [
        *(Column("ID", 12), Column("CODER", 22 if wide else 13)),
        *(Column("FOR", 6, right=True), Column("IDLE", 6, right=True), Column("CTX", 4, right=True)),
        *(Column("TOKENS", 9 if wide else 6, right=True), Column("COST", 7, right=True)),
        *((Column("HOST", 18),) if wide else ()),
        Column("TITLE", 0),
    ]
    return _table(columns, ((each.id, "running", _run_cells(each, now, wide)) for each in found), width)


def _run_cells(each: Running, now: int, wide: bool) -> list[str]:
    began = each.started_at or now
    idle = max(0, now - began - ((each.elapsed_ms or 0) - (each.idle_ms or 0)))  # it has grown since the look
    full = f"{(each.peak_context_tokens or 0) * 100 // each.context_window}%" if each.context_window else "-"
    verifier = "verifier: " if each.state.value == "verifying" else ""
    return [
        each.id,
        f"{each.coder}/{each.model}" if each.model else each.coder,
        span(now - began),
        span(idle),
        full,
        f"{each.tokens:,}" if wide else _rounded(each.tokens),
        dollars(each.cost_microusd),
        *([_where(each)] if wide else []),
        f"{'(stale) ' if each.stale else ''}{verifier}{each.title}",
    ]


def _where(each: Running) -> str:
    """The host; of those on this machine, the slot."""
    return each.worker if is_local(each.host) else each.host


def _rounded(tokens: int) -> str:
    return (
        f"{tokens}" if tokens < 10_000 else f"{tokens // 1000}k" if tokens < 10_000_000 else f"{tokens // 1_000_000}M"
    )


def _queued(found: list[Waiting], width: int, now: int) -> Iterable[Line]:
    columns = [Column("ID", 12), Column("P", 1), Column("CODER", 13), Column("WAITS FOR", 16), Column("TITLE", 0)]
    rows = (
        (each.id, "queued", (each.id, str(each.priority), each.coder, _waits(each, now), each.title)) for each in found
    )
    return _table(columns, rows, width)


def _waits(each: Waiting, now: int) -> str:
    if each.needs:
        return count(each.needs, "task")
    if each.not_before is not None and each.not_before > now:
        return f"{when(each.not_before)[11:16]} (in {span(each.not_before - now)})"
    return "a slot"


def _hosts(found: list[HostView], width: int) -> Iterable[Line]:
    columns = [
        *(Column("HOST", 24), Column("KIND", 6), Column("STATE", 8)),
        *(Column("BUSY", 7, right=True), Column("MS", 5, right=True), Column("EVIDENCE", 0)),
    ]
    rows = (
        (
            "",
            "",
            (
                each.name,
                each.kind,
                "draining" if each.draining else each.state,
                f"{each.sessions}/{each.slots}",
                "-" if each.latency_ms is None else str(each.latency_ms),
                each.evidence,
            ),
        )
        for each in found
    )
    return _table(columns, rows, width)
