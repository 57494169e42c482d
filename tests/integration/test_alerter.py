"""A supervisor tells people: real alerts of real tasks, sent over HTTP on loopback, each with its record."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from fleet.channels.channel import Rendered
from fleet.channels.console import Console
from fleet.config import secrets
from fleet.config.clock import utc_ms
from fleet.model import event as ev
from fleet.model.alert import AlertKind
from fleet.model.delivery import Delivery
from fleet.model.host import Host
from fleet.model.notice import Notice
from fleet.model.run import NewRun
from fleet.model.states import TaskState
from fleet.supervisor.alerter import Alerter
from fleet.testing.builders import a_task
from tests.support.inhouse import InHouse
from tests.support.receiver import Answer, Receiver, receiving

EXIT_1 = {"command": "exit 1"}
OPS = """
[alerts]
enabled = true
attempts = 2
timeout_seconds = 2

[channels.ops]
kind = "webhook"
url_env = "OPS_URL"
secret_env = "OPS_KEY"

[channels.pager]
kind = "pager_duty"
routing_key_env = "PAGER_KEY"
endpoint_env = "OPS_URL"

[channels.log]
kind = "console"

[[routes]]
channel = "ops"
events = ["restart_exhausted", "run_completed", "host_unhealthy", "host_recovered"]
"""
PAGED = """
[[routes]]
channel = "pager"
events = ["needs_human", "host_unhealthy"]
"""
LOGGED = """
[[routes]]
channel = "log"
events = ["needs_human"]
"""


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[InHouse]:
    """A home whose tasks are tried once."""
    made = InHouse(tmp_path, max_attempts=1)
    yield made
    made.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver that is up."""
    with receiving() as made:
        yield made


def configure(inside: InHouse, receiver: Receiver, text: str) -> None:
    """Add alerts to the settings; the secrets go where secrets go."""
    inside.home.toml.write_text(inside.home.toml.read_text() + text)
    for name, value in {"OPS_URL": receiver.url, "OPS_KEY": "hunter2", "PAGER_KEY": "R0hunter2"}.items():
        secrets.put(inside.home, name, value)


def deliveries(inside: InHouse, about: str) -> list[Delivery]:
    """What was told of a subject, oldest first."""
    return inside.store.deliveries(about=about)[::-1]


def test_a_task_that_gave_up_is_told(inside: InHouse, receiver: Receiver) -> None:
    """The alert that its end raised arrives before the supervisor ends, with what a person needs; twice is once."""
    configure(inside, receiver, OPS + LOGGED)
    uid = inside.add(**EXIT_1)
    inside.drain()
    (got,) = receiver.got
    event = got.body["event"]
    assert (event["class"], event["task_id"], event["status"], event["repeat"]) == (
        "restart_exhausted",
        uid,
        "failed",
        False,
    )
    assert event["commands"] == ["fleet status", f"fleet inspect '{event['worker_id']}'", f"fleet why {uid}"]
    told = {each.channel: (each.alert.value, each.outcome) for each in deliveries(inside, uid)}
    assert told == {"ops": ("restart_exhausted", "sent"), "log": ("needs_human", "sent")}
    (line,) = [each["text"] for each in inside.logged("alert") if "text" in each]
    assert line.startswith("Fleet needs_human:")
    inside.drain()
    assert len(receiver.got) == 1


def test_nothing_is_sent_unless_it_is_enabled(inside: InHouse, receiver: Receiver) -> None:
    """Off is the default, and off is silent: nothing is recorded either."""
    configure(inside, receiver, OPS.replace("enabled = true", ""))
    uid = inside.add(**EXIT_1)
    inside.drain()
    assert (receiver.got, deliveries(inside, uid)) == ([], [])


def test_a_dry_run_is_rendered_and_recorded(inside: InHouse, receiver: Receiver) -> None:
    """Nothing leaves; what would have is in the log, without a secret."""
    configure(inside, receiver, OPS.replace("enabled = true", "enabled = true\ndry_run = true") + PAGED)
    uid = inside.add(**EXIT_1)
    inside.drain()
    assert receiver.got == []
    assert {each.outcome for each in deliveries(inside, uid)} == {"dry_run"}
    logged = inside.logged("alert_dry_run")
    assert {each["channel"] for each in logged} == {"ops", "pager"}
    assert "<redacted:env:PAGER_KEY>" in str(logged)
    assert "hunter2" not in str(logged)


@contextlib.asynccontextmanager
async def with_an_alert(inside: InHouse) -> AsyncIterator[Alerter]:
    """The alerter of a supervisor that is gone afterwards, with a host that is down to tell of."""
    house = inside.house()
    await house.store.join(house.name, machine="here", pid=1, seconds=60)
    alerter = Alerter(house)
    await alerter.begin()
    inside.store.probed(Host(name="b", kind="ssh", state="down", since=0), by="ana").result()
    yield alerter
    await house.store.leave(house.name, reason="gone")
    house.store.close()


def test_two_looks_at_once_tell_it_once(inside: InHouse, receiver: Receiver) -> None:
    """When a supervisor ends it looks once more, perhaps while it looks: what both find is told by one of them."""
    configure(inside, receiver, OPS.replace("enabled = true", "enabled = true\ndry_run = true"))

    async def scene() -> None:
        async with with_an_alert(inside) as alerter:
            await asyncio.gather(*(alerter.run_once() for _ in range(8)))

    asyncio.run(scene())
    assert [each.outcome for each in deliveries(inside, "host/b")] == ["dry_run"]
    assert len(inside.logged("alert_dry_run")) == 1


def test_a_strangers_channel_that_cannot_render_ends_nobody(inside: InHouse, receiver: Receiver) -> None:
    """Whether in a dry run or not: it is told as a failure of that channel, without its words, and the work goes on."""

    class Broken(Console):
        def render(self, adapter: Any, notice: Notice) -> Rendered:
            raise RuntimeError("hunter2")

    configure(inside, receiver, OPS.replace("enabled = true", "enabled = true\ndry_run = true"))
    dry = inside.add(**EXIT_1)
    inside.drain(load_channel=lambda _: Broken())
    assert [each.outcome for each in deliveries(inside, dry)] == ["dry_run"]
    (logged,) = inside.logged("alert_dry_run")
    assert logged["error"] == "it cannot be rendered: RuntimeError"
    inside.home.toml.write_text(inside.home.toml.read_text().replace("dry_run = true", ""))
    meant = inside.add(**EXIT_1)
    inside.drain(load_channel=lambda _: Broken())
    assert [each.detail for each in deliveries(inside, meant)] == ["it cannot be rendered: RuntimeError"]


def test_no_secret_is_written_down(inside: InHouse, receiver: Receiver) -> None:
    """Neither address nor key is in the ledger, the mirror or the logs; only the channel's name is."""
    configure(inside, receiver, OPS + PAGED)
    receiver.answers = [Answer(500)]
    inside.add(**EXIT_1)
    inside.drain()
    kept = b"".join(
        path.read_bytes()
        for path in inside.home.path.rglob("*")
        if path.is_file() and path.name not in ("secrets.env", "fleet.toml")
    )
    assert b"channel/ops" in kept
    for secret in (b"hunter2", receiver.url.encode(), receiver.url.rpartition(":")[2].encode() + b"/"):
        assert secret not in kept


def test_a_spec_brings_its_own_channels(inside: InHouse, receiver: Receiver) -> None:
    """They hear of their run alone, beside what the settings say."""
    configure(inside, receiver, OPS.replace("enabled = true", ""))
    alerts = {
        "enabled": True,
        "routes": [{"events": ["run_completed"], "adapter": "mine"}],
        "adapters": {"mine": {"kind": "webhook", "url_env": "OPS_URL"}},
    }
    new = a_task("work", description="true", coder="command")
    (mine,) = inside.store.submit([new], run=NewRun(name="mine", alerts=alerts), by="ana").result()
    inside.store.submit([new], run=NewRun(name="other"), by="ana").result()
    inside.drain()
    (got,) = receiver.got
    assert (got.body["event"]["class"], got.body["event"]["run_id"]) == ("run_completed", mine.run)
    (told,) = deliveries(inside, f"run/{mine.run}")
    assert (told.scope, told.outcome) == (mine.run, "sent")


def test_a_pager_is_triggered_and_resolved(inside: InHouse, receiver: Receiver) -> None:
    """A person is called when a task needs one; when somebody has answered, the incident is over under its key."""
    configure(inside, receiver, OPS + PAGED)
    uid = inside.add(command="true", not_before=None)
    inside.store.block(uid, "permission", "may it push?", by="ana").result()

    async def work() -> None:
        async with inside.supervising():
            await inside.until(lambda: inside.store.cursor("alerts"))
            asks, other = (inside.add(command="true", host="elsewhere") for _ in range(2))  # where nobody claims them
            inside.store.block(asks, "question", "not raised", by="ana").result()
            inside.store.block(other, "permission", "may it push?", by="ana").result()
            (triggered,) = await asyncio.to_thread(receiver.wait, 1)
            assert (triggered.body["event_action"], triggered.body["routing_key"]) == ("trigger", "R0hunter2")
            await inside.until(lambda: inside.store.incidents() and inside.store.incidents()[0].outcome == "sent")
            inside.store.answer(other, "yes", by="ana").result()
            resolved = (await asyncio.to_thread(receiver.wait, 2))[1]
            assert resolved.body["event_action"] == "resolve"
            assert resolved.body["dedup_key"] == triggered.body["dedup_key"] == f"fleet/needs_human/{other}"
            await inside.until(lambda: not inside.store.incidents())

    asyncio.run(work())
    assert deliveries(inside, uid) == []  # it was raised before there ever was an alerter


def test_a_host_goes_down_and_comes_back(inside: InHouse, receiver: Receiver) -> None:
    """A webhook hears of both; the pager's incident is resolved rather than a second one begun."""
    configure(inside, receiver, OPS + PAGED.replace('"host_unhealthy"', '"host_unhealthy", "host_recovered"'))

    def probed(state: str) -> None:
        inside.store.probed(Host(name="b", kind="ssh", state=state, since=0, evidence="a probe"), by="ana").result()

    async def work() -> None:
        async with inside.supervising():
            await inside.until(lambda: inside.store.cursor("alerts"))
            probed("up")
            probed("down")
            await asyncio.to_thread(receiver.wait, 2)
            probed("up")
            await asyncio.to_thread(receiver.wait, 4)
            await inside.until(lambda: not inside.store.undelivered())

    asyncio.run(work())
    paged = [got.body["event_action"] for got in receiver.got if "event_action" in got.body]
    hooked = [got.body["event"]["class"] for got in receiver.got if "event" in got.body]
    assert (paged, hooked) == (["trigger", "resolve"], ["host_unhealthy", "host_recovered"])


@pytest.mark.parametrize(("window", "again"), [("", "duplicate"), ("repeat_seconds = 0\n", "sent")])
def test_the_same_is_told_once(inside: InHouse, receiver: Receiver, window: str, again: str) -> None:
    """What is raised again in the same words within the window is on record, and wakes nobody again."""
    configure(inside, receiver, OPS.replace("attempts = 2\n", f"attempts = 2\n{window}") + LOGGED)

    async def work() -> str:
        async with inside.supervising():
            await inside.until(lambda: inside.store.cursor("alerts"))
            uid = inside.add(command="sleep 60", host="elsewhere")
            for _ in range(2):
                inside.store.block(uid, "permission", "may it push?", by="ana").result()
                inside.store.answer(uid, "yes", by="ana").result()
            inside.store.block(uid, "permission", "may it pull?", by="ana").result()
            await inside.until(lambda: len(deliveries(inside, uid)) == 3 and not inside.store.undelivered())
            return uid

    uid = asyncio.run(work())
    assert [each.outcome for each in deliveries(inside, uid)] == ["sent", again, "sent"]


def test_a_dead_receiver_delays_nobody(inside: InHouse, receiver: Receiver) -> None:
    """While one channel hangs, tasks are run and another channel is told at once."""
    configure(inside, receiver, OPS + LOGGED)
    receiver.answers = [Answer(hangs=True)] * 2

    async def work() -> tuple[float, float]:
        async with inside.supervising():
            await inside.until(lambda: inside.store.cursor("alerts"))
            first = inside.add(**EXIT_1)
            await asyncio.to_thread(receiver.wait, 1)  # it hangs from now on
            begun = time.monotonic()
            more = [inside.add(command="true") for _ in range(5)]
            for uid in more:
                await inside.until_state(uid, TaskState.COMPLETED)
            ran = time.monotonic() - begun
            assert {each.channel for each in deliveries(inside, first) if each.outcome == "sent"} == {"log"}
            await inside.until(lambda: not inside.store.undelivered())
            return ran, time.monotonic() - begun

    ran, hung = asyncio.run(work())
    assert ran < hung
    (failed,) = [
        each for task in inside.store.tasks() for each in deliveries(inside, task.uid) if each.channel == "ops"
    ]
    assert (failed.outcome, failed.attempts, failed.detail) == ("failed", 2, "it did not answer within 2 s")


def test_what_a_dead_supervisor_announced_is_sent_as_a_repeat(inside: InHouse, receiver: Receiver) -> None:
    """The intent is on record before anything is sent; the next supervisor sends it and says that it may be old."""
    configure(inside, receiver, OPS)

    async def announced() -> None:
        async with with_an_alert(inside) as alerter:
            assert (await alerter.run_once()).announced == 1  # nobody sends: its tasks were never begun

    asyncio.run(announced())
    assert receiver.got == []
    inside.drain()
    (got,) = receiver.got
    assert got.body["event"]["repeat"] is True
    (told,) = deliveries(inside, "host/b")
    assert (told.outcome, told.repeat) == ("sent", True)
    kinds = [ev.kind_of(entry.event) for entry in inside.store.chain("channel/ops")]
    assert kinds == ["alert.sending", "alert.sending", "alert.sent"]


def test_an_alert_that_is_too_old_is_dropped(inside: InHouse, receiver: Receiver) -> None:
    """What was left for a day is on record, and wakes nobody."""
    configure(inside, receiver, OPS.replace("attempts = 2", "max_age_seconds = 1"))
    old = Delivery(
        id="1.ops",
        channel="ops",
        about="host/b",
        alert=AlertKind.HOST_UNHEALTHY,
        reason="down",
        raised_at=1,
        by="sup-old",
    )
    inside.store.join("sup-old", machine="here", pid=1, seconds=60).result()
    inside.store.announce([old]).result()
    inside.store.leave("sup-old", reason="ended").result()
    inside.drain()
    (told,) = deliveries(inside, "host/b")
    assert (told.outcome, told.detail, receiver.got) == ("dropped", "it is older than 1 s", [])


def test_a_channel_that_is_gone_fails(inside: InHouse, receiver: Receiver) -> None:
    """An alert for a channel that nobody declares any more ends with that word; the loop goes on."""
    configure(inside, receiver, OPS)
    made = Delivery(
        id="1.gone",
        channel="gone",
        about="host/b",
        alert=AlertKind.HOST_UNHEALTHY,
        reason="down",
        raised_at=utc_ms(),
        by="sup-old",
    )
    inside.store.join("sup-old", machine="here", pid=1, seconds=60).result()
    inside.store.announce([made]).result()
    inside.store.leave("sup-old", reason="ended").result()
    inside.drain()
    (told,) = deliveries(inside, "host/b")
    assert (told.outcome, told.detail) == ("failed", "the channel `gone` is not declared any more")


def test_settings_are_taken_while_it_runs(inside: InHouse, receiver: Receiver) -> None:
    """A channel that is added to fleet.toml hears of the next alert, without a restart."""

    async def work() -> None:
        async with inside.supervising():
            await inside.until_state(inside.add(command="true"), TaskState.COMPLETED)
            configure(inside, receiver, OPS)
            await inside.until(lambda: inside.logged("settings_reloaded"))
            inside.add(**EXIT_1)
            await asyncio.to_thread(receiver.wait, 1)
            await inside.until(lambda: not inside.store.undelivered())

    asyncio.run(work())
