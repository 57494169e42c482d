"""The lines of `fleet top`: their widths in any script, and what a filter looks at."""

from __future__ import annotations

import pytest

from fleet.cli.screen.drawing import cut, drawn, title_line
from fleet.cli.words import cells
from fleet.model.states import TaskState
from fleet.projections.board import Board, Running
from fleet.projections.cost import Cost, CostLine
from fleet.projections.status import COUNTED

NOW = 1_800_000_000_000
RUNNING = Running(
    id="fleet-abc",
    title="Write the manual",
    state=TaskState.RUNNING,
    priority=2,
    coder="claude",
    coder_inherited=False,
    model="sonnet",
    model_inherited=False,
    cwd=None,
    reason="",
    started_at=NOW - 90_000,
    elapsed_ms=60_000,
    idle_ms=10_000,
    peak_context_tokens=100_000,
    context_window=200_000,
    session="fleet-abc.1",
    worker="local#1",
    host="local@3d12",
    tokens=12_345_678,
    cost_microusd=5_000,
    stale=False,
)
BOARD = Board(
    home="/home",
    at=NOW,
    counts={**dict.fromkeys(COUNTED, 0), "running": 1},
    needs_you=[],
    running=[RUNNING],
    queued=[],
    hosts=[],
    supervisors=[],
)


@pytest.mark.parametrize(
    "text", ["plain words", "翻訳する仕事", "a翻b訳cする", "e\u0301" * 9, "two\nlines\tand \x1b[2J more"]
)
def test_a_text_fits(text: str) -> None:
    """In any script a text takes at most the columns that it has, on one line, and says that it was cut."""
    for width in range(20):
        shown = cut(text, width)
        assert cells(shown) <= width
        assert not set(shown) & set("\n\t\x1b")
    assert cut("plain words", 8) == "plain w…"


@pytest.mark.parametrize(
    ("only", "found"), [("", 1), ("MANUAL claude", 1), ("local#1", 1), ("3d12", 0), ("manual codex", 0)]
)
def test_what_a_filter_looks_at(only: str, found: int) -> None:
    """All of its words, in what is shown of a task, and in nothing else."""
    assert sum(line.task == "fleet-abc" for line in drawn(BOARD, width=120, now=NOW, only=only)) == found


def test_times_go_on_between_looks() -> None:
    """How long it runs and is silent is counted from what was seen, by the clock of whoever draws."""
    (line,) = [line.text for line in drawn(BOARD, width=80, now=NOW) if line.task]
    assert line.split()[2:7] == ["1m30s", "40s", "50%", "12M", "$0.0050"]


@pytest.mark.parametrize(
    ("total", "running", "words"),
    [
        (CostLine(name="total", cost_microusd=0), CostLine(name="running"), "today $0.00"),
        (CostLine(name="total", sessions=2, cost_microusd=1_250_000), CostLine(name="running"), "today $1.25"),
        (
            CostLine(name="total", sessions=3, unpriced=1, cost_microusd=1_250_000),
            CostLine(name="running", sessions=1, unpriced=1),
            "today > $1.25, running unknown",
        ),
    ],
)
def test_what_was_spent_is_in_the_title(total: CostLine, running: CostLine, words: str) -> None:
    """What was not told is said not to be known, also where nothing could be asked."""
    spent = Cost(by="coder", since=0, until=NOW, days=(), lines=[], total=total, running=running)
    alone = "fleet top no supervisor is running: fleet run | 0 completed, 0 failed"
    assert title_line(BOARD, spent, 120) == f"{alone} | {words} | /home"
    assert title_line(BOARD, None, 120) == f"{alone} | today unknown | /home"
