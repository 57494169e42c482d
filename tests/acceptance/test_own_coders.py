"""Coders that are made in fleet.toml alone, or by a file that it names, as the guide shows them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Cli

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "adding-a-coder.md"


def shown(language: str, word: str) -> str:
    """The first block of code of the guide in which a word stands."""
    blocks: list[str] = re.findall(rf"^```{language}\n(.*?)^```$", GUIDE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return next(block for block in blocks if word in block)


@pytest.fixture
def done(cli: Cli) -> Any:
    """What a task of the given coder comes to, with a program of that name which does as it is told."""

    def run(coder: str, program: str, toml: str) -> dict[str, Any]:
        place = cli.path / "bin"
        place.mkdir()
        (place / coder).write_text(f"#!/bin/sh\n{program}\n")
        (place / coder).chmod(0o755)
        cli.home.toml.write_text(f"[supervisor]\nmax_attempts = 1\n\n{toml}")
        assert cli.ok("config", "set", f"coder={coder}").code == 0
        spec = cli.cwd / "spec.json"
        spec.write_text(json.dumps({"id": "a", "instructions": "say the word", "model": "m1"}))
        ended = cli.run("run", str(spec), env={"PATH": f"{place}:{cli.env['PATH']}", "OPENAI_API_KEY": "sk-own"})
        assert ended.code == 0, ended
        (receipt,) = cli.json("receipts", "a")
        assert receipt["coder"] == coder
        found: dict[str, Any] = receipt
        return found

    return run


def test_a_coder_in_fleet_toml_alone(done: Any, cli: Cli) -> None:
    """The lines of the guide are a coder: it gets prompt, model and secret, and what it prints is its last word."""
    told = 'printf "%s\\n" "$@" >told.txt; test "$OPENAI_API_KEY" = sk-own && echo all is tidy'
    assert done("aider", told, shown("toml", "[coders.aider]"))["reason"] == "all is tidy"
    words = (cli.cwd / "told.txt").read_text()
    assert "--model\nm1\n--message\n" in words
    assert "say the word" in words


def test_a_coder_from_a_file_of_python(done: Any, cli: Cli) -> None:
    """The class of the guide in a file that fleet.toml names: its events are understood, and its usage is counted."""
    (cli.path / "acme.py").write_text(shown("python", "class Acme(SimpleCoder)"))
    transcript = re.findall(r"b'(.*)',", shown("python", "class TestAcme"))
    program = "cat >/dev/null\n" + "\n".join(f"echo '{line}'" for line in transcript)
    toml = shown("toml", "[coders.acme]").replace("~/coders", str(cli.path))
    used = done("acme", program, toml)["usage"]
    assert (used["input_tokens"], used["output_tokens"], used["tool_calls"]) == (10, 3, 1)
