"""`fleet alert`, and alerts of runs: the installed program, a real receiver on loopback."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.cli import Cli
from tests.support.receiver import Answer, Receiver, receiving

SEED = {
    "enabled": True,
    "dry_run": True,
    "routes": [
        {"events": ["stale", "restart_exhausted", "verifier_failed"], "adapter": "ops-slack"},
        {"events": ["restart_exhausted"], "adapter": "pager"},
    ],
    "adapters": {
        "ops-slack": {"kind": "slack", "webhook_env": "CODEWHALE_FLEET_SLACK_WEBHOOK", "channel": "#codewhale-fleet"},
        "pager": {
            "kind": "pager_duty",
            "routing_key_env": "CODEWHALE_FLEET_PAGERDUTY_ROUTING_KEY",
            "severity": "critical",
        },
    },
}
CHANNELS = """
[alerts]
enabled = true
timeout_seconds = 5

[channels.ops]
kind = "webhook"
url_env = "OPS_URL"
secret_env = "OPS_KEY"

[channels.log]
kind = "console"

[[routes]]
channel = "ops"
"""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver that is up."""
    with receiving() as made:
        yield made


@pytest.fixture
def told(cli: Cli, receiver: Receiver) -> Cli:
    """Somebody whose alerts go to the receiver."""
    cli.home.toml.write_text(CHANNELS)
    cli.env |= {"OPS_URL": f"{receiver.url}/hunter2", "OPS_KEY": "the-key"}
    return cli


def failing(cli: Cli, **more: Any) -> str:
    """A spec with one task that fails; its file."""
    task = {"id": "triage", "command": "echo looking around; exit 1", "retry_policy": {"max_attempts": 1}}
    (cli.cwd / "tasks.json").write_text(json.dumps({"name": "nightly", "tasks": [task], **more}))
    return "tasks.json"


def dry(cli: Cli, *argv: str) -> Any:
    """The payload that a dry run prints."""
    return json.loads(cli.ok("alert-dry-run", *argv).out)


def test_the_seeds_own_dry_run(cli: Cli) -> None:
    """Run, worker, task, status, reason and commands are in the payload; the address is a mark."""
    reason = "worker heartbeat stale since 2026-06-13T02:00:00Z"
    words = ["--event", "stale", "--run-id", "fleet-demo", "--worker-id", "fleet-demo-local-1"]
    words += ["--task-id", "release-triage", "--reason", reason, "--adapter", "slack"]
    found = dry(cli, *words, "--slack-webhook-env", "MY_HOOK")
    assert (found["adapter"], found["kind"], found["dry_run"]) == ("slack", "slack", True)
    assert found["target"] == "<redacted:env:MY_HOOK>"
    event = found["event"]
    assert (event["run_id"], event["worker_id"], event["task_id"], event["status"], event["reason"]) == (
        "fleet-demo",
        "fleet-demo-local-1",
        "release-triage",
        "stale",
        reason,
    )
    assert event["commands"][:2] == ["fleet status", "fleet inspect fleet-demo-local-1"]
    assert "fleet inspect fleet-demo-local-1" in json.dumps(found["body"]["blocks"])
    same = json.loads(cli.ok("alert", "dry-run", *words, "--slack-webhook-env", "MY_HOOK").out)
    assert (same["target"], same["body"]) == (found["target"], found["body"])


@pytest.mark.parametrize(
    ("event", "status"),
    [
        ("stale", "stale"),
        ("restart-exhausted", "failed"),
        ("needs-human", "needs_human"),
        ("budget-exceeded", "budget_exceeded"),
        ("verifier-failed", "verifier_failed"),
        ("run-completed", "completed"),
        ("host_unhealthy", "down"),
    ],
)
def test_every_class_has_its_status(cli: Cli, event: str, status: str) -> None:
    """With dashes as with underscores; what was said with --status goes first."""
    words = ("--event", event, "--run-id", "r", "--adapter", "webhook", "--webhook-url-env", "U")
    found = dry(cli, *words, "--webhook-secret-env", "S")
    assert found["event"]["status"] == status
    assert found["event"]["reason"] == "manual fleet alert dry-run"
    assert (found["target"], found["headers"]["X-Fleet-Signature"]) == ("<redacted:env:U>", "<redacted:env:S>")
    assert dry(cli, *words, "--status", "odd")["event"]["status"] == "odd"


def test_a_pager_in_a_dry_run(cli: Cli) -> None:
    """The routing key is a mark, the severity as asked for, and a secret in the reason is taken out."""
    words = ["--event", "stale", "--run-id", "r", "--adapter", "pager-duty", "--pagerduty-routing-key-env", "K"]
    found = dry(cli, *words, "--pagerduty-severity", "critical", "--reason", "password=hunter2hunter2 was wrong")
    assert found["body"]["routing_key"] == "<redacted:env:K>"
    assert found["body"]["payload"]["severity"] == "critical"
    assert "hunter2" not in json.dumps(found)


@pytest.mark.parametrize(
    "words",
    [
        ("--event", "stail", "--run-id", "r"),
        ("--event", "stale"),
        ("--event", "stale", "--run-id", "r", "--adapter", "fax"),
        ("--event", "stale", "--run-id", "r", "--slack-webhook-env", "https://hooks.example/hunter2"),
        ("--event", "stale", "--run-id", "r", "--adapter", "pager-duty", "--pagerduty-routing-key-env", "e93fac7" * 4),
    ],
)
def test_a_dry_run_refuses(cli: Cli, words: tuple[str, ...]) -> None:
    """What it does not know, and a value in the place of a name, which it does not repeat."""
    done = cli.run("alert-dry-run", *words)
    assert (done.code, done.out) == (2, "")
    assert "hunter2" not in done.err
    assert "e93fac7" not in done.err


def test_a_channel_is_tested(told: Cli, receiver: Receiver) -> None:
    """A signed test arrives; each send is on record under the channel's name, and its address is nowhere."""
    assert told.ok("alert", "test", "--channel", "ops").out == "ops (webhook): sent\n"
    (got,) = receiver.got
    stamp, signature = got.headers["X-Fleet-Timestamp"], got.headers["X-Fleet-Signature"]
    assert signature == "v1=" + hmac.new(b"the-key", stamp.encode() + b"." + got.raw, hashlib.sha256).hexdigest()
    found = told.json("alert", "test")
    assert [(each["channel"], each["outcome"]) for each in found["sent"]] == [("log", "sent"), ("ops", "sent")]
    tail = told.ok("ledger", "tail").out
    assert tail.count("channel/ops") == 4
    assert "hunter2" not in tail + told.home.mirror.read_text()
    told.ok("ledger", "verify")


def test_a_test_that_fails_says_why(told: Cli, receiver: Receiver) -> None:
    """The exit code tells; the address is not repeated; an unknown channel and alerts that are off are refused."""
    receiver.answers = [Answer(404)]
    done = told.run("alert", "test", "--channel", "ops")
    assert (done.code, done.out) == (1, "ops (webhook): failed: it answered 404\n")
    gone = told.run("alert", "test", "--channel", "ops", env={"OPS_URL": ""})
    assert (gone.code, gone.out.startswith("ops (webhook): failed: OPS_URL is not set")) == (1, True)
    assert told.run("alert", "test", "--channel", "opps").code == 4
    told.ok("config", "set", "alerts.enabled=false")
    off = told.run("alert", "test")
    assert (off.code, "fleet config set alerts.enabled=true" in off.err) == (1, True)


def test_a_run_tells_of_itself(told: Cli, receiver: Receiver) -> None:
    """What its task raised and its end arrive before `fleet run` ends; inspect shows the alert."""
    assert told.run("run", failing(told), "-q").code == 1
    classes = [got.body["event"]["class"] for got in receiver.wait(3)]
    assert sorted(classes) == ["needs_human", "restart_exhausted", "run_completed"]
    assert "needs_human" in told.ok("inspect", "triage").out


def test_alerts_in_a_file_of_their_own(cli: Cli, receiver: Receiver) -> None:
    """--alerts takes the place of the spec's; the run keeps names of variables and nothing else."""
    mine = {
        "enabled": True,
        "routes": [{"events": ["run_completed"], "adapter": "mine"}],
        "adapters": {"mine": {"kind": "slack", "webhook_env": "MY_HOOK"}},
    }
    (cli.cwd / "alerts.json").write_text(json.dumps(mine))
    cli.env["MY_HOOK"] = f"{receiver.url}/hunter2"
    assert cli.run("run", failing(cli, alerts=SEED), "--alerts", "alerts.json", "-q").code == 1
    (got,) = receiver.wait(1)
    assert got.body["text"].startswith("Fleet run_completed: run=nightly")
    kept = cli.home.mirror.read_text()
    assert "MY_HOOK" in kept
    assert "CODEWHALE" not in kept
    assert "hunter2" not in kept
    (cli.cwd / "alerts.json").write_text(json.dumps({**mine, "adapters": {}}))
    refused = cli.run("run", "tasks.json", "--alerts", "alerts.json")
    assert (refused.code, "routes[0].adapter: no adapter is named `mine`" in refused.err) == (2, True)


def test_the_seeds_own_alerts_in_a_spec(cli: Cli) -> None:
    """As they stand: rendered and recorded, not sent, under the names of their channels."""
    assert cli.run("run", failing(cli, alerts=SEED), "-q").code == 1
    tail = cli.ok("ledger", "tail").out
    assert len(re.findall(r"channel/ops-slack +alert.sent .*dry run", tail)) == 1
    assert len(re.findall(r"channel/pager +alert.sent .*dry run", tail)) == 1


def test_the_seeds_own_alerts_are_imported(cli: Cli) -> None:
    """Channels and routes arrive in fleet.toml, and a dry run knows them."""
    (cli.cwd / "alerts.json").write_text(json.dumps(SEED))
    assert 'channels.ops-slack.kind = "slack"' in cli.ok("config", "import", "alerts.json").out
    found = dry(cli, "--event", "restart_exhausted", "--run-id", "r", "--channel", "pager")
    assert found["body"]["routing_key"] == "<redacted:env:CODEWHALE_FLEET_PAGERDUTY_ROUTING_KEY>"
    assert found["body"]["payload"]["severity"] == "critical"
    shown = cli.ok("config", "show").out
    assert "[channels.ops-slack]" in shown
    assert "[[routes]]" in shown


def test_a_draft_is_printed_and_not_sent(told: Cli, receiver: Receiver) -> None:
    """The template is filled, with at most three lines of the log; sending needs the word of the settings."""
    told.run("run", failing(told), "-q")
    before = len(receiver.wait(3))
    text = told.ok("alert", "draft", "triage").out
    assert text.startswith("Fleet needs attention\nRun: nightly")
    for line in ("Classification: needs-human", "Requested decision: permission decision", "looking around"):
        assert line in text
    excerpt = text.partition("Safe log excerpt:\n")[2].partition("Requested decision")[0]
    assert 1 <= len(excerpt.splitlines()) <= 3
    refused = told.run("alert", "draft", "triage", "--send")
    assert (refused.code, "alerts.send_drafts=true" in refused.err) == (1, True)
    assert len(receiver.got) == before
    told.ok("config", "set", "alerts.send_drafts=true")
    assert told.ok("alert", "draft", "triage", "--send").out == "ops (webhook): sent\n"
    assert receiver.wait(before + 1)[-1].body["event"]["class"] == "needs_human"
    assert told.run("alert", "draft", "nobody").code == 4
    assert told.json("alert", "draft", "triage")["text"] == text.rstrip("\n")
