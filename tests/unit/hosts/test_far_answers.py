"""What comes back from the far side: whole, or known to be cut."""

from __future__ import annotations

import subprocess

import pytest

from fleet.hosts.ssh import far

MARK = "0123456789abcdef"


def exchanged(body: str, *, streams: bool = False) -> tuple[bytes, bytes]:
    """Both streams of a body that a shell here runs as one over there would."""
    line = far.line_for(far.exchange(MARK, body, streams=streams))
    done = subprocess.run(["sh", "-c", f"echo welcome; {line}"], capture_output=True, timeout=30, check=True)
    return done.stdout, done.stderr


def test_what_lies_between_the_marks() -> None:
    """What a login prints before them is not ours, and bytes of any kind are."""
    stdout, stderr = exchanged("printf 'a\\0\\n\\377'; echo oh >&2; code=3")
    answer = far.Answer(MARK)
    assert answer.printed(stdout) == b"a\0\n\xff"
    assert answer.end(stderr) == ("3", b"oh\n")


@pytest.mark.parametrize("cut", [1, 5, len(MARK) + 3, len(MARK) + 6])
def test_one_stream_that_is_cut_short(cut: int) -> None:
    """The code may have come, and the end of what was printed not: then it is not taken for the whole."""
    stdout, stderr = exchanged("echo all of it; code=0")
    answer = far.Answer(MARK)
    assert answer.end(stderr) == ("0", b"")
    assert answer.printed(stdout) == b"all of it\n"
    assert answer.printed(stdout[:-cut]) is None
    assert answer.begin(stdout[:-cut]) is not None


@pytest.mark.parametrize("cut", [0, 1, 5, 10, len(MARK) + 4])
def test_what_has_come_so_far(cut: int) -> None:
    """Wherever it was cut off, what had been printed is told without our marks; what never began is told as that."""
    stdout, _ = exchanged("echo some; code=0")
    answer = far.Answer(MARK)
    assert (answer.so_far(stdout[: len(stdout) - cut]) or b"").rstrip(b"\n") == b"some"
    assert answer.so_far(b"welcome\n") is None


def test_what_prints_on_after_the_end() -> None:
    """A process that was left behind has its words there too."""
    stdout, _ = exchanged("{ sleep 0.2; echo late; } & echo soon; code=0")
    assert far.Answer(MARK).printed(stdout) == b"soon\nlate\n"


def test_a_stream_is_given_as_it_comes() -> None:
    """It has no last mark on stdout."""
    stdout, stderr = exchanged("echo one; code=0", streams=True)
    assert far.Answer(MARK).begin(stdout) == b"one\n"
    assert far.Answer(MARK).end(stderr) == ("0", b"")
