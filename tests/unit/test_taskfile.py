"""task.json: which of three versions of a field wins: the one that Fleet wrote, the person's, the store's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fleet.config.home import Home
from fleet.errors import UsageError
from fleet.model.task import Task
from fleet.store import taskfile

TASK = Task(uid="fleet-abc", task_id="fleet-abc", title="x", cwd="/srv", created_at=1, created_by="ana", updated_at=1)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with the file of one task."""
    home = Home(tmp_path)
    taskfile.write(home, TASK)
    return home


def content(home: Home) -> dict[str, Any]:
    """What the file says."""
    found: dict[str, Any] = json.loads(taskfile.path(home, TASK.uid).read_bytes())
    return found


def put(home: Home, **fields: Any) -> None:
    """Change fields of the file, as a person does."""
    taskfile.path(home, TASK.uid).write_text(json.dumps({**content(home), **fields}))


def test_what_is_written(home: Home) -> None:
    """The file has what people and agents need, and is no edit itself; nothing is left beside it."""
    found = content(home)
    assert (found["id"], found["title"], found["cwd"], found["coder"]) == (TASK.uid, "x", "/srv", None)
    assert taskfile.edits(home, TASK) == {}
    directory = home.task_dir(TASK.uid)
    assert (directory / "artifacts").is_dir()
    assert [file.name for file in directory.iterdir() if file.is_file()] == ["task.json"]


VALUES = st.sampled_from([None, "a", "b", "c"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(written=VALUES, edited=VALUES, stored=VALUES)
def test_three_versions(tmp_path: Path, written: str | None, edited: str | None, stored: str | None) -> None:
    """An edit is what differs from what Fleet wrote. The next writing keeps it, unless the store changed the field."""
    home = Home(tmp_path)
    taskfile.path(home, TASK.uid).unlink(missing_ok=True)
    taskfile.write(home, replace(TASK, model=written))
    put(home, model=edited)
    now = replace(TASK, model=stored)
    assert taskfile.edits(home, now) == ({} if edited == written else {"model": edited})
    taskfile.write(home, now)
    pending = edited != written and stored == written
    assert content(home)["model"] == (edited if pending else stored)
    assert taskfile.edits(home, now) == ({"model": edited} if pending else {})


def test_fields_that_are_not_there_are_not_edits(home: Home) -> None:
    """A file without a field says nothing about it; an empty word means the default."""
    file = taskfile.path(home, TASK.uid)
    file.write_text("{}")
    assert taskfile.edits(home, TASK) == {}
    file.write_text('{"coder": "codex", "cwd": ""}')
    assert taskfile.edits(home, TASK) == {"coder": "codex", "cwd": None}
    file.unlink()
    assert taskfile.edits(home, TASK) == {}


def test_what_other_programs_keep_there_stays(home: Home) -> None:
    """Keys that are not Fleet's are left alone, whatever they hold."""
    put(home, mine=[1, {"x": None}], coder="codex")
    taskfile.write(home, replace(TASK, priority=0))
    assert content(home)["mine"] == [1, {"x": None}]
    assert (content(home)["priority"], content(home)["coder"]) == (0, "codex")


@pytest.mark.parametrize(
    "text", ["", "{", "null", "[]", '{"coder": 1}', '{"model": ["x"]}', '{"as_written": {"cwd": 1}}']
)
def test_a_file_that_cannot_be_read(home: Home, text: str) -> None:
    """It is an error that names the file and says what to do, and it is not written over."""
    file = taskfile.path(home, TASK.uid)
    file.write_text(text)
    with pytest.raises(UsageError, match=r"task\.json cannot be read") as caught:
        taskfile.edits(home, TASK)
    assert "mend it, or delete it" in caught.value.hint
    taskfile.write(home, TASK)
    assert file.read_text() == text


def test_an_id_never_leads_out_of_the_home(tmp_path: Path) -> None:
    """A task's directory is made for ids only."""
    for uid in ("../x", "a/b", ".."):
        with pytest.raises(UsageError):
            taskfile.path(Home(tmp_path), uid)
