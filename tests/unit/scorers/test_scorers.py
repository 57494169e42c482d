"""Each scorer: evidence in, score out; bad input and what explodes included."""

from __future__ import annotations

import hashlib
import json
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.model import scorer as sc
from fleet.model.receipt import Score
from fleet.model.states import Source
from fleet.scorers import verifier_prompt
from fleet.scorers.command import Command
from fleet.scorers.exit_code import ExitCode
from fleet.scorers.file_exists import FileExists
from fleet.scorers.json_path import JsonPath, holds
from fleet.scorers.judging import scored, wanted
from fleet.scorers.regex_match import RegexMatch
from fleet.scorers.scorer import MOST_BYTES, Evidence, FileSeen, Found, TextSeen, Wants, failed
from fleet.scorers.verifier_prompt import VerifierPrompt

TASK, VERIFIER, TRANSPORT = Source.TASK, Source.VERIFIER, Source.TRANSPORT


class Kept:
    """Contents, as they are kept under their sha256."""

    def __init__(self, **texts: str | bytes) -> None:
        self.contents: dict[str, bytes] = {}
        self.texts = {name: TextSeen(sha256=self.put(text), size=len(text)) for name, text in texts.items()}

    def put(self, text: str | bytes) -> str:
        """Keep one more."""
        data = text.encode() if isinstance(text, str) else text
        name = hashlib.sha256(data).hexdigest()
        self.contents[name] = data
        return name

    def file(self, data: str | bytes, path: str = "a") -> Evidence:
        """A file that a session wrote."""
        name = self.put(data)
        size = len(self.contents[name])
        return Evidence(exit_code=0, files={path: FileSeen(found="file", size=size, fresh=True, sha256=name)})


def score_of(scorer: Any, declared: sc.AnyScorer, evidence: Evidence, kept: Kept | None = None) -> Score:
    """What a scorer says."""
    found = scorer.score(declared, evidence, (kept or Kept()).contents.__getitem__)
    assert isinstance(found, Score)
    assert found.passed is (found.source is None)
    return found


@pytest.mark.parametrize(
    ("code", "expected", "source"), [(0, 0, None), (3, 3, None), (1, 0, TASK), (0, 3, TASK), (None, 0, TRANSPORT)]
)
def test_exit_code(code: int | None, expected: int, source: Source | None) -> None:
    """The expected code passes, another is the task's failure, and none at all the transport's."""
    assert score_of(ExitCode(), sc.ExitCode(expected=expected), Evidence(exit_code=code)).source is source


@pytest.mark.parametrize(
    ("seen", "declared", "source"),
    [
        (FileSeen(found="file", size=0), {}, None),
        (FileSeen(found="file", size=0), {"non_empty": True}, TASK),
        (FileSeen(found="file", size=9), {"non_empty": True}, None),
        (FileSeen(found="file", size=9), {"newer": True}, TASK),
        (FileSeen(found="file", size=9, fresh=True), {"newer": True}, None),
        (FileSeen(found="absent"), {}, TASK),
        (FileSeen(found="directory"), {}, TASK),
        (FileSeen(found="outside"), {}, TASK),
    ],
)
def test_file_exists(seen: FileSeen, declared: dict[str, bool], source: Source | None) -> None:
    """A file passes: with something in it, or written by this session, where that is asked for."""
    found = score_of(FileExists(), sc.FileExists(path="a", **declared), Evidence(files={"a": seen}))
    assert found.source is source


@pytest.mark.parametrize("found", ["absent", "directory", "outside", "other"])
@pytest.mark.parametrize("scorer", [RegexMatch(), JsonPath()])
def test_what_is_no_file_cannot_be_looked_into(scorer: Any, found: Found) -> None:
    """A file that is missing, is none, or leads out of the workspace is the task's failure."""
    evidence = Evidence(files={"a": FileSeen(found=found)})
    declared: sc.AnyScorer = sc.RegexMatch(pattern="x", path="a")
    if isinstance(scorer, JsonPath):
        declared = sc.JsonPath(path="a", expression="$")
    assert score_of(scorer, declared, evidence).source is TASK


@pytest.mark.parametrize("seen", [FileSeen(found="file", size=MOST_BYTES + 1, sha256="0"), FileSeen(found="file")])
def test_what_was_not_kept_or_is_too_large_is_not_judged(seen: FileSeen) -> None:
    """A scorer that cannot look says so: it is not the task that failed."""
    assert score_of(RegexMatch(), sc.RegexMatch(pattern="x", path="a"), Evidence(files={"a": seen})).source is VERIFIER


@pytest.mark.parametrize(
    ("pattern", "data", "absent", "source"),
    [
        (r"^ok\b", "first\nok then", False, None),
        (r"^ok\b", "not ok", False, TASK),
        (r"Traceback", "all fine", True, None),
        (r"Traceback", "Traceback (most recent)", True, TASK),
        (r"d\wne", b"\x00\xff\xfe done \x80", False, None),
        (r"straße|日本", "日本", False, None),
        (r"a(", "a", False, VERIFIER),
        (r"a{99999999999}", "a", False, VERIFIER),
    ],
)
def test_regex_match(pattern: str, data: str | bytes, absent: bool, source: Source | None) -> None:
    """A pattern is found or not, in any bytes; one that is none, or that is too large, is not the task's failure."""
    kept = Kept()
    evidence = kept.file(data)
    found = score_of(RegexMatch(), sc.RegexMatch(pattern=pattern, path="a", absent=absent), evidence, kept)
    assert found.source is source
    assert all(line.isprintable() for line in found.evidence)


@pytest.mark.parametrize("source", ["stdout", "final_message"])
def test_regex_match_looks_at_what_was_said(source: Any) -> None:
    """Stdout or the final message may be searched in the place of a file; stdout when nothing is named."""
    kept = Kept(stdout="said in stdout", final_message="said in final_message")
    evidence = Evidence(texts=kept.texts)
    declared = sc.RegexMatch(pattern=f"said in {source}", source=source)
    assert score_of(RegexMatch(), declared, evidence, kept).passed
    assert score_of(RegexMatch(), sc.RegexMatch(pattern="said in stdout"), evidence, kept).passed
    assert score_of(RegexMatch(), sc.RegexMatch(pattern="x"), Evidence()).source is TASK


def test_a_pattern_that_explodes_is_given_up() -> None:
    """A search that would take for ever is ended by its deadline, and nobody else waits for it."""
    kept = Kept()
    evidence = kept.file("a" * 60 + "b")
    began = time.monotonic()
    found = score_of(RegexMatch(seconds=0.5), sc.RegexMatch(pattern="(a+)+$", path="a"), evidence, kept)
    assert found.source is VERIFIER
    assert "not done within 0.5 s" in found.evidence[0]
    assert time.monotonic() - began < 10


DOCUMENT = {
    "tests": {"passed": 12, "failed": 0},
    "cases": [{"name": "a", "ms": 5}, {"name": "b", "ms": 80}],
    "ok": True,
}


@pytest.mark.parametrize(
    ("expression", "operator", "value", "source"),
    [
        ("$.tests.passed", "exists", None, None),
        (".tests.passed", "exists", None, None),
        ("$.tests.failed", "exists", None, None),
        ("$.nothing", "exists", None, TASK),
        ("$.tests.failed", "==", 0, None),
        ("$.tests.failed", "==", False, TASK),
        ("$.ok", "==", True, None),
        ("$.ok", "==", 1, TASK),
        ("$.tests.passed", ">=", 10, None),
        ("$.tests.passed", ">", 12, TASK),
        ("$.cases[*].ms", "<", 100, None),
        ("$.cases[*].ms", "<", 50, TASK),
        ("$.cases[?@.ms > 50].name", "==", "b", None),
        ("$.cases[-1].name", "!=", "a", None),
        ("$..name", "<", 3, TASK),
        ("$.cases[", "exists", None, VERIFIER),
    ],
)
def test_json_path(expression: str, operator: Any, value: Any, source: Source | None) -> None:
    """Arrays, filters and comparisons; every value that is found must satisfy the comparison."""
    kept = Kept()
    evidence = kept.file(json.dumps(DOCUMENT))
    declared = sc.JsonPath(path="a", expression=expression, operator=operator, value=value)
    assert score_of(JsonPath(), declared, evidence, kept).source is source


@pytest.mark.parametrize("data", [b"", b"{", b"\x00\xff", b"[" * 200_000, b'{"a": 1} rest'])
def test_json_path_of_what_is_no_json(data: bytes) -> None:
    """A file that is not JSON, or is nested beyond all measure, is the task's failure."""
    kept = Kept()
    evidence = kept.file(data)
    assert score_of(JsonPath(), sc.JsonPath(path="a", expression="$"), evidence, kept).source is TASK


@pytest.mark.parametrize(("value", "found"), [(None, False), (False, False), (0, True), ("", True), ([], True)])
def test_what_exists(value: Any, found: bool) -> None:
    """Null and false are not there; zero and what is empty are."""
    kept = Kept()
    evidence = kept.file(json.dumps({"a": value}))
    assert score_of(JsonPath(), sc.JsonPath(path="a", expression="$.a"), evidence, kept).passed is found


scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text())


@given(value=scalars, wanted=scalars)
def test_comparisons_hold_together(value: Any, wanted: Any) -> None:
    """Equal or not, never both; of two that have an order, exactly one of <, == and > holds, and >= is not <."""
    assert holds(value, "==", wanted) is not holds(value, "!=", wanted)
    one_of = [holds(value, sign, wanted) for sign in ("<", "==", ">")]
    assert sum(one_of) <= 1
    if holds(value, "<=", wanted) or holds(value, ">=", wanted):
        assert sum(one_of) == 1
        assert holds(value, ">=", wanted) is not holds(value, "<", wanted)


@pytest.mark.parametrize(
    ("code", "timed_out", "source"),
    [(0, False, None), (1, False, TASK), (127, False, VERIFIER), (137, False, VERIFIER), (None, True, VERIFIER)],
)
def test_command(code: int | None, timed_out: bool, source: Source | None) -> None:
    """Code 0 passes, another is the task's failure; a command that did not run to its end has judged nothing."""
    kept = Kept(stdout="FAILED test_x", stderr="boom")
    evidence = Evidence(exit_code=code, timed_out=timed_out, texts=kept.texts)
    found = score_of(Command(), sc.Command(command="make test"), evidence, kept)
    assert found.source is source
    assert found.evidence[1:] == ("FAILED test_x", "boom")


@pytest.mark.parametrize(
    ("said", "source", "value"),
    [
        ('{"pass": true, "reason": "all there"}', None, 1.0),
        ('I looked.\n```json\n{"pass": false, "reason": "no test"}\n```\nThat is all.', TASK, 0.0),
        ('{"pass": true, "reason": "good", "score": 0.75}', None, 0.75),
        ('{"pass": true, "reason": "poor", "score": 0.4}', TASK, 0.4),
        ('{"pass": true, "reason": "x"} and then {"pass": false, "reason": "y"}', TASK, 0.0),
        ('{"pass": true, "reason": "x", "detail": {"pass": false, "reason": "within"}}', None, 1.0),
        ('{"pass": "yes", "reason": "x"}', VERIFIER, 0.0),
        ('{"pass": true}', VERIFIER, 0.0),
        ('{"pass": true, "reason": "x", "score": 7}', VERIFIER, 0.0),
        ("it is fine", VERIFIER, 0.0),
        ("{" * 5000, VERIFIER, 0.0),
        ("", VERIFIER, 0.0),
    ],
)
def test_verifier_prompt(said: str, source: Source | None, value: float) -> None:
    """The last whole object by the schema is the answer; no such answer is the verifier's failure."""
    kept = Kept(final_message=said)
    declared = sc.VerifierPrompt(prompt="?", threshold=0.5)
    found = score_of(VerifierPrompt(), declared, Evidence(texts=kept.texts), kept)
    assert (found.source, found.value) == (source, value)


def test_the_answer_file_comes_before_the_final_message() -> None:
    """Where a verifier wrote its answer into the file, what it said beside it does not count."""
    kept = Kept(answer='{"pass": false, "reason": "no"}', final_message='{"pass": true, "reason": "yes"}')
    evidence = Evidence(texts=kept.texts)
    assert score_of(VerifierPrompt(), sc.VerifierPrompt(prompt="?"), evidence, kept).source is TASK
    late = Evidence(texts=kept.texts, timed_out=True)
    assert score_of(VerifierPrompt(), sc.VerifierPrompt(prompt="?"), late, kept).source is VERIFIER


words = st.text(alphabet=st.characters(exclude_characters="{", codec="utf-8"))


@given(before=words, reason=words.filter(bool), after=words)
def test_an_answer_is_found_among_other_words(before: str, reason: str, after: str) -> None:
    """Whatever is said around it, the answer is the one that is read."""
    found = verifier_prompt.parse(f"{before}{json.dumps({'pass': True, 'reason': reason})}{after}")
    assert found == verifier_prompt.Answer(passed=True, reason=reason)


@given(st.lists(st.text(), max_size=60))
def test_evidence_is_bounded_and_harmless(texts: list[str]) -> None:
    """However much a scorer says, a receipt keeps few, short lines that a terminal can show."""
    kept = failed("x", *texts).evidence
    assert len(kept) <= 21
    assert all(len(line) <= 300 and line.isprintable() for line in kept)
    assert not any(re.search(r"[\x00-\x1f\x7f]", line) for line in kept)


class Raises:
    """A stranger's scorer that is broken."""

    def wants(self, declared: Any) -> Wants:
        raise RuntimeError("no idea")

    def score(self, declared: Any, evidence: Evidence, read: Any) -> Score:
        raise KeyError("colour")


def test_a_strangers_scorer_that_raises_has_judged_nothing() -> None:
    """Whatever it raises is a score of its own failure, at its place; the others are asked all the same."""
    parts: list[tuple[str, sc.AnyScorer]] = [("0", sc.Plugin(name="theirs")), ("1", sc.ExitCode())]

    def load(name: str) -> Any:
        return Raises() if name == "theirs" else ExitCode()

    assert wanted(parts, load) == [Wants(), Wants()]
    theirs, ours = scored(parts, Evidence(exit_code=0), Kept().contents.__getitem__, load)
    assert (theirs.at, theirs.source, theirs.passed) == ("0", Source.VERIFIER, False)
    said = "the scorer `theirs` failed in its own code: KeyError: 'colour'"
    assert theirs.evidence == (f"it could not be judged: {said}",)
    assert (ours.at, ours.passed) == ("1", True)


class Mumbles:
    """A stranger's scorer that says what nobody can keep."""

    def wants(self, declared: Any) -> Any:
        return "everything"

    def score(self, declared: Any, evidence: Evidence, read: Any) -> Any:
        return Score(kind="plugin", value="good", passed=True, evidence=(7,))  # type: ignore[arg-type]


def test_a_strangers_scorer_that_gives_no_score_has_judged_nothing() -> None:
    """What is not of the contract is found where the scorer is known, not where the receipt is kept."""
    parts: list[tuple[str, sc.AnyScorer]] = [("", sc.Plugin(name="theirs"))]
    assert wanted(parts, lambda _: Mumbles()) == [Wants()]
    (score,) = scored(parts, Evidence(exit_code=0), Kept().contents.__getitem__, lambda _: Mumbles())
    assert (score.source, score.passed) == (Source.VERIFIER, False)
    assert "the scorer `theirs` failed in its own code" in score.evidence[0]
