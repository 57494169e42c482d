"""The tables of moves: they know every state, and every move that is not in them raises."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from itertools import product

import pytest

from fleet.errors import IllegalMove
from fleet.model.states import (
    ENDED,
    IN_PROGRESS,
    LIVE,
    OPEN,
    RUN_MOVES,
    SESSION_MOVES,
    STATE_OF_RESULT,
    TASK_MOVES,
    UNMET,
    Result,
    RunState,
    SessionState,
    TaskState,
    move_run,
    move_session,
    move_task,
)

TABLES = [
    (TaskState, TASK_MOVES, move_task),
    (SessionState, SESSION_MOVES, move_session),
    (RunState, RUN_MOVES, move_run),
]
Move = Callable[[str, StrEnum, StrEnum], StrEnum]


@pytest.mark.parametrize(("states", "table", "move"), TABLES)
def test_every_move_is_in_the_table_or_raises(
    states: type[StrEnum], table: dict[StrEnum, frozenset[StrEnum]], move: Move
) -> None:
    """The table has a row for every state; what the row holds is allowed, and all the rest is IllegalMove."""
    assert table.keys() == set(states)
    for old, new in product(states, states):
        if new in table[old]:
            assert move("x", old, new) is new
        else:
            with pytest.raises(IllegalMove, match=rf"x is {old.value}; it cannot become {new.value}"):
                move("x", old, new)


@pytest.mark.parametrize(("states", "table", "move"), TABLES)
def test_every_state_can_be_reached(
    states: type[StrEnum], table: dict[StrEnum, frozenset[StrEnum]], move: Move
) -> None:
    """From where a thing begins a way leads to each of its states."""
    begin = next(iter(states))
    reached, new = set[StrEnum](), {begin}
    while new:
        reached |= new
        new = {after for state in new for after in table[state]} - reached
    assert reached == set(states)


def test_the_named_sets_agree_with_the_tables() -> None:
    """Ended and open are all there is; a session that is over stays so; an end is left for the queue,
    or to be verified again."""
    assert set(TaskState) == ENDED | OPEN
    assert not ENDED & OPEN
    assert IN_PROGRESS <= OPEN
    assert UNMET < ENDED
    judged = {TaskState.COMPLETED, TaskState.FAILED}
    assert all(TASK_MOVES[state] - {TaskState.PARTIAL} == {TaskState.QUEUED} for state in ENDED)
    assert {state for state in ENDED if TaskState.PARTIAL in TASK_MOVES[state]} == judged
    assert {state for state in SessionState if SESSION_MOVES[state]} == LIVE


def test_no_end_without_a_session_that_may_have_failed() -> None:
    """A task that never ran cannot fail or be partial: only what runs or is verified can, or what had a verdict."""
    ran = IN_PROGRESS | {TaskState.PARTIAL}
    assert {state for state in TaskState if TaskState.FAILED in TASK_MOVES[state]} <= ran
    verified = ran | {TaskState.COMPLETED, TaskState.FAILED}
    assert {state for state in TaskState if TaskState.PARTIAL in TASK_MOVES[state]} <= verified


def test_every_result_has_its_state() -> None:
    """Each verdict leads to one state of a task, and only a pass completes it."""
    assert STATE_OF_RESULT.keys() == set(Result)
    assert [result for result, state in STATE_OF_RESULT.items() if state is TaskState.COMPLETED] == [Result.PASS]
