"""What opens over the board: a look at one task, a question to answer, a question of ours, the keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen, Screen
from textual.widgets import Input, RichLog, Static

from fleet.cli.screen.drawing import cut
from fleet.cli.words import printable

if TYPE_CHECKING:
    from fleet.cli.screen.desk import Shown

KEYS = (
    ("up, down, k, j", "choose a task; also page up, home and so on"),
    ("enter, p", "peek: what its agent says, as it comes"),
    ("t", "attach: its terminal (pools), else its log"),
    ("a", "answer what it asks"),
    ("i", "interrupt: end its session; the task waits for you"),
    ("r", "restart: run it again"),
    ("s", "stop: cancel it"),
    ("/", "filter: only what has these words; esc: all"),
    ("?", "this help"),
    ("q", "quit; nothing that runs is touched"),
)


class Peek(Screen[None]):
    """One task: what there is to know at its head, then what its agent says."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,p", "dismiss", show=False)]

    def __init__(self, task: Shown, lines: list[str] | None) -> None:
        super().__init__()
        self._shown = task
        self._lines = lines

    @property
    def uid(self) -> str:
        """The task that is looked at."""
        return self._shown.uid

    def compose(self) -> ComposeResult:
        """Head, log, keys."""
        yield Static(_head(self._shown), id="head", markup=False)
        yield RichLog(id="log", wrap=True, markup=False, highlight=False, max_lines=5000, min_width=20)
        yield Static("esc back   up/down scroll", id="keys", markup=False)

    def on_mount(self) -> None:
        """Begin with the end of the log."""
        self.more(self._shown, ["it has said nothing yet"] if self._lines is None else self._lines)
        self.query_one(RichLog).focus()

    def more(self, task: Shown, lines: list[str]) -> None:
        """The task as it stands now, and what was said since."""
        self._shown = task
        self.query_one("#head", Static).update(_head(task))
        log = self.query_one(RichLog)
        for line in lines:
            log.write(line)


def _head(task: Shown) -> str:
    text = f"{task.uid}  {task.state.value}  {task.title}"
    return printable(f"{text}\n{cut(task.said, 500)}" if task.said else text)


class Answer(ModalScreen[str | None]):
    """What a task asks, and a line for the answer."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", show=False)]

    def __init__(self, uid: str, title: str, question: str) -> None:
        super().__init__()
        self._asking = f"{uid}  {title}\n\n{question}\n"

    def compose(self) -> ComposeResult:
        """The question, a line to write in."""
        with Vertical(classes="box"):
            yield Static(printable(self._asking), markup=False)
            yield Input(placeholder="your answer", compact=True)
            yield Static("\nenter sends it, the task goes back to the queue   esc cancels", markup=False)

    def on_mount(self) -> None:
        """Write at once."""
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """An empty line is no answer."""
        if event.value.strip():
            self.dismiss(event.value)


class Confirm(ModalScreen[bool]):
    """A question of ours; only `y` is a yes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "dismiss(True)", show=False),
        Binding("n,escape,q,enter", "dismiss(False)", show=False),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """The question."""
        with Vertical(classes="box"):
            yield Static(printable(f"{self._question}\n\ny yes   n no"), markup=False)


class Help(ModalScreen[None]):
    """The keys."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,enter", "dismiss", show=False)]

    def compose(self) -> ComposeResult:
        """A line for each."""
        with Vertical(classes="box"):
            yield Static("\n".join(f"{keys:<15}{text}" for keys, text in KEYS) + "\n\nesc back", markup=False)
