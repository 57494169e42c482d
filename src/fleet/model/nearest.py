"""The word that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str], alike: float = 0.6) -> str:
    """The one that looks most like it; empty where none does."""
    from difflib import get_close_matches  # not at the top: it is for slips only

    return next(iter(get_close_matches(word, list(known), n=1, cutoff=alike)), "")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The question after it, to stand behind what is wrong; empty where none looks like it."""
    near = nearest(word, known)
    return f"; did you mean `{near}`?" if near else ""
