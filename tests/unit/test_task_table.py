"""The table of tasks: a line for each, whatever its title and however narrow the terminal."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from rich.console import Console

from fleet.cli.tasks import task_table
from fleet.model.states import TaskState
from fleet.projections.queue import TaskLine

TITLE = "Ein ziemlich langer Titel mit 日本語の題名, der auf keinem Bildschirm in eine Zeile mit allem anderen passt"


def a_line(**fields: object) -> TaskLine:
    """A task as a row shows it."""
    shown = TaskLine(
        id="fleet-abc",
        title=TITLE,
        state=TaskState.RUNNING,
        priority=2,
        coder="claude",
        coder_inherited=True,
        model="sonnet",
        model_inherited=True,
        cwd="/home/ana/a/rather/deep/directory/of/a/shop",
        reason="",
    )
    return replace(shown, **fields)


@pytest.mark.parametrize("width", [80, 120, 1000])
@pytest.mark.parametrize("started_at", [None, 1_794_820_000_000])
def test_a_task_is_one_line(width: int, started_at: int | None) -> None:
    """What does not fit is cut and marked; where there is room, nothing is."""
    console = Console(width=width, highlight=False, color_system=None)
    with console.capture() as drawn:
        console.print(task_table([a_line(started_at=started_at) for _ in range(3)], width))
    rows = drawn.get().splitlines()
    assert len(rows) == 4
    assert all(row.startswith("fleet-abc  running") for row in rows[1:])
    assert all((TITLE in row) == (width == 1000) for row in rows[1:])
    assert all(("\u2026" in row) == (width != 1000) for row in rows[1:])


def test_a_mark_that_a_terminal_cannot_show_is_left_out() -> None:
    """Where letters are not UTF-8 the mark would be seven others, and break the line: what does not fit is cut."""
    console = Console(width=80, highlight=False, color_system=None)
    with console.capture() as drawn:
        console.print(task_table([a_line(title="x" * 200)], 80, marks=False))
    assert drawn.get().isascii()
    assert len(drawn.get().splitlines()) == 2


def test_a_row_steers_no_terminal_and_fools_nobody() -> None:
    """Whatever stands in a task: what would draw, reorder or hide is seen as that."""
    console = Console(width=200, highlight=False, color_system=None)
    bad = "a\x1b[2J\u202eb\u200bc"
    with console.capture() as drawn:
        console.print(task_table([a_line(title=bad, coder=bad, model=bad, cwd=bad)], 200))
    assert drawn.get().count("a\ufffd[2J\ufffdb\ufffdc") == 4
    assert not {"\x1b", "\u202e", "\u200b"} & set(drawn.get())
