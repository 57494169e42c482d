"""The examples of the guide work as they stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fleet.coders.coder import Coder, Exit, Work
from fleet.coders.scripted import Scripted
from fleet.coders.template import TemplateCoder
from fleet.model.outcome import OutcomeKind
from fleet.model.stream import AnySaid, Text, Used
from fleet.testing.coder_contract import CoderContract

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "adding-a-coder.md"
TEXT = GUIDE.read_text("utf-8")


def blocks(language: str) -> list[str]:
    """The blocks of code in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def shown() -> dict[str, Any]:
    """What the Python of the guide defines."""
    names: dict[str, Any] = {}
    for block in blocks("python"):
        exec(block, names)
    return names


class TestAider(CoderContract):
    """The template of the guide keeps the contract."""

    @pytest.fixture
    def coder(self) -> Coder:
        coder: Coder = shown()["aider"]()
        return coder


class TestAcme(CoderContract):
    """The class of the guide keeps the contract, with the transcript of the guide."""

    transcript = shown()["TestAcme"].transcript

    @pytest.fixture
    def coder(self) -> Coder:
        coder: Coder = shown()["Acme"]()
        return coder


def test_the_class_of_the_guide_understands_its_program() -> None:
    """Words, usage and the end come out; a failure is judged by its words."""
    coder, state, said = shown()["Acme"](), shown()["Acme"]().begin(), list[AnySaid]()
    for line in TestAcme.transcript:
        state, more = coder.parse(state, line)
        said += more
    assert Text(text="hello") in said
    assert Used(input_tokens=10, output_tokens=3) in said
    assert coder.outcome(state, Exit(code=0), "").kind is OutcomeKind.OK
    state, _ = coder.parse(state, b'{"type":"done","tokens_in":1,"tokens_out":1,"error":"status 529: overloaded"}')
    assert coder.outcome(state, Exit(code=0), "").kind is OutcomeKind.TRANSIENT


def test_the_template_of_the_guide_leaves_out_the_model() -> None:
    """As the guide says of a task without one."""
    argv = shown()["aider"]().launch(Work(task="t", session="s", prompt="hi", cwd="/")).argv
    assert argv == ("aider", "--yes-always", "--no-auto-commits", "--message", "hi")


def test_the_vocabulary_of_the_guide_is_the_one_there_is() -> None:
    """Every line that the guide shows is read, and every kind is named."""
    coder = TemplateCoder("mine", ["mine"], output="jsonl")
    for line in blocks("json")[0].splitlines():
        assert coder.parse(coder.begin(), line.encode())[1] == (msgspec.json.decode(line, type=AnySaid),)
    for kind in AnySaid.__args__:
        tag = kind.__struct_config__.tag
        assert f'"kind": "{tag}"' in TEXT or f"`{tag}`" in TEXT


@pytest.mark.parametrize("kind", list(OutcomeKind))
def test_every_outcome_is_in_the_guide(kind: OutcomeKind) -> None:
    """The table is whole."""
    assert f"| `{kind}` |" in TEXT


def test_the_script_of_the_guide_can_be_played() -> None:
    """It is taken as it stands."""
    script = Scripted().launch(Work(task="t", session="s", prompt=blocks("text")[0], cwd="/")).env["FLEET_SCRIPT"]
    assert script.splitlines()[0] == "say working"
