"""The coder contract, over every built-in coder and over the two ways to add one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from fleet import plugins
from fleet.coders.coder import Coder
from fleet.coders.simple import SimpleCoder
from fleet.coders.template import TemplateCoder
from fleet.model.stream import AnySaid, Text, TurnEnded
from fleet.testing.coder_contract import CoderContract
from tests.golden.cases import CASES, lines

VOCABULARY = (
    b'{"kind":"started","coder_session":"c-1","model":"m"}',
    b'{"kind":"text","text":"hello"}',
    b'{"kind":"tool_started","id":"1","name":"shell","input":"ls"}',
    b'{"kind":"tool_ended","id":"1","ok":true}',
    b'{"kind":"limited","window":"day","rejected":true,"resets_at":1794735747000}',
    b'{"kind":"turn_ended","ok":false,"reason":"plan_limit"}',
)


def recorded(coder: str) -> tuple[bytes, ...]:
    """All transcripts of a coder, one after the other."""
    return tuple(line for case in CASES if case.coder == coder for line in lines(case))


class OfBuiltIn(CoderContract):
    """A coder that ships with Fleet."""

    name = ""

    @pytest.fixture
    def coder(self) -> Coder:
        coder: Coder = plugins.load("coders", self.name)
        return coder


class TestClaude(OfBuiltIn):
    """claude."""

    name = "claude"
    transcript = recorded("claude")[:120]


class TestCodex(OfBuiltIn):
    """codex."""

    name = "codex"
    transcript = recorded("codex")[:120]


class TestGemini(OfBuiltIn):
    """gemini."""

    name = "gemini"
    transcript = recorded("gemini")


class TestOpencode(OfBuiltIn):
    """opencode."""

    name = "opencode"
    transcript = recorded("opencode")


class TestAgy(OfBuiltIn):
    """agy."""

    name = "agy"
    transcript = recorded("agy")


class TestCommand(OfBuiltIn):
    """A plain command."""

    name = "command"
    transcript = (b"building", b"", b"401 tests passed", "done \N{SNOWMAN}".encode())


class TestScripted(OfBuiltIn):
    """The scripted coder."""

    name = "scripted"
    transcript = VOCABULARY


class TestTemplateOfText(CoderContract):
    """A template whose program prints plain text."""

    transcript = (b"hello", b"world")

    @pytest.fixture
    def coder(self) -> Coder:
        return TemplateCoder("mine", ["mine", "--model", "{model}", "--", "{prompt}"])


class TestTemplateOfLines(CoderContract):
    """A template whose program speaks Fleet's vocabulary."""

    transcript = (*VOCABULARY, b"and a word")

    @pytest.fixture
    def coder(self) -> Coder:
        return TemplateCoder("mine", ["mine", "run"], output="jsonl", secrets=["MINE_API_KEY"])


class TestTemplateOfClaude(CoderContract):
    """A template whose program speaks another coder's stream."""

    transcript = recorded("claude")[:40]

    @pytest.fixture
    def coder(self) -> Coder:
        return TemplateCoder("qwen", ["qwen", "--resume", "{resume}", "-p", "{prompt}"], output="claude")


class Parrot(SimpleCoder):
    """A coder as a plugin writes it; it is careless with what it reads."""

    name = "parrot"
    secrets = ("PARROT_API_KEY",)

    def build_argv(self, prompt: str, model: str | None, cwd: str) -> Sequence[str]:
        return ["parrot", "--json", "--in", cwd, *(["--model", model] if model else [])]

    def normalize_event(self, event: dict[str, Any]) -> AnySaid | Sequence[AnySaid] | None:
        if event["type"] == "text":
            return Text(text=str(event["text"]))
        return TurnEnded(ok=event["code"] == 0) if event["type"] == "end" else None


class TestSimple(CoderContract):
    """A plugin of a few lines."""

    transcript = (b'{"type":"text","text":"hello"}', b'{"no":"type"}', b'{"type":"end","code":0}')

    @pytest.fixture
    def coder(self) -> Coder:
        return Parrot()
