"""`fleet top` in a real terminal: how it begins and ends, and what it says where it cannot be drawn."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence

import pytest

from tests.support.cli import FLEET, Cli

ENTERED, LEFT = b"\x1b[?1049h", b"\x1b[?1049l"  # the terminal's second screen
WITHOUT = "import sys; sys.modules['textual'] = None; from fleet.cli import main; sys.exit(main(sys.argv[1:]))"


class Terminal:
    """A program at a terminal of 80 x 24."""

    def __init__(self, argv: Sequence[str], cli: Cli, env: dict[str, str]) -> None:
        self._fd, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        env = {**cli.env, "TERM": "xterm-256color", **env}
        opening = ["sh", "-c", 'exec "$@" <"$0" >"$0" 2>&1', os.ttyname(theirs)]  # makes it theirs: Ctrl-C reaches them
        self.process = subprocess.Popen([*opening, *argv], cwd=cli.cwd, env=env, start_new_session=True)
        self._theirs = theirs  # stays open: it may not have opened its own yet
        self.seen = b""

    def until(self, words: bytes) -> None:
        """Wait until these words were drawn."""
        deadline = time.monotonic() + 60
        while words not in self.seen:
            assert select.select([self._fd], [], [], max(0.0, deadline - time.monotonic()))[0], self.seen
            try:
                self.seen += os.read(self._fd, 1 << 16)
            except OSError:  # it has ended
                break
        assert words in self.seen

    def press(self, keys: bytes) -> None:
        """As a person does."""
        os.write(self._fd, keys)

    def close(self) -> None:
        """End what is left."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._theirs)
        os.close(self._fd)


@contextlib.contextmanager
def at_terminal(
    cli: Cli, argv: Sequence[str] = (*FLEET, "top"), env: dict[str, str] | None = None
) -> Iterator[Terminal]:
    """It, until the test is done."""
    with contextlib.closing(Terminal(argv, cli, env or {})) as terminal:
        yield terminal


@pytest.mark.parametrize(("end", "code"), [("q", 0), ("SIGTERM", 143)])
def test_the_terminal_is_left_as_it_was(cli: Cli, end: str, code: int) -> None:
    """However it is ended, the screen is given back; what was chosen by nobody is not touched."""
    uid = cli.add("Mend the login page")
    before = cli.events()
    with at_terminal(cli) as terminal:
        terminal.until(uid.encode())
        assert ENTERED in terminal.seen
        if end == "q":
            terminal.press(b"q")
        else:
            terminal.process.send_signal(signal.SIGTERM)
        terminal.until(LEFT)
        assert terminal.process.wait(20) == code
    assert cli.events() == before
    assert list(cli.home.bells.iterdir()) == []


def test_a_session_can_be_attached_to(cli: Cli) -> None:
    """t gives the terminal to the task's log; Ctrl-C ends that alone, and the screen comes back."""
    uid = cli.add("Mend the login page")
    with at_terminal(cli) as terminal:
        terminal.until(uid.encode())
        terminal.press(b"t")
        terminal.until(b"has said nothing yet")
        terminal.seen = b""
        terminal.press(b"\x03")
        terminal.until(b"enter goes back to the screen")
        terminal.press(b"\n")
        terminal.until(b"Mend the login page")
        terminal.press(b"q")
        terminal.until(LEFT)
        assert terminal.process.wait(20) == 0


@pytest.mark.parametrize("colour", [True, False])
def test_nothing_is_told_by_colour_alone(cli: Cli, colour: bool) -> None:
    """With NO_COLOR there is none, and the words are the same."""
    for uid in (cli.add("Mend the login page"), cli.add("Move the database")):  # the first is chosen
        with cli.control() as control:
            control.block(uid, "question", "Which?")
    with at_terminal(cli, env={} if colour else {"NO_COLOR": "1"}) as terminal:
        terminal.until(b"Which?")
        terminal.until(b"HOSTS")
        terminal.press(b"q")
        terminal.until(LEFT)
    assert (b"\x1b[33m" in terminal.seen or b";33m" in terminal.seen) is colour


def test_without_textual(cli: Cli) -> None:
    """It says what is missing and what installs it."""
    with at_terminal(cli, (sys.executable, "-c", WITHOUT, "top")) as terminal:
        terminal.until(b"pip install")
        assert b"needs Textual, which is not installed" in terminal.seen
        assert terminal.process.wait(20) == 1


def test_a_terminal_that_cannot_draw(cli: Cli) -> None:
    """One without a cursor that can be moved is refused as none."""
    with at_terminal(cli, env={"TERM": "dumb"}) as terminal:
        terminal.until(b"fleet top needs a terminal")
        assert terminal.process.wait(20) == 2
        assert b"\x1b" not in terminal.seen


def test_without_a_terminal(cli: Cli, newcomer: Cli) -> None:
    """Elsewhere it refuses with a hint; --json prints the board once."""
    uid = cli.add("Mend the login page")
    done = cli.run("top")
    assert (done.code, done.out) == (2, "")
    assert "needs a terminal" in done.err
    board = cli.json("top")
    assert [task["id"] for task in board["queued"]] == [uid]
    assert (board["needs_you"], board["running"], board["supervisors"]) == ([], [], [])
    assert [host["kind"] for host in board["hosts"]] == ["local"]


def test_without_a_home(newcomer: Cli) -> None:
    """There is nothing to look at before `fleet init`."""
    done = newcomer.run("top")
    assert done.code != 0
    assert "fleet init" in done.err
