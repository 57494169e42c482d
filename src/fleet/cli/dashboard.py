"""Open the dashboard in a browser: what needs you, what runs, what is queued, the machines; and every verb.

It is a page that `fleet serve` and `fleet run --serve` give; this command finds where this home is served, and lets
the browser in with a token of `api-tokens`: the first that may operate, or the first of the role that --role says.
Where there is no browser it prints the link. A link is good once, for ten minutes.

Examples:
  fleet dashboard
  fleet dashboard --role read --print
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.errors import NotFound, ServerUnreachable, UsageError

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.config.home import Home
    from fleet.config.tokens import Token

REDIRECT = """\
<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={link}">
<title>Fleet</title>
<p>To the <a href="{link}">dashboard</a>.</p>
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet dashboard`."""
    parser.add_argument("--print", dest="only_print", action="store_true", help="print the link, and open nothing")
    parser.add_argument("--role", choices=["read", "operate", "admin"], help="with a token of this very role")


def run(args: argparse.Namespace, context: Context) -> int:
    """Open the page, or print where it is."""
    if context.url and args.role:
        raise UsageError(f"--role chooses a token of a home here; elsewhere it is that of ${context.token_env}")
    link, how, told = _away(context) if context.url else _here(args.role, context)
    if context.json:
        context.print_json({"link": link, **told})
    elif args.only_print:
        context.print(link)
    elif _has_window() and _open(link if context.url else _redirect(context.home, link)):
        context.note(f"Opened {told['url']} {how}")
    else:
        context.note(f"No browser can be opened here. This is the link, {how}:")
        context.print(link)
    return 0


def _here(role: str | None, context: Context) -> tuple[str, str, dict[str, str]]:
    """A link to where this home is served, with a code for a token of it."""
    from fleet.config import codes, served
    from fleet.config.home import refuse_root_elsewhere, require

    refuse_root_elsewhere(context.home)
    found = served.addresses(require(context.home))
    if not found:
        raise ServerUnreachable(
            "nothing serves this home, so there is no dashboard",
            hint="run `fleet serve`; or `fleet run --serve`, which supervises too",
        )
    token = _token(role, context)
    url = f"{found[0]}/"
    how = f"as {token.name} ({token.role.value}); it is good once, for {codes.MINUTES} minutes"
    told = {"url": url, "name": token.name, "role": token.role.value}
    return f"{url}#code={codes.make(context.home, token)}", how, told


def _away(context: Context) -> tuple[str, str, dict[str, str]]:
    """Where it is served elsewhere: the page there asks for the token. What is wrong with either is told here."""
    context.away.status(None)
    url = f"{context.away.url}/"
    return url, f"where the page asks for a token: paste the one of ${context.token_env}", {"url": url}


def _token(role: str | None, context: Context) -> Token:
    from fleet.config import tokens
    from fleet.config.tokens import Role

    found = tokens.read(context.home)
    fitting = [each for each in found if (each.role.value == role if role else each.role.may(Role.OPERATE))]
    for each in fitting or ([] if role else found):
        return each
    wanted = role or Role.OPERATE.value
    raise NotFound(
        f"there is no token of the role {wanted} in {context.home.tokens}",
        hint=f"`fleet serve token NAME --role {wanted}` makes one",
    )


def _redirect(home: Home, link: str) -> str:
    """A file for its owner alone that leads to the link: among the words of a process, everybody could read it."""
    from html import escape

    from fleet.config.files import write_atomic

    write_atomic(home.dashboard, REDIRECT.format(link=escape(link)).encode(), mode=0o600)
    return home.dashboard.as_uri()


def _has_window() -> bool:
    """Whether a browser could show itself; one in a terminal would be of no use."""
    import sys

    from fleet.config.environment import environ

    return sys.platform == "darwin" or bool({"BROWSER", "DISPLAY", "WAYLAND_DISPLAY"} & {*environ()})


def _open(address: str) -> bool:
    import webbrowser

    return webbrowser.open(address)
