"""The files of the dashboard: given to everybody who asks in the right place, and nothing else with them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from fleet.api.dashboard import EXCHANGE, parts
from fleet.config import codes, tokens
from tests.support.api import Asked, asked


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """The API of a home."""
    with asked(tmp_path_factory.mktemp("api")) as found:
        yield found


def test_every_file_is_given_without_a_token_as_what_it_is(api: Asked) -> None:
    """Each file of the page comes whole, with the headers that keep it from doing or becoming anything else."""
    names = {file.name for file in (files("fleet.api") / "page").iterdir()}
    assert len(parts()) == len(names), "all of them are served"
    assert {"/", "/page/main.js", "/page/page.css"} <= parts().keys()
    for path, part in parts().items():
        found = api.ask("GET", path, role=None)
        assert (found.status_code, found.content) == (200, part.body), path
        assert found.headers["content-type"].partition(";")[0] == part.media_type
        assert found.headers["x-content-type-options"] == "nosniff"
        assert found.headers["referrer-policy"] == "no-referrer"
        assert found.headers["cross-origin-opener-policy"] == "same-origin"
        assert found.headers["cache-control"] == "no-cache"
        policy = found.headers["content-security-policy"]
        assert {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} <= set(policy.split("; "))
        assert "unsafe" not in policy
    assert api.ask("GET", "/", role=None).headers["content-type"] == "text/html; charset=utf-8"


def test_they_are_sent_once(api: Asked) -> None:
    """Who has a file already is told so, and gets nothing; who has another one gets this one."""
    tag = api.ask("GET", "/", role=None).headers["etag"]
    again = api.ask("GET", "/", role=None, headers={"if-none-match": f'"x", W/{tag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert "content-security-policy" in again.headers
    assert api.ask("GET", "/", role=None, headers={"if-none-match": '"x"'}).status_code == 200


def test_nothing_else_is(api: Asked) -> None:
    """What is no file of the page needs a token, as everything does; and with one there is nothing there."""
    others = ["/page", "/page/", "/page/nothing.js", "/page/index.html", "/page/../gate.py", "/page/%2e%2e/gate.py"]
    others += ["/page//etc/passwd", "/page/..%2fgate.py", "/page/page", "/index.html", "/favicon.ico", "/PAGE/main.js"]
    for path in others:
        assert api.ask("GET", path).status_code == 404, path
    for path in [*others, "/page/main.js/"]:
        assert api.ask("GET", path, role=None).status_code in (401, 429), path


def test_where_they_are_asked_for_is_checked(api: Asked) -> None:
    """Another host, another origin, a token in the address: refused for the page as for everything else."""
    for path in ("/", "/page/main.js"):
        assert api.ask("GET", path, role=None, headers={"host": "evil.example"}).status_code == 421
        assert api.ask("GET", path, role=None, headers={"origin": "https://evil.example"}).status_code == 403
        assert api.ask("GET", f"{path}?token=x", role=None).status_code == 400
        assert api.ask("POST", path, role=None, json={}).status_code == 405


def test_the_exchange_takes_little_and_from_nowhere_else(api: Asked) -> None:
    """A code gives its token once, to the page; what is long, no JSON, or of another origin is refused."""
    code = codes.make(api.home, tokens.read(api.home)[0])
    body = {"code": code}
    evil = {"origin": "https://evil.example"}
    assert api.ask("POST", EXCHANGE, role=None, json=body, headers=evil).status_code == 403
    assert api.ask("POST", EXCHANGE, role=None, data=body).status_code == 415
    assert api.ask("POST", EXCHANGE, role=None, json={**body, "more": "x" * 2000}).status_code == 413
    assert api.ask("POST", EXCHANGE, role=None, json={**body, "more": "x"}).status_code == 400
    found = api.ask("POST", EXCHANGE, role=None, json=body)
    assert (found.status_code, found.headers["cache-control"]) == (200, "no-store")
    assert found.json()["token"] in api.tokens.values()
    assert api.ask("POST", EXCHANGE, role=None, json=body).status_code == 404


def test_a_link_elsewhere_may_lead_to_the_page_and_to_nothing_more(api: Asked) -> None:
    """A visit from another site is let in to the page, in no frame; the API stays closed to other sites."""
    visit = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert api.ask("GET", "/", role=None, headers=visit).status_code == 200
    for dest in ("iframe", "script", "empty", "embed"):
        assert api.ask("GET", "/", role=None, headers={**visit, "sec-fetch-dest": dest}).status_code == 403
    assert api.ask("GET", "/v1/fleet/runs", headers=visit).status_code == 403


def test_the_page_knows_no_home(tmp_path: Path) -> None:
    """The files are the same whatever home is served: they hold nothing of it."""
    with asked(tmp_path) as one:
        first = one.ask("GET", "/", role=None).content
        assert str(one.home.path).encode() not in first
        assert first == parts()["/"].body
