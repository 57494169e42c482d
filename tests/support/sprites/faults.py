"""The fault switches of the stand-in: what a test may make go wrong."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Faults:
    """Of one sprite."""

    wake_seconds: float = 0.0  # how long it takes to wake
    hang: bool = False  # it takes a command and says nothing, for ever
    drop_before_exit: bool = False  # the connection is cut when the command has ended
    drop_after_bytes: int | None = None  # ... or in the middle of its output
    early_text_exit: bool = False  # the end is told as text, with code 0, before the first output
    only_text_exit: bool = False  # the end is told as text alone
    close_early: bool = False  # a clean goodbye, and not one frame: the command may or may not have run
    vanished: bool = False  # the API has never heard of it
    refuse: int = 0  # the status that every request on it is answered with
    refuse_handshake: int = 0  # ... that every command is


@dataclass
class ApiFaults:
    """Of the whole API."""

    refuse: int = 0
    refuse_times: int | None = None  # so often, then no more; None: always
    retry_after: str = ""  # sent with a refusal
    running_limit: int | None = None
    creation_limit: int | None = None
    endless_pages: bool = False  # it says that there is more, without a token to ask for it
    same_token: bool = False  # ... or with the token that it was given
    no_websocket: bool = False  # something on the way does not let one through
    nothing_listed: bool = False  # the list is empty, whatever there is
