"""Clocks: how long something took, and what time it is, where somebody may set a clock at any moment."""

from __future__ import annotations

import time

import pytest

from fleet.config.clock import steady_ms, unhurried, utc_ms
from fleet.store.postgres.clock import ASK_MS, ServerClock
from fleet.supervisor.stopwatch import Stopwatch, stopwatch


class Hand:
    """A clock that goes on by hand."""

    def __init__(self, at: int = 1_000_000) -> None:
        self.at = at

    def __call__(self) -> int:
        return self.at


def test_a_stopwatch_runs_until_the_first_word_of_an_end() -> None:
    """It runs from when it was made, or from when it is told that it began; and is never negative."""
    hand = Hand()
    watch = Stopwatch(hand)
    hand.at += 5
    assert watch.elapsed_ms == 5
    watch.begin(ago_ms=100)
    hand.at += 1
    assert watch.elapsed_ms == 101
    watch.end(ago_ms=1)
    hand.at += 1000
    watch.end()
    assert watch.elapsed_ms == 100
    watch.begin()
    assert watch.elapsed_ms == 0


def test_what_was_measured_over_there_counts() -> None:
    """A beginning and an end that were learned of late are those of their host; not so a night in which all slept."""
    hand = Hand()
    watch = Stopwatch(hand)
    hand.at += 1400
    watch.measured(7)
    assert watch.elapsed_ms == 1400, "it has not ended"
    watch.end()
    watch.measured(1510)
    assert watch.elapsed_ms == 1510
    watch.measured(1300)
    assert watch.elapsed_ms == 1300
    watch.measured(8 * 3_600_000)
    assert watch.elapsed_ms == 1300


def test_the_clocks_are_those_of_the_system() -> None:
    """UTC is what the system says; a stopwatch goes on by what nobody sets."""
    assert abs(utc_ms() - time.time() * 1000) < 60_000
    before = steady_ms()
    watches = [stopwatch(here=here) for here in (True, False)]
    assert before <= steady_ms()
    assert [watch.elapsed_ms >= 0 for watch in watches] == [True, True]


def test_the_time_of_a_shared_database_is_its_servers() -> None:
    """It is asked at first and then now and then; in between, a clock of ours counts on from what it said."""
    hand, server = Hand(), Hand(7_000_000)
    asked = []

    def ask() -> int:
        asked.append(hand.at)
        hand.at += 20  # the way there and back
        return server.at

    clock = ServerClock(ask, hand)
    assert clock() == 7_000_000 + 10
    hand.at += ASK_MS
    assert clock() == 7_000_000 + 10 + ASK_MS
    server.at = 3_000_000  # somebody set it
    hand.at += 1
    assert clock() == 3_000_000 + 10
    assert len(asked) == 2


def test_a_server_that_does_not_say_the_time_is_asked_again() -> None:
    """Its fault is whoever asks for the time's to deal with; nothing is made up."""
    faults = [OSError("cut off")]

    def ask() -> int:
        if faults:
            raise faults.pop()
        return 9

    clock = ServerClock(ask, Hand())
    with pytest.raises(OSError, match="cut off"):
        clock()
    assert (clock(), faults) == (9, [])


def test_a_clock_set_forward_makes_nothing_old() -> None:
    """Who removes what is old goes by the time that passed; a clock set back is believed, which only removes less."""
    utc, steady = Hand(50_000), Hand(7)
    clock = unhurried(utc, steady)
    utc.at += 5
    steady.at += 5
    assert clock() == 50_005
    utc.at += 900_000
    assert clock() == 50_005
    utc.at = 10_000
    assert clock() == 10_000
