"""Q&A.md: what stands in it, and which exchange is the last."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.config.home import Home
from fleet.store import qafile

UID = "fleet-abc"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home without such a file."""
    return Home(tmp_path)


def written(home: Home) -> str:
    """The file."""
    return qafile.path(home, UID).read_text()


def test_a_question_is_written_once_while_it_waits(home: Home) -> None:
    """Asked again before it was answered it is not repeated; asked again after that it is."""
    for _ in range(2):
        qafile.ask(home, UID, "Which host?")
    assert written(home) == "## Q: Which host?\n"
    qafile.answer(home, UID, "Which host?", 'You ask "Which host?": builder-1', at=0)
    qafile.ask(home, UID, "Which host?")
    assert written(home).count("## Q: Which host?\n") == 2
    assert written(home).startswith("## Q: Which host?\n\n## A: 1970-01-01 00:00\n\nYou ask")


def test_what_an_agent_wrote_itself_is_not_repeated(home: Home) -> None:
    """With or without its heading, as long as it waits."""
    qafile.path(home, UID).parent.mkdir(parents=True)
    qafile.path(home, UID).write_text("# Notes\nI wonder: Which host?\n")
    qafile.ask(home, UID, "Which host?")
    assert "## Q:" not in written(home)


def test_the_last_exchange_is_told_only_when_it_is_one(home: Home) -> None:
    """No file, a question that waits, or an older answer are none; one written by hand is."""
    assert qafile.exchange(home, UID) == ""
    qafile.ask(home, UID, "Which host?")
    assert qafile.exchange(home, UID) == ""
    with qafile.path(home, UID).open("a") as file:
        file.write("## A:\n\nbuilder-1\n")
    assert qafile.exchange(home, UID) == "## Q: Which host?\n## A:\n\nbuilder-1"
    qafile.ask(home, UID, "And the port?")
    assert qafile.exchange(home, UID) == ""
    qafile.answer(home, UID, "And the port?", "8080", at=0)
    assert qafile.exchange(home, UID) == "## Q: And the port?\n\n## A: 1970-01-01 00:00\n\n8080"
