"""Coders of strangers that fail in their own code: the session alone fails, in words that name them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fleet import wiring
from fleet.coders.scripted import Scripted
from fleet.config.load import load
from fleet.errors import UsageError
from fleet.model.states import Result, Source, TaskState
from fleet.model.terms import Terms
from fleet.projections.doctor import Level, checkup
from fleet.projections.why import why
from tests.support.inhouse import InHouse
from tests.support.strangers import register


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[InHouse]:
    """A home whose supervisors run in this process; nothing of its sessions is left afterwards."""
    made = InHouse(tmp_path, max_concurrent=6)
    yield made
    made.close()


def broken(method: str, does: Any) -> Scripted:
    """A coder that is sound but for one method."""
    made: Scripted = type("Broken", (Scripted,), {method: does})()
    return made


def raises(exc: BaseException) -> Any:
    """A method that raises."""

    def method(*_: Any) -> Any:
        raise exc

    return method


FAULTS = {
    "launching": ("launch", raises(ZeroDivisionError("no luck")), "`launch` raised ZeroDivisionError: no luck"),
    "nothing": ("launch", lambda *_: None, "`launch` gave None, not Launch"),
    "beginning": ("begin", raises(LookupError("none")), "`begin` raised LookupError: none"),
    "unstorable": ("begin", lambda *_: object(), "`state` cannot be stored"),
    "parsing": ("parse", raises(ValueError("odd line")), "`parse` raised ValueError: odd line"),
    "reading": ("parse", raises(FileNotFoundError("a file")), "`parse` raised FileNotFoundError: a file"),
    "leaving": ("parse", raises(SystemExit(3)), "`parse` raised SystemExit: 3"),
    "mumbling": ("parse", lambda _, state, __: (state, ("hm",)), "`parse` gave a str, which is nothing that is said"),
    "measuring": ("context_limit", lambda *_: "much", "`context_limit` gave a str, not a number"),
    "judging": ("outcome", raises(KeyError("x")), "`outcome` raised KeyError: 'x'"),
}


def test_a_coder_that_fails_fails_its_own_session_alone(inside: InHouse) -> None:
    """Whatever method of it raises, or gives what is not of the contract: one session, ended and failed for that with
    the coder, the method and the fault in words; it is not tried again, costs no attempt, and a sound task passes."""
    steps = ({"say": "hello"}, {"sleep": 0.2})
    uids = {name: inside.add(*steps, coder=name) for name in FAULTS}
    sound = inside.add(*steps)
    coders = {name: broken(method, does) for name, (method, does, _) in FAULTS.items()}
    inside.drain(_coders=coders | {"scripted": Scripted()})
    for name, uid in uids.items():
        task, (session,) = inside.task(uid), inside.store.sessions(task=uid)
        (receipt,) = inside.store.receipts(task=uid)
        assert f"the coder `{name}` failed in its own code: {FAULTS[name][2]}" in receipt.reason
        assert (receipt.result, receipt.source) == (Result.FAIL, Source.TRANSPORT)
        assert (task.state, task.charged, session.outcome) == (TaskState.FAILED, 0, "plugin")
    assert inside.task(sound).state is TaskState.COMPLETED
    assert not inside.logged("supervisor_failed")
    inside.drain()
    assert all(len(inside.store.sessions(task=uid)) == 1 for uid in uids.values())


def test_a_coder_may_still_refuse_what_it_cannot_honour(inside: InHouse) -> None:
    """A UsageError of its launch is no fault: it is why the task cannot be launched."""
    uid = inside.add({"say": "hello"}, coder="picky")
    inside.drain(_coders={"picky": broken("launch", raises(UsageError("it has no such model")))})
    assert inside.task(uid).reason == "it cannot be launched: it has no such model"


def test_a_verifier_whose_coder_fails_has_judged_nothing(inside: InHouse) -> None:
    """The work of another is not called failed for it: its verifier is."""
    uid = inside.add({"say": "hello"}, terms=_verified_by("theirs"))
    inside.drain(_coders={"scripted": Scripted(), "theirs": broken("parse", raises(ValueError("odd line")))})
    task = inside.task(uid)
    assert (task.state, task.source) == (TaskState.FAILED, Source.VERIFIER)
    assert "the coder `theirs` failed in its own code: `parse` raised ValueError: odd line" in task.reason


def test_a_person_is_told_what_is_broken(inside: InHouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`fleet why` says what to mend, and `fleet doctor` names the plugin, before it is used and after."""
    text = "from fleet.coders.scripted import Scripted\n\n\nclass Made(Scripted):\n    def parse(self, state, line):\n"
    register(tmp_path, monkeypatch, "coders", "theirs", f"{text}        return state['colour'], ()\n")
    uid = inside.add({"say": "hello"}, coder="theirs")
    settings = load(inside.home)

    def doctor() -> list[str]:
        checks = checkup(
            inside.home,
            settings,
            open_reads=lambda: wiring.open_reads(inside.home, settings),
            supervisor=None,
            env=dict(os.environ),
        )
        return [check.detail for check in checks if check.what == "plugins" and check.level is not Level.OK]

    fault = "the coder `theirs` failed in its own code: `parse` raised TypeError"
    (before,) = doctor()
    assert before.startswith(fault)
    assert before.endswith("(theirs_of_a_stranger.py, line 6)")
    inside.drain()
    found = why(inside.store, settings, inside.task(uid), now=0)
    assert found.summary.startswith(fault)
    assert found.classification == "needs-human"
    assert found.action == f"mend or update the plugin that is named, then restart it: fleet restart {uid}"
    assert [line.removeprefix(f"{uid}: ").startswith(fault) for line in doctor()] == [True, True]


def _verified_by(coder: str) -> Terms:
    return Terms(scorer={"kind": "verifier_prompt", "prompt": "is it so?", "coder": coder})
