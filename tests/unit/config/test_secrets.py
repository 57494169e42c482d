"""Values that fleet.toml only names."""

from __future__ import annotations

import stat

import pytest

from fleet.config.home import Home
from fleet.config.secrets import lookup, put, read
from fleet.errors import HomeError, UsageError


def test_the_environment_goes_first(home: Home) -> None:
    """A variable of the process wins over the file, and what nobody gives is None."""
    assert lookup(home, "HOOK", {}) is None
    put(home, "HOOK", "file")
    assert lookup(home, "HOOK", {}) == "file"
    assert lookup(home, "HOOK", {"HOOK": "process"}) == "process"


def test_other_lines_stay(home: Home) -> None:
    """Writing one secret leaves every other line, and closes the file to others."""
    home.secrets.write_text("# mine\nA=1\nB=2\n")
    put(home, "A", "3")
    put(home, "C", "4")
    assert home.secrets.read_text() == "# mine\nA=3\nB=2\nC=4\n"
    assert stat.S_IMODE(home.secrets.stat().st_mode) == 0o600


@pytest.mark.parametrize("value", ["", "plain", 'a b&c;d$e`f"g#h', "https://h/x?a=1&b=2", "é"])
def test_what_is_put_is_read(home: Home, value: str) -> None:
    """Any one line of text without an apostrophe comes back as it was."""
    put(home, "A", value)
    assert read(home) == {"A": value}


@pytest.mark.parametrize("value", ["it's one", "two\nlines", "\x00"])
def test_what_cannot_be_held(home: Home, value: str) -> None:
    """A value that the file cannot hold is refused, without being repeated."""
    with pytest.raises(UsageError) as caught:
        put(home, "A", value)
    assert value not in str(caught.value)


def test_a_file_that_others_may_read(home: Home) -> None:
    """Secrets that lie open are refused, with the command that closes them."""
    put(home, "A", "1")
    home.secrets.chmod(0o644)
    with pytest.raises(HomeError, match="others may read") as caught:
        read(home)
    assert "chmod 600" in caught.value.hint
