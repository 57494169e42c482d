"""From a name to what it stands for: what others registered is found as the built-ins are, and may be broken."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fleet import plugins
from fleet.errors import NotFound, UsageError
from tests.support.strangers import register


def test_what_a_stranger_registered_is_found_and_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name stands among the others, and is loaded when it is asked for."""
    register(tmp_path, monkeypatch, "scorers", "kind_ones", "class Made:\n    friendly = True\n")
    assert "kind_ones" in plugins.names("scorers")
    assert plugins.load("scorers", "kind_ones").friendly


def test_a_name_that_nobody_registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not found, and the hint lists those that are."""
    register(tmp_path, monkeypatch, "scorers", "kind_ones", "class Made: ...\n")
    with pytest.raises(NotFound, match="`unkind`") as refused:
        plugins.load("scorers", "unkind")
    assert "kind_ones" in refused.value.hint


@pytest.mark.parametrize(
    ("module", "why"),
    [
        ("import a_library_that_is_not_there", "ModuleNotFoundError: No module named 'a_library_that_is_not_there'"),
        ("class Made:\n    def __init__(self):\n        raise RuntimeError('no key')\n", "RuntimeError: no key"),
        ("class Other: ...\n", "AttributeError: module"),
        ("raise SystemExit(3)\n", "SystemExit: 3"),
    ],
)
def test_a_broken_plugin_is_told_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, why: str) -> None:
    """Whatever a stranger's code raises is one error of ours, with its words: whoever loads it can answer that."""
    register(tmp_path, monkeypatch, "coders", "broken_ones", module)
    with pytest.raises(UsageError, match=re.escape(why)):
        plugins.load("coders", "broken_ones")
