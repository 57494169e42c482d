"""`fleet update`: a package on every host, with its version before and after; canaries first. Only by recipes here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import Cli
from tests.support.machines import declare, local_host

NAMES = ("hammer", "anvil", "forge")


@pytest.fixture
def fleet(cli: Cli, tmp_path: Path) -> Cli:
    """Three hosts on this machine that take their turns at one file: whoever comes raises the version by one."""
    version = tmp_path / "version"
    version.write_text("0\n")
    recipe = (
        f"test -e {tmp_path}/broken && {{ echo no network >&2; exit 5; }}; echo $(($(cat {version}) + 1)) >{version}"
    )
    text = f"\n[updates.infisical]\ncommand = '''{recipe}'''\nversion = '''cat {version}'''\n"
    declare(cli, *(local_host(f"agents-{name}-01", api_name=name) for name in NAMES), text)
    return cli


def test_everywhere(fleet: Cli) -> None:
    """The two lines of the first manager, and between them each host with its versions."""
    done = fleet.ok("update", "infisical", "--parallel", "1")
    assert done.lines == [
        "Updating 'infisical' on all hosts...",
        *("[hammer] OK", "  0 -> 1"),
        *("[anvil] OK", "  1 -> 2"),
        *("[forge] OK", "  2 -> 3"),
        "Complete: 3/3 succeeded",
    ]


def test_canaries_that_fail(fleet: Cli, tmp_path: Path) -> None:
    """The first hosts are tried; when one fails the others are not touched, and the exit code is 1."""
    (tmp_path / "broken").touch()
    done = fleet.run("update", "infisical", "--canary", "1")
    assert done.code == 1
    assert done.lines[1:] == [
        "[hammer] FAILED (exit 5)",
        "  no network",
        "Stopped: the canary failed; not touched: agents-anvil-01, agents-forge-01",
        "Complete: 0/3 succeeded",
    ]
    assert (tmp_path / "version").read_text() == "0\n"


def test_canaries_that_succeed(fleet: Cli) -> None:
    """Then the others follow; as JSON each host has its versions."""
    told = fleet.json("update", "infisical", "--canary", "2", "--parallel", "1")
    assert [(each["before"], each["after"]) for each in told["results"]] == [("0", "1"), ("1", "2"), ("2", "3")]
    assert (told["succeeded"], told["untouched"]) == (3, [])


def test_of_some(fleet: Cli) -> None:
    """A selection is counted in the first line; what stays as it was is told so."""
    fleet.ok("config", "set", "updates.infisical.command=true")
    done = fleet.ok("update", "infisical", "--host", "forge")
    assert done.lines == [
        "Updating 'infisical' on 1 host...",
        *("[forge] OK", "  0 (as before)"),
        "Complete: 1/1 succeeded",
    ]


def test_one_that_takes_too_long(fleet: Cli) -> None:
    """What it had said by then is shown, and that it was cut off there; also as JSON."""
    fleet.ok("config", "set", "updates.infisical.command=echo fetching; sleep 300")
    done = fleet.run("update", "infisical", "-t", "2", "--host", "forge")
    assert (done.code, done.lines[1:]) == (
        1,
        [
            "[forge] TIMEOUT: no end after 2 s; it was killed",
            "  fetching",
            "  (cut off here)",
            "Complete: 0/1 succeeded",
        ],
    )
    (told,) = json.loads(fleet.run("update", "infisical", "-t", "2", "--host", "forge", "--json").out)["results"]
    assert (told["end"], told["began"], told["log"], told["cut_off"]) == ("timeout", True, "fetching\n", True)


def test_wrong_words(fleet: Cli) -> None:
    """What is no name of a package is exit code 2, before anything is run."""
    assert fleet.run("update", "x;reboot").code == 2
    assert fleet.run("update").code == 2
