"""What the scores of a combination come to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.model.receipt import Score
from fleet.model.scorer import All, Any, AnyScorer, Command, ExitCode, FileExists, Manual, VerifierPrompt, leaves
from fleet.model.states import Source
from fleet.policy.verdict import judge, pending, settled_now


def a_score(at: str, passed: bool, *, source: Source = Source.TASK, value: float | None = None) -> Score:
    """What one part found."""
    worth = float(passed) if value is None else value
    return Score(at=at, kind="x", value=worth, passed=passed, source=None if passed else source, evidence=(f"at {at}",))


TREE = All(of=(ExitCode(), Any(of=(Manual(), Command(command="x"), FileExists(path="y"))), VerifierPrompt(prompt="?")))


def test_each_part_has_its_place() -> None:
    """The parts of a combination are found in order, each with its place; those that need no session come first."""
    assert [at for at, _ in leaves(TREE)] == ["0", "1.0", "1.1", "1.2", "2"]
    assert [at for at, _ in settled_now(TREE)] == ["0", "1.2"]
    assert [at for at, _ in pending(TREE, [a_score("0", True), a_score("1.2", False)])] == ["1.1", "2", "1.0"]


@pytest.mark.parametrize(
    ("scores", "passed"),
    [
        ({}, None),
        ({"0": False}, False),
        ({"0": True, "1.2": True}, None),
        ({"0": True, "1.2": True, "2": True}, True),
        ({"0": True, "1.0": False, "1.1": False, "1.2": False}, False),
        ({"0": True, "1.1": True, "2": False}, False),
    ],
)
def test_a_verdict_is_given_as_soon_as_it_is_certain(scores: dict[str, bool], passed: bool | None) -> None:
    """What is not known is waited for only where it can still change the verdict."""
    assert judge(TREE, [a_score(at, each) for at, each in scores.items()]).passed is passed


def test_weights_and_a_threshold() -> None:
    """With a threshold, enough of the weight must pass; the value is weighed over all."""
    declared = Any(of=(ExitCode(weight=3), FileExists(path="a", weight=1), Manual(weight=1)), threshold=0.8)
    assert judge(declared, [a_score("0", True)]).passed is None
    assert judge(declared, [a_score("0", True), a_score("1", True)]).passed is True
    assert judge(declared, [a_score("0", False)]).passed is False
    whole = judge(declared, [a_score("0", True), a_score("1", False), a_score("2", True)])
    assert whole.passed
    assert whole.value == pytest.approx(0.8)


def test_who_failed() -> None:
    """A scorer that broke is named before a task that failed; with nothing broken it is the task."""
    declared = All(of=(ExitCode(), Command(command="x")))
    failed = a_score("0", False)
    broken = a_score("1", False, source=Source.VERIFIER)
    assert judge(declared, [failed, a_score("1", True)]).source is Source.TASK
    judged = judge(declared, [failed, broken])
    assert (judged.source, judged.reason, judged.evidence) == (Source.VERIFIER, "x: at 1", ("x: at 0", "x: at 1"))


trees = st.recursive(
    st.builds(ExitCode, weight=st.floats(0.1, 10)),
    lambda parts: st.one_of(
        st.builds(All, of=st.lists(parts, min_size=1, max_size=4).map(tuple)),
        st.builds(
            Any,
            of=st.lists(parts, min_size=1, max_size=4).map(tuple),
            threshold=st.one_of(st.none(), st.floats(0.01, 1)),
        ),
    ),
    max_leaves=8,
)


@given(tree=trees, data=st.data())
def test_a_certain_verdict_never_changes(tree: AnyScorer, data: st.DataObject) -> None:
    """Once the verdict is given, no score that comes later would have changed it; with all scores, there is one."""
    scores = [a_score(at, data.draw(st.booleans())) for at, _ in leaves(tree)]
    verdicts = [judge(tree, scores[:n]).passed for n in range(len(scores) + 1)]
    certain = [verdict for verdict in verdicts if verdict is not None]
    assert verdicts[-1] is not None
    assert len(set(certain)) == 1
    value = judge(tree, scores).value
    assert value is not None
    assert 0 <= value <= 1.000001
    if all(score.passed for score in scores):
        assert verdicts[-1] is True
    if not any(score.passed for score in scores):
        assert verdicts[-1] is False
