"""How a run is watched: a table in its place on a terminal, a line for each change elsewhere, nothing for a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from fleet.cli.transcript import one_line
from fleet.cli.words import aligned, count, printable, span
from fleet.errors import ServerUnreachable

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.cli.context import Context
    from fleet.front.following import Following
    from fleet.front.views import RunLive
    from fleet.model.session import Session
    from fleet.projections.happened import Happened
    from fleet.projections.runs import Live, RunView, TaskResult

    Look: TypeAlias = Callable[[], RunLive]

MOST_LIVE = 24  # rows of a live table
MOST_ROWS = 200  # rows of a final one; what did not pass comes first
REASON = 100  # characters of a reason


class View(Protocol):
    """Something that keeps up with a run."""

    def step(self) -> None:
        """Show what has changed."""

    def close(self) -> None:
        """Leave the terminal as it was."""


class Silent:
    """For programs, and for those who asked for silence."""

    def step(self) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class Lines:
    """A line on stderr for each thing that happens to a task of the run."""

    def __init__(self, context: Context, following: Following) -> None:
        self._context = context
        self._following = following
        self._claimed: dict[str, Session] = {}  # not begun yet: what is missing may still keep it from it

    def step(self) -> None:
        """The events since the last time."""
        while happened := self._following.more():
            self.tell(happened)

    def tell(self, happened: list[Happened]) -> None:
        """A line for each that a person wants to hear of."""
        for one in happened:
            self._say(one)

    def close(self) -> None:
        """What came last."""
        self.step()

    def _say(self, one: Happened) -> None:
        from fleet.cli.event_words import placed, told
        from fleet.model import event as ev

        event = one.entry.event
        match event:
            case ev.TaskClaimed(session=session):
                self._claimed[session.id] = session
            case ev.SessionStarted(session=name) if name in self._claimed:
                session = self._claimed.pop(name)
                what = "verifier started" if session.kind == "verify" else "started"
                self._line(one, what, placed(session))
            case ev.TaskSettled(receipt=receipt):
                source = f" ({receipt.source.value})" if receipt.source else ""
                self._line(one, receipt.result.value + source, receipt.reason.removeprefix("skipped: "))
            case ev.SessionAdopted() | ev.TaskRequeued() | ev.TaskBlocked():
                self._line(one, *told(event))
            case _:
                return

    def _line(self, one: Happened, what: str, detail: str) -> None:
        import time

        clock = time.strftime("%H:%M:%S", time.localtime(one.entry.event.at / 1000))
        name = one.about.id if one.about else one.entry.event.subject
        self._context.note(f"{clock}  {name}  {what}: {short(detail)}")
        self._context.err.flush()


class Screen:
    """A table that is drawn again in its place. A fleet that does not answer is told of beneath it."""

    def __init__(self, context: Context, look: Look) -> None:
        from rich.console import Console
        from rich.live import Live as LiveDisplay

        self._look = look
        self._seen = look()
        console = Console(file=context.err, highlight=False, no_color=not context.colour)
        self._live = LiveDisplay(self._drawn(), console=console, auto_refresh=False, transient=True)
        self._live.start()

    def step(self) -> None:
        """Draw it again."""
        self._live.update(self._drawn(), refresh=True)

    def close(self) -> None:
        """Take it away; the final table comes in its place."""
        self._live.stop()

    def _drawn(self) -> Any:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        trouble = ""
        try:
            self._seen = self._look()
        except ServerUnreachable as exc:
            trouble = f"{exc}; it is asked again until it answers"
        view, running = self._seen.run, self._seen.live
        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in ("Task", "Where", "Coder", "Elapsed", "Idle", "Tokens", "Cost"):
            table.add_column(name, no_wrap=True)
        for each in running[:MOST_LIVE]:
            table.add_row(*(Text(printable(cell)) for cell in live_cells(each)))
        more = [Text(f"and {len(running) - MOST_LIVE} more")] if len(running) > MOST_LIVE else []
        return Group(table, *more, Text(printable(summary(view))), *([Text(trouble, "red")] if trouble else []))


def live_cells(each: Live) -> tuple[str, ...]:
    """The cells of a task that runs."""
    return (
        f"{each.id} (verifier)" if each.state == "verifying" else each.id,
        each.worker,
        who(each),
        span(each.elapsed_ms),
        span(each.idle_ms),
        f"{each.tokens:,}",
        dollars(each.cost_microusd),
    )


def who(each: Live) -> str:
    """The coder, with its model where it has one."""
    return f"{each.coder}/{each.model}" if each.model else each.coder


def view_of(context: Context, look: Look, following: Following, *, quiet: bool) -> View:
    """The view that fits who looks."""
    if quiet or context.json:
        return Silent()
    return Screen(context, look) if context.redraws(context.err) else Lines(context, following)


def summary(view: RunView) -> str:
    """One line: how many are in which state."""
    named = ("queued", "running", "verifying", "blocked", "completed", "partial", "failed", "cancelled")
    parts = [f"{view.counts[name]} {name}" for name in named if view.counts[name]]
    return f"{view.id}: {count(view.tasks, 'task')}, {view.left} left: {', '.join(parts)}"


def table(found: list[TaskResult]) -> list[str]:
    """The final table: what did not pass first, where there is too much to show."""
    if len(found) > MOST_ROWS:
        bad = [each for each in found if each.result != "pass"]
        good = [each for each in found if each.result == "pass"]
        shown = [*bad, *good][:MOST_ROWS]
    else:
        shown = found
    rows = [("TASK", "RESULT", "SOURCE", "TIME", "TOKENS", "COST", "REASON")]
    rows += [
        (
            each.id,
            each.result.value if each.result else each.state.value,
            each.source.value if each.source else "-",
            span(each.duration_ms),
            f"{each.tokens:,}",
            dollars(each.cost_microusd),
            short(each.reason.removeprefix("skipped: "))
            + ("" if each.scorer or each.result != "pass" else "  [unverified]"),
        )
        for each in shown
    ]
    lines = aligned(rows)
    if len(found) > len(shown):
        lines.append(f"and {len(found) - len(shown)} more")
    return lines


def short(text: str) -> str:
    """A text on one line, cut to what a table can hold, without what would steer a terminal."""
    return printable(one_line(text, REASON))


def dollars(microusd: int) -> str:
    """Money, to the cent; more exact where there is less."""
    if not microusd:
        return "-"
    return f"${microusd / 1e6:.2f}" if microusd >= 10_000 else f"${microusd / 1e6:.4f}"
