"""The contract of a scorer: from evidence to a score. The same evidence gives the same score, now and years later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

import msgspec

from fleet.model.receipt import Score
from fleet.model.states import Source

MOST_BYTES = 16 << 20  # of a file or a text that a scorer looks into
LONGEST_LINE, MOST_LINES = 300, 20  # of the evidence in a receipt

Found = Literal["file", "absent", "directory", "outside", "other"]
Read = Callable[[str], bytes]  # what is kept under a sha256


class Wants(msgspec.Struct, frozen=True, kw_only=True):
    """What a scorer looks at, beside how the session ended."""

    path: str | None = None  # a file, relative to the workspace
    content: bool = True  # of the file: what is in it, not only whether it is there
    text: Literal["stdout", "final_message"] | None = None


class FileSeen(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A file as it was when the session ended."""

    found: Found
    size: int = 0
    fresh: bool = False  # not older than the session
    sha256: str | None = None  # None: its content was not kept
    note: str = ""  # why not


class TextSeen(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a worker said; of a long one, the end."""

    sha256: str
    size: int
    whole: bool = True


class Evidence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """All that the scorers of one session may look at. It is kept beside the receipt, so that both can be checked."""

    exit_code: int | None = None  # None: nobody saw it
    timed_out: bool = False
    files: dict[str, FileSeen] = {}
    texts: dict[str, TextSeen] = {}


class Scorer(Protocol):
    """One way to judge. `score` may take a while, but not for ever, and does nothing else; it raises nothing."""

    def wants(self, declared: Any) -> Wants:
        """What must be collected for it."""

    def score(self, declared: Any, evidence: Evidence, read: Read) -> Score:
        """The judgement. A scorer that cannot judge says so with the source `verifier`."""


def passed(kind: str, *evidence: str, value: float = 1.0) -> Score:
    """It is as it should be."""
    return Score(kind=kind, value=value, passed=True, evidence=_lines(evidence))


def failed(kind: str, *evidence: str, value: float = 0.0) -> Score:
    """The task did not do it."""
    return Score(kind=kind, value=value, passed=False, source=Source.TASK, evidence=_lines(evidence))


def broken(kind: str, *evidence: str) -> Score:
    """It could not be judged."""
    return Score(kind=kind, value=0.0, passed=False, source=Source.VERIFIER, evidence=_lines(evidence))


def _lines(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Evidence as a receipt keeps it: few lines, short ones, nothing that a terminal would obey."""
    lines = [line for text in texts for line in text.splitlines() if line.strip()]
    kept = lines if len(lines) <= MOST_LINES else [*lines[: MOST_LINES // 2], "...", *lines[-MOST_LINES // 2 :]]
    return tuple(shown(line) for line in kept)


def shown(text: str, longest: int = LONGEST_LINE) -> str:
    """A text as part of a line for people."""
    plain = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text.replace("\t", " "))
    return plain if len(plain) <= longest else plain[: longest - 1] + "…"


def content(kind: str, path: str, evidence: Evidence, read: Read) -> bytes | Score:
    """What is in a file, or the score that its absence gives."""
    seen = evidence.files.get(path)
    if seen is None:
        return broken(kind, f"{path} was not collected")
    if seen.found == "outside":
        return failed(kind, f"{path} leads out of the workspace")
    if seen.found != "file":
        return failed(kind, f"{path} is {'missing' if seen.found == 'absent' else 'no file'}")
    if seen.sha256 is None:
        return broken(kind, f"{path} could not be kept: {seen.note}")
    if seen.size > MOST_BYTES:
        return broken(kind, f"{path} has {seen.size} bytes; at most {MOST_BYTES} are looked into")
    return read(seen.sha256)
