"""The launch file: whatever is in a launch, sh reads it as words and nothing else; what cannot be a word is refused."""

from __future__ import annotations

import os
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.errors import UsageError
from fleet.hosts.launch_file import render, render_secrets
from fleet.model.launch import Launch

WORDS = st.binary(max_size=30).filter(lambda word: b"\0" not in word).map(os.fsdecode)
A_LAUNCH = Launch(argv=("true",), cwd="/")


@settings(max_examples=25)
@given(words=st.lists(WORDS, max_size=5), value=WORDS, secret=WORDS)
def test_sh_reads_the_words(words: list[str], value: str, secret: str) -> None:
    """Arguments, variables and secrets come out of sh as they went in, byte for byte."""
    argv = ("/usr/bin/printf", r"%s\0", *words, "end")
    launch = render("t.1", Launch(argv=argv, cwd="/", env={"VALUE": value}))
    script = b'become() { exec "$@"; }\n' + launch + render_secrets({"SECRET": secret})  # the runner's own word
    check = script + b'FLEET_SESSION_DIR=/x\n(launch_agent)\nexport VALUE="$VALUE" SECRET\nexec printenv SECRET'
    done = subprocess.run(["sh", "-s"], input=check, stdout=subprocess.PIPE, check=True)
    expected = b"".join(os.fsencode(word) + b"\0" for word in (*words, "end"))
    assert done.stdout == expected + os.fsencode(secret) + b"\n"


def test_reading_it_does_nothing() -> None:
    """A launch file only sets words and defines a function."""
    launch = render(
        "t.1", Launch(argv=("touch", "/tmp/never"), cwd="$(touch /tmp/never)", env={"A": "`touch /tmp/never`"})
    )
    done = subprocess.run(["sh", "-s"], input=launch + b"set -u; echo $session", stdout=subprocess.PIPE, check=True)
    assert done.stdout == b"t.1\n"
    assert not os.path.exists("/tmp/never")


@pytest.mark.parametrize(
    "launch",
    [
        Launch(argv=(), cwd="/"),
        Launch(argv=("",), cwd="/"),
        Launch(argv=("-c", "x"), cwd="/"),
        Launch(argv=("a\0b",), cwd="/"),
        Launch(argv=("a",), cwd="/\0"),
        Launch(argv=("a", "x" * 200_000), cwd="/"),
        Launch(argv=("a",), cwd="/", env={"A B": "x"}),
        Launch(argv=("a",), cwd="/", env={"A;id": "x"}),
        Launch(argv=("a",), cwd="/", env={"A": "x\0"}),
        Launch(argv=("a",), cwd="/", env={"PPID": "1"}),
        Launch(argv=("a",), cwd="/", env={"FLEET_SESSION": "other"}),
        Launch(argv=("a",), cwd="/", secrets=("A B",)),
    ],
)
def test_what_cannot_be_launched(launch: Launch) -> None:
    """A launch that a host could not carry out to the letter is refused before it gets there."""
    with pytest.raises(UsageError):
        render("t.1", launch)


def test_names_are_checked() -> None:
    """A session's name, a shell and a secret's name cannot smuggle anything into sh."""
    with pytest.raises(UsageError):
        render("t.1;id", A_LAUNCH)
    with pytest.raises(UsageError):
        render("t.1", A_LAUNCH, shell=("sh;id",))
    with pytest.raises(UsageError):
        render_secrets({"A=1;B": "x"})
