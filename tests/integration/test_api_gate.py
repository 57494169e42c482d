"""The gate of the API: who may come in, from where, how often, and with how much."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.config.tokens import Role
from tests.support.api import Asked, asked

RUNS = "/v1/fleet/runs"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Asked]:
    """The API of a home with nothing in it."""
    with asked(tmp_path) as found:
        yield found


def test_only_health_needs_no_token(api: Asked) -> None:
    """Every route of the document but the health check answers 401 to who shows no token, as a problem."""
    document = api.get("/openapi.json")
    assert document["openapi"].startswith("3.1")
    assert api.ask("GET", "/v1/fleet/health", role=None).json()["status"] == "ok"
    paths = [("GET", "/v1/fleet/openapi.json"), ("GET", "/nothing")]
    paths += [
        (verb.upper(), re.sub(r"\{\w+\}", "x", path)) for path, verbs in document["paths"].items() for verb in verbs
    ]
    assert len(paths) > 25
    for verb, path in paths:
        if path.endswith("/health"):
            continue
        api.desk.hub.generation += 1
        found = api.ask(verb, path, role=None)
        assert found.status_code in (401, 429), path
        assert found.headers["content-type"] == "application/problem+json"
    assert api.ask("GET", RUNS).status_code == 200  # who has a good one is not slowed by those who have none


def test_wrong_tokens_are_refused_and_slowed(api: Asked) -> None:
    """A wrong token, another scheme and a longer one are 401 with the scheme to use; many of them are 429."""
    good = api.tokens[Role.READ]
    for shown in ("Bearer wrong", f"Basic {good}", f"Bearer {good}x", f"Bearer {good[:-1]}", "", good):
        found = api.ask("GET", RUNS, role=None, headers={"authorization": shown})
        assert (found.status_code, found.headers["www-authenticate"]) == (401, 'Bearer realm="fleet"'), shown
    codes = [api.ask("GET", RUNS, role=None).status_code for _ in range(12)]
    assert codes[-1] == 429


def test_a_token_that_was_removed_is_good_no_longer(api: Asked) -> None:
    """Removing a line of api-tokens takes the token back at once, without a restart."""
    assert api.ask("GET", RUNS, role=Role.READ).status_code == 200
    kept = [line for line in api.home.tokens.read_text().splitlines() if not line.startswith("read ")]
    api.home.tokens.write_text("\n".join(kept) + "\n")
    assert api.ask("GET", RUNS, role=Role.READ).status_code == 401
    assert api.ask("GET", RUNS, role=Role.ADMIN).status_code == 200


def test_tokens_that_others_may_read_are_not_used(api: Asked) -> None:
    """Once the file of tokens is open to others, nobody is let in, and the answer says what to do."""
    assert os.stat(api.home.tokens).st_mode & 0o777 == 0o600
    api.home.tokens.write_text(api.home.tokens.read_text() + "# changed\n")
    api.home.tokens.chmod(0o644)
    found = api.ask("GET", RUNS)
    assert found.status_code == 500
    assert "chmod" not in found.text, "nothing about the home is told to who has shown no good token"
    assert "chmod 600" in api.told[-1]


def test_a_name_that_points_here_is_not_enough(api: Asked) -> None:
    """DNS rebinding: a host name of somebody else is refused with a good token too, also for the health check."""
    for host in ("evil.example", "evil.example:7878", "127.0.0.1.evil.example", "localhost.evil.example:80", ""):
        found = api.ask("GET", RUNS, headers={"host": host})
        assert found.status_code == 421, host
        assert api.ask("GET", "/v1/fleet/health", headers={"host": host}).status_code == 421
    for host in ("localhost", "LOCALHOST:1", "127.0.0.1:9", "[::1]:7878"):
        assert api.ask("GET", RUNS, headers={"host": host}).status_code == 200, host


def test_other_origins_are_refused(api: Asked) -> None:
    """CSRF: a page of another origin cannot ask, whatever it sends along; one of ours can."""
    for origin in ("https://evil.example", "null", "http://127.0.0.1.evil.example", "file://", "http://localhost:7878"):
        assert api.ask("GET", RUNS, headers={"origin": origin}).status_code == 403, origin
    assert api.ask("GET", RUNS, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert api.ask("GET", RUNS, headers={"origin": "http://127.0.0.1:7878"}).status_code == 200
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        found = api.ask("POST", "/v1/fleet/tasks", content=b'{"title":"x"}', headers={"content-type": kind})
        assert found.status_code == 415, kind
    assert api.store.counts() == {}


def test_names_and_origins_can_be_allowed(tmp_path: Path) -> None:
    """[api] names and origins let further ones in."""
    with asked(tmp_path, names=("fleet.example",), origins=("https://desk.example",)) as api:
        given = {"host": "fleet.example:443", "origin": "https://desk.example"}
        assert api.ask("GET", RUNS, headers=given).status_code == 200


def test_headers_that_decide_come_once(api: Asked) -> None:
    """Two hosts, origins or tokens in one request are refused: somebody else may read the other one."""
    twice = [("host", "127.0.0.1"), ("host", "evil.example")]
    assert api.ask("GET", RUNS, headers=twice).status_code == 400


def test_a_token_in_an_address_is_refused(api: Asked) -> None:
    """A token among the parameters is refused even where it is good, and is not repeated."""
    token = api.tokens[Role.ADMIN]
    found = api.ask("GET", f"{RUNS}?token={token}")
    assert found.status_code == 400
    assert token not in found.text
    assert api.ask("GET", f"{RUNS}?limit=5&ACCESS_TOKEN=x").status_code == 400


def test_a_parameter_that_is_not_known_is_refused(api: Asked) -> None:
    """A filter with a typing error is no look at everything; what there is instead is told."""
    found = api.ask("GET", "/v1/fleet/tasks?stauts=failed")
    assert (found.status_code, found.json()["detail"]) == (400, "there is no parameter `stauts`")
    assert "status" in found.json()["hint"]
    assert api.ask("GET", "/v1/fleet/board?x=1").status_code == 400
    assert api.ask("POST", "/v1/fleet/tasks?x=1", json={"title": "x"}).status_code == 400
    assert api.ask("GET", "/v1/fleet/tasks?status=failed&status=queued&limit=5").status_code == 200


def test_large_requests_are_not_read(tmp_path: Path) -> None:
    """A body over the bound is 413, told beforehand or not; one without a bottom is 400, a compressed one 415."""
    with asked(tmp_path, max_body_kib=8) as api:
        body = b'{"title":"' + b"x" * 10_000 + b'"}'
        given = {"content-type": "application/json"}
        assert api.ask("POST", "/v1/fleet/tasks", content=body, headers=given).status_code == 413

        async def pieces() -> object:
            for _ in range(20):
                yield b"x" * 1000

        assert api.ask("POST", "/v1/fleet/tasks", content=pieces(), headers=given).status_code == 413
        deep = b"[" * 6000 + b"]" * 2000
        assert api.ask("POST", "/v1/fleet/tasks", content=deep, headers=given).status_code == 400
        packed = {**given, "content-encoding": "gzip"}
        assert api.ask("POST", "/v1/fleet/tasks", content=b"x", headers=packed).status_code == 415
        assert api.store.counts() == {}


def test_each_token_has_its_rate(tmp_path: Path) -> None:
    """Who asks too often is told when to come again; others are not held up by it."""
    with asked(tmp_path, requests_per_second=1) as api:
        codes = [api.ask("GET", RUNS, role=Role.READ).status_code for _ in range(4)]
        assert 429 in codes
        assert int(api.ask("GET", RUNS, role=Role.READ).headers["retry-after"]) >= 1
        assert api.ask("GET", RUNS, role=Role.OPERATE).status_code == 200


def test_roles(api: Asked) -> None:
    """read looks, operate also steers and submits, admin also sees the settings."""
    wanted = {Role.READ: (200, 403, 403), Role.OPERATE: (200, 201, 403), Role.ADMIN: (200, 201, 200)}
    for role, codes in wanted.items():
        found = (
            api.ask("GET", RUNS, role=role).status_code,
            api.post("/tasks", {"title": "x"}, role=role).status_code,
            api.ask("GET", "/v1/fleet/config", role=role).status_code,
        )
        assert found == codes, role
