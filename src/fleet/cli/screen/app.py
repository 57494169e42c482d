"""The screen of `fleet top`: draws the board, and passes on what a person wants."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual.app import App, ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.widgets import Input, Static

from fleet.cli.screen.attaching import attach, command_line
from fleet.cli.screen.drawing import cut, drawn, title_line
from fleet.cli.screen.looking import POLL_SECONDS, Looking
from fleet.cli.screen.rows import Rows
from fleet.cli.screen.windows import Answer, Confirm, Help, Peek
from fleet.config.clock import utc_ms
from fleet.errors import FleetError

if TYPE_CHECKING:
    from fleet.cli.logs import Follower
    from fleet.cli.screen.desk import AnyDesk

LOG_LINES = 200
KEYS = "p peek  a answer  t attach  i interrupt  r restart  s stop  / filter  ? help  q"
ASKS = {
    "interrupt": "End the session of {}? The task then waits for you; no attempt is used.",
    "restart": "Run {} again? A session that is at work is ended first.",
    "stop": "Cancel {}? What needs it is skipped.",
}


class Top(App[None]):
    """Needs you, running, queued, hosts. Everything that is changed goes through control, in the person's name."""

    CSS = """
    #title { height: 1; text-style: bold; }
    #keys { height: 1; text-style: dim; }
    #message { height: 1; }
    #head { height: auto; max-height: 6; text-style: bold; }
    Rows { height: 1fr; overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; }
    RichLog { height: 1fr; scrollbar-size-vertical: 1; }
    #filter { display: none; height: 1; }
    #filter.open { display: block; }
    ModalScreen { align: center middle; }
    .box { width: 90%; max-width: 90; height: auto; max-height: 90%; border: solid; padding: 0 1; overflow-y: auto; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "peek", show=False),
        Binding("a", "answer", show=False),
        Binding("t", "attach", show=False),
        Binding("i", "steer('interrupt')", show=False),
        Binding("r", "steer('restart')", show=False),
        Binding("s", "steer('stop')", show=False),
        Binding("slash", "filter", show=False),
        Binding("question_mark", "help", show=False),
        Binding("escape", "clear", show=False),
        Binding("q,ctrl+c", "quit", show=False),
    ]

    def __init__(self, desk: AnyDesk, *, clock: Callable[[], int] = utc_ms, poll_seconds: float = POLL_SECONDS) -> None:
        super().__init__(ansi_color=True)
        self._desk = desk
        self._clock = clock
        self._looking = Looking(desk, clock, poll_seconds)
        self._said = ""
        self._only = ""
        self._follower: Follower | None = None

    def compose(self) -> ComposeResult:
        """From the top to the bottom."""
        yield Static("fleet top", id="title", markup=False)
        yield Rows()
        yield Input(id="filter", placeholder="filter: only what has these words", compact=True)
        yield Static(id="message", markup=False)
        yield Static(KEYS, id="keys", markup=False)

    def on_mount(self) -> None:
        """Begin to look."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):  # the terminal is left as it was found
            with contextlib.suppress(RuntimeError, ValueError):  # only the first thread hears of them
                loop.add_signal_handler(number, self.exit, None, 128 + number)
        self._rows.focus()
        self.run_worker(self._looking.run(self._seen, self._draw))

    def on_unmount(self) -> None:
        """Let go of everything."""
        self._looking.close()

    # drawing

    async def _seen(self) -> None:
        self._draw()
        if self.is_running:
            await self._read_on()

    def _draw(self) -> None:
        if not self.is_running:  # on the way out: a look may end later than the screen, which goes piece by piece
            return
        board, width = self._looking.board, self.size.width
        self._line("#message", self._looking.trouble or self._said or (f"filter: {self._only}" if self._only else ""))
        if board is not None:
            self._line("#title", title_line(board, self._looking.spent, width))
            self._rows.show(drawn(board, width=width - 1, now=self._clock(), only=self._only))

    def _line(self, name: str, text: str) -> None:
        self.screen_stack[0].query_one(name, Static).update(cut(text, self.size.width))

    @property
    def _rows(self) -> Rows:
        return self.screen_stack[0].query_one(Rows)

    def say(self, text: str) -> None:
        """Tell what became of something; it stays until the next."""
        self._said = text
        self._draw()

    def on_resize(self, event: Resize) -> None:  # noqa: ARG002  # the size is asked for where it is needed
        """The same board, in another width."""
        self._draw()

    # the filter

    def action_filter(self) -> None:
        """Write what the tasks must have."""
        self.query_one("#filter", Input).add_class("open").focus()

    def action_clear(self) -> None:
        """Show all again."""
        self._close_filter("")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Narrow it down while it is written."""
        if event.input.id == "filter":
            self._only = event.value
            self._draw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Back to the rows; the filter stays."""
        if event.input.id == "filter":
            self._close_filter(event.value)

    def _close_filter(self, only: str) -> None:
        field = self.query_one("#filter", Input)
        field.value = self._only = only
        self._said = ""
        field.remove_class("open")
        self._rows.focus()
        self._draw()

    # what a person wants

    def action_help(self) -> None:
        """The keys."""
        self.push_screen(Help())

    def on_rows_opened(self) -> None:
        """A task was opened by enter or by a click."""
        self.action_peek()

    def action_peek(self) -> None:
        """What its agent says, as it comes."""
        if uid := self._chosen():
            self.run_worker(self._peek(uid))

    async def _peek(self, uid: str) -> None:
        try:
            task = await self._looking.call(self._desk.task, uid)
            lines, self._follower = await self._looking.call(self._desk.follow, uid, LOG_LINES)
        except (FleetError, OSError) as exc:
            self.say(f"error: {exc}")
            return
        self.push_screen(Peek(task, lines))

    async def _read_on(self) -> None:
        """What the agent that is looked at said since."""
        peek, follower = self.screen, self._follower
        if isinstance(peek, Peek) and follower is not None:
            with contextlib.suppress(FleetError, OSError):  # said on the board already
                task = await self._looking.call(self._desk.task, peek.uid)
                peek.more(task, await self._looking.call(lambda: list(follower.more())))

    def action_answer(self) -> None:
        """Answer what it asks."""
        uid = self._chosen()
        board = self._looking.board
        if uid is None or board is None:
            return
        asked = [each for each in board.needs_you if each.id == uid]
        if not asked or (asked[0].kind in ("failed", "stale", "verify")):
            what = {"verify": f"judge it with: fleet verify {uid} --pass or --fail"}
            self.say(f"{uid} asks nothing; {what.get(asked[0].kind if asked else '', f'fleet why {uid} tells more')}")
            return

        def send(text: str | None) -> None:
            if text is not None:
                self._do(lambda: self._desk.answer(uid, text))

        self.push_screen(Answer(uid, asked[0].title, f"{asked[0].kind}: {asked[0].text}"), send)

    def action_steer(self, verb: str) -> None:
        """Interrupt, restart or stop, once it is certain that this is meant."""
        uid = self._chosen()
        if uid is None:
            return

        def go(sure: bool | None) -> None:
            if sure:
                self._do(lambda: getattr(self._desk, verb)(uid))

        self.push_screen(Confirm(ASKS[verb].format(uid)), go)

    def action_attach(self) -> None:
        """Show its session in the terminal itself."""
        if uid := self._chosen():
            self.run_worker(self._show_session(uid))

    async def _show_session(self, uid: str) -> None:
        try:
            words = await self._looking.call(self._desk.attaching, uid)
        except (FleetError, OSError) as exc:
            self.say(f"error: {exc}")
            return
        try:
            with self.suspend():
                attach(self._desk.flags, words)
            self.say("")
        except SuspendNotSupported:
            self.say(f"in another terminal: {command_line(self._desk.flags, words)}")

    def _do(self, verb: Callable[[], str]) -> None:
        async def done() -> None:
            try:
                said = await self._looking.call(verb)
            except (FleetError, OSError) as exc:
                hint = getattr(exc, "hint", "")
                said = f"error: {exc}" + (f"; {hint}" if hint else "")
            self.say(said)
            self._looking.wake()

        self.run_worker(done())

    def _chosen(self) -> str | None:
        chosen = self._rows.chosen
        if chosen is None:
            self.say("no task is chosen")
            return None
        return chosen.task
