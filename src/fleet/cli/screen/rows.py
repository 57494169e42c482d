"""The board on the screen: lines that can be scrolled and chosen from."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from fleet.cli.screen.drawing import HEAD, QUIET, Line

CHOSEN = Style(reverse=True)
STYLES = {HEAD: Style(bold=True), QUIET: Style(dim=True)}
URGENT = Style(color="yellow")


class Rows(ScrollView, can_focus=True):
    """All lines of a board; one that stands for a task is chosen, and stays so while the lines around it change."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home,g", "end(-1)", show=False),
        Binding("end,G", "end(1)", show=False),
        Binding("enter", "open", show=False),
    ]

    class Opened(Message):
        """Somebody wants to see more of the chosen one."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[Line] = []
        self._at = 0  # the line that is chosen

    @property
    def chosen(self) -> Line | None:
        """The line that is chosen, if one can be."""
        found = self._lines[self._at] if self._at < len(self._lines) else None
        return found if found is not None and found.task else None

    def show(self, lines: list[Line]) -> None:
        """Draw these from now on."""
        if lines == self._lines:
            return
        before, self._lines = self.chosen, lines
        self._at = self._place_of(before)
        self.virtual_size = Size(self.size.width, len(lines))
        self._keep_in_sight()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        index = y + self.scroll_offset.y
        width = self.size.width
        if index >= len(self._lines):
            return Strip.blank(width)
        line = self._lines[index]
        if index == self._at and line.task:
            return Strip([Segment(">" + line.text[1:], CHOSEN)]).extend_cell_length(width, CHOSEN)
        style = STYLES.get(line.look, URGENT if line.part == "needs" else Style())
        return Strip([Segment(line.text, style)]).extend_cell_length(width)

    def action_move(self, step: int) -> None:
        """The next task, or the one before."""
        self._choose(self._at, step)

    def action_page(self, step: int) -> None:
        """A screen further."""
        last = len(self._lines) - 1
        self._choose(max(-1, min(last + 1, self._at + step * max(1, self.size.height - 2))), step)

    def action_end(self, step: int) -> None:
        """The first task, or the last."""
        self._choose(-1 if step < 0 else len(self._lines), -step)

    def action_open(self) -> None:
        """More of the chosen one."""
        if self.chosen:
            self.post_message(self.Opened())

    def on_click(self, event: Click) -> None:
        """Choose what is clicked on; a click on the chosen one opens it."""
        index = event.y + self.scroll_offset.y
        if index < len(self._lines) and self._lines[index].task:
            again, self._at = index == self._at, index
            self.refresh()
            if again:
                self.action_open()

    def _choose(self, start: int, step: int) -> None:
        """The nearest task from a line on, in one direction; where there is none, in the other."""
        ahead = [k for k in self._choices() if (k - start) * step > 0]
        back = [k for k in self._choices() if (k - start) * step <= 0]
        if ahead or back:
            self._at = min(ahead or back, key=lambda k: abs(k - start))
        self._keep_in_sight()
        self.refresh()

    def _choices(self) -> list[int]:
        return [index for index, line in enumerate(self._lines) if line.task]

    def _place_of(self, before: Line | None) -> int:
        """Where the chosen one is now. If it is gone, or needs nobody any more, what took its place."""
        choices = self._choices()
        if not choices:
            return 0
        if before is None:
            return choices[0]
        same = [k for k in choices if self._lines[k].task == before.task]
        exact = [k for k in same if self._lines[k].part == before.part]
        moved = same if before.part != "needs" else []
        return (exact or moved or [min(choices, key=lambda k: abs(k - self._at))])[0]

    def _keep_in_sight(self) -> None:
        top, height = self.scroll_offset.y, max(1, self.size.height)
        first = self._at == next(iter(self._choices()), 0)
        if first:
            self.scroll_to(y=0, animate=False, immediate=True)  # with its heading
        elif self._at < top:
            self.scroll_to(y=self._at, animate=False, immediate=True)
        elif self._at >= top + height:
            self.scroll_to(y=self._at - height + 1, animate=False, immediate=True)
