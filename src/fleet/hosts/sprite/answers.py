"""What the API of sprites answers: a sprite as it tells of one, and its refusals as errors of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from fleet.errors import HostBusy, HostFull, HostMissing, HostUnfit, TransportError

LONGEST_REASON = 300
REFUSED_TOKEN = frozenset({401, 403})
BUSY, UNKNOWN = 429, 404


class Sprite(msgspec.Struct, frozen=True, kw_only=True):
    """A sprite, as its provider tells of it. Older answers tell only the name."""

    name: str
    status: str = ""  # running, warm or cold; advisory: the provider itself may be late
    id: str = ""
    url: str = ""
    labels: tuple[str, ...] = ()
    created_at: str | None = None
    updated_at: str | None = None
    last_running_at: str | None = None


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the list."""

    sprites: tuple[Sprite, ...] = ()
    has_more: bool = False
    next_continuation_token: str | None = None


def refusal(what: str, status: int, body: bytes, headers: Mapping[str, str]) -> TransportError:
    """The error that a refusal stands for. `what` could not be done."""
    told = reason_of(body) or f"status {status}"
    if status in REFUSED_TOKEN:
        return HostUnfit(
            f"{what}: the token is not accepted: {told}",
            hint="give a token of the account that has the sprite; `token_env` of [sprites] names its variable",
        )
    if status == UNKNOWN:
        return HostMissing(f"{what}: {told}")
    if status == BUSY:
        seconds = retry_after(body, headers)
        wait = f"; it asks to be left alone for {seconds:g} s" if seconds else ""
        return HostBusy(f"{what}: {told} (status {status}){wait}", retry_after_seconds=seconds)
    if "no space left" in told.lower():
        return HostFull(f"{what}: No space left on device")
    return TransportError(f"{what}: {told} (status {status})")


def reason_of(body: bytes) -> str:
    """The sentence in a refusal, whichever form it has."""
    text = body.decode("utf-8", "replace").strip()
    found = fields_of(body)
    for word in (found.get("message"), found.get("error"), *_some(found.get("errors"))):
        if isinstance(word, str) and word:
            text = word
            break
    return " ".join(text.split())[:LONGEST_REASON]


def fields_of(body: bytes) -> dict[str, Any]:
    """The object in an answer; empty where there is none."""
    try:
        found = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def retry_after(body: bytes, headers: Mapping[str, str]) -> float:
    """For how long to leave it alone, as it says; 0 where it does not."""
    for word in (headers.get("Retry-After"), fields_of(body).get("retry_after_seconds")):
        try:
            return max(0.0, float(word or ""))
        except (TypeError, ValueError):
            continue
    return 0.0


def _some(value: object) -> list[object]:
    return value if isinstance(value, list) else []
