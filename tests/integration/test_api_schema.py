"""The API under requests that its own document describes, and under others: nothing that is sent makes it fail."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from jsonschema import Draft202012Validator

from fleet.config.tokens import Role
from tests.support.api import Asked, asked

CASES = int(os.environ.get("FLEET_API_CASES", "150"))  # in all; `FLEET_API_CASES=10000` for a long look
ENDLESS = "/v1/fleet/events"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Asked]:
    """The API of a home with a run and a task, asked as often as one likes."""
    with asked(tmp_path, requests_per_second=1_000_000) as found:
        found.post("/runs", {"name": "two", "tasks": [{"id": "a", "command": ["true"]}]})
        found.post("/tasks", {"title": "x"})
        yield found


def test_programs_can_be_made_of_the_document(api: Asked) -> None:
    """No two objects have one name, every default is a value that may be given, and errors are told as they come."""
    document = api.get("/openapi.json")
    schemas = document["components"]["schemas"]
    assert len({one.get("title", name) for name, one in schemas.items()}) == len(schemas)
    parts: list[Any] = [document]
    while parts:
        part = parts.pop()
        parts += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        if isinstance(part, dict) and "default" in part and "type" in part:
            Draft202012Validator({key: value for key, value in part.items() if key != "$ref"}).validate(part["default"])
    stopping = document["paths"]["/v1/fleet/workers/{worker_id}/stop"]["post"]
    assert stopping["requestBody"]["required"] is False  # a reason may be given, and need not be
    for operation in (one for verbs in document["paths"].values() for one in verbs.values()):
        assert list(operation["responses"]["default"]["content"]) == ["application/problem+json"]
        assert "" not in [kind for one in operation["responses"].values() for kind in one.get("content", {})]
        assert all(status < "400" for status in operation["responses"] if status != "default")


@pytest.mark.timeout(0 if CASES > 1000 else 120)
def test_no_request_makes_it_fail(api: Asked) -> None:
    """Whatever is sent to whichever route, the answer is below 500, and an error is a problem detail."""
    import schemathesis  # takes longer than all other imports, in every process that collects tests

    schema = schemathesis.openapi.from_dict(api.get("/openapi.json"))
    every: Any = [found.ok() for found in schema.get_all_operations()]  # type: ignore[union-attr]  # or it raises
    operations = [one for one in every if one.path != ENDLESS]
    sent: list[int] = []
    for operation in operations:

        @settings(
            max_examples=max(1, CASES // len(operations)),
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def one(case: Any) -> None:
            sent.append(_send(api, case))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the generator, about its own work
            one()
    assert len(operations) > 25
    assert len({status // 100 for status in sent}) > 1, "some were taken, and some refused"
    assert api.told == []


def _send(api: Asked, case: Any) -> int:
    made = case.as_transport_kwargs(base_url="http://127.0.0.1:7878")
    headers = {name: value for name, value in dict(made.get("headers") or {}).items() if _fits(name, value)}
    headers.pop("Authorization", None)
    found = api.ask(
        made["method"],
        made["url"],
        role=Role.ADMIN,
        headers=headers,
        params=made.get("params") or None,
        **{name: made[name] for name in ("json",) if name in made},
    )
    assert found.status_code < 500, (made, found.text, api.told)
    if found.status_code >= 400:
        assert found.headers["content-type"] == "application/problem+json", made
        assert found.json()["status"] == found.status_code
    return found.status_code


def _fits(name: str, value: object) -> bool:
    """Whether a client can send such a header at all."""
    return str(value).isascii() and str(value).isprintable() and name.isascii()
