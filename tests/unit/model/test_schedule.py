"""How often: what cron and systemd are told means the same."""

from __future__ import annotations

import pytest

from fleet.model.schedule import DAY, STEPS, Every


def moments(expression: str) -> set[int]:
    """The minutes of a day at which cron fires, by the rules of crontab(5)."""
    minute, hour, *rest = expression.split()
    assert rest == ["*", "*", "*"]
    return {60 * h + m for h in field(hour, 24) for m in field(minute, 60)}


def field(text: str, end: int) -> set[int]:
    """The values that one field stands for: `*`, `*/n` or a number."""
    if text == "*":
        return set(range(end))
    if text.startswith("*/"):
        return set(range(0, end, int(text[2:])))
    assert 0 <= int(text) < end
    return {int(text)}


@pytest.mark.parametrize("minutes", STEPS)
def test_cron_fires_at_even_distances(minutes: int) -> None:
    """From midnight on, every so many minutes, over midnight too; and the short form reads back."""
    assert moments(Every(minutes).cron) == set(range(0, DAY, minutes))
    assert Every.parse(str(Every(minutes))) == Every(minutes)


def test_the_usual_ones() -> None:
    """A quarter of an hour is what the first Fleet Manager had."""
    assert Every.parse("15m").cron == "*/15 * * * *"
    assert Every.parse("15m").calendar == "*:0/15"
    assert Every.parse("15m").words == "every 15 minutes"
    assert Every.parse("60m") == Every.parse("1h")
    assert Every.parse("1h").words == "every hour"
    assert Every.parse("24h").cron == "0 0 * * *"
    assert Every.parse("1d").words == "every day"


@pytest.mark.parametrize("text", ["", "15", "m", "0m", "-5m", "1.5h", "15 m", "١m", "2w", "9999999m"])
def test_what_is_no_time(text: str) -> None:
    """It is refused with an example."""
    with pytest.raises(ValueError, match="such as 15m"):
        Every.parse(text)


@pytest.mark.parametrize(("text", "near"), [("7m", "6m"), ("45m", "30m"), ("90m", "1h"), ("5h", "4h"), ("2d", "1d")])
def test_what_a_crontab_cannot_say(text: str, near: str) -> None:
    """An uneven step would be short at the end of each hour or day; the nearest even one is named."""
    with pytest.raises(ValueError, match=f"nearest that does is {near}"):
        Every.parse(text)
