"""Circles of needs."""

from __future__ import annotations

import pytest

from fleet.model.circles import circles


@pytest.mark.parametrize(
    ("needs", "found"),
    [
        ({}, []),
        ({"a": []}, []),
        ({"a": ["b", "c"], "b": ["c"], "c": []}, []),
        ({"a": ["elsewhere"], "b": ["a"]}, []),
        ({"a": ["a"]}, [["a", "a"]]),
        ({"a": ["b"], "b": ["c"], "c": ["b"]}, [["b", "c", "b"]]),
        ({"a": ["b"], "b": ["a"], "c": ["d"], "d": ["c"]}, [["a", "b", "a"], ["c", "d", "c"]]),
        ({"a": ["b", "c"], "b": ["a"], "c": ["a"]}, [["a", "b", "a"], ["a", "c", "a"]]),
    ],
)
def test_each_circle_is_found_once(needs: dict[str, list[str]], found: list[list[str]]) -> None:
    """Chains, diamonds and needs of others are no circles; of those that are, each is told with its names."""
    assert list(circles(needs)) == found


def test_a_long_chain_is_walked() -> None:
    """Ten thousand that need one another in turn: no circle, until the last needs the first."""
    chain = {str(n): [str(n + 1)] for n in range(10_000)}
    assert not list(circles(chain))
    (circle,) = circles({**chain, "10000": ["0"]})
    assert len(circle) == 10_002
