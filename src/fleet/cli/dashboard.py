"""Open the dashboard in a browser: what needs you, what runs, what is queued, the machines; and every verb.

It is a page that `fleet serve` and `fleet run --serve` give; this command finds where this home is served, and hands
the browser a token of `api-tokens`: the first that may operate, or the first of the role that --role says. Where there
is no browser it prints the link. Who has the link has the token: it is for you alone.

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
    url, secret, told = _away(context) if context.url else _here(args.role, context)
    link = f"{url}/#token={secret}"
    if context.json:
        context.print_json({"url": f"{url}/", "link": link, **told})
    elif args.only_print:
        context.print(link)
    elif not (_has_window() and _open(f"{url}/" if context.url else _redirect(context.home, link))):
        context.note("No browser can be opened here. Whoever has this link has the token in it:")
        context.print(link)
    elif context.url:
        context.note(f"{url}/ asks for a token: paste the one of ${context.token_env}")
    else:
        context.note(f"{url}/ is opened, as {told['name']} ({told['role']}); `fleet dashboard --print` gives the link")
    return 0


def _here(role: str | None, context: Context) -> tuple[str, str, dict[str, str]]:
    """Where this home is served, and a token for it."""
    from fleet.config import served
    from fleet.config.home import require

    found = served.addresses(require(context.home))
    if not found:
        raise ServerUnreachable(
            "nothing serves this home, so there is no dashboard",
            hint="run `fleet serve`; or `fleet run --serve`, which supervises too",
        )
    token = _token(role, context)
    return found[0], token.secret, {"name": token.name, "role": token.role.value}


def _away(context: Context) -> tuple[str, str, dict[str, str]]:
    """Where it is served elsewhere, and the token of the environment. It is asked once: what is wrong is told here."""
    from fleet.config.environment import environ

    context.away.status(None)
    return context.away.url, environ()[context.token_env].strip(), {}


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
