"""`fleet dashboard`: finds where a home is served, chooses a token, and gives both to a browser."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

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


def test_it_opens_without_showing_the_token(cli: Cli, browser: Path) -> None:
    """The browser is given a file for its owner alone, which leads to the page; the token is no word of a process."""
    token = cli.home.tokens.read_text().split()[-1]
    with served(cli) as (client, _):
        done = cli.ok("dashboard")
        assert (done.out, token in done.err) == ("", False)
        assert f"{client.base_url}/ is opened, as ana (admin)" in done.err
        assert browser.read_text().strip() == cli.home.dashboard.as_uri()
        assert cli.home.dashboard.stat().st_mode & 0o777 == 0o600
        link = re.search(r'url=([^"]+)', cli.home.dashboard.read_text())
        assert link is not None
        assert link[1] == f"{client.base_url}/#token={token}"
        assert cli.ok("dashboard", "--print").out.strip() == link[1]
        told = cli.json("dashboard")
        assert told == {"url": f"{client.base_url}/", "link": link[1], "name": "ana", "role": "admin"}


def test_without_a_browser_the_link_is_printed(cli: Cli) -> None:
    """Over ssh, say: no display, so the link is data, and it is said what it is."""
    with served(cli) as (client, _):
        done = cli.ok("dashboard")
        assert done.out.startswith(f"{client.base_url}/#token=flt_")
        assert "No browser" in done.err
        assert not cli.home.dashboard.exists()


def test_a_token_is_chosen_by_its_role(cli: Cli) -> None:
    """--role takes a token of that very role; where there is none it says how to make one."""
    with served(cli):
        done = cli.run("dashboard", "--role", "read")
        assert (done.code, "fleet serve token NAME --role read" in done.err) == (4, True)
        made = cli.json("serve", "token", "wall", "--role", "read")
        assert cli.json("dashboard", "--role", "read")["link"].endswith(f"#token={made['token']}")
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
    """With --url the browser gets the address alone, and the page asks; --print gives the whole link."""
    token = cli.home.tokens.read_text().split()[-1]
    with served(cli) as (client, _):
        url = str(client.base_url)
        away = ("--url", url, "dashboard")
        done = cli.ok(*away, env={"FLEET_TOKEN": token})
        assert browser.read_text().strip() == f"{url}/"
        assert (token in done.err, "$FLEET_TOKEN" in done.err) == (False, True)
        assert not cli.home.dashboard.exists()
        assert cli.ok(*away, "--print", env={"FLEET_TOKEN": token}).out.strip() == f"{url}/#token={token}"
        assert cli.run(*away, env={"FLEET_TOKEN": "flt_" + "x" * 43}).code == 1
        assert cli.run(*away, "--role", "read", env={"FLEET_TOKEN": token}).code == 2


def test_the_server_says_where_it_is(cli: Cli) -> None:
    """`fleet serve` names the page's address, without a token."""
    with served(cli) as (client, process):
        process.send_signal(signal.SIGTERM)
        said = process.stderr.read().decode() if process.stderr else ""
    assert f"Dashboard: {client.base_url}/ " in said
    assert "flt_" not in said
