"""The words of beads: flags, statuses, labels, priorities, times, and what bd's own answers mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fleet.cli.bd import split
from fleet.cli.beads import vocabulary
from fleet.cli.beads.call import Refused
from fleet.cli.beads.fields import change
from fleet.cli.beads.flags import Flag, Given, Takes, parse
from fleet.cli.beads.forward import strip_own
from fleet.cli.beads.verbs import VERBS
from fleet.errors import UsageError
from fleet.model.states import TaskState
from fleet.model.task import TAKEN, Bead, Block, Task
from fleet.projections.beads import STATES_OF, labels, labels_from, notes, rfc3339, status
from fleet.sources.bd_answers import Trouble, classify, read, unwrap, version_in

FLAGS = (
    Flag("title"),
    Flag("description", "d"),
    Flag("priority", "p"),
    Flag("labels", "l", Takes.LIST),
    Flag("limit", "n", Takes.NUMBER),
    Flag("force", "f", Takes.NOTHING),
)
NOW = 1_800_000_000_000
TASK = Task(uid="fleet-abc", task_id="fleet-abc", title="t", created_at=NOW, created_by="me", updated_at=NOW)


def parsed(*words: str) -> Given:
    """The words of a call, sorted."""
    return parse(words, FLAGS, "create")


@pytest.mark.parametrize("words", [("-p", "1"), ("-p1",), ("-p=1",), ("--priority", "1"), ("--priority=1",)])
def test_a_flag_may_be_written_in_five_ways(words: tuple[str, ...]) -> None:
    """bd's ways to write a flag with its value all mean the same, before or after the title."""
    for found in (parsed("the title", *words), parsed(*words, "the title")):
        assert (found.words, found.text("priority")) == (["the title"], "1")


def test_a_value_may_look_like_a_flag() -> None:
    """The word after a flag is its value, whatever it looks like; after `--` nothing is a flag."""
    found = parsed("-d", "--force", "--title=", "--", "-p", "9")
    assert (found.text("description"), found.text("title"), found.words) == ("--force", "", ["-p", "9"])
    assert not found.on("force")
    assert not found.has("priority")


def test_lists_split_at_commas_and_repeat() -> None:
    """A list flag takes several with commas, may be repeated, and drops what is empty."""
    assert parsed("-l", "a, b", "--labels=c,,", "-l", "").list("labels") == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--zork",), "unknown flag: --zork of `bd create`"),
        (("-z",), "unknown flag: -z of `bd create`"),
        (("--title",), "flag needs an argument: --title"),
        (("--limit", "many"), 'invalid argument "many" for --limit'),
        (("--force=perhaps",), 'invalid argument "perhaps" for --force'),
    ],
)
def test_flags_that_cannot_be_taken(words: tuple[str, ...], said: str) -> None:
    """A wrong flag is a usage error that names it."""
    with pytest.raises(UsageError, match=said):
        parsed(*words)


def test_no_verb_has_a_flag_twice() -> None:
    """Within a verb every long and short name stands for one flag."""
    for verb in VERBS:
        for names in ([flag.name for flag in verb.flags], [flag.short for flag in verb.flags if flag.short]):
            assert len(names) == len(set(names)), verb.name


def test_flags_may_stand_before_the_verb() -> None:
    """bd's own flags before the verb, with their values, are told from the verb."""
    assert split(["--actor", "ann", "--json", "list", "-n", "1"]) == (["--actor", "ann", "--json"], "list", ["-n", "1"])
    assert split(["--help"]) == (["--help"], None, [])


@pytest.mark.parametrize(
    ("task", "word"),
    [
        (TASK, "open"),
        (replace(TASK, not_before=NOW - 1), "open"),
        (replace(TASK, not_before=NOW + 1), "deferred"),
        (replace(TASK, state=TaskState.RUNNING), "in_progress"),
        (replace(TASK, state=TaskState.VERIFYING), "in_progress"),
        (replace(TASK, state=TaskState.PARTIAL), "in_progress"),
        (replace(TASK, state=TaskState.FAILED), "blocked"),
        (replace(TASK, state=TaskState.COMPLETED), "closed"),
        (replace(TASK, state=TaskState.CANCELLED), "closed"),
        (replace(TASK, state=TaskState.BLOCKED, block=Block(kind="question", text="?", at=NOW, by="a")), "blocked"),
        (replace(TASK, state=TaskState.BLOCKED, block=Block(kind=TAKEN, text="", at=NOW, by="a")), "in_progress"),
        (replace(TASK, state=TaskState.BLOCKED, block=Block(kind="deferred", text="", at=NOW, by="a")), "deferred"),
    ],
)
def test_a_status_for_every_state(task: Task, word: str) -> None:
    """Every state of Fleet's has its word in beads, and a filter by that word looks where the task is."""
    assert status(task, NOW) == word
    assert task.state in STATES_OF[word]


def test_labels_are_words_and_pairs() -> None:
    """A bare word is a label without a value; the first `=` divides a name from its value."""
    assert labels_from(["backend", " area = web ", "url=a=b", "", "=x"]) == {"backend": "", "area": "web", "url": "a=b"}
    assert labels({"backend": "", "area": "web"}) == ["area=web", "backend"]


@given(st.dictionaries(st.text("abz-_.:", min_size=1), st.text("abz=/.")))
def test_labels_go_there_and_back(given_labels: dict[str, str]) -> None:
    """What is written as bd's labels is read back as the same labels."""
    assert labels_from(labels(given_labels)) == given_labels


def test_label_changes() -> None:
    """Labels are added, removed by name or by the whole word, and replaced."""
    task = replace(TASK, labels={"a": "", "area": "web", "team": "x"})
    edit = change(parse(["--add-label", "b,area=api", "--remove-label", "a,team=x"], _update(), "update"))
    assert edit is not None
    assert edit(task).labels == {"area": "api", "b": ""}
    only = change(parse(["--set-labels", "z"], _update(), "update"))
    assert only is not None
    assert only(task).labels == {"z": ""}


def test_notes_are_appended_below() -> None:
    """Appended notes keep those that are there; the other fields stay."""
    edit = change(parse(["--append-notes", "n2"], _update(), "update"))
    assert edit is not None
    task = replace(TASK, bead=Bead(notes="n1", design="d"))
    assert edit(task).bead == Bead(notes="n1\nn2", design="d")


def _update() -> tuple[Flag, ...]:
    return next(verb.flags for verb in VERBS if verb.name == "update")


def test_a_question_stands_once_in_the_notes() -> None:
    """The question of a blocked task is among its notes, and not twice."""
    block = Block(kind="question", text="which port?", at=NOW, by="a")
    asked = replace(TASK, state=TaskState.BLOCKED, block=block)
    assert notes(asked) == "QUESTION: which port?"
    assert notes(replace(asked, bead=Bead(notes="n1"))) == "n1\nQUESTION: which port?"
    assert notes(replace(asked, bead=Bead(notes="QUESTION: which port?"))) == "QUESTION: which port?"


@pytest.mark.parametrize(("word", "n"), [("0", 0), ("4", 4), ("P1", 1), ("p3", 3)])
def test_priorities(word: str, n: int) -> None:
    """A priority is 0-4 or P0-P4."""
    assert vocabulary.priority(word) == n


@pytest.mark.parametrize("word", ["5", "-1", "high", "", "P", "1.0"])
def test_no_priorities(word: str) -> None:
    """Words and other numbers are refused, as in bd."""
    with pytest.raises(Refused, match="invalid priority"):
        vocabulary.priority(word)


@pytest.mark.parametrize(
    ("word", "kind"), [("blocks", "blocks"), ("blocked-by", "blocks"), ("depends-on", "blocks"), ("related", "related")]
)
def test_kinds_of_links(word: str, kind: str) -> None:
    """Three words make one task wait for another; the others are kept as they are."""
    assert vocabulary.link_kind(word) == kind


@pytest.mark.parametrize(
    ("word", "at"),
    [
        ("+30m", NOW + 30 * 60_000),
        ("+2w", NOW + 14 * 86_400_000),
        ("tomorrow", NOW + 86_400_000),
        ("2027-01-15T08:00:00Z", 1_800_000_000_000),
    ],
)
def test_times(word: str, at: int) -> None:
    """Relative and absolute times are understood."""
    assert vocabulary.later(word, NOW, "--defer") == at


def test_no_times() -> None:
    """What is no time is refused, with examples."""
    with pytest.raises(Refused, match='invalid --defer format "zork"'):
        vocabulary.later("zork", NOW, "--defer")


def test_metadata() -> None:
    """Values that are numbers or truths are kept as such; all else is text."""
    words = ["a=1", "b=x", "c=true", "d=", 'e={"x":1}', "f=1=2"]
    made = dict(map(vocabulary.metadata_pair, words))
    assert made == {"a": 1, "b": "x", "c": True, "d": "", "e": '{"x":1}', "f": "1=2"}


def test_moments_are_whole_seconds() -> None:
    """Times are RFC 3339 in UTC, without fractions."""
    assert rfc3339(NOW + 999) == "2027-01-15T08:00:00Z"


def test_fleets_own_flags_are_taken_out(tmp_path: object) -> None:
    """Before bd is called, --coder, --model and --cwd are taken out in both ways to write them; the rest stays."""
    words, wish = strip_own(["--coder", "codex", "T", "--model=o3", "-d", "x", f"--cwd={tmp_path}", "--", "--coder"])
    assert words == ["T", "-d", "x", "--", "--coder"]
    assert (wish.coder, wish.model, wish.cwd) == ("codex", "o3", str(tmp_path))


def test_fleets_own_flags_are_checked() -> None:
    """An unknown coder, a missing value and a directory that is not there are refused."""
    for words in (["--coder", "zork"], ["--model"], ["--cwd", "/nowhere/at/all"]):
        with pytest.raises(UsageError):
            strip_own(["T", *words])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"schema_version":1,"data":[1]}', [1]),
        ('{"schema_version":1,"data":{"id":"x"}}', {"id": "x"}),
        ('{"id":"x","schema_version":1}', {"id": "x"}),
        ("[]", []),
        ("prose", None),
        ("", None),
    ],
)
def test_answers_with_and_without_an_envelope(text: str, value: object) -> None:
    """The payload is found in the envelope, beside a version number, or bare."""
    assert unwrap(text) == value


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("Error updating x: issue already claimed by w1", Trouble.CLAIMED),
        ("issue not claimable: status closed", Trouble.NOT_CLAIMABLE),
        ('no issue found matching "x"', Trouble.NOT_FOUND),
        ("cannot close blocked issue: x is blocked by [y]", Trouble.BLOCKED),
        ("Error 1213 (40001): serialization failure", Trouble.BUSY),
        ("Error: no beads database found", Trouble.NO_QUEUE),
        ("something else", Trouble.OTHER),
    ],
)
def test_refusals_by_their_words(text: str, trouble: Trouble) -> None:
    """What bd refuses is told by its words."""
    assert classify(text) is trouble


def test_an_error_with_exit_code_zero_is_an_error() -> None:
    """The exit code alone is not trusted."""
    assert read(0, '{"schema_version":1,"data":{"error":"no"}}', "").trouble is Trouble.OTHER
    assert read(0, '{"schema_version":1,"data":[]}', "a warning").trouble is None
    assert read(1, "", "Error: no issue found matching x").text == "Error: no issue found matching x"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('{"build":"dev","schema_version":1,"version":"1.3.0"}', (1, 3, 0)),
        ("bd version 0.47.0 (dev)", (0, 47, 0)),
        ("bd version 1.1.0-rc.1", (1, 1, 0)),
        ("usage: bd DIR", None),
    ],
)
def test_versions(text: str, version: tuple[int, int, int] | None) -> None:
    """The version is found in JSON and in words."""
    assert version_in(text) == version
