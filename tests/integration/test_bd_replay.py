"""The same calls on the real bd and on Fleet's own queue are answered alike."""

from __future__ import annotations

import pytest

from tests.support.bd import OwnQueue, RealBd
from tests.support.bd_replay import USAGE, Step, play

STEPS = [
    # create
    Step("create 'Blocker P' -p 0", "P"),
    Step(
        "create 'Dependent C' -p P1 -d 'do it' -l b,a --acceptance 'tests pass' --design dd --notes nn"
        """ --external-ref gh-9 --metadata '{"k":1,"t":"x"}' -e 30""",
        "C",
    ),
    Step("create 'Epic E' -t epic -l team", "E"),
    Step("new --title 'Child K' --parent {E} -l z", "K"),
    Step("create 'Found D' --deps discovered-from:{P},blocks:{K}", "D"),
    Step("create 'Waits W' --deps {P} -t feat -p 3 -a bob", "W"),
    Step("create 'not yet' --dry-run"),
    Step("create ''"),
    Step("create 'bad priority' -p high"),
    Step("create 'bad type' -t zork"),
    Step("create 'bad dep' --deps fleet-zzzz"),
    Step("create 'bad kind' --deps zork:{P}"),
    Step("create 'bad parent' --parent fleet-zzzz"),
    Step("create 'bad metadata' --metadata notjson"),
    Step("create 'bad flag' --zork", kind=USAGE),
    # look
    Step("show {C}"),
    Step("show {K} {E}"),
    Step("show {P} fleet-zzzz"),
    Step("show fleet-zzzz"),
    Step("show"),
    Step("list"),
    Step("list --label a --type task"),
    Step("list --priority P3 --assignee bob"),
    Step("list --status zork"),
    Step("ready"),
    Step("ready --exclude-type epic --unassigned --label a"),
    Step("ready --limit 1"),
    Step("blocked"),
    Step("search child"),
    Step("children {E}"),
    Step("count --status open"),
    Step("count --by-type"),
    Step("stats"),
    # relations
    Step("dep add {C} {P}"),
    Step("dep add {C} {P}"),
    Step("dep add {P} {C}"),
    Step("dep add {C} {C}"),
    Step("dep add {C} {P} -t related"),
    Step("dep add {E} {P} -t related"),
    Step("dep add {C} fleet-zzzz"),
    Step("dep add {C}", kind=USAGE),
    Step("dep list {C}"),
    Step("dep list {P} --direction up"),
    Step("dep tree {C}"),
    Step("dep remove {E} {P}"),
    Step("dep remove {E} {P}"),
    # change
    Step("update {C} --append-notes n2 --add-label m,n --remove-label b --set-metadata n=1 --unset-metadata t"),
    Step("update {C} --title 'Dependent 2' -p 0 -t bug --design d2 --acceptance a2 --external-ref gh-1 -a tester"),
    Step("update {C} -p 9"),
    Step("update {C} --status zork"),
    Step("update fleet-zzzz -p 1"),
    Step("update {C} --zork 1", kind=USAGE),
    Step("label add {C} foo,bar"),
    Step("comment {C} hello there"),
    Step("comments {C}"),
    Step("comment {C}"),
    Step("show {C} --include-comments"),
    # the question protocol
    Step("update {D} --status blocked --notes 'QUESTION: which port?'"),
    Step("list --status=blocked"),
    Step("update {D} --claim"),
    Step("update {D} --status open --assignee ''"),
    # claims
    Step("update {D} --claim"),
    Step("update {D} --claim"),
    Step("update {D} --claim --actor other"),
    Step("close {D} --actor other"),
    Step("unclaim {D}"),
    Step("ready --claim --assignee x"),
    Step("ready --claim --label team --actor other"),
    # close and reopen
    Step("close {C}"),
    Step("close {P} --reason 'done it'"),
    Step("close {P} --reason again"),
    Step("update {P} --claim"),
    Step("reopen {P} --reason again"),
    Step("reopen {P}"),
    Step("close fleet-zzzz"),
    Step("close"),
    Step("close {E} --actor other"),
    Step("defer {W}"),
    Step("list --all"),
    Step("nosuchverb", kind=USAGE),
]


# What Fleet does otherwise on purpose: the call, bd's exit code and Fleet's, and why.
DIFFERENT = [
    ("dep add {x} elsewhere-1", 0, 1, "bd takes an id of another workspace for done; a need of Fleet's must be met"),
    ("close {y} {z}", 0, 1, "one of two was refused (it is meant for somebody else): that is no success"),
    ("create t --id fleet-mine", 0, 2, "Fleet chooses the ids"),
    ("update {x} --status in_progress --if-status open", 0, 2, "there are no guards: a claim is one transaction"),
]


@pytest.fixture(scope="module")
def typists(tmp_path_factory: pytest.TempPathFactory) -> tuple[RealBd, OwnQueue]:
    """The real bd and Fleet's own queue, both empty."""
    path = tmp_path_factory.mktemp("bd")
    return RealBd(path / "real"), OwnQueue(path / "own")


@pytest.mark.real_bd
@pytest.mark.timeout(300)
def test_the_same_calls_get_the_same_answers(typists: tuple[RealBd, OwnQueue]) -> None:
    """Exit code, JSON and refusal of every call are those of the real bd, save for what the tables tolerate."""
    real, own = typists
    real_ids: dict[str, str] = {}
    own_ids: dict[str, str] = {}
    different = []
    for step in STEPS:
        expected, got = play(step, real, real_ids), play(step, own, own_ids)
        alike = (expected.code, got.code) == (1, 2) if step.kind == USAGE else expected == got
        if not alike:
            different.append(f"{step.words}\n  {expected}\n  {got}")
    assert not different, "\n\n".join(different)


@pytest.mark.real_bd
def test_what_differs_is_known(typists: tuple[RealBd, OwnQueue]) -> None:
    """The exit codes that differ are those of the table, and no others of these calls."""
    codes = []
    for typist in typists:
        ids: dict[str, str] = {}
        for name in ("x", "y", "z"):
            play(Step(f"create {name}" + (" -a somebody" if name == "z" else ""), name), typist, ids)
        codes.append([play(Step(words), typist, ids).code for words, *_ in DIFFERENT])
    assert codes == [[row[1] for row in DIFFERENT], [row[2] for row in DIFFERENT]]
