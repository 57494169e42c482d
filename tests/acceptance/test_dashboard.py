"""`fleet dashboard`: finds where a home is served, chooses a token, and gives both to a browser."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path

import httpx
import pytest

from tests.acceptance.test_serve import SECONDS, served
from tests.support.cli import Cli


@pytest.fixture
def browser(cli: Cli) -> Path:
    """A browser that writes down what it was started with."""
    program, words = cli.path / "browser", cli.path / "words"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >{words}\n')
    program.chmod(0o755)
    cli.env["BROWSER"] = str(program)
    return words


def redeem(client: httpx.Client, link: str) -> httpx.Response:
    """What the page does with a link."""
    url, _, code = link.partition("#code=")
    return client.post(f"{url}page/token", json={"code": code}, headers={"authorization": ""})


def test_it_opens_without_showing_the_token(cli: Cli, browser: Path) -> None:
    """The browser is given a file for its owner alone, which leads to the page; the link is no word of a process."""
    token = cli.home.tokens.read_text().split()[-1]
    with served(cli) as (client, _):
        done = cli.ok("dashboard")
        assert done.out == ""
        assert f"Opened {client.base_url}/ as ana (admin)" in done.err
        assert browser.read_text().strip() == cli.home.dashboard.as_uri()
        assert cli.home.dashboard.stat().st_mode & 0o777 == 0o600
        link = re.search(r'url=([^"]+)', cli.home.dashboard.read_text())
        assert link is not None
        assert link[1].startswith(f"{client.base_url}/#code=")
        assert redeem(client, link[1]).json() == {"token": token}
        told = cli.json("dashboard")
        assert told == {"link": told["link"], "url": f"{client.base_url}/", "name": "ana", "role": "admin"}
        for each in (told["link"], cli.ok("dashboard", "--print").out.strip()):
            assert redeem(client, each).json() == {"token": token}


def test_a_link_is_good_once_and_not_for_long(cli: Cli) -> None:
    """Used, old, made up, or of a token that was taken back: a link gives nothing, and holds no token itself."""
    with served(cli) as (client, _):
        used, old, stale = (cli.json("dashboard")["link"] for _ in range(3))
        assert redeem(client, used).status_code == 200
        (one, other) = cli.home.codes.iterdir()
        assert "flt_" not in used + one.read_text() + other.read_text()
        for path in (one, other):
            os.utime(path, (time.time() - 601, time.time() - 601))
        assert redeem(client, old).status_code == 404
        fresh = cli.json("dashboard")["link"]
        assert len(list(cli.home.codes.iterdir())) == 1, "old ones are removed when one is made"
        found = redeem(client, stale)
        assert (found.status_code, found.json()["hint"]) == (404, "`fleet dashboard` makes a new one")
        for code in ("", "x", "../api-tokens", "\ud800"):
            assert client.post("/page/token", content=json.dumps({"code": code})).status_code in (400, 404)
        assert redeem(client, used).status_code == 404
        cli.home.tokens.write_text("")
        assert redeem(client, fresh).status_code == 404


def test_without_a_browser_the_link_is_printed(cli: Cli) -> None:
    """Over ssh, say: no display, so the link is data, and it is said what it is."""
    with served(cli) as (client, _):
        done = cli.ok("dashboard")
        assert done.out.startswith(f"{client.base_url}/#code=")
        assert "No browser" in done.err
        assert not cli.home.dashboard.exists()


def test_a_token_is_chosen_by_its_role(cli: Cli) -> None:
    """--role takes a token of that very role; where there is none it says how to make one."""
    with served(cli) as (client, _):
        done = cli.run("dashboard", "--role", "read")
        assert (done.code, "fleet serve token NAME --role read" in done.err) == (4, True)
        made = cli.json("serve", "token", "wall", "--role", "read")
        assert redeem(client, cli.json("dashboard", "--role", "read")["link"]).json() == {"token": made["token"]}
        assert cli.json("dashboard")["name"] == "ana"


def test_nothing_serves_this_home(cli: Cli) -> None:
    """Before a server, after it, and after one that was killed: told, with what to run. Another's port is not asked."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        done = cli.run("dashboard", "--print")
        assert (done.code, done.out) == (1, "")
        assert "nothing serves this home" in done.err
        assert "fleet run --serve" in done.err
        with served(cli) as (client, process):
            assert cli.json("dashboard")["url"] == f"{client.base_url}/"
            process.send_signal(sign)
            process.wait(SECONDS)
    assert cli.run("dashboard").code == 1
    assert len(os.listdir(cli.home.serving)) == 1, "what the killed one left says nothing"
    with served(cli) as (client, _), served(cli) as (newer, _):
        assert len(os.listdir(cli.home.serving)) == 2, "and is removed by the next"
        assert cli.json("dashboard")["url"] == f"{newer.base_url}/"


def test_elsewhere_the_token_is_not_written_down(cli: Cli, browser: Path) -> None:
    """With --url the browser gets the address alone, and the page asks; a token that is not good is told at once."""
    token = cli.home.tokens.read_text().split()[-1]
    with served(cli) as (client, _):
        url = str(client.base_url)
        away = ("--url", url, "dashboard")
        done = cli.ok(*away, env={"FLEET_TOKEN": token})
        assert browser.read_text().strip() == f"{url}/"
        assert (token in done.err, "$FLEET_TOKEN" in done.err) == (False, True)
        assert not cli.home.dashboard.exists()
        assert cli.ok(*away, "--print", env={"FLEET_TOKEN": token}).out.strip() == f"{url}/"
        assert cli.run(*away, env={"FLEET_TOKEN": "flt_" + "x" * 43}).code == 1
        assert cli.run(*away, "--role", "read", env={"FLEET_TOKEN": token}).code == 2


def test_the_server_says_where_it_is(cli: Cli) -> None:
    """`fleet serve` names the page's address, without a token."""
    with served(cli) as (client, process):
        process.send_signal(signal.SIGTERM)
        said = process.stderr.read().decode() if process.stderr else ""
    assert f"Dashboard: {client.base_url}/ " in said
    assert "flt_" not in said
