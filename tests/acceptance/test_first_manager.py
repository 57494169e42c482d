"""The first Fleet Manager's own command lines, on its own configuration: what they print, column for column.

Its eight sprites are those of a stand-in for the provider's API. Milliseconds and times are masked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import Cli
from tests.support.machines import SEED_NAMES, manager
from tests.support.sprites.faults import Faults
from tests.support.sprites.machine import Machine
from tests.support.sprites.server import StandIn, stand_in

API_NAMES = [line.split(" = ")[0] for line in SEED_NAMES.read_text().splitlines() if " = " in line]
SCREEN = """\
Fleet Status (8 sprites)
==========================================================================================
Sprite (API Name)                                 Status        Resp    ms        Claude
------------------------------------------------------------------------------------------
agents-review-claude-01 (hammer)                  warm          yes     N         yes
agents-review-codex-01 (anvil)                    warm          yes     N         yes
agents-synth-01 (forge)                           warm          yes     N         yes
dev-workspace-01 (mallet)                         warm          yes     N         yes
infra-bootstrap-01 (test-sprite)                  warm          yes     N         yes
mobile-conductor-01 (sprite-mobile-conductor)     warm          yes     N         yes
mobile-worker-01 (sprite-mobile-worker-1)         warm          yes     N         yes
mobile-worker-02 (sprite-mobile-worker-2)         warm          yes     N         yes
------------------------------------------------------------------------------------------
Total: 8 | Healthy: 8 | Unhealthy: 0
"""
TEAM = """\
Fleet Status (3 sprites (team: agents))
==========================================================================================
Sprite (API Name)                                 Status        Resp    ms        Claude
------------------------------------------------------------------------------------------
agents-review-claude-01 (hammer)                  warm          yes     N         yes
agents-review-codex-01 (anvil)                    warm          yes     N         yes
agents-synth-01 (forge)                           warm          yes     N         yes
------------------------------------------------------------------------------------------
Total: 3 | Healthy: 3 | Unhealthy: 0
"""


@pytest.fixture(scope="module")
def server() -> Iterator[StandIn]:
    with stand_in() as found:
        yield found


@pytest.fixture
def machines(cli: Cli, server: StandIn) -> Iterator[dict[str, Machine]]:
    """The eight sprites, warm; what a test made go wrong is mended after it."""
    found = {machine.name: machine for machine in manager(cli, server)}
    yield found
    for machine in found.values():
        machine.faults = Faults()


def masked(screen: str) -> str:
    """The screen, its milliseconds called N where the column is."""
    return re.sub(r"(?m)^(.{72})\d+ *", lambda row: row[1] + "N".ljust(10), screen)


def answers(lines: list[str]) -> list[str]:
    """The answers of the hosts, each with what it printed; they come in any order."""
    return sorted(re.findall(r"\[.*\](?:.*\n)(?:  .*\n)*", "\n".join(lines) + "\n"))


def test_status(cli: Cli, machines: dict[str, Machine]) -> None:
    """`fleet status` shows the eight as it did, and wakes them for it, as it did."""
    done = cli.ok("status")
    assert (masked(done.out), done.err) == (SCREEN, "")
    assert [machine.status for machine in machines.values()] == ["running"] * 8


def test_status_of_a_team(cli: Cli, machines: dict[str, Machine]) -> None:
    """`fleet status --team agents` shows three, and asks no other."""
    assert masked(cli.ok("status", "--team", "agents").out) == TEAM
    assert machines["mallet"].status == "warm"


@pytest.mark.usefixtures("machines")
def test_exec_hostname(cli: Cli) -> None:
    """`fleet exec "hostname"`: the head, the rule, each sprite with its own name, the count."""
    head, rule, *told, last = cli.ok("exec", "hostname").lines
    assert (head, rule) == ("Executing on 8 sprites: hostname...", "=" * 60)
    assert answers(told) == sorted(f"[{name}] OK\n  {name}\n" for name in API_NAMES)
    assert last == "Complete: 8/8 succeeded"


@pytest.mark.usefixtures("machines")
@pytest.mark.parametrize(
    ("words", "printed"),
    [(["df -h /"], r"  Filesystem .*\n  .* /\n"), (["wc -l ~/.env.secrets"], r"  2 /.*/\.env\.secrets\n")],
)
def test_exec_of_the_others(cli: Cli, words: list[str], printed: str) -> None:
    """`fleet exec "df -h /"` and `fleet exec "wc -l ~/.env.secrets"` run in each sprite's own home."""
    _, _, *told, last = cli.ok("exec", *words).lines
    for answer in answers(told):
        assert re.fullmatch(rf"\[[a-z0-9-]+\] OK\n{printed}", answer)
    assert last == "Complete: 8/8 succeeded"


def test_exec_with_a_longer_timeout(cli: Cli, machines: dict[str, Machine]) -> None:
    """`fleet exec -t 120 "hostname"` waits longer than the configured time for a sprite that is slow to wake."""
    cli.ok("config", "set", "timeouts.command_exec=0.5")
    machines["mallet"].faults.wake_seconds = 2.0
    assert "[mallet] UNREACHABLE: it never began: after 0.5 s the sprite was" in cli.run("exec", "hostname").out
    machines["mallet"].status = "warm"
    assert cli.ok("exec", "-t", "120", "hostname").lines[-1] == "Complete: 8/8 succeeded"


@pytest.mark.usefixtures("machines")
def test_updates(cli: Cli) -> None:
    """`fleet update infisical` and `fleet update cloudflared`: by a recipe, and in the program's own way."""
    recipe = 'updates.infisical.command=echo infisical version 0.43.2 >"$HOME/infisical"'
    cli.ok("config", "set", recipe)
    head, *told, last = cli.ok("update", "infisical").lines
    assert (head, last) == ("Updating 'infisical' on all sprites...", "Complete: 8/8 succeeded")
    versions = "infisical version 0.41.0 -> infisical version 0.43.2"
    assert answers(told) == sorted(f"[{name}] OK\n  {versions}\n" for name in API_NAMES)
    head, *told, last = cli.ok("update", "cloudflared").lines
    assert (head, last) == ("Updating 'cloudflared' on all sprites...", "Complete: 8/8 succeeded")
    assert answers(told)[0] == "[anvil] OK\n  cloudflared version 2026.2.0 (as before)\n"


def test_health(cli: Cli, machines: dict[str, Machine]) -> None:
    """`fleet health`: one line and 0; who is ill and 1, the vanished first; quietly nothing; the lines of the log."""
    assert cli.ok("health")[1:] == ("OK: All 8 sprites healthy\n", "")
    assert cli.ok("health", "--quiet")[1:] == ("", "")
    machines["sprite-mobile-conductor"].faults.vanished = True
    machines["mallet"].faults.close_early = True
    ill = "UNHEALTHY sprites:\n  sprite-mobile-conductor: api:not_found\n  mallet: unresponsive\n"
    for words in ([], ["--quiet"]):
        done = cli.run("health", *words)
        assert (done.code, done.out) == (1, ill)
    log = (cli.home.logs / "healthcheck.log").read_text()
    stamp, who = "[0000-00-00 00:00:00]", "sprite-mobile-conductor (api:not_found), mallet (unresponsive)"
    assert re.sub(r"\d", "0", log).splitlines() == [
        *[f"{stamp} OK - All sprites healthy"] * 2,
        *[f"{stamp} ALERT - UNHEALTHY: {who}"] * 2,
    ]


@pytest.mark.usefixtures("machines")
def test_report(cli: Cli, tmp_path: Path) -> None:
    """`fleet report` prints the six fields in their order; `-o` writes the same to a file and prints nothing."""
    told = json.loads(cli.ok("report").out)
    stamp = told.pop("timestamp")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00", stamp)
    assert list(told)[:5] == ["total", "healthy", "unhealthy", "sprites", "errors"]
    assert (told["total"], told["healthy"], told["unhealthy"], told["errors"]) == (8, 8, 0, [])
    assert [each["api_name"] for each in told["sprites"]] == API_NAMES
    file = tmp_path / "fleet-report.json"
    assert cli.ok("report", "-o", str(file))[1:] == ("", "")
    assert json.loads(file.read_text())["total"] == 8
    (tmp_path / "any").touch()
    assert file.stat().st_mode == (tmp_path / "any").stat().st_mode
