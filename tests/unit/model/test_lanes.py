"""Lanes and slots: a claim that looks at lanes decides as one that looked at every task would."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fleet.model.session import Defaults, Lane, Slot, accepts, first_fit
from fleet.model.task import Task

DEFAULTS = Defaults(coder="claude", model="sonnet")
NAMES = st.sampled_from(["a", "b", "c"])
CAPABILITIES = st.lists(st.sampled_from(["gpu", "linux", "git"]), max_size=4)
CODERS = st.none() | st.sampled_from(["claude", "codex"])
ANYTHING = st.none() | st.text(max_size=8)


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    """A task, as far as placement asks."""
    return Task(
        uid="fleet-abc",
        task_id="fleet-abc",
        title="x",
        created_at=0,
        created_by="ana",
        updated_at=0,
        run=draw(st.none() | NAMES),
        host=draw(st.none() | NAMES),
        coder=draw(CODERS),
        capabilities=tuple(draw(CAPABILITIES)),
    )


@st.composite
def any_slot(draw: st.DrawFn) -> Slot:
    """Room on a machine, with or without conditions."""
    return Slot(
        worker=draw(NAMES),
        host=draw(NAMES),
        capabilities=draw(st.none() | CAPABILITIES.map(frozenset)),
        runs=draw(st.none() | st.frozensets(NAMES, max_size=2)),
        paused_coders=draw(st.frozensets(st.sampled_from(["claude", "codex"]), max_size=1)),
    )


@given(any_slot(), tasks())
def test_a_slot_accepts_a_task_for_four_reasons(slot: Slot, task: Task) -> None:
    """The machine fits, the run fits, the slot can do all that is needed, and the coder is not paused."""
    fits = (
        (task.host in (None, slot.host))
        and (slot.runs is None or task.run in slot.runs)
        and (slot.capabilities is None or set(task.capabilities) <= slot.capabilities)
        and (task.coder or "claude") not in slot.paused_coders
    )
    assert accepts(slot, Lane.of(task), DEFAULTS) == fits


@given(tasks(), tasks(), any_slot())
def test_tasks_of_one_lane_are_equal_to_a_slot(one: Task, two: Task, slot: Slot) -> None:
    """Two tasks with the same key are accepted by the same slots; the order of capabilities does not matter."""
    if Lane.of(one).key == Lane.of(two).key:
        assert accepts(slot, Lane.of(one), DEFAULTS) == accepts(slot, Lane.of(two), DEFAULTS)
    if (one.run, one.host, one.coder, set(one.capabilities)) == (two.run, two.host, two.coder, set(two.capabilities)):
        assert Lane.of(one).key == Lane.of(two).key


@given(run=ANYTHING, host=ANYTHING, coder=ANYTHING, capabilities=st.lists(st.text(max_size=5), max_size=3))
def test_a_key_comes_back_as_its_lane(
    run: str | None, host: str | None, coder: str | None, capabilities: list[str]
) -> None:
    """Whatever words a lane is made of, its key stands for it and for no other."""
    lane = Lane(run, host, coder, tuple(capabilities))
    assert Lane.parse(lane.key) == lane
    assert lane.key > ""


@given(st.lists(any_slot(), max_size=5), tasks())
def test_the_first_slot_that_accepts_is_taken(slots: list[Slot], task: Task) -> None:
    """Slots are offered in order, and the first that fits is the one; None where none does."""
    lane = Lane.of(task)
    fitting = [slot for slot in slots if accepts(slot, lane, DEFAULTS)]
    assert first_fit(slots, lane, DEFAULTS) == (fitting[0] if fitting else None)
