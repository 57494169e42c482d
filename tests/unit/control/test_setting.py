"""`fleet task ID set`: pairs as an edit of a task."""

from __future__ import annotations

import msgspec
import pytest

from fleet.config.settings import Supervisor
from fleet.control.setting import KEYS, parse_settings
from fleet.errors import UsageError
from fleet.model.task import TaskEdit
from fleet.model.terms import Budget, RetryPolicy, Terms

CONFIGURED = Supervisor(max_attempts=7, backoff_seconds=1)


def edit(*pairs: str, terms: Terms = Terms()) -> TaskEdit:  # noqa: B008  # frozen
    """The edit that pairs ask for."""
    return parse_settings(pairs, terms, CONFIGURED)


def test_fields_and_terms_are_set_together() -> None:
    """Each key goes to its place; money is in dollars; what is not named stays."""
    found = edit("coder=codex", "priority=0", "budget_tokens=20000", "budget_usd=1.5", "budget_pause=true")
    assert (found.coder, found.priority) == ("codex", 0)
    assert found.terms == Terms(budget=Budget(max_tokens=20000, max_microusd=1_500_000, pause=True))
    before = Terms(objective="win", budget=Budget(max_tool_calls=3))
    found = edit("timeout_seconds=60", "max_output_mb=5", "retry_safe=false", "budget_idle_seconds=9", terms=before)
    assert found.terms == Terms(
        objective="win",
        timeout_seconds=60,
        max_output_mb=5,
        retry_safe=False,
        budget=Budget(max_tool_calls=3, idle_seconds=9),
    )


def test_a_number_of_attempts_keeps_the_pauses_that_are_inherited() -> None:
    """A task gets a policy of its own, which differs from the settings only in what was said."""
    found = edit("max_attempts=9")
    assert found.terms == Terms(
        retry=RetryPolicy(max_attempts=9, initial_backoff_seconds=1, max_backoff_seconds=300, backoff_multiplier=2)
    )


def test_nothing_goes_back_to_the_default() -> None:
    """An empty value takes a bound away; an edit that changes no term names none."""
    before = Terms(budget=Budget(max_tokens=1, pause=True), retry=RetryPolicy(), retry_safe=False)
    found = edit("budget_tokens=", "budget_pause=", "max_attempts=", "retry_safe=", "model=", terms=before)
    assert (found.terms, found.model) == (Terms(), None)
    assert edit("coder=codex").terms is msgspec.UNSET


@pytest.mark.parametrize(
    ("pair", "hint"),
    [
        ("priorty=0", "did you mean `priority=0`?"),
        ("coder", "did you mean `coder=`?"),
        ("wombat=1", ""),
    ],
)
def test_a_slip_is_told_with_what_was_probably_meant(pair: str, hint: str) -> None:
    """The key that looks like it, with the value that was given."""
    with pytest.raises(UsageError) as told:
        edit(pair)
    assert told.value.hint == hint


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        ("colour=red", "`colour=red` is none of coder="),
        ("coder", "`coder` is none of"),
        ("priority=high", "priority must be 0"),
        ("budget_tokens=many", "budget_tokens must be a whole number above 0"),
        ("budget_tokens=0", "budget_tokens must be a whole number above 0"),
        ("budget_usd=-1", "budget_usd must be an amount of dollars above 0"),
        ("budget_usd=nan", "budget_usd must be an amount of dollars above 0"),
        ("retry_safe=no", "retry_safe must be true or false, not `no`"),
    ],
)
def test_what_cannot_be_taken_is_told(pair: str, words: str) -> None:
    """The error names the key and what it takes."""
    with pytest.raises(UsageError, match=words.replace("(", r"\(")):
        edit(pair)
    assert len(KEYS) == len(set(KEYS))
