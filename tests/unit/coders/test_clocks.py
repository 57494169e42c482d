"""Times of day in a vendor's words, as moments."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.coders.clocks import resets_at

SAID = datetime(2026, 11, 15, 18, 7, 3, tzinfo=UTC)
AT = int(SAID.timestamp()) * 1000
NEW_YORK = -5 * 3600


@pytest.mark.parametrize(
    ("words", "offset", "moment"),
    [
        ("You’ve hit your usage limit. Upgrade or try again at 2:07 PM.", NEW_YORK, "2026-11-15T19:07"),
        ("try again at 9:50 AM", 0, "2026-11-16T09:50"),
        ("try again at 9:50 AM", NEW_YORK, "2026-11-16T14:50"),
        ("try again at 12:30 AM", 0, "2026-11-16T00:30"),
        ("try again at 18:30.", 0, "2026-11-15T18:30"),
        ("or try again at Nov 20th, 2026 9:50 AM.", 0, "2026-11-20T09:50"),
        ("try again at Jan 2nd 9:50 AM", 0, "2027-01-02T09:50"),
        ("You've hit your limit · resets 9pm (America/New_York)", 0, "2026-11-16T02:00"),
        ("limit reached, resets at 11pm (No/Such_Place)", 0, "2026-11-15T23:00"),
        ("Please try again in 2 days 3 hours and 4 minutes.", 0, "2026-11-17T21:11"),
        ("try again in 45m", 0, "2026-11-15T18:52"),
    ],
)
def test_the_moment_that_is_meant(words: str, offset: int, moment: str) -> None:
    """In the local time of the place, or in the zone that is named; a time that is past is tomorrow's."""
    found = resets_at(words, AT, offset)
    assert found is not None
    assert datetime.fromtimestamp(found / 1000, UTC).isoformat()[:16] == moment


@pytest.mark.parametrize(
    "words",
    ["", "try again later", "try again at 25:70", "try again at Feb 31 9:00 AM", "try again at 3", "resets soon"],
)
def test_words_that_tell_no_time(words: str) -> None:
    """Nothing is made up."""
    assert resets_at(words, AT) is None


def test_without_knowing_when_it_was_said() -> None:
    """A time of day means nothing."""
    assert resets_at("try again at 9:50 AM", None) is None


@given(st.text(max_size=40).map(lambda text: f"try again at {text}"), st.integers(-86_000, 86_000))
def test_no_words_break_it(words: str, offset: int) -> None:
    """Whatever stands there, it is a moment in the future or none."""
    found = resets_at(words, AT, offset)
    assert found is None or isinstance(found, int)
