"""What goes wrong with sprites, and with their provider: each trouble in its own words, with its own exit code."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from fleet.model.session import Defaults, Slot
from fleet.testing.builders import a_task
from tests.support.cli import Cli
from tests.support.machines import furnish, sprites, table
from tests.support.sprites.faults import ApiFaults
from tests.support.sprites.machine import Machine
from tests.support.sprites.server import StandIn, stand_in

NAMES = ("hammer", "anvil", "forge")


@pytest.fixture(scope="module")
def running() -> Iterator[StandIn]:
    with stand_in() as found:
        yield found


@pytest.fixture
def server(running: StandIn) -> Iterator[StandIn]:
    """The provider, which is well before and after a test."""
    yield running
    for name, value in vars(ApiFaults()).items():
        setattr(running.faults, name, value)


@pytest.fixture
def machines(server: StandIn) -> Iterator[dict[str, Machine]]:
    """Three sprites that run, and are gone after a test: what still wakes one then is not felt by the next test."""
    found = {name: server.sprite(name) for name in NAMES}
    for machine in found.values():
        furnish(machine)
        machine.status = "running"
    yield found
    for name in NAMES:
        if name in server.machines:
            server.remove(server.machines[name])


@pytest.fixture
def fleet(cli: Cli, server: StandIn, machines: dict[str, Machine]) -> Cli:
    """Somebody who has them."""
    with cli.home.toml.open("a") as file:
        file.write(
            "".join(table({"name": f"agents-{name}-01", "kind": "sprite", "api_name": name}) for name in machines)
        )
    sprites(cli, server)
    return cli


def row_of(name: str, screen: list[str]) -> str:
    """The row of a sprite, without what stands for names."""
    return next(line[50:] for line in screen if f"({name})" in line)


def test_a_token_that_is_refused(fleet: Cli) -> None:
    """That is one fault, told once: nothing is known of the machines, and they are not called ill."""
    fleet.env["SPRITES_API_TOKEN"] = "wrong"
    lines = fleet.ok("status").lines
    assert row_of("hammer", lines).startswith("error         -       -         -       cannot ask")
    fault = "all 3 are error at once: cannot ask for sprite hammer: the token is not accepted: authentication failed"
    assert lines[-2:] == [f"API fault: {fault}", "Total: 3 | Healthy: 0 | Unhealthy: 0 | Unknown: 3"]
    done = fleet.run("health")
    assert (done.code, done.out) == (1, f"UNHEALTHY sprites:\n  api: {fault}\n")
    done = fleet.run("exec", "true")
    assert (done.code, done.lines[-1]) == (1, "Complete: 0/3 succeeded")
    assert "[anvil] UNREACHABLE: cannot run `sh` on sprite anvil: the token is not accepted" in done.out


def test_one_that_vanished(fleet: Cli, machines: dict[str, Machine]) -> None:
    """It alone is not found; the others are as they were."""
    machines["forge"].faults.vanished = True
    lines = fleet.ok("status").lines
    assert row_of("forge", lines).startswith("not_found     -       ")
    assert lines[-1] == "Total: 3 | Healthy: 2 | Unhealthy: 1"
    done = fleet.run("health")
    assert (done.code, done.out) == (1, "UNHEALTHY sprites:\n  forge: api:not_found\n")
    done = fleet.run("exec", "true")
    assert "[forge] UNREACHABLE: sprite forge is missing?: 1 of 3 checks did not find it\n" in done.out
    assert (done.code, done.lines[-1]) == (1, "Complete: 2/3 succeeded")


def test_all_looks_tell_the_same_of_one_that_vanished(fleet: Cli, machines: dict[str, Machine]) -> None:
    """Whoever looked last, the newest evidence is what every command shows; its coder is not known any more."""
    fleet.ok("status")
    machines["forge"].faults.vanished = True
    fleet.ok("status")
    assert "2 checks in a row did not find it" in row_of("forge", fleet.ok("status").lines)
    fleet.ok("hosts", "drain", "forge")
    row = row_of("forge", fleet.ok("status", "--no-probe").lines)
    assert row.startswith("not_found     -       -         -       2 checks in a row did not find it; it takes")
    done = fleet.run("hosts", "probe", "forge")
    assert (done.code, done.out) == (1, "agents-forge-01: down: 3 checks in a row did not find it\n")
    assert [host["evidence"] for host in fleet.json("hosts") if host["name"] == "agents-forge-01"] == [
        "3 checks in a row did not find it"
    ]
    (told,) = fleet.json("status", "--host", "forge", "--no-probe")["machines"]
    assert (told["status"], told["coder"], told["healthy"], told["draining"]) == ("not_found", None, False, True)
    assert fleet.json("report", "--no-probe")["errors"] == ["forge: api:not_found: 3 checks in a row did not find it"]
    assert "forge: 4 checks in a row did not find it\n" in fleet.run("health", "--host", "forge").err


def test_a_report_counts_who_sleeps(fleet: Cli, machines: dict[str, Machine]) -> None:
    """The totals of a report for people add up."""
    machines["anvil"].status = "warm"
    assert "3 in all, 2 healthy, 0 unhealthy, 1 asleep." in fleet.ok("report", "--format", "md").out


@pytest.mark.parametrize("nothing_listed", [False, True])
def test_all_that_vanished(fleet: Cli, server: StandIn, machines: dict[str, Machine], nothing_listed: bool) -> None:
    """Where all vanish at once the fault is the API's own, whether it denies each or lists nothing."""
    server.faults.nothing_listed = nothing_listed
    for machine in machines.values():
        machine.faults.vanished = True
    done = fleet.run("health")
    fault = "all 3 are not_found at once: the API shows no sprite at all: the fault may be the API's own"
    assert (done.code, done.out) == (1, f"UNHEALTHY sprites:\n  api: {fault}\n")
    assert (fleet.home.logs / "healthcheck.log").read_text().endswith(f"ALERT - UNHEALTHY: api ({fault})\n")


def test_it_asks_to_be_left_alone_for_a_moment(fleet: Cli, server: StandIn) -> None:
    """A refusal with a short time is waited for, and nobody hears of it."""
    server.faults.refuse, server.faults.retry_after, server.faults.refuse_times = 429, "1", 3
    assert fleet.ok("health").out == "OK: All 3 sprites healthy\n"


def test_it_asks_to_be_left_alone_for_long(fleet: Cli, server: StandIn) -> None:
    """One with a long time is told, with the time, at once."""
    server.faults.refuse, server.faults.retry_after = 429, "3600"
    done = fleet.run("health")
    assert done.code == 1
    assert done.lines[1].endswith("(status 429); it asks to be left alone for 3600 s")
    assert "(status 429); it asks to be left alone for 3600 s" in fleet.run("exec", "--host", "hammer", "true").out


def test_it_asks_to_be_left_alone_for_longer_than_our_time(fleet: Cli, server: StandIn) -> None:
    """Where the time is over while we wait to ask again, it is told as the refusal that it is: no silence, no kill."""
    server.faults.refuse = 429
    fleet.ok("config", "set", "timeouts.api_status=3")
    done = fleet.run("health")
    assert done.code == 1
    assert done.lines[1].endswith("cannot ask for sprite hammer: failed to retrieve sprite (status 429)")
    done = fleet.run("exec", "-t", "3", "--host", "forge", "true")
    told = "[forge] UNREACHABLE: cannot run `sh` on sprite forge: failed to retrieve sprite (status 429)"
    assert (done.code, done.lines[2:]) == (1, [told, "Complete: 0/1 succeeded"])


def test_a_provider_that_fails(fleet: Cli, server: StandIn, machines: dict[str, Machine]) -> None:
    """For all it is one fault, for one it is that sprite's; a fault that passes is not told."""
    server.faults.refuse, server.faults.refuse_times = 503, 3
    assert fleet.ok("health").out == "OK: All 3 sprites healthy\n"
    server.faults.refuse_times = None
    done = fleet.run("health")
    assert done.code == 1
    assert done.lines[1].startswith("  api: all 3 are error at once: ")
    assert done.lines[1].endswith("(status 503)")
    server.faults.refuse, machines["anvil"].faults.refuse = 0, 500
    done = fleet.run("health")
    assert (done.code, done.out) == (1, "UNHEALTHY sprites:\n  anvil: api:error\n")
    assert "anvil: cannot ask for sprite anvil: injected (status 500)" in done.err


def test_one_that_hangs(fleet: Cli, machines: dict[str, Machine]) -> None:
    """It is known and does not respond, whatever its provider calls it; a command on it has its time."""
    machines["forge"].faults.hang = True
    fleet.ok("config", "set", "timeouts.health_probe=1")
    lines = fleet.ok("status", "--host", "forge").lines
    assert row_of("forge", lines).startswith("running       no      ")
    assert "no answer within 1 s" in row_of("forge", lines)
    done = fleet.run("health", "--host", "forge")
    assert (done.code, done.out) == (1, "UNHEALTHY sprites:\n  forge: unresponsive\n")
    done = fleet.run("exec", "-t", "4", "--host", "forge", "true")  # time enough to be connected
    assert (done.code, done.lines[2:]) == (
        1,
        ["[forge] TIMEOUT: no end after 4 s; it was killed if it had begun", "Complete: 0/1 succeeded"],
    )


def test_a_command_that_takes_too_long(fleet: Cli) -> None:
    """What it had printed by then is shown, and that it was cut off there; also as JSON."""
    done = fleet.run("exec", "-t", "2", "--host", "forge", "echo one; echo two >&2; exec sleep 300")
    assert (done.code, done.lines[2:]) == (
        1,
        [
            "[forge] TIMEOUT: no end after 2 s; it was killed",
            "  one",
            "  two",
            "  (cut off here)",
            "Complete: 0/1 succeeded",
        ],
    )
    done = fleet.run("exec", "-t", "2", "--host", "forge", "--json", "echo one; exec sleep 300")
    (told,) = json.loads(done.out)["results"]
    assert (told["end"], told["began"], told["stdout"], told["cut_off"]) == ("timeout", True, "one\n", True)


def test_a_command_on_one_that_still_wakes(fleet: Cli, machines: dict[str, Machine]) -> None:
    """Nothing was killed: it never began, and that is what is said."""
    machines["forge"].status, machines["forge"].faults.wake_seconds = "cold", 5.0
    done = fleet.run("exec", "-t", "1", "--host", "forge", "echo x >$HOME/ran")
    reason = "it never began: after 1 s the sprite was still waking, or not reached"
    assert (done.code, done.lines[2]) == (1, f"[forge] UNREACHABLE: {reason}")


def test_one_that_is_slow_to_wake(fleet: Cli, machines: dict[str, Machine]) -> None:
    """It has the time of a probe to wake, and is healthy when that is enough."""
    machines["forge"].status, machines["forge"].faults.wake_seconds = "cold", 3.0
    fleet.ok("config", "set", "timeouts.health_probe=1")
    done = fleet.run("health", "--host", "forge")
    assert (done.code, done.out) == (1, "UNHEALTHY sprites:\n  forge: unresponsive\n")
    machines["forge"].status = "cold"
    fleet.ok("config", "set", "timeouts.health_probe=30")
    assert fleet.ok("health").out == "OK: All 3 sprites healthy\n"


def test_work_that_is_frozen(fleet: Cli, machines: dict[str, Machine]) -> None:
    """A task whose machine is asleep stands still: it is told at that machine, by `health` too, which wakes it."""
    with fleet.store() as store:
        store.join("sup-1", machine="m", pid=1, seconds=60).result()
        store.submit([a_task("work")], by="ana").result()
        defaults = Defaults(coder="claude", model="sonnet")
        (claimed,) = store.claim("sup-1", [Slot(worker="w#1", host="agents-forge-01")], defaults).result()
    machines["forge"].status = "warm"
    rows = fleet.ok("status", "--team", "agents").lines
    assert f"asleep; never answered; task {claimed.task.uid} stands still" in row_of("forge", rows)
    assert machines["forge"].status == "warm"
    told = f"forge: task {claimed.task.uid} stood still: the machine was asleep until this check woke it\n"
    assert fleet.ok("health", "--host", "forge").err == told
