"""Events in words: every kind has some."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fleet.cli.event_words import COLOURS, gist, told, used, worded
from fleet.model import event as ev
from fleet.model.receipt import Usage

TASK = {
    "uid": "fleet-abc",
    "task_id": "fleet-abc",
    "title": "Fix it",
    "created_at": 1,
    "created_by": "ana",
    "updated_at": 1,
}
SESSION = {
    "id": "fleet-abc.1",
    "task": "fleet-abc",
    "epoch": 1,
    "worker": "local#1",
    "host": "here",
    "supervisor": "sup-1",
}
RECEIPT = {"id": "fleet-abc.r1", "task": "fleet-abc", "result": "pass", "reason": "all\nis well", "at": 1}
DELIVERY: dict[str, object] = {
    "id": "1.ops",
    "channel": "ops",
    "about": "fleet-abc",
    "alert": "stale",
    "reason": "silent",
    "raised_at": 1,
    "by": "sup-1",
}
RUN = {"id": "night-1", "name": "Night", "created_at": 1, "created_by": "ana", "tasks": 1}
# What each kind says beside its subject, time and author; and a word that must be in its line.
SAID: dict[str, tuple[dict[str, Any], str]] = {
    "task.submitted": ({"task": TASK}, "Fix it"),
    "task.edited": ({"edit": {"priority": 0}}, "priority=0"),
    "task.linked": ({"link": {"other": "fleet-xyz"}}, "fleet-xyz"),
    "task.unlinked": ({"other": "fleet-xyz"}, "fleet-xyz"),
    "task.commented": ({"comment": {"id": "1", "task": "t", "by": "ana", "text": "half way", "at": 1}}, "half way"),
    "task.claimed": ({"session": SESSION | {"coder": "codex", "claimed_at": 1}}, "codex"),
    "task.settled": ({"state": "completed", "receipt": RECEIPT}, "completed: all ..."),
    "task.unsettled": ({"reason": "once more", "awaits": {"kind": "command"}}, "once more"),
    "task.requeued": ({"reason": "attempt 1 of 3", "not_before": 1}, "attempt 1 of 3; not before"),
    "task.blocked": ({"block": {"kind": "question", "text": "Which?", "at": 1, "by": "codex"}}, "question: Which?"),
    "task.answered": ({"text": "This."}, "This."),
    "session.started": ({"session": "fleet-abc.1", "pid": 7}, "process 7"),
    "session.stopping": ({"session": "fleet-abc.1", "reason": "too long"}, "too long"),
    "session.adopted": ({"session": "fleet-abc.1", "epoch": 2, "supervisor": "sup-2"}, "sup-2"),
    "session.ended": ({"session": "fleet-abc.1", "state": "exited", "outcome": "ok"}, "ok"),
    "alert.raised": ({"alert": "needs_human", "reason": "look"}, "needs_human: look"),
    "alert.sending": ({"delivery": DELIVERY | {"repeat": True}}, "trigger stale of fleet-abc, perhaps"),
    "alert.sent": ({"delivery": "1.ops", "outcome": "failed", "attempts": 3, "detail": "it answered 500"}, "3 tries"),
    "intent.recorded": ({"intent": {"id": "i-1", "verb": "stop", "target": "t", "by": "ana", "at": 1}}, "stop"),
    "intent.settled": ({"intent": "i-1", "outcome": "done", "detail": "it ended"}, "done: it ended"),
    "run.created": ({"run": RUN}, "Night"),
    "run.stopping": ({"reason": "enough"}, "enough"),
    "run.ended": ({"state": "completed", "heads": {}}, "completed"),
    "run.resumed": ({}, "restarted"),
    "host.changed": (
        {"host": {"name": "h", "kind": "ssh", "state": "up", "since": 1, "evidence": "it answered"}},
        "answered",
    ),
    "supervisor.joined": ({"supervisor": {"id": "sup-1", "machine": "here", "pid": 7, "joined_at": 1}}, "process 7"),
    "supervisor.left": ({"reason": "ended"}, "ended"),
}


def test_every_kind_is_here() -> None:
    """A kind of event that is new gets its words."""
    assert set(SAID) == {ev.kind_of(kind) for kind in ev.EVENTS}


@pytest.mark.parametrize("kind", SAID)
def test_an_event_in_words(kind: str) -> None:
    """Each kind is one printable line that tells what is its own."""
    fields, word = SAID[kind]
    event = ev.decode(msgspec.json.encode({"kind": kind, "subject": "s", "at": 1, "by": "ana"} | fields))
    assert word in gist(event)
    assert "\n" not in gist(event)
    what, text = told(event)
    assert 0 < len(what) <= len("taken over")  # the column that the words stand in
    assert "\n" not in text


def test_what_it_took() -> None:
    """Time, tokens and money are told as far as they are known."""
    assert used(Usage()) == ""
    assert (
        used(Usage(input_tokens=1200, output_tokens=34, cost_microusd=120_000), 61_000) == "1m01s, 1,234 tokens, $0.12"
    )
    assert used(Usage(cost_microusd=300)) == "$0.0003"


def test_colour_adds_nothing_but_colour() -> None:
    """A word has its column with and without a colour; none is told by the colour alone."""
    assert worded("failed", colour=False) == "failed    "
    assert worded("failed", colour=True) == "\x1b[31mfailed    \x1b[0m"
    assert worded("edited", colour=True) == "edited    "
    assert all(len(word) <= len("taken over") for word in COLOURS)
