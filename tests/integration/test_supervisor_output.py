"""An agent that prints without end: its log, its output and our memory have bounds, and what is left out is said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fleet.hosts.lines import LONGEST_LINE
from fleet.model.states import Result, TaskState
from fleet.model.terms import Terms
from tests.support.inhouse import InHouse
from tests.support.session_host import until
from tests.support.supervised import Campaign

MANY = "seq 120000"  # makes 12 MB of log
ENDLESS = "while :; do seq 3000; sleep 0.001; done"


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[InHouse]:
    """A home whose logs are full after a megabyte; nothing of its sessions is left afterwards."""
    made = InHouse(tmp_path, max_log_mb=1)
    yield made
    made.close()
    until(lambda: not made.left(), "the end of all agents")


def records(home: Any, uid: str) -> list[dict[str, Any]]:
    """The lines of a task's log."""
    return [msgspec.json.decode(line) for line in (home.task_dir(uid) / "log.jsonl").read_bytes().splitlines()]


def notices(found: list[dict[str, Any]]) -> list[str]:
    """The remarks among them."""
    return [each["said"]["text"] for each in found if each["said"]["kind"] == "notice"]


def check_head_and_tail(found: list[dict[str, Any]], raw: bytes) -> int:
    """Every line of the log stands at its place, the first and the last are there, once; how many bytes are not."""
    gaps, at = list[int](), 0
    for each in found:
        if each["said"]["kind"] == "text":
            line = each["said"]["text"].encode() + b"\n"
            assert raw[each["offset"] : each["offset"] + len(line)] == line
            gaps += [each["offset"] - at] if each["offset"] != at else []
            at = each["offset"] + len(line)
    assert (len(gaps), at) == (1, len(raw))
    return gaps[0]


def test_a_full_log_keeps_its_beginning_and_its_end(inside: InHouse) -> None:
    """The agent goes on and passes; its log and its receipt say how much is left out, and its last words are there."""
    scorer: dict[str, object] = {"kind": "regex_match", "source": "final_message", "pattern": "^120000$"}
    uid = inside.add(command=MANY, terms=Terms(scorer=scorer))
    inside.drain()
    assert (inside.task(uid).state, inside.task(uid).result) == (TaskState.COMPLETED, Result.PASS)
    found = records(inside.home, uid)
    raw = (inside.home.sessions / f"{uid}.1" / "stdout").read_bytes()
    left_out = check_head_and_tail(found, raw)
    assert notices(found) == [
        "its log is full (1 MB): of what it says from here on only the end is kept",
        f"{left_out:,} bytes of its output are left out here",
    ]
    assert (inside.home.task_dir(uid) / "log.jsonl").stat().st_size < 3_000_000
    (receipt,) = inside.store.receipts(task=uid)
    assert f"log: {left_out:,} bytes of its output are left out of it" in receipt.evidence
    assert inside.store.progress(f"{uid}.1").usage.events == 120_000


def test_the_end_of_a_full_log_is_written_once(tmp_path: Path) -> None:
    """A supervisor that is killed before it or behind it leaves it to the next, which writes it in its place."""
    campaign = Campaign(tmp_path)
    campaign.home.toml.write_text(campaign.home.toml.read_text() + "max_log_mb = 1\n")
    (uid,) = campaign.add(description=MANY)
    campaign.killed_at("recorded", 5)  # nothing is logged any more
    campaign.killed_at("concluding")
    before = len(records(campaign.home, uid))
    campaign.killed_at("settling")
    campaign.drain()
    found = records(campaign.home, uid)
    assert len(found) == before
    check_head_and_tail(found, (campaign.home.sessions / f"{uid}.1" / "stdout").read_bytes())
    assert len(notices(found)) == 2
    until(lambda: not campaign.left(), "the end of all agents")


@pytest.mark.parametrize("where", ["", " >&2"])
def test_an_agent_that_prints_without_end_is_ended(inside: InHouse, where: str) -> None:
    """It is over budget, whichever way it prints, and is not tried again; what it said last is in its log."""
    uid = inside.add(command=f"{ENDLESS}{where}", terms=Terms(max_output_mb=1))
    inside.drain()
    task = inside.task(uid)
    assert (task.state, task.result, task.charged) == (TaskState.FAILED, Result.FAIL, 1)
    assert task.reason == "it printed more than 1 MB (max_output_mb)"
    (session,) = inside.store.sessions(task=uid)
    assert session.outcome == "budget"
    stdout = inside.home.sessions / session.id / "stdout"
    assert inside.store.progress(session.id).cursor == stdout.stat().st_size  # it can be taken away one day
    if not where:
        assert inside.said(uid)[-1] == {"kind": "text", "text": stdout.read_text().split()[-1]}


@pytest.mark.parametrize("where", ["", " >&2"])
def test_what_prints_as_fast_as_it_can_gets_no_grace(inside: InHouse, where: str) -> None:
    """It is deaf to being asked to end, and would fill the disk meanwhile; the space it took is given back."""
    inside.set(grace_seconds=60)
    uid = inside.add(command=f"trap '' INT TERM; yes{where}", terms=Terms(max_output_mb=1))
    inside.drain()
    assert inside.task(uid).reason == "it printed more than 1 MB (max_output_mb)"
    (session,) = inside.store.sessions(task=uid)
    for name in ("stdout", "stderr"):
        assert (inside.home.sessions / session.id / name).stat().st_blocks * 512 < 5_000_000 + 2 * LONGEST_LINE
    if not where:
        assert inside.said(uid)[-1] == {"kind": "text", "text": "y"}


def test_who_was_faster_makes_no_difference(inside: InHouse) -> None:
    """An agent that ended well before it was seen to have printed too much does not pass either."""
    inside.set(max_output_mb=1)
    uid = inside.add(command="head -c 1100000 /dev/zero | tr '\\0' x")
    inside.drain()
    assert (inside.task(uid).state, inside.task(uid).result) == (TaskState.FAILED, Result.FAIL)
    assert "it printed more than 1 MB (max_output_mb)" in inside.task(uid).reason


def test_a_verifier_that_prints_without_end_has_judged_nothing(inside: InHouse) -> None:
    """It is the verifier that failed, and its bound is named."""
    inside.set(max_output_mb=1)
    uid = inside.add({"say": "done"}, terms=Terms(scorer={"kind": "command", "command": ENDLESS}))
    inside.drain()
    assert inside.task(uid).state is TaskState.FAILED
    assert "it printed more than 1 MB (max_output_mb)" in inside.task(uid).reason


def test_a_line_that_is_too_long_is_known_by_its_beginning(inside: InHouse) -> None:
    """What it lost is said, also where the line never ends; lines behind it are read as ever."""
    most, long = LONGEST_LINE, LONGEST_LINE + 1_234_567
    script = (
        f"printf begin; head -c {long - 5} /dev/zero | tr '\\0' x; printf '\\nbetween\\n'; head -c {most + 9} /dev/zero"
    )
    uid = inside.add(command=script)
    inside.drain()
    assert inside.task(uid).state is TaskState.COMPLETED
    found = records(inside.home, uid)
    assert [each["said"]["text"][:7] for each in found if each["said"]["kind"] == "text"] == [
        "beginxx",
        "between",
        "\0" * 7,
    ]
    assert notices(found) == [
        f"a line of {long:,} bytes was too long: the last 1,234,567 of them are left out",
        f"a line of {most + 9:,} bytes was too long: the last 9 of them are left out",
    ]
    (receipt,) = inside.store.receipts(task=uid)
    assert receipt.evidence == ("log: 1,234,576 bytes of its output are left out of it",)
