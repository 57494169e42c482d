"""Coders that speak Fleet's own vocabulary, or whose words are put into it one by one: what they share.

A line of it is an event of `fleet.model.stream` as JSON, such as {"kind": "text", "text": "hello"}. A `turn_ended`
that is not ok may name an outcome as its reason.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from fleet.coders.coder import Exit
from fleet.coders.judging import by_error, by_exit, by_finish, by_stop
from fleet.coders.reading import BROKEN
from fleet.coders.shortening import LONGEST, last_line, one_line, short
from fleet.model.outcome import Outcome, OutcomeKind
from fleet.model.stream import AnySaid, Denied, Limited, Started, Text, ToolEnded, TurnEnded

LARGEST_CODE = 128  # beyond it, a shell tells of a signal
TEXTS = ("text", "input", "output", "reason", "final_text", "tool", "name", "id")
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(AnySaid).decode


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What decides the outcome."""

    coder_session: str | None = None
    tools_ok: int = 0
    denied: str = ""
    resets_at: int | None = None
    ended: TurnEnded | None = None
    last_text: str = ""


def read(line: bytes) -> AnySaid | None:
    """A line of the vocabulary; None when it is none."""
    try:
        said = _decode(line)
    except BROKEN:
        return None
    return said if len(line) <= LONGEST else bounded(said)


def bounded(said: AnySaid) -> AnySaid:
    """The same event with its texts in short."""
    texts = {name: getattr(said, name, None) for name in TEXTS}
    return replace(said, **{name: short(text) for name, text in texts.items() if isinstance(text, str)})


def checked(said: AnySaid) -> AnySaid:
    """The event of a plugin, with short texts. Raises ValueError or TypeError when a field is of another type."""
    return bounded(_decode(_encode(said)))


def words_of(line: bytes) -> tuple[AnySaid, ...]:
    """A line of plain text."""
    text = line.decode("utf-8", "replace").rstrip()
    return (Text(text=short(text)),) if text else ()


def note(state: State, said: AnySaid) -> State:
    """The state after one more event."""
    if isinstance(said, Text):
        return replace(state, last_text=said.text)
    if isinstance(said, ToolEnded):
        return replace(state, tools_ok=state.tools_ok + said.ok)
    if isinstance(said, TurnEnded):
        return replace(state, ended=said)
    if isinstance(said, Denied):
        return replace(state, denied=said.tool)
    if isinstance(said, Limited):
        return replace(state, resets_at=said.resets_at if said.rejected else None)
    if isinstance(said, Started):
        return replace(state, coder_session=said.coder_session)
    return state


def outcome(state: State, exit: Exit, stderr: str) -> Outcome:
    """By our own stop, the last end of a turn, the exit code and stderr. Exit code 0 alone is taken as ok."""
    if stopped := by_stop(exit, stderr, state.resets_at):
        return stopped
    if state.ended and not state.ended.ok:
        return _failed(state.ended, state)
    if not state.ended and (exit.code != 0 or exit.signal):
        return by_exit(exit, stderr)
    said = (state.ended.final_text if state.ended else None) or state.last_text or "it ended with exit code 0"
    return by_finish(said, denied=state.denied, worked=state.tools_ok > 0)


def _failed(ended: TurnEnded, state: State) -> Outcome:
    try:
        kind = OutcomeKind(ended.reason)
    except ValueError:
        return by_error(ended.reason or "it says that it failed", resets_at=state.resets_at)
    reason = one_line(ended.final_text or state.last_text) or f"it says: {kind}"
    return Outcome(kind=kind, reason=reason, resets_at=state.resets_at if kind is OutcomeKind.PLAN_LIMIT else None)


def by_code_alone(exit: Exit, stderr: str) -> Outcome:
    """For programs whose words mean nothing to us: a test that prints `401` has not failed to sign in."""
    if exit.code == 0 and not exit.signal:
        return Outcome(kind=OutcomeKind.OK, reason="exit code 0")
    judged = by_exit(exit, "")
    said = last_line(stderr)
    if exit.signal or not exit.code or (not said and exit.code > LARGEST_CODE):
        return judged
    return replace(judged, reason=f"exit code {exit.code}" + (f": {said}" if said else ", and nothing on stderr"))
