"""Names of scorers, and what they stand for."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from fleet import plugins, scorers
from fleet.model import scorer as sc
from fleet.scorers.scorer import Wants

ROOT = Path(__file__).parents[3]
DECLARED: dict[str, sc.AnyScorer] = {
    "command": sc.Command(command="true"),
    "exit_code": sc.ExitCode(),
    "file_exists": sc.FileExists(path="a"),
    "json_path": sc.JsonPath(path="a", expression="$"),
    "regex_match": sc.RegexMatch(pattern="a"),
    "verifier_prompt": sc.VerifierPrompt(prompt="?"),
}


def test_the_table_and_the_entry_points_are_the_same() -> None:
    """Built-ins are registered as a stranger would, and can be loaded without a search."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["fleet.scorers"] == scorers.BUILT_IN


@pytest.mark.parametrize("name", sorted(scorers.BUILT_IN))
def test_a_scorer_is_what_its_name_says(name: str) -> None:
    """Loading the kind of a declaration gives a scorer that says what it looks at."""
    assert sc.kind_of(DECLARED[name]) == name
    assert isinstance(plugins.load("scorers", name).wants(DECLARED[name]), Wants)
