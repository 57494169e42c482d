"""`fleet health` tells people, at real receivers: once that a machine is ill, once that it is well again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import Cli
from tests.support.machines import furnish, sprites, table
from tests.support.receiver import Answer, Receiver, receiving
from tests.support.sprites.faults import Faults
from tests.support.sprites.machine import Machine
from tests.support.sprites.server import StandIn, stand_in

CHANNELS = """
[channels.ops]
kind = "webhook"
url_env = "OPS_URL"

[channels.slack]
kind = "slack"
webhook_env = "SLACK_URL"

[channels.discord]
kind = "discord"
webhook_env = "DISCORD_URL"
"""
ROUTE = """
[[routes]]
channel = "{}"
"""


@pytest.fixture(scope="module")
def server() -> Iterator[StandIn]:
    with stand_in() as found:
        yield found


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


@pytest.fixture
def machines(server: StandIn) -> Iterator[dict[str, Machine]]:
    """Two sprites that run."""
    found = {name: server.sprite(name) for name in ("forge", "mallet")}
    for machine in found.values():
        furnish(machine)
        machine.status = "running"
    yield found
    for machine in found.values():
        machine.faults = Faults()


@pytest.fixture
def fleet(cli: Cli, server: StandIn, machines: dict[str, Machine], receiver: Receiver) -> Cli:
    """Somebody who is told of them at one channel."""
    with cli.home.toml.open("a") as file:
        file.write("".join(table({"name": f"dev-{name}-01", "kind": "sprite", "api_name": name}) for name in machines))
        file.write(CHANNELS + ROUTE.format("ops"))
    sprites(cli, server)
    cli.ok("config", "set", "alerts.enabled=true", "alerts.timeout_seconds=5")
    cli.env |= {name: f"{receiver.url}/{name}" for name in ("OPS_URL", "SLACK_URL", "DISCORD_URL")}
    return cli


def told(receiver: Receiver) -> list[tuple[str, str]]:
    """What the webhook got: the class of each alert, and the host that it is about."""
    return [(got.body["event"]["class"], got.body["event"]["host"]) for got in receiver.got]


def test_one_alert_for_each_change(fleet: Cli, machines: dict[str, Machine], receiver: Receiver) -> None:
    """It is told when it becomes ill, not at each check, and when it is well again; the lines are as ever."""
    fleet.ok("health")
    machines["mallet"].faults.close_early = True
    for _ in range(2):
        assert fleet.run("health").out == "UNHEALTHY sprites:\n  mallet: unresponsive\n"
    assert told(receiver) == [("host_unhealthy", "dev-mallet-01")]
    assert receiver.got[0].body["event"]["reason"].startswith("dev-mallet-01 is down: cannot run")
    machines["mallet"].faults.close_early = False
    for _ in range(2):
        assert fleet.ok("health").out == "OK: All 2 sprites healthy\n"
    assert told(receiver) == [("host_unhealthy", "dev-mallet-01"), ("host_recovered", "dev-mallet-01")]


def test_damping_is_for_alerts_alone(fleet: Cli, machines: dict[str, Machine], receiver: Receiver) -> None:
    """With `alert_after = 3` the third check in a row tells; each of them says so by its line and exit code."""
    fleet.ok("config", "set", "health.alert_after=3")
    machines["mallet"].faults.close_early = True
    heard = []
    for _ in range(4):
        done = fleet.run("health", "--quiet")
        assert (done.code, done.out) == (1, "UNHEALTHY sprites:\n  mallet: unresponsive\n")
        heard.append(len(receiver.got))
    assert heard == [0, 0, 1, 1]


def test_no_single_denial_is_believed(fleet: Cli, machines: dict[str, Machine], receiver: Receiver) -> None:
    """One that its provider does not find is told as such at once, and alerted when it is not found again."""
    machines["mallet"].faults.vanished = True
    heard = []
    for _ in range(3):
        assert fleet.run("health").out == "UNHEALTHY sprites:\n  mallet: api:not_found\n"
        heard.append(told(receiver))
    assert heard == [[], *[[("host_unhealthy", "dev-mallet-01")]] * 2]
    assert "4 checks in a row did not find it; unhealthy for " in fleet.ok("status", "--host", "mallet").out


def test_one_fault_is_one_alert(fleet: Cli, machines: dict[str, Machine], receiver: Receiver) -> None:
    """When all vanish at once people hear of the API, once, and of no machine; and once that it is back."""
    for machine in machines.values():
        machine.faults.vanished = True
    for _ in range(2):
        assert fleet.run("health").lines[1].startswith("  api: all 2 are not_found at once")
    assert fleet.run("health", "--host", "mallet").out == "UNHEALTHY sprites:\n  mallet: api:not_found\n"
    assert told(receiver) == [("host_unhealthy", "api:sprites")], "one machine alone tells nothing new"
    for machine in machines.values():
        machine.faults.vanished = False
    fleet.ok("health")
    assert told(receiver) == [("host_unhealthy", "api:sprites"), ("host_recovered", "api:sprites")]


@pytest.mark.parametrize(("channel", "field"), [("slack", "text"), ("discord", "content")])
def test_in_their_own_words(
    fleet: Cli, machines: dict[str, Machine], receiver: Receiver, channel: str, field: str
) -> None:
    """Slack and Discord get what they can show."""
    text = fleet.home.toml.read_text()
    fleet.home.toml.write_text(text.replace(ROUTE.format("ops"), ROUTE.format(channel)))
    machines["mallet"].faults.close_early = True
    fleet.run("health")
    (got,) = receiver.got
    assert got.path == f"/{channel.upper()}_URL"
    assert "dev-mallet-01 is down: cannot run" in str(got.body[field])


def test_a_receiver_that_refuses(fleet: Cli, machines: dict[str, Machine], receiver: Receiver) -> None:
    """It is tried again after a failure; the check says what it found, whatever comes of the alert."""
    receiver.answers = [Answer(500), Answer(200)]
    machines["mallet"].faults.close_early = True
    done = fleet.run("health")
    assert (done.code, done.out) == (1, "UNHEALTHY sprites:\n  mallet: unresponsive\n")
    assert len(receiver.got) == 2
    assert receiver.got[0].body["event"]["id"] == receiver.got[1].body["event"]["id"]


def test_nobody_is_told_unless_alerts_are_on(fleet: Cli, machines: dict[str, Machine], receiver: Receiver) -> None:
    """They are off by default."""
    fleet.ok("config", "set", "alerts.enabled=false")
    machines["mallet"].faults.close_early = True
    assert fleet.run("health").code == 1
    assert receiver.got == []


def test_the_webhook_of_the_first_manager(
    cli: Cli, server: StandIn, machines: dict[str, Machine], receiver: Receiver, tmp_path: Path
) -> None:
    """Its `webhook_url` is enough: imported, it gets an alert of who is unhealthy, and stands in no other file."""
    config = tmp_path / "config.yaml"
    address = f"{receiver.url}/api/webhooks/hunter2"
    config.write_text(f'sprites: [{", ".join(machines)}]\nalerts:\n  webhook_url: "{address}"\n')
    cli.ok("config", "import", str(config))
    sprites(cli, server)
    machines["mallet"].faults.close_early = True
    assert cli.run("health", "--quiet").out == "UNHEALTHY sprites:\n  mallet: unresponsive\n"
    (got,) = receiver.got
    assert (got.path, got.body["event"]["host"]) == ("/api/webhooks/hunter2", "mallet")
    holds = [path for path in cli.home.path.rglob("*") if path.is_file() and b"hunter2" in path.read_bytes()]
    assert holds == [cli.home.secrets]
