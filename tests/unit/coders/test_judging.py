"""Judging an end that is no result."""

from __future__ import annotations

import pytest

from fleet.coders.claude import Claude
from fleet.coders.coder import Exit
from fleet.coders.codex import Codex
from fleet.coders.command import Command
from fleet.coders.gemini import Gemini
from fleet.coders.judging import by_exit, by_stop, by_words
from fleet.coders.opencode import Opencode
from fleet.coders.reading import count, micro
from fleet.coders.shortening import LONGEST, short
from fleet.coders.windows import any_vendor, claude, codex
from fleet.model.outcome import Outcome, OutcomeKind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("You've hit your usage limit. Try again at 9:50 AM.", OutcomeKind.PLAN_LIMIT),
        ("429 insufficient_quota", OutcomeKind.PLAN_LIMIT),
        ("This request would exceed your account's rate limit (status 429)", OutcomeKind.TRANSIENT),
        ("unexpected status 400: context_length_exceeded", OutcomeKind.CONTEXT),
        ("unexpected status 403 Forbidden", OutcomeKind.AUTH),
        ("HTTP 502 bad gateway", OutcomeKind.TRANSIENT),
        ("The model `x` does not exist", OutcomeKind.REFUSAL),
        ("Please set an Auth method in settings.json", OutcomeKind.AUTH),
        ("getaddrinfo ENOTFOUND api.example.com", OutcomeKind.TRANSIENT),
        ("panicked at src/main.rs:7", None),
    ],
)
def test_words_are_understood(text: str, kind: OutcomeKind | None) -> None:
    """The vendors' phrases, and nothing where there is none."""
    assert by_words(text) is kind


@pytest.mark.parametrize(
    ("end", "kind"),
    [
        (Exit(code=143), OutcomeKind.INTERRUPTED),
        (Exit(code=None, signal=15), OutcomeKind.INTERRUPTED),
        (Exit(code=137), OutcomeKind.CRASHED),
        (Exit(code=None, signal=11), OutcomeKind.CRASHED),
        (Exit(code=0), OutcomeKind.CRASHED),
        (Exit(code=None), OutcomeKind.CRASHED),
        (Exit(code=2), OutcomeKind.CRASHED),
    ],
)
def test_an_end_without_a_result_is_never_ok(end: Exit, kind: OutcomeKind) -> None:
    """A polite signal from outside is an interruption, anything else a crash."""
    assert by_exit(end, "").kind is kind


def test_a_limit_without_a_reset_asks_for_credit() -> None:
    """Waiting helps only where the vendor says until when."""
    assert "until its limit resets" in Outcome(kind=OutcomeKind.PLAN_LIMIT, reason="x", resets_at=1).remedy
    assert "add credit" in Outcome(kind=OutcomeKind.PLAN_LIMIT, reason="x").remedy


def test_our_own_stop_comes_first() -> None:
    """What Fleet ended for a reason has that reason, and no other."""
    for kind in ("interrupted", "budget", "stalled", "context", "plan_limit"):
        stopped = by_stop(Exit(code=0, stopped_for=kind), "401 Unauthorized")
        assert stopped is not None
        assert stopped.kind == kind
    assert by_stop(Exit(code=0), "") is None


def test_a_turn_that_began_after_the_last_result_decides() -> None:
    """A second turn that was killed is not hidden behind the success of the first."""
    coder, state = Claude(), Claude().begin()
    for line in (
        b'{"type":"system","subtype":"init","session_id":"a","model":"m"}',
        b'{"type":"result","subtype":"success","is_error":false,"result":"fine"}',
    ):
        state, _ = coder.parse(state, line)
    assert coder.outcome(state, Exit(code=0), "").kind is OutcomeKind.OK
    state, _ = coder.parse(state, b'{"type":"system","subtype":"init","session_id":"a","model":"m"}')
    assert coder.outcome(state, Exit(code=None, signal=9), "").kind is OutcomeKind.CRASHED


def test_a_command_is_not_judged_by_its_words() -> None:
    """A test run that prints 401 has not failed to sign in."""
    outcome = Command().outcome(Command().begin(), Exit(code=2), "expected 200, got 401 Unauthorized\n")
    assert outcome.kind is OutcomeKind.CRASHED
    assert "401" in outcome.reason


@pytest.mark.parametrize(
    ("exit", "stderr", "reason"),
    [
        (Exit(code=3), "", "exit code 3, and nothing on stderr"),
        (Exit(code=3), "one\nno such file\n", "exit code 3: no such file"),
        (Exit(code=143), "", "it was ended by SIGTERM, not by Fleet"),
        (Exit(code=None, signal=9), "x", "it was ended by SIGKILL, not by Fleet"),
    ],
)
def test_why_a_command_failed(exit: Exit, stderr: str, reason: str) -> None:
    """By its code and its last words; no result is missed that a command does not give."""
    assert Command().outcome(Command().begin(), exit, stderr).reason == reason


@pytest.mark.parametrize(
    ("code", "stderr", "kind"),
    [
        (41, "", OutcomeKind.AUTH),
        (145, "", OutcomeKind.AUTH),
        (144, "The input token count exceeds the maximum", OutcomeKind.CONTEXT),
        (173, "", OutcomeKind.TRANSIENT),
        (53, "", OutcomeKind.BUDGET),
        (42, "Error resuming session: No previous sessions found for this project.", OutcomeKind.CONTEXT),
        (0, "", OutcomeKind.INTERRUPTED),
    ],
)
def test_geminis_exit_codes_are_http(code: int, stderr: str, kind: OutcomeKind) -> None:
    """Its exit code is the status modulo 256, and 0 after a signal."""
    assert Gemini().outcome(Gemini().begin(), Exit(code=code), stderr).kind is kind


def test_a_conversation_that_is_gone_asks_for_a_fresh_session() -> None:
    """Trying to resume it again would fail for ever."""
    lost = "Error: thread/resume failed: no rollout found for thread id 7"
    assert Codex().outcome(Codex().begin(), Exit(code=1), lost).kind is OutcomeKind.CONTEXT
    coloured = "\x1b[91m\x1b[1mError: \x1b[0mSession not found\n"
    outcome = Opencode().outcome(Opencode().begin(), Exit(code=1), coloured)
    assert (outcome.kind, outcome.reason) == (OutcomeKind.CONTEXT, "exit code 1: Error: Session not found")


def test_long_texts_keep_their_ends() -> None:
    """The beginning and the end stay, with a mark between that says how much is missing."""
    text = short("a" * 5000 + "the error")
    assert len(text) <= LONGEST
    assert text.endswith("the error")
    assert "characters left out" in text


def test_numbers_are_tamed() -> None:
    """Negative, absurd and wrong values count as what they can be."""
    assert [count(value) for value in (5, -1, 2**63, "7", None, True, 2.9)] == [5, 0, 10**12, 0, 0, 0, 2]
    assert micro(0.0274364) == 27436


def test_windows_are_known_by_the_models_name() -> None:
    """The longest fitting name decides; unknown is unknown."""
    assert claude("claude-sonnet-4-5-20250929") == 200_000
    assert claude("claude-sonnet-4-5[1m]") == 1_000_000
    assert claude("opus") == 1_000_000
    assert claude("gpt-5.5") is None
    assert claude(None) is None
    assert codex("gpt-5.5") == 258_400
    assert codex("gpt-6.1-terra") == 475_000
    assert any_vendor("anthropic/claude-haiku-4-5") == 200_000
    assert any_vendor("google/gemini-2.5-pro") == 1_048_576
