"""What a task may be called, and the coder and model that it gets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.errors import UsageError
from fleet.model.task import MAX_TITLE, TaskEdit, check_new, check_priority, check_title, effective
from fleet.testing.builders import a_task

NAMES = st.sampled_from(["claude", "codex", "agy"])


@given(coder=st.none() | NAMES, model=st.none() | st.sampled_from(["opus", "o3"]), default=NAMES)
def test_effective(coder: str | None, model: str | None, default: str) -> None:
    """The task's own choice wins; the configured model goes with the configured coder only; both are told apart."""
    found = effective(coder, model, default_coder=default, default_model="sonnet")
    assert found.coder == (coder or default)
    assert found.coder_inherited == (coder is None)
    assert found.model_inherited == (model is None)
    if model is not None:
        assert found.model == model
    else:
        assert found.model == ("sonnet" if found.coder == default else None)


@pytest.mark.parametrize("title", ["x", "x" * MAX_TITLE, "日本語", "🦑" * MAX_TITLE, "tab\tinside", " padded "])
def test_titles_that_may_be(title: str) -> None:
    """Any line of up to 500 characters, counted as a person counts, is a title."""
    assert check_title(title) == title


@pytest.mark.parametrize("title", ["", "   ", "\t", "x" * (MAX_TITLE + 1), "a\nb", "a\rb", "a\0b", "\x1b[31mred"])
def test_titles_that_may_not_be(title: str) -> None:
    """Nothing, too much, or more than one printable line is refused."""
    with pytest.raises(UsageError, match="the title"):
        check_title(title)


@given(st.integers())
def test_priorities(priority: int) -> None:
    """0 to 4 are priorities, and no other number is."""
    if 0 <= priority <= 4:
        assert check_priority(priority) == priority
        assert check_new(a_task(priority=priority)).priority == priority
    else:
        with pytest.raises(UsageError, match="is not one of 0"):
            check_new(a_task(priority=priority))


def test_an_edit_names_only_what_it_changes() -> None:
    """A field that is not given stays; one that is given as nothing goes back to the default."""
    assert TaskEdit().changes() == {}
    assert TaskEdit(coder=None, priority=0).changes() == {"coder": None, "priority": 0}
