"""verifier_prompt: a second coder looked at the evidence and answered by a schema."""

from __future__ import annotations

import json
from typing import Annotated

import msgspec
from msgspec import Meta

from fleet.model.receipt import Score
from fleet.model.scorer import VerifierPrompt as Declared
from fleet.scorers.scorer import Evidence, Read, Wants, broken, failed, passed, shown

KIND = "verifier_prompt"
MOST_STARTS = 200  # places in an answer where an object may begin


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a verifier must say."""

    passed: Annotated[bool, Meta(description="Whether it is as it should be.")] = msgspec.field(name="pass")
    reason: Annotated[str, Meta(min_length=1, description="Why, in a sentence or two.")]
    score: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None, Meta(description="How good it is, from 0 to 1, where asked for.")
    ] = None


class VerifierPrompt:
    """By the object in its answer file, else in its final message."""

    def wants(self, declared: Declared) -> Wants:  # noqa: ARG002 (the contract gives it)
        """What it said last."""
        return Wants(text="final_message")

    def score(self, declared: Declared, evidence: Evidence, read: Read) -> Score:
        """Its word counts; with a threshold, its score too. No answer, or one that cannot be read, judges nothing."""
        if evidence.timed_out:
            return broken(KIND, f"the verifier was not done within {declared.timeout_seconds} s")
        texts = [read(seen.sha256) for name in ("answer", "final_message") if (seen := evidence.texts.get(name))]
        answer = next((found for text in texts if (found := parse(text.decode("utf-8", "replace")))), None)
        if answer is None:
            last = texts[-1].decode("utf-8", "replace") if texts else ""
            return broken(KIND, "the verifier gave no answer that can be read", shown(last))
        value = answer.score if answer.score is not None else float(answer.passed)
        if answer.passed and declared.threshold is not None and value < declared.threshold:
            return failed(KIND, f"its score {value:g} is below {declared.threshold:g}", answer.reason, value=value)
        return (passed if answer.passed else failed)(KIND, answer.reason, value=value)


def parse(text: str) -> Answer | None:
    """The last object in a text that is an answer; what stands within another object is a part of that one."""
    decoder = json.JSONDecoder()
    answer, end = None, 0
    for start in [n for n, c in enumerate(text) if c == "{"][-MOST_STARTS:]:
        if start < end:
            continue
        try:
            found, end = decoder.raw_decode(text, start)
            answer = msgspec.convert(found, Answer)
        except (ValueError, RecursionError):  # msgspec's errors are ValueErrors
            continue
    return answer
