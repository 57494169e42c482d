"""Scorers as a spec declares them: what must be so for a result to count. The room `scorers` tells whether it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal
from typing import Any as Value

import msgspec
from msgspec import Meta

SECONDS = Meta(gt=0, le=86_400)
# What a verdict of these needs: a session of its own, or a person. Until then the receipt is partial.
BY_SESSION = frozenset({"command", "verifier_prompt"})
LATER = BY_SESSION | {"manual"}


class Scorer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What every scorer has. A combination weighs its parts."""

    weight: Annotated[float, Meta(gt=0, le=1000, description="How much it counts in a combination.")] = 1.0


class ExitCode(Scorer, frozen=True, kw_only=True, tag_field="kind", tag="exit_code"):
    """The worker ended with this code."""

    expected: Annotated[int, Meta(ge=0, le=255, description="The code that passes.")] = 0


class FileExists(Scorer, frozen=True, kw_only=True, tag_field="kind", tag="file_exists"):
    """A file is there, in the workspace or the artifact directory."""

    path: Annotated[str, Meta(min_length=1, description="Where, relative to the workspace.")]
    non_empty: Annotated[bool, Meta(description="It must hold something.")] = False
    newer: Annotated[bool, Meta(description="It must have been written by this session.")] = False


class RegexMatch(Scorer, frozen=True, kw_only=True, tag_field="kind", tag="regex_match"):
    """A pattern is found in a file, or in what the worker said."""

    pattern: Annotated[str, Meta(min_length=1, max_length=10_000, description="The regular expression.")]
    path: Annotated[str | None, Meta(description="The file to search, relative to the workspace.")] = None
    source: Annotated[
        Literal["stdout", "final_message"] | None, Meta(description="What to search in the place of a file.")
    ] = None
    absent: Annotated[bool, Meta(description="The pattern must not be found.")] = False


class JsonPath(Scorer, frozen=True, kw_only=True, tag_field="kind", tag="json_path"):
    """A JSONPath expression finds something in a JSON file; with a comparison, what it finds must satisfy it."""

    path: Annotated[str, Meta(min_length=1, description="The JSON file, relative to the workspace.")]
    expression: Annotated[str, Meta(min_length=1, max_length=10_000, description="The JSONPath.")]
    operator: Annotated[
        Literal["exists", "==", "!=", "<", "<=", ">", ">="], Meta(description="How each value is compared.")
    ] = "exists"
    value: Annotated[str | int | float | bool | None, Meta(description="With what.")] = None


class Command(Scorer, frozen=True, kw_only=True, tag_field="kind", tag="command"):
    """A command, run where the files are, ends with code 0. Its output is evidence."""

    command: Annotated[str, Meta(min_length=1, description="The program, or with no args a line for sh.")]
    args: Annotated[tuple[str, ...], Meta(description="Its words; when given, no shell is used.")] = ()
    timeout_seconds: Annotated[int, SECONDS] = 600


class VerifierPrompt(Scorer, frozen=True, kw_only=True, tag_field="kind", tag="verifier_prompt"):
    """A second coder reads the evidence and answers pass or fail."""

    prompt: Annotated[str, Meta(min_length=1, description="What is to be verified.")]
    coder: Annotated[str | None, Meta(description="Who verifies; else the task's own coder.")] = None
    model: Annotated[str | None, Meta(description="With which model.")] = None
    threshold: Annotated[
        Annotated[float, Meta(gt=0, le=1)] | None, Meta(description="The score it must give, from 0 to 1.")
    ] = None
    timeout_seconds: Annotated[int, SECONDS] = 900


class CodeWhaleVerifierPrompt(VerifierPrompt, frozen=True, kw_only=True, tag="code_whale_verifier_prompt"):
    """An older name of verifier_prompt."""


class Manual(Scorer, frozen=True, kw_only=True, tag_field="kind", tag="manual"):
    """A person settles it: `fleet verify ID --pass` or `--fail`."""

    note: Annotated[str, Meta(description="What the person is to look at.")] = ""


class Plugin(Scorer, frozen=True, kw_only=True, tag_field="kind", tag="plugin"):
    """A scorer that is registered under `fleet.scorers`."""

    name: Annotated[str, Meta(min_length=1, description="Its name there.")]
    options: Annotated[dict[str, Value], Meta(description="What it is to be told.")] = {}


class All(Scorer, frozen=True, kw_only=True, tag_field="kind", tag="all"):
    """Every one of these passes."""

    of: Annotated[tuple[AnyScorer, ...], Meta(min_length=1, max_length=64)]


class Any(Scorer, frozen=True, kw_only=True, tag_field="kind", tag="any"):
    """At least one of these passes; or, with a threshold, enough of their weight."""

    of: Annotated[tuple[AnyScorer, ...], Meta(min_length=1, max_length=64)]
    threshold: Annotated[
        Annotated[float, Meta(gt=0, le=1)] | None,
        Meta(description="The share of the weight that must pass, from 0 to 1."),
    ] = None


AnyScorer = (
    ExitCode
    | FileExists
    | RegexMatch
    | JsonPath
    | Command
    | VerifierPrompt
    | CodeWhaleVerifierPrompt
    | Manual
    | Plugin
    | All
    | Any
)


ALIASES = {"code_whale_verifier_prompt": "verifier_prompt"}
Leaf = (
    ExitCode | FileExists | RegexMatch | JsonPath | Command | VerifierPrompt | CodeWhaleVerifierPrompt | Manual | Plugin
)


def kind_of(scorer: AnyScorer) -> str:
    """The name of a scorer's kind."""
    tag = str(scorer.__struct_config__.tag)
    return ALIASES.get(tag, tag)


def leaves(scorer: AnyScorer, at: str = "") -> Iterator[tuple[str, Leaf]]:
    """The scorers of a combination that are none themselves, each with its place."""
    if not isinstance(scorer, All | Any):
        yield at, scorer
        return
    for n, part in enumerate(scorer.of):
        yield from leaves(part, f"{at}.{n}" if at else str(n))


def scorer_of(stored: dict[str, object]) -> AnyScorer:
    """A scorer as a task keeps it, typed."""
    found: AnyScorer = msgspec.convert(stored, AnyScorer)
    return found
