"""Names of coders, and what they stand for."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fleet import coders, plugins
from fleet.errors import NotFound

ROOT = Path(__file__).parents[3]


def test_the_table_and_the_entry_points_are_the_same() -> None:
    """Built-ins are registered as a stranger would, and can be loaded without a search."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["fleet.coders"] == coders.BUILT_IN


@pytest.mark.parametrize("name", sorted(coders.BUILT_IN))
def test_a_coder_is_what_its_name_says(name: str) -> None:
    """Loading a name gives the coder of that name."""
    assert plugins.load("coders", name).name == name


def test_an_unknown_name_is_not_found() -> None:
    """The error lists what there is."""
    with pytest.raises(NotFound) as caught:
        plugins.load("coders", "cluade")
    assert "claude" in caught.value.hint


def test_checking_a_name_imports_no_coder() -> None:
    """A built-in name is known without its module, and without a look at what is installed."""
    check = (
        "import sys; from fleet import plugins; plugins.check_coder('claude');"
        "print([m for m in sys.modules if m.startswith('fleet.coders.') or m in ('msgspec', 'importlib.metadata')])"
    )
    ran = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
