"""Codes stand for tokens, once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

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
