"""Ids: what may be one, and how a short form finds the whole."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.errors import Ambiguous, NotFound, UsageError
from fleet.model.ids import ALPHABET, check_token, host_subject, resolve, run_subject, slug, some_of, supervisor_subject


def test_resolve_finds_the_only_one() -> None:
    """A whole id is itself, whatever else it begins; a short form is the only one that was found."""
    assert resolve("fleet-abc", ["fleet-abc"]) == "fleet-abc"
    assert resolve("abc", ["fleet-abc"]) == "fleet-abc"
    assert resolve("fleet-ab", ["fleet-abc", "fleet-ab"]) == "fleet-ab"


def test_resolve_says_what_it_did_not_find() -> None:
    """Nothing found is NotFound, in the words of what was looked for."""
    with pytest.raises(NotFound, match="no task `zzz`") as caught:
        resolve("zzz", [])
    assert (caught.value.exit_code, caught.value.hint) == (4, "`fleet tasks --status all` lists them")
    with pytest.raises(NotFound, match="no session `zzz`"):
        resolve("zzz", [], "session")


def test_of_many_names_some_are_told() -> None:
    """A hint names all of a few things, and of two hundred the first ten and how many more there are."""
    assert some_of([]) == "none"
    assert some_of({"b", "a"}) == "a, b"
    assert some_of(f"host-{n:03}" for n in range(200)).endswith("host-008, host-009 and 190 more")


@pytest.mark.parametrize("n", [2, 5, 6, 9])
def test_resolve_lists_what_fits(n: int) -> None:
    """Several are Ambiguous: the first five are named, and more are hinted at."""
    found = [f"fleet-a{k}" for k in range(n)]
    with pytest.raises(Ambiguous, match=f"`a` fits {n} tasks: fleet-a0, ") as caught:
        resolve("a", found)
    assert caught.value.exit_code == 2
    assert str(caught.value).count("fleet-") == min(n, 5)
    assert str(caught.value).endswith(", ...") == (n > 5)


@given(st.text(max_size=140))
def test_tokens_are_safe_in_a_path(word: str) -> None:
    """What passes as a token names one file, in this directory; all else is a UsageError."""
    try:
        check_token(word, "task")
    except UsageError:
        return
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", word)
    assert len(word) <= 128
    assert word not in (".", "..")
    assert "/" not in word


@pytest.mark.parametrize("word", ["", ".", "..", "a/b", "-x", "a b", "a\n", "ü", "a" * 129, ".hidden"])
def test_what_is_no_token(word: str) -> None:
    """Empty, hidden, with a slash, a dash in front, a space, a line end, too long: none may name a thing."""
    with pytest.raises(UsageError, match="task `"):
        check_token(word, "task")


@given(st.text())
def test_a_slug_may_stand_in_an_id(name: str) -> None:
    """Any name gives a short word of small letters, digits and dashes, with none at its ends."""
    word = slug(name)
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", word)
    assert len(word) <= 32
    assert slug(word) == word


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("Nightly build", "nightly-build"),
        ("  --Fix: THE login/page!  ", "fix-the-login-page"),
        ("日本語", "run"),
        ("", "run"),
        ("a" * 40, "a" * 32),
        ("x" * 31 + " y", "x" * 31),
    ],
)
def test_slugs(name: str, word: str) -> None:
    """Words are joined by single dashes and cut at 32; a name without any letter we know is `run`."""
    assert slug(name) == word


def test_ids_are_easy_to_read_aloud() -> None:
    """No letter of an id is mistaken for another."""
    assert not set(ALPHABET) & set("ilo01")
    assert len(ALPHABET) == len(set(ALPHABET)) == 31


def test_the_chains_of_other_things_cannot_be_those_of_a_task() -> None:
    """The subject of a run, a host or a supervisor has a slash, which no task's id has."""
    for subject in (run_subject("x"), host_subject("x"), supervisor_subject("x")):
        assert "/" in subject
        with pytest.raises(UsageError):
            check_token(subject, "task")
