"""The file that gemini keeps of a conversation, as of 0.61."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fleet.coders.coder import Exit
from fleet.coders.gemini import Gemini
from fleet.model.outcome import OutcomeKind
from fleet.model.stream import AnySaid, Context

REPLY = b'{"id":"1","type":"gemini","content":"","tokens":{"input":9099,"total":9130},"model":"gemini-2.5-pro"}'
LARGER = REPLY.replace(b"9130", b"9409")
REFUSED = b'{"type":"result","status":"error","error":{"message":"[API Error: Something about it.]"}}'


def test_a_reply_tells_the_size_of_the_context_once() -> None:
    """It is written down again when its tools have ended; a user's words and its own notes tell nothing."""
    coder, state = Gemini(), Gemini().begin()
    told: list[AnySaid] = []
    for line in (b'{"sessionId":"x"}', REPLY, b'{"$set":{"lastUpdated":"y"}}', REPLY, b'{"type":"user"}', LARGER):
        before = state.noted
        state, said = coder.parse_aside(state, line)
        assert state.noted == before + len(line) + 1
        told += said
    assert told == [Context(tokens=9130, window=1_048_576), Context(tokens=9409, window=1_048_576)]


def test_the_file_is_known_once_the_conversation_has_a_name() -> None:
    """By the beginning of its id, which is the end of the file's name."""
    coder, state = Gemini(), Gemini().begin()
    assert coder.aside(state) is None
    state, _ = coder.parse(state, b'{"type":"init","session_id":"0f81b112-66c3-422c-a8a3-3fb53c21bb32","model":"m"}')
    aside = coder.aside(state)
    assert aside is not None
    assert (aside.find[-1], aside.cursor) == ("0f81b112", 0)


def test_the_exit_code_tells_what_the_words_do_not() -> None:
    """173 is 429 modulo 256: a rate limit, whatever the result says."""
    coder, state = Gemini(), Gemini().begin()
    state, _ = coder.parse(state, REFUSED)
    assert coder.outcome(state, Exit(code=173), "").kind is OutcomeKind.TRANSIENT
    assert coder.outcome(state, Exit(code=145), "").kind is OutcomeKind.AUTH


@given(st.binary(max_size=60).map(lambda data: b'{"type":"gemini","tokens":' + data))
def test_nothing_in_it_breaks_the_reading(line: bytes) -> None:
    """A broken line tells nothing."""
    coder = Gemini()
    assert coder.parse_aside(coder.begin(), line)[0].noted == len(line) + 1
