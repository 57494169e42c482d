"""`fleet skill`: the bundled skills get to where agents look, and what they tell to type is really there."""

from __future__ import annotations

import hashlib
import re
import shlex
from pathlib import Path

import pytest

from fleet.cli.app import make_parser
from fleet.cli.commands import COMMANDS
from fleet.control.skills.bundled import bundled, names, text_of
from tests.support.cli import Cli

COMMAND = {command.name: command for command in COMMANDS}
SHELL = re.compile(r"```sh\n(.*?)```", re.DOTALL)
INLINE = re.compile(r"`(fleet [^`]+)`")


def lines_of(name: str) -> list[str]:
    """Every command line that a skill shows, in blocks or within a sentence."""
    text = text_of(name)
    shown = [line.strip() for block in SHELL.findall(text) for line in block.splitlines() if line.strip()]
    return shown + [" ".join(found.split()) for found in INLINE.findall(text)]


@pytest.mark.parametrize("name", names())
def test_a_skill_says_what_it_is_for(name: str) -> None:
    """Its head is what Claude Code reads: the name of its directory, and a description that says when to use it."""
    skill = bundled(name)
    assert skill.name == name
    assert re.fullmatch(r"[a-z0-9-]{1,64}", skill.name)
    assert 0 < len(skill.description) <= 1024
    assert "Use it to" in skill.description
    assert skill.text.count("\n") < 500


@pytest.mark.parametrize(("name", "line"), [(name, line) for name in names() for line in lines_of(name)])
def test_a_line_of_a_skill_can_be_typed(name: str, line: str) -> None:
    """Each names a command that is there, with arguments that its parser takes."""
    fleet, command, *words = shlex.split(line)
    assert fleet == "fleet"
    make_parser(COMMAND[command]).parse_args(words)  # raises UsageError where they cannot be taken


def test_the_runbook_holds_what_a_manager_needs() -> None:
    """Four classes, the fields of the escalation, those of the summary."""
    text = text_of("fleet-manager")
    for word in ("transient", "task", "verifier", "needs-human"):
        assert text.count(f"\n   | {word} |") == 2
    for field in ("Run", "Worker", "Task", "Classification", "Reason", "Latest evidence", "Requested decision"):
        assert f"\n{field}: <" in text or f"\n{field}: fleet" in text
    for field in ("Run", "Workers checked", "Classification", "Action", "Effect", "Artifacts reviewed", "Next owner"):
        assert f"\n- **{field}" in text


def test_installing_twice_is_installing_once(newcomer: Cli) -> None:
    """It needs no home; it is put where Claude Code looks; the second time nothing is to be done."""
    first = newcomer.ok("skill", "install")
    place = Path(newcomer.env["HOME"]) / ".claude" / "skills"
    assert first.lines == [f"Installed {place / name / 'SKILL.md'}" for name in names()]
    assert (place / "fleet-manager" / "SKILL.md").read_text() == bundled("fleet-manager").text
    assert newcomer.ok("skill", "install").lines == [f"Up to date: {place / name / 'SKILL.md'}" for name in names()]
    assert [one["state"] for one in newcomer.json("skill", "list")] == ["current"] * len(names())


def test_what_a_person_changed_is_kept(newcomer: Cli) -> None:
    """An edited copy is refused, with how to compare; forced, it is replaced and kept; an older one is just updated."""
    file = newcomer.cwd / "skills" / "fleet-manager" / "SKILL.md"
    newcomer.ok("skill", "install", "--dir", "skills")
    file.write_text("mine")
    refused = newcomer.run("skill", "install", "--dir", "skills")
    assert refused.code == 1
    assert f"diff -u {file} " in refused.err
    assert file.read_text() == "mine"
    assert newcomer.ok("skill", "install", "--dir", "skills", "fleet-manager", "--force").lines == [f"Replaced {file}"]
    assert (file.parent / "SKILL.md.old").read_text() == "mine"
    theirs = bundled("orchestrator").text.encode()
    other = newcomer.cwd / "skills" / "orchestrator"
    (other / "SKILL.md").write_bytes(theirs[:-10])
    (other / ".fleet-skill").write_text(hashlib.sha256(theirs[:-10]).hexdigest() + "\n")
    assert "Updated" in newcomer.ok("skill", "install", "--dir", "skills").out
    assert (other / "SKILL.md").read_bytes() == theirs


def test_a_skill_that_is_not_there(newcomer: Cli) -> None:
    """A wrong name ends with 4, and says which there are."""
    done = newcomer.run("skill", "install", "nope", "--dir", "x")
    assert done.code == 4
    assert "fleet-manager, orchestrator" in done.err
    assert not (newcomer.cwd / "x").exists()
