"""Times and amounts in words."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.cli.words import REORDERING, STEERING, UNSEEN, ago, aligned, cells, count, escaped, printable, span, when
from fleet.config.clock import utc_ms

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (-5, "0s"),
        (0, "0s"),
        (999, "0s"),
        (59 * SECOND, "59s"),
        (MINUTE, "1m00s"),
        (61 * SECOND, "1m01s"),
        (HOUR - 1, "59m59s"),
        (HOUR, "1h00m"),
        (DAY - 1, "23h59m"),
        (DAY, "1d00h"),
        (400 * DAY + 5 * HOUR, "400d05h"),
    ],
)
def test_spans(milliseconds: int, words: str) -> None:
    """A duration is told by its two largest parts, rounded down; one in the future is none."""
    assert span(milliseconds) == words


@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_a_longer_span_is_never_told_as_a_shorter_one(one: int, two: int) -> None:
    """Read back, what is told is within one of its smallest part of the truth, and in order."""
    units = {"s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}

    def back(milliseconds: int) -> int:
        return sum(int(n) * units[unit] for n, unit in re.findall(r"(\d+)([smhd])", span(milliseconds)))

    assert back(one) <= one
    if one <= two:
        assert back(one) <= back(two)


def test_counts() -> None:
    """One is singular, all others are plural."""
    assert [count(n, "task") for n in (0, 1, 2)] == ["0 tasks", "1 task", "2 tasks"]


def test_moments() -> None:
    """A moment is told to the second, and how long ago it was from now on."""
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", when(utc_ms()))
    assert ago(utc_ms()) == "0s ago"
    assert ago(utc_ms() - 3 * HOUR) == "3h00m ago"
    assert ago(utc_ms() + HOUR) == "0s ago"


def test_rows_are_aligned() -> None:
    """By what a terminal shows, also of wide letters; numbers stand to the right; nothing follows the last word."""
    rows = [("NAME", "COST"), ("日本", "7"), ("a", "1,000")]
    assert aligned(rows) == ["NAME  COST", "日本  7", "a     1,000"]
    assert aligned(rows, right=True) == ["NAME   COST", "日本      7", "a     1,000"]
    assert aligned([]) == []


@pytest.mark.parametrize("code", [*STEERING, *REORDERING, *UNSEEN, 0x200E, 0x200F, 0x61C, 0x200C, 0x200D, 0xE0041])
def test_what_fools_a_reader_is_seen(code: int) -> None:
    """What steers, reorders or hides stands for itself nowhere in a plain text, and each is shown as one character."""
    assert printable(f"fleet-{chr(code)}abc") == "fleet-\N{REPLACEMENT CHARACTER}abc"


@pytest.mark.parametrize(
    "text",
    [
        "\N{MAN}\N{ZERO WIDTH JOINER}\N{WOMAN}\N{ZERO WIDTH JOINER}\N{GIRL}",  # a family
        "\N{WOMAN}\N{EMOJI MODIFIER FITZPATRICK TYPE-4}\N{ZERO WIDTH JOINER}\N{PERSONAL COMPUTER}",
        "\N{WAVING WHITE FLAG}\N{VARIATION SELECTOR-16}\N{ZERO WIDTH JOINER}\N{RAINBOW}",
        "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",  # the flag of England
        "\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian, with a joiner that it needs
        "\u05e9\u05dc\u05d5\u05dd!\u200f (1)",  # Hebrew, with a mark that it needs
        "\u0915\u094d\u200d\u0937",  # Devanagari
        "na\u00efve caf\u00e9 \u65e5\u672c\u8a9e\t|\nnext",
    ],
)
def test_scripts_and_emoji_stay(text: str) -> None:
    """Right-to-left words, joined letters, emoji and accents are shown as they were written."""
    assert printable(text) == text


@given(st.text())
def test_escaped_json_says_the_same(text: str) -> None:
    """Nothing is lost, and none of those characters is left."""
    shown = escaped(json.dumps({"text": text}, ensure_ascii=False))
    assert json.loads(shown) == {"text": text}
    assert not {*map(ord, shown)} & {*STEERING, *REORDERING, *UNSEEN}


def test_what_has_no_width_takes_no_column() -> None:
    """Accents, joiners and selectors take none, wide characters two."""
    assert [cells(text) for text in ("abc", "e\u0301", "\u65e5", "\u2764\ufe0f", "a\u200db")] == [3, 1, 2, 1, 2]
