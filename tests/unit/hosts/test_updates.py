"""How a package is updated: run with package managers that only write down what they were asked."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from fleet.errors import UsageError
from fleet.hosts.updates import update_script, versions

NEEDED = ("sh", "head", "cat")


class Machine:
    """A machine with no program but those that a test gives it, so that nothing real is ever updated."""

    def __init__(self, path: Path) -> None:
        self.bin = path / "bin"
        self.bin.mkdir()
        self.notes = path / "notes"
        for name in NEEDED:
            (self.bin / name).symlink_to(shutil.which(name) or name)
        self.program("id", "echo 0")
        self.program("env", 'shift; exec "$@"')

    def program(self, name: str, script: str) -> None:
        """A program that does this."""
        file = self.bin / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    def noted(self, name: str, question: str) -> None:
        """A program that says yes to a question; whatever else it is told it notes, and the version rises."""
        act = f'echo "{name} $*" >>{self.notes}; echo 2.0 >{self.bin}/../version'
        self.program(name, f'case "$*" in {question}) exit 0 ;; *) {act} ;; esac')

    def update(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run it, with nothing else within reach."""
        return subprocess.run(
            [str(self.bin / "sh"), "-c", script],
            env={"PATH": str(self.bin)},
            capture_output=True,
            text=True,
            check=False,
        )

    def told(self) -> list[str]:
        """What the package managers were asked to do."""
        return self.notes.read_text().splitlines() if self.notes.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    found = Machine(tmp_path)
    (tmp_path / "version").write_text("1.0\n")
    found.program("tool", f"cat {tmp_path}/version")
    return found


def test_a_recipe(machine: Machine) -> None:
    """The command of the recipe is run; the version is told before and after; what it says goes to stderr."""
    recipe = f"echo working; echo 3.1 >{machine.bin}/../version"
    done = machine.update(update_script("tool", command=recipe))
    assert (done.returncode, versions(done.stdout), done.stderr) == (0, ("1.0", "3.1"), "working\n")
    own = machine.update(update_script("tool", command="exit 7", version="echo v9; echo more"))
    assert (own.returncode, versions(own.stdout)) == (7, ("v9", "v9"))


@pytest.mark.parametrize(
    ("manager", "question", "asked"),
    [
        ("npm", '"ls "*', ["npm install -g tool@latest"]),
        ("brew", '"list "*', ["brew upgrade tool"]),
        ("python3", '"-m pip show"*', ["python3 -m pip install --upgrade tool"]),
    ],
)
def test_who_installed_it_updates_it(machine: Machine, manager: str, question: str, asked: list[str]) -> None:
    """The package manager that has the package is the one that updates it."""
    machine.noted(manager, question)
    done = machine.update(update_script("tool"))
    assert (done.returncode, versions(done.stdout)) == (0, ("1.0", "2.0"))
    assert machine.told() == asked


def test_a_package_of_the_system(machine: Machine) -> None:
    """apt is asked for news first, never asks a question, and installs nothing that was not there."""
    machine.program("dpkg-query", "printf installed")
    machine.noted("apt-get", '"never"')
    assert machine.update(update_script("tool")).returncode == 0
    assert machine.told() == ["apt-get update -qq", "apt-get install -y --only-upgrade tool"]


def test_a_package_under_another_name(machine: Machine) -> None:
    """npm knows codex by its own name."""
    machine.noted("npm", '"ls -g --depth=0 @openai/codex"')
    assert machine.update(update_script("codex")).returncode == 0
    assert machine.told() == ["npm install -g @openai/codex@latest"]


def test_a_program_that_updates_itself(machine: Machine) -> None:
    """Where no package manager has it, claude is told to update itself."""
    machine.program("npm", "exit 1")
    machine.noted("claude", "--version")
    assert machine.update(update_script("claude")).returncode == 0
    assert machine.told() == ["claude update"]


def test_a_package_that_nobody_installed(machine: Machine) -> None:
    """It fails with the words that help, and the version stays what it was."""
    done = machine.update(update_script("tool"))
    assert (done.returncode, versions(done.stdout)) == (1, ("1.0", "1.0"))
    assert done.stderr == "tool was not installed by apt, npm, brew or pip; give it a recipe: [updates.tool]\n"


@pytest.mark.parametrize("word", ["-rf", "a b", "x;reboot", "$(x)", "", "a\nb"])
def test_a_word_that_is_no_package(word: str) -> None:
    """It is refused: it would become a part of a command on every host."""
    with pytest.raises(UsageError):
        update_script(word)
