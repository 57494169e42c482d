"""What the recorded transcripts of the real programs mean. `python -m tests.golden.regenerate` writes them anew."""

from __future__ import annotations

import pytest

from fleet.model.stream import AnySaid, Compacted, Context, Denied, Limited, Retrying, ToolEnded, ToolStarted, Used
from tests.golden.cases import BY_ID, CASES, HERE, Case, play
from tests.golden.regenerate import rendered


def events(name: str) -> list[AnySaid]:
    """Everything said in a transcript."""
    return play(BY_ID[name])[0]


def used(name: str) -> Used:
    """The sum of all differences of a transcript."""
    told = [event for event in events(name) if isinstance(event, Used)]
    return Used(
        input_tokens=sum(each.input_tokens for each in told),
        cached_tokens=sum(each.cached_tokens for each in told),
        output_tokens=sum(each.output_tokens for each in told),
        cost_microusd=sum(each.cost_microusd for each in told),
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_transcript_means_what_is_written_beside_it(case: Case) -> None:
    """The events and the outcome of a transcript are the ones that were reviewed."""
    assert rendered(case).decode() == case.expected.read_text("utf-8")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_failure_is_known_for_what_it_is(case: Case) -> None:
    """Every transcript ends in the kind of outcome that a person who read it would choose, with a reason."""
    outcome = play(case)[1]
    assert outcome.kind == case.kind
    assert outcome.reason
    assert "\n" not in outcome.reason


def test_every_transcript_is_played() -> None:
    """No file lies about unused."""
    found = set(HERE.glob("*/*.json*"))
    assert found == {path for case in CASES for path in (case.transcript, case.expected)}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("claude-oauth-quota", "5-hour limit"),
        ("claude-f-credit", "Credit balance is too low"),
        ("claude-f-404", "selected model"),
        ("claude-denied", "Bash"),
        ("claude-resume-bad", "No conversation found"),
        ("claude-maxturns", "maximum number of turns"),
        ("codex-f-usagelimit", "try again at 9:50 AM"),
        ("codex-f-refused", "Connection failed"),
        ("codex-noauth", "FAKE_KEY"),
        ("gemini-f-429", "status 429"),
        ("agy-timeout", "print timeout after 5m0s"),
        ("agy-quota", "individual quota reached"),
        ("agy-denied", "run_command"),
    ],
)
def test_the_reason_is_in_the_coders_own_words(name: str, words: str) -> None:
    """A person reads what the program itself said of its failure."""
    assert words in play(BY_ID[name])[1].reason


def test_a_plan_limit_says_when_it_resets_only_where_that_is_known() -> None:
    """The moment of reset is taken from the vendor's own number; a time of day alone is no moment."""
    assert play(BY_ID["claude-oauth-quota"])[1].resets_at == 1794735747000
    assert play(BY_ID["codex-f-usagelimit"])[1].resets_at is None
    limits = [event for event in events("claude-oauth-limits") if isinstance(event, Limited)]
    assert limits == [Limited(window="five_hour", rejected=False, used_pct=42.0, resets_at=1794735746000)]


def test_claude_is_booked_while_it_works_and_settled_at_its_result() -> None:
    """The sum of all differences is the vendor's own sum, whatever was told on the way."""
    assert used("claude-ok") == Used(
        input_tokens=1181 + 3536, cached_tokens=18862, output_tokens=63, cost_microusd=27436
    )
    assert [type(event).__name__ for event in events("claude-ok")].index("Used") < 3


def test_several_results_are_booked_once() -> None:
    """A second result of the same process adds only what is new."""
    assert used("claude-bgbash").cost_microusd == 41307
    assert used("claude-subagent").cost_microusd == 58837
    assert used("claude-subagent").output_tokens == 112


def test_claudes_counters_go_on_across_a_resume_and_are_booked_by_difference() -> None:
    """Three sessions of one conversation cost what the vendor says the last of them does."""
    costs = [used(f"claude-resume{k}").cost_microusd for k in range(3)]
    assert costs == [27449, 55197 - 27449, 83243 - 55197]


def test_what_a_killed_session_used_is_booked_by_the_next() -> None:
    """The first session was ended before its result; the second books its cost, and no token twice."""
    first, second = used("claude-sig-SIGTERM"), used("claude-sig-resume")
    assert first.cost_microusd == 0
    assert second.cost_microusd == 27341
    assert first.cached_tokens + second.cached_tokens == 9416 + 9520


def test_codexs_counters_go_on_across_a_resume_and_are_booked_by_difference() -> None:
    """The sums of three sessions add up to the last total."""
    each = [used(f"codex-{name}") for name in ("s0", "resume", "resume-last")]
    assert sum(one.input_tokens + one.cached_tokens for one in each) == 57494
    assert sum(one.output_tokens for one in each) == 489
    assert used("codex-sig-SIGINT-resume").cached_tokens == 15015  # with what the interrupted session never told


def test_gemini_counts_from_nothing_in_every_process() -> None:
    """A resumed session books its own tokens in full."""
    assert used("gemini-res1") == Used(input_tokens=4851, cached_tokens=19402, output_tokens=57)


def test_agys_cached_tokens_are_counted_once_in_both_dialects() -> None:
    """Whether its input holds the cached part or not, the total tells."""
    assert used("agy-ok") == Used(input_tokens=800, cached_tokens=1100, output_tokens=65)
    assert used("agy-cache-apart") == Used(input_tokens=100, cached_tokens=900, output_tokens=10)


def test_the_context_is_that_of_the_main_conversation() -> None:
    """A subagent's requests do not count; a reply in several lines counts once."""
    sizes = [event.tokens for event in events("claude-subagent") if isinstance(event, Context)]
    assert sizes == [591 + 1770 + 9442, 610 + 1825 + 9737, 629 + 1882 + 10041]
    assert [event.tokens for event in events("opencode-ok") if isinstance(event, Context)] == [7788, 7859]


def test_a_compaction_is_told() -> None:
    """Before and after, in tokens."""
    assert Compacted(before_tokens=190008, after_tokens=2652) in events("claude-compact3")


def test_a_retry_is_told_with_its_wait() -> None:
    """The program says how long it will wait."""
    waits = [event for event in events("claude-f-429_30") if isinstance(event, Retrying)]
    assert waits[0] == Retrying(reason="rate_limit (429)", attempt=1, after_ms=30000)
    assert Retrying(reason="Connection failed: error sending request") in events("codex-f-refused")


def test_denials_are_told_once() -> None:
    """The system line and the result both name it; a hook's denial is only in the result."""
    for name in ("claude-denied", "claude-hooks"):
        assert [event.tool for event in events(name) if isinstance(event, Denied)] == ["Bash"]


@pytest.mark.parametrize("case", [case for case in CASES if case.kind == "ok" and case.name != "sig-SIGKILL"], ids=str)
def test_every_call_that_began_has_ended(case: Case) -> None:
    """In a session that ended well no call stays open, and none ends that never began."""
    started = [event.id for event in play(case)[0] if isinstance(event, ToolStarted)]
    ended = [event.id for event in play(case)[0] if isinstance(event, ToolEnded)]
    assert sorted(started) == sorted(ended)
    assert len(set(started)) == len(started)


def test_work_in_the_background_is_an_open_call() -> None:
    """Between the first result and the second, claude waits for a shell: that silence is work."""
    told = [event for event in events("claude-bgbash") if isinstance(event, (ToolStarted, ToolEnded))]
    assert [event.id for event in told if isinstance(event, ToolStarted)][1] == told[-1].id
