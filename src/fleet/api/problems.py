"""Errors as RFC 9457 problem details: one shape for everything that is refused or fails."""

from __future__ import annotations

from http import HTTPStatus

import msgspec

from fleet import errors
from fleet.errors import FleetError, SpecError

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 1
STATUSES: tuple[tuple[type[FleetError], int], ...] = (  # the first that fits
    (errors.SpecError, 422),
    (errors.UsageError, 400),
    (errors.NotFound, 404),
    (errors.Conflict, 409),
    (errors.StoreFull, 507),
    (errors.StoreReadOnly, 503),
    (errors.ProgramMissing, 501),
)


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong. `hint` says what to do about it."""

    type: str
    title: str
    status: int
    detail: str
    hint: str = ""
    problems: tuple[str, ...] = ()  # of a spec, each with its path


class Refused(Exception):
    """The request is refused before it reaches anything."""

    def __init__(self, status: int, detail: str, *, hint: str = "", headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.hint = hint
        self.headers = headers or {}


def of_refused(exc: Refused) -> Problem:
    """What a refusal comes to."""
    return _problem(exc.status, HTTPStatus(exc.status).phrase, str(exc), hint=exc.hint)


def of_error(exc: FleetError) -> Problem:
    """What an error of Fleet comes to."""
    status = next((code for kind, code in STATUSES if isinstance(exc, kind)), 503 if exc.retryable else 500)
    words = "".join(f" {char.lower()}" if char.isupper() else char for char in type(exc).__name__).strip()
    problems = exc.problems[: errors.MOST_SHOWN] if isinstance(exc, SpecError) else ()
    return _problem(status, words.capitalize(), str(exc), hint=exc.hint, problems=problems)


def of_status(status: int, detail: str) -> Problem:
    """What a refusal of the framework comes to."""
    return _problem(status, HTTPStatus(status).phrase, detail)


def headers_of(problem: Problem) -> dict[str, str]:
    """What the status asks to be said beside it."""
    return {"retry-after": str(RETRY_SECONDS)} if problem.status == HTTPStatus.SERVICE_UNAVAILABLE else {}


def _problem(status: int, title: str, detail: str, *, hint: str = "", problems: tuple[str, ...] = ()) -> Problem:
    name = title.lower().replace(" ", "-").replace("'", "")
    return Problem(
        type=f"urn:fleet:problem:{name}", title=title, status=status, detail=detail, hint=hint, problems=problems
    )
