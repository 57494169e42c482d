"""Whether a sprite is there: doubt grows only by checks that agree."""

from __future__ import annotations

import pytest

from fleet.errors import HostBusy, HostFull, HostMissing, HostUnfit, TransportError
from fleet.hosts.sprite.answers import Sprite, reason_of, refusal, retry_after
from fleet.hosts.sprite.presence import APART_SECONDS, CHECKS, Doubt, Presence


def test_missing_needs_several_checks_over_time() -> None:
    """One check is a doubt; many at once are one; only several over a time are believed."""
    doubt = Doubt("one")
    for number in range(CHECKS * 2):
        assert doubt.not_found(others=3, now=100.0 + number).presence is Presence.MISSING_MAYBE
    seen = doubt.not_found(others=3, now=100.0 + APART_SECONDS)
    assert seen.presence is Presence.MISSING
    assert "3 others" in seen.evidence


def test_a_sprite_that_is_found_again_ends_all_doubt() -> None:
    """After it was found, doubt begins anew."""
    doubt = Doubt("one")
    for now in (0.0, APART_SECONDS / 2):
        doubt.not_found(others=1, now=now)
    assert doubt.found(Sprite(name="one", status="warm")).asleep
    assert doubt.not_found(others=1, now=APART_SECONDS * 2).presence is Presence.MISSING_MAYBE


def test_an_account_without_any_is_the_fault_of_the_api() -> None:
    """Where the list shows nothing at all, no sprite is called missing, however often it is asked."""
    doubt = Doubt("one")
    for number in range(CHECKS * 2):
        seen = doubt.not_found(others=0, now=number * APART_SECONDS)
        assert seen.presence is Presence.MISSING_MAYBE
    assert "the API's own" in seen.evidence


def test_a_status_that_is_not_known() -> None:
    """A word that we do not know is no evidence."""
    assert Doubt("one").found(Sprite(name="one", status="dreaming")).presence is Presence.UNKNOWN


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (401, b'{"error":"authentication failed"}', HostUnfit),
        (404, b"session not found: 7\n", HostMissing),
        (429, b'{"error":"limited","retry_after_seconds":7}', HostBusy),
        (507, b'{"error":"write x: no space left on device"}', HostFull),
        (500, b"", TransportError),
    ],
)
def test_refusals(status: int, body: bytes, error: type[TransportError]) -> None:
    """Each status has its error."""
    assert type(refusal("cannot", status, body, {})) is error


def test_the_words_of_a_refusal() -> None:
    """Every form of a refusal gives a sentence, bounded."""
    assert reason_of(b'{"errors":["invalid name"]}') == "invalid name"
    assert reason_of(b'{"error":"x","message":"too many"}') == "too many"
    assert reason_of(b"plain\nwords\n") == "plain words"
    assert reason_of(b"[1]") == "[1]"
    assert len(reason_of(b"x" * 10_000)) == 300


def test_how_long_to_wait() -> None:
    """The header goes first, then the body; what is no number is nothing."""
    assert retry_after(b'{"retry_after_seconds":7}', {"Retry-After": "3"}) == 3
    assert retry_after(b'{"retry_after_seconds":7}', {}) == 7
    assert retry_after(b"[]", {"Retry-After": "soon"}) == 0
