"""Hooks: what claude and codex tell a worker of a pool about what they do, in the same words."""

from __future__ import annotations

import shlex
from typing import Any

import msgspec

from fleet.coders.reading import BROKEN, words

SECONDS = 20  # that one may take
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def command(directory: str, event: str) -> str:
    """The line for sh by which the worker in a directory is told of an event."""
    return f"sh {shlex.quote(f'{directory}/worker.sh')} hook {event}"


def received(heard: bytes) -> str | None:
    """The prompt of a UserPromptSubmit."""
    told = fields(heard).get("prompt")
    return words(told) if told is not None else None


def last_words(heard: bytes) -> str:
    """The last message, as Stop is told."""
    return words(fields(heard).get("last_assistant_message"))


def record(heard: bytes) -> str:
    """Every hook is told where the record of the conversation is."""
    return words(fields(heard).get("transcript_path"))


def fields(heard: bytes) -> dict[str, Any]:
    """A line of JSON; nothing, where it is broken."""
    try:
        return _decode(heard)
    except BROKEN:
        return {}
