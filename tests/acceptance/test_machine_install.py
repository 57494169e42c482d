"""`scripts/install.sh`: the first Fleet Manager's whole installation, in a scratch prefix, without a network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.support.cli import Cli
from tests.support.keepers import stand_ins
from tests.support.machines import SEED_CONFIG, SEED_NAMES, furnish
from tests.support.sprites.server import TOKEN, stand_in

SCRIPT = Path(__file__).parents[2] / "scripts" / "install.sh"


class Installation:
    """A prefix and a directory of words, with stand-ins for what keeps time."""

    def __init__(self, newcomer: Cli, path: Path) -> None:
        self.cli = newcomer
        del newcomer.env["FLEET_HOME"]
        self.keepers = stand_ins(newcomer, path / "stand-in")
        self.prefix, self.words = path / "opt", path / "bin"
        self.fleet = self.words / "fleet"
        self.log = path / "fleet-healthcheck.log"

    def run(self, *argv: str | Path, code: int = 0) -> str:
        """Run something as that person; what it prints."""
        done = subprocess.run(
            argv,
            env={**self.cli.env, "PIP_NO_INDEX": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == code, done.stdout
        return done.stdout

    def install(self, *words: str, code: int = 0) -> str:
        """Run the script."""
        place = ("--prefix", self.prefix, "--bin-dir", self.words)
        return self.run("sh", SCRIPT, *place, *words, code=code)


@pytest.fixture
def here(newcomer: Cli, tmp_path: Path) -> Installation:
    """A machine whose pip has all that Fleet needs: its environment finds the packages of the one that tests run in."""
    found = Installation(newcomer, tmp_path)
    venv = found.prefix / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True, timeout=60)
    packages = next(venv.glob("lib/python*/site-packages"))
    (packages / "all.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return found


def test_the_whole_installation(here: Installation) -> None:
    """Program, home, word, script, token and crontab; twice is once; the check works as cron runs it; all goes away."""
    (here.prefix / "config.yaml").write_text(SEED_CONFIG.read_text())
    (here.prefix / "names.txt").write_text(SEED_NAMES.read_text())
    given = here.prefix.parent / "token"
    given.write_text(TOKEN)
    words = ("--by", "cron", "--health-log", str(here.log), "--token-file", str(given))
    first = here.install(*words)
    assert "every 15 minutes" in first
    assert TOKEN not in first
    tab = (here.keepers / "tab").read_text()
    assert f"*/15 * * * * {here.prefix}/fleet-healthcheck" in tab.splitlines()
    assert "Nothing has changed" in here.install(*words)
    assert (here.keepers / "tab").read_text() == tab
    with stand_in() as server:
        for line in SEED_NAMES.read_text().splitlines():
            if " = " in line:
                furnish(server.sprite(line.split(" = ")[0]))
        here.run(here.fleet, "config", "set", f"sprites.url={server.url}")
        checked = subprocess.run(
            [here.prefix / "fleet-healthcheck"], env={"LOGNAME": "root"}, capture_output=True, timeout=60, check=False
        )
        assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")
    assert here.log.read_text().endswith("OK - All sprites healthy\n")
    here.install("--uninstall")
    assert sorted(os.listdir(here.prefix)) == ["config.yaml", "home", "names.txt"]
    assert not (here.keepers / "tab").exists()
    assert not here.fleet.exists()
    assert "nothing is installed" in here.install("--uninstall", code=1)


def test_a_word_that_is_somebody_elses(here: Installation) -> None:
    """A `fleet` that is there already is not overwritten, and nothing else is begun."""
    here.words.mkdir()
    here.fleet.write_text("#!/bin/sh\n")
    assert "is there already" in here.install("--no-service", code=1)
    assert here.fleet.read_text() == "#!/bin/sh\n"
    assert not (here.prefix / "home").exists()


def test_an_option_that_nobody_knows(here: Installation) -> None:
    """It is refused before anything is begun; so is a promise to write nothing. All that the service takes is taken."""
    text = here.cli.ok("service", "install", "--help").out
    known = dict(re.findall(r"^  (--[a-z-]+)(?: ([A-Z]+|{[a-z,]+}))? ", text, re.MULTILINE))
    assert {"--health-every", "--supervisor", "--token-file"} <= set(known)
    for one in ("--home", "--bin-dir", "--root", "--dry-run"):
        del known[one]
    words = [word for name, value in known.items() for word in ((name, "x") if value else (name,))]
    assert "unknown option --frob" in here.install(*words, "--frob", code=1)
    assert "unknown option --dry-run" in here.install("--dry-run", code=1)
    assert "--by needs a value" in here.install("--by", code=1)
    assert not here.words.exists()
    assert not (here.prefix / "home").exists()
