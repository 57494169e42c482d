"""Scorers as a spec declares them."""

from __future__ import annotations

import msgspec
import pytest

from fleet.model import scorer as sc
from fleet.model.terms import Terms

DECLARED: tuple[sc.AnyScorer, ...] = (
    sc.ExitCode(expected=3),
    sc.FileExists(path="report.md", non_empty=True),
    sc.RegexMatch(pattern="ok", source="stdout"),
    sc.JsonPath(path="a.json", expression="$.x[*]", operator=">=", value=2),
    sc.Command(command="make test", timeout_seconds=5),
    sc.VerifierPrompt(prompt="is it right?"),
    sc.Manual(note="look at the picture"),
    sc.All(of=(sc.ExitCode(), sc.Any(of=(sc.Manual(), sc.FileExists(path="x")), threshold=0.5))),
)


@pytest.mark.parametrize("declared", DECLARED, ids=lambda declared: str(declared.__struct_config__.tag))
def test_a_stored_scorer_is_the_one_declared(declared: sc.AnyScorer) -> None:
    """What a task keeps of a scorer types back to the same scorer."""
    terms = Terms(scorer=msgspec.to_builtins(declared))
    stored = msgspec.json.decode(msgspec.json.encode(terms), type=Terms)
    assert stored.scorer is not None
    assert sc.scorer_of(stored.scorer) == declared


def test_the_older_name_of_a_verifier_prompt_is_one() -> None:
    """The name that an earlier system gave it is accepted, and is the same kind of scorer."""
    found = sc.scorer_of({"kind": "code_whale_verifier_prompt", "prompt": "is it right?"})
    assert isinstance(found, sc.VerifierPrompt)
