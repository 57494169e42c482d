"""What a service is made of: scripts that a shell reads, units that systemd reads, lines that cron reads."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from fleet.cli.app import make_parser
from fleet.cli.commands import COMMANDS
from fleet.config.installed import Job
from fleet.control.units import Place, block, script, units, with_block, without_block
from fleet.errors import Conflict

PLACE = Place(home="/home/ana/.fleet", scope="user", argv=("/opt/fleet",), path="/usr/bin:/bin", user_home="/home/ana")
HEALTH = Job(name="health", every="15m", program="/usr/local/bin/fleet-healthcheck", log="/var/log/health.log")
POOLS = Job(name="pool-check", every="30m", program="/usr/local/bin/fleet-pool-check")
SUPERVISOR = Job(name="supervisor", every="", program="/usr/local/bin/fleet-supervisor")
OTHERS = "MAILTO=ana\n# mine\n0 3 * * * /usr/bin/backup --to %Y\n"


def test_lines_go_into_a_crontab_and_out_again() -> None:
    """Every other line stays, byte for byte, whatever stands before and after ours."""
    inside = with_block(OTHERS, [HEALTH, SUPERVISOR], PLACE)
    assert inside.startswith(OTHERS)
    assert block(inside, PLACE.home) == [
        "*/15 * * * * /usr/local/bin/fleet-healthcheck",
        "@reboot /usr/local/bin/fleet-supervisor",
        "*/5 * * * * /usr/local/bin/fleet-supervisor",
    ]
    assert without_block(inside, PLACE.home) == OTHERS
    later = inside + "@daily /usr/bin/later\n"
    assert without_block(later, PLACE.home) == OTHERS + "@daily /usr/bin/later\n"


def test_lines_are_replaced_where_they_stand() -> None:
    """Putting them in again neither doubles nor moves them."""
    once = with_block(OTHERS, [HEALTH], PLACE) + "@daily /usr/bin/later\n"
    assert with_block(once, [HEALTH], PLACE) == once
    assert with_block(once, [replace(HEALTH, every="1h")], PLACE) == once.replace("*/15 *", "0 *")


def test_two_homes_have_lines_of_their_own() -> None:
    """Taking out one leaves the other."""
    other = replace(PLACE, home="/home/ana/.fleet2")
    both = with_block(with_block("", [HEALTH], PLACE), [HEALTH], other)
    assert without_block(both, PLACE.home) == with_block("", [HEALTH], other)


@pytest.mark.parametrize("lost", ["# BEGIN", "# END"])
def test_marks_that_do_not_belong_together(lost: str) -> None:
    """A crontab whose marks somebody has edited is left alone."""
    edited = "".join(line for line in with_block(OTHERS, [HEALTH], PLACE).splitlines(True) if not line.startswith(lost))
    with pytest.raises(Conflict, match="nothing was changed"):
        without_block(edited, PLACE.home)


def test_a_percent_sign_in_a_path() -> None:
    """cron would take it for a line break, systemd for a word of its own."""
    odd = replace(HEALTH, program="/opt/50% off/fleet-healthcheck")
    assert block(with_block("", [odd], PLACE), PLACE.home) == ["*/15 * * * * '/opt/50\\% off/fleet-healthcheck'"]
    service = units(odd, PLACE, "/units")[0].text
    assert 'ExecStart="/opt/50%% off/fleet-healthcheck"' in service


def test_the_units_of_a_supervisor() -> None:
    """A stop ends the supervisor alone; what one agent does to memory does not end the others."""
    service = units(SUPERVISOR, PLACE, "/units")[0].text.splitlines()
    assert {"KillMode=process", "OOMPolicy=continue", "Restart=on-failure"} <= set(service)


@pytest.mark.parametrize(("job", "silence"), [(HEALTH, "quiet"), (POOLS, "silent"), (SUPERVISOR, "quiet")])
def test_a_script_calls_a_command_that_exists(job: Job, silence: str, tmp_path: Path) -> None:
    """What it says is understood by the very parser of that command, with every odd character as it was."""
    told = tmp_path / "told"
    fake = tmp_path / "it's fleet"
    fake.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >"{told}"\n')
    fake.chmod(0o755)
    place = replace(PLACE, argv=(str(fake),), home="/home/it's $ana")
    text = script(job, place, detached=False).text
    subprocess.run(["sh", "-c", text], check=True, timeout=20)
    home_flag, home, name, *words = told.read_text().splitlines()
    assert (home_flag, home) == ("--home", "/home/it's $ana")
    parser = make_parser(next(command for command in COMMANDS if command.name == name))
    assert getattr(parser.parse_args(words), silence)
