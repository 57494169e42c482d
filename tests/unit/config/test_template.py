"""The fleet.toml that `fleet init` writes."""

from __future__ import annotations

import re

from fleet.config.fields import fields
from fleet.config.home import Home
from fleet.config.load import load
from fleet.config.settings import Settings
from fleet.config.template import template


def test_the_template_states_the_defaults(home: Home) -> None:
    """As it is written, it changes nothing."""
    home.toml.write_text(template())
    assert load(home) == Settings()


def test_the_marks_taken_away(home: Home) -> None:
    """With every default un-commented it still changes nothing, and every setting is there."""
    text, count = re.subn(r"(?m)^# (\w+ = )", r"\1", template())
    home.toml.write_text(text)
    assert load(home) == Settings()
    assert count == len(list(fields()))


def test_the_example_of_a_host(home: Home) -> None:
    """The example in it, un-commented, is a host."""
    home.toml.write_text(re.sub(r"(?m)^#     ", "", template()))
    assert [(host.name, host.kind) for host in load(home).hosts] == [("builder-1", "ssh")]
    assert load(home).coders["mine"].argv == ("mycli", "--json", "{prompt}")


def test_its_shape() -> None:
    """It is plain text of lines that fit on a screen."""
    assert template().isascii()
    assert max(map(len, template().splitlines())) <= 120
    assert template().endswith("\n")
