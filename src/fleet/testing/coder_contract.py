"""CoderContract: what every coder must do. Subclass it in a test module and give it a `coder` fixture.

class TestMine(CoderContract):
    transcript = (b'{"hello": "world"}', ...)          # lines of stdout, where you have some

    @pytest.fixture
    def coder(self): return MyCoder()
"""

from __future__ import annotations

import json
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet.coders.argv import LONGEST_ARGUMENT
from fleet.coders.coder import Coder, Exit, Work
from fleet.coders.shortening import LONGEST
from fleet.errors import UsageError
from fleet.model.launch import Launch
from fleet.model.outcome import Outcome, OutcomeKind
from fleet.model.permission import Hold
from fleet.model.stream import AnySaid

SECRET = "sk-not-to-be-seen-0123456789"
ENDS = (
    Exit(code=0),
    Exit(code=1),
    Exit(code=143),
    Exit(code=None, signal=9),
    Exit(code=None),
    Exit(code=1, stopped_for="interrupted"),
    Exit(code=0, stopped_for="a reason of its own"),
)
PROMPTS = (
    "plain",
    'it\'s "quoted" with $HOME, `ticks` and \\ slashes',
    "several\nlines\n\n\twith tabs",
    "--help",
    "-",
    "- a list\n- of things",
    "ünïcode ☃ 😀",
    "x" * 200_000,
    "é" * 60_000,
)
scalars = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=20)
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)


def work(prompt: str = "do it", **fields: Any) -> Work:
    """A piece of work."""
    given_fields = {"new_uuid": "11111111-2222-4333-8444-555555555555", **fields}
    return Work(task="fleet-abc", session="s-1", prompt=prompt, cwd="/srv/app", **given_fields)


def bent(line: bytes, at: int, value: Any) -> bytes:
    """The line with one of its values replaced: a vendor's format as it may be next week."""
    try:
        thing = json.loads(line)
    except ValueError:
        return line
    places: list[tuple[Any, Any]] = []
    left = [thing]
    while left:
        here = left.pop()
        keys = list(here) if isinstance(here, dict) else list(range(len(here))) if isinstance(here, list) else []
        places += [(here, key) for key in keys]
        left += [here[key] for key in keys]
    if places:
        here, key = places[at % len(places)]
        here[key] = value
    return json.dumps(thing).encode()


class CoderContract:
    """What every coder must do."""

    transcript: tuple[bytes, ...] = ()

    def play(self, coder: Coder, lines: tuple[bytes, ...]) -> tuple[Any, list[AnySaid]]:
        """All lines in one process."""
        state, events = coder.begin(), list[AnySaid]()
        for line in lines:
            state, said = coder.parse(state, line)
            events += said
        return state, events

    def test_it_says_what_it_is(self, coder: Coder) -> None:
        """It has a name, names of variables rather than values, and a state that can be stored."""
        assert coder.name
        assert all(name.isupper() and name.replace("_", "").isalnum() for name in coder.secrets)
        assert issubclass(coder.state_type, msgspec.Struct)
        assert isinstance(coder.begin(), coder.state_type)
        assert coder.state_type.__struct_config__.frozen

    @pytest.mark.parametrize("prompt", PROMPTS, ids=lambda prompt: repr(prompt[:12]))
    def test_a_prompt_arrives_whole(self, coder: Coder, prompt: str) -> None:
        """Quotes, line breaks, dashes and 200 KB survive; no argument is longer than a kernel takes."""
        launch = coder.launch(work(prompt))
        assert max(len(item.encode()) for item in launch.argv) <= LONGEST_ARGUMENT + len("--prompt=")
        assert not any("\0" in item for item in launch.argv)
        if launch.prompt_on_stdin:
            assert prompt in launch.prompt or json.dumps(prompt, ensure_ascii=False)[1:-1] in launch.prompt
            assert not any(len(prompt) > 100 and prompt in item for item in launch.argv)
        else:
            assert any(item.endswith(prompt) for item in launch.argv)

    def test_a_launch_can_be_stored_and_holds_no_secret(self, coder: Coder, monkeypatch: pytest.MonkeyPatch) -> None:
        """The values of its variables are nowhere in it, even when they are set here."""
        for name in coder.secrets:
            monkeypatch.setenv(name, SECRET)
        launch = coder.launch(work())
        assert msgspec.json.decode(msgspec.json.encode(launch), type=Launch) == launch
        assert SECRET not in repr(launch)
        assert not set(launch.env) & set(launch.secrets)
        assert launch.cwd == "/srv/app"

    def test_the_same_work_gives_the_same_launch(self, coder: Coder) -> None:
        """There is no clock and no chance in it."""
        assert coder.launch(work(model="m")) == coder.launch(work(model="m"))

    def test_no_model_means_no_flag(self, coder: Coder) -> None:
        """Without a model the coder's own default holds."""
        assert not {"--model", "-m"} & set(coder.launch(work()).argv)

    def test_another_program_takes_its_place(self, coder: Coder) -> None:
        """A configured program is argv[0]."""
        assert coder.launch(work(program="/opt/it")).argv[0] == "/opt/it"

    @pytest.mark.parametrize("asked", [{"tools": ("read", "git")}, {"tool_profile": "read-only"}], ids=str)
    def test_a_permission_is_enforced_or_refused_or_does_not_apply(self, coder: Coder, asked: dict[str, Any]) -> None:
        """It says which, and keeps to that: what it refuses it does not start, what it enforces is in its launch."""
        (answer,) = coder.permissions(asked.get("tools", ()), asked.get("tool_profile"))
        assert (answer.field, bool(answer.why)) == (*asked, True)
        if answer.hold is Hold.REFUSED:
            with pytest.raises(UsageError, match=answer.field):
                coder.launch(work(**asked))
        else:
            assert answer.hold is Hold.NOT_APPLICABLE or coder.launch(work(**asked)) != coder.launch(work())

    def test_a_profile_that_nobody_knows_is_refused(self, coder: Coder) -> None:
        """Nothing asked for gives no answer; the default asks for nothing; a word without a meaning is refused."""
        assert coder.permissions((), None) == coder.permissions((), "default") == ()
        assert [each.hold for each in coder.permissions((), "generous")] == [Hold.REFUSED]

    def test_resuming_names_the_conversation(self, coder: Coder) -> None:
        """A coder that can resume is told which conversation, and the launch says so."""
        if not getattr(coder, "resumable", False):
            return
        launch = coder.launch(work(resume="conv-7"))
        assert launch.coder_session == "conv-7"
        assert any("conv-7" in item for item in launch.argv)

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(line=st.binary(max_size=200) | values.map(lambda value: json.dumps(value).encode()))
    def test_nothing_on_stdout_breaks_it(self, coder: Coder, line: bytes) -> None:
        """Any bytes give a state and events that can be stored, never an exception."""
        state, said = coder.parse(coder.begin(), line)
        self.check(coder, state, said)

    @settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
    @given(where=st.integers(0, 10**6), at=st.integers(0, 10**6), value=values)
    def test_a_format_that_changed_does_not_break_it(self, coder: Coder, where: int, at: int, value: Any) -> None:
        """Any value of any line may become another: the other lines still count."""
        if not self.transcript:
            return
        lines = list(self.transcript)
        where %= len(lines)
        lines[where] = bent(lines[where], at, value)
        state, events = self.play(coder, tuple(lines))
        self.check(coder, state, tuple(events))

    @pytest.mark.parametrize(
        "line",
        [
            b"",
            b"{",
            b"null",
            b"[]",
            b'{"type":null}',
            b'{"type":"' + b"a" * 3_000_000 + b'"}',
            b"[" * 50_000,
            b'{"type":"text","text":"\\ud83d cut"}',
            b'{"type":"text","text":"\xff\xfe"}',
            b"\x00\x85\xe2\x80\xa8",
        ],
        ids=lambda line: repr(line[:20]),
    )
    def test_odd_lines(self, coder: Coder, line: bytes) -> None:
        """Halves of characters, megabytes and depth are taken as they come."""
        state, said = coder.parse(coder.begin(), line)
        self.check(coder, state, said)

    def test_another_process_can_go_on_in_the_middle(self, coder: Coder) -> None:
        """Stopping after any line, storing the state and going on elsewhere gives the same events and outcome."""
        whole, events = self.play(coder, self.transcript)
        state, again = coder.begin(), list[AnySaid]()
        for line in self.transcript:
            state = msgspec.json.decode(msgspec.json.encode(state), type=coder.state_type)
            state, said = coder.parse(state, line)
            again += said
        assert again == events
        for end in ENDS:
            assert coder.outcome(state, end, "") == coder.outcome(whole, end, "")

    def test_parsing_changes_nothing_it_was_given(self, coder: Coder) -> None:
        """The state before a line is the same after it."""
        state = coder.begin()
        for line in self.transcript:
            before = msgspec.json.encode(state)
            after, _ = coder.parse(state, line)
            assert msgspec.json.encode(state) == before
            state = after

    @pytest.mark.parametrize("end", ENDS, ids=str)
    def test_every_end_has_an_outcome(self, coder: Coder, end: Exit) -> None:
        """Whatever the exit, there is a kind and a reason; what Fleet ended is never ok."""
        for state in (coder.begin(), self.play(coder, self.transcript)[0]):
            outcome = coder.outcome(state, end, "some words\non stderr\n")
            assert isinstance(outcome, Outcome)
            assert outcome.reason
            assert outcome.remedy
            if end.stopped_for:
                assert outcome.kind is not OutcomeKind.OK

    def test_a_silent_failure_is_not_ok(self, coder: Coder) -> None:
        """No output and a bad exit code, a signal, or an end that nobody saw: none of them is success."""
        for end in (Exit(code=1), Exit(code=None, signal=9), Exit(code=None)):
            assert coder.outcome(coder.begin(), end, "").kind is not OutcomeKind.OK

    def check(self, coder: Coder, state: Any, said: tuple[AnySaid, ...]) -> None:
        """State and events can be stored, and no text is long."""
        assert isinstance(state, coder.state_type)
        assert msgspec.json.decode(msgspec.json.encode(state), type=coder.state_type) == state
        for event in said:
            assert isinstance(event, get_args(AnySaid))
            assert msgspec.json.decode(msgspec.json.encode(event), type=AnySaid) == event
            texts = [getattr(event, name) for name in event.__struct_fields__]
            assert all(len(text) <= LONGEST + 100 for text in texts if isinstance(text, str))
        for end in ENDS:
            assert coder.outcome(state, end, "").reason
