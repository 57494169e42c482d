"""Codes stand for tokens, once."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fleet.config import codes, tokens
from fleet.config.home import Home
from fleet.config.tokens import Role


def test_of_many_that_come_at_once_one_gets_the_token(tmp_path: Path) -> None:
    """However many show a code at the same moment, while others are made: one has the token, the rest have nothing."""
    home = Home(tmp_path)
    token = tokens.add(home, "ana", Role.OPERATE)
    with ThreadPoolExecutor(8) as threads:
        for code in threads.map(lambda _: codes.make(home, token), range(30)):
            found = list(threads.map(lambda each: codes.redeem(home, each), [code] * 8))
            assert [each for each in found if each] == [token]
    assert list(home.codes.iterdir()) == []


@pytest.mark.parametrize(("minutes", "good"), [(0, True), (9, True), (11, False), (-1441, False)])
def test_a_code_is_not_good_for_long(tmp_path: Path, minutes: int, good: bool) -> None:
    """Nor is one that was made tomorrow: the clock was set back, and nobody knows how old it is."""
    home = Home(tmp_path)
    code = codes.make(home, tokens.add(home, "ana", Role.OPERATE))
    made_at = time.time() - minutes * 60
    for file in home.codes.iterdir():
        os.utime(file, (made_at, made_at))
    assert (codes.redeem(home, code) is not None) == good
