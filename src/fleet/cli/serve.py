"""Serve this home: a dashboard, and an API with runs, tasks, events and every verb, for programs. Ctrl-C ends it.

It listens on this machine alone unless told otherwise, and every request needs a token: `fleet init` made one, in
`api-tokens` of the home. `fleet serve token NAME` makes another, for another program or person; what is done with it
stands in the ledger under that name. Roles: read looks, operate also steers and submits, admin also sees the settings.

Examples:
  fleet serve --port 7878
  fleet serve token ci --role read
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.errors import UsageError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from fleet.cli.context import Context
    from fleet.config.serving import Api


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet serve`."""
    parser.add_argument("verb", metavar="token NAME", nargs="*", help="make a token for somebody, and serve nothing")
    parser.add_argument("--role", choices=["read", "operate", "admin"], default="read", help="of a new token")
    add_place(parser)


def add_place(parser: argparse.ArgumentParser) -> None:
    """Where to listen."""
    parser.add_argument("--host", metavar="ADDRESS", help="listen there (else api.host: this machine alone)")
    parser.add_argument("--port", metavar="N", type=int, help="listen there (else api.port: 7878); 0 takes a free one")
    parser.add_argument("--insecure", action="store_true", help="without TLS on an address that others can reach")


def run(args: argparse.Namespace, context: Context) -> int:
    """Serve until told to stop, or make a token."""
    import asyncio
    import signal

    from fleet.config.home import refuse_root_elsewhere, require

    require(context.home)
    refuse_root_elsewhere(context.home)
    if args.verb:
        return _token(args, context)

    async def alive() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for sign in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(sign, stop.set)
        await serving(place(args, context), context, stop)

    asyncio.run(alive())
    return 0


def place(args: argparse.Namespace, context: Context) -> Api:
    """The settings of the API, with what was said on the command line."""
    from msgspec.structs import replace

    from fleet.api.server import check_place

    api = context.settings.api
    if args.port is not None and not 0 <= args.port <= 65535:
        raise UsageError("a port is a number from 0 to 65535")
    api = replace(api, host=args.host or api.host, port=api.port if args.port is None else args.port)
    check_place(api, insecure=args.insecure)
    return api


async def serving(api: Api, context: Context, stop: asyncio.Event, note: Callable[[str], object] | None = None) -> None:
    """Serve this home's API until `stop` is set."""
    from fleet import wiring
    from fleet.api.server import bind, serve, url_of
    from fleet.config import served

    require_tokens(context)
    with bind(api) as bound, served.told(context.home, url_of(api, bound)):
        desk = wiring.open_desk(context.home, context.settings, report=note or context.note)
        try:
            await serve(desk, api, bound, stop, lambda: _say(url_of(api, bound), context))
        finally:
            desk.close()


def require_tokens(context: Context) -> None:
    """Refuse to serve what nobody could ask."""
    from fleet.config import tokens

    if not tokens.read(context.home):
        raise UsageError("nobody has a token yet", hint="run `fleet init`, or `fleet serve token NAME --role admin`")


def _say(url: str, context: Context) -> None:
    import os

    if context.json:
        where = {"url": url, "pid": os.getpid(), "tokens": str(context.home.tokens), "dashboard": f"{url}/"}
        context.print_json(where)
        context.out.flush()
    else:
        context.note(f"Serving {url}/v1/fleet; tokens are in {context.home.tokens}")
        context.note(f"Dashboard: {url}/ (`fleet dashboard` opens it, and lets you in)")
        context.err.flush()


def _token(args: argparse.Namespace, context: Context) -> int:
    from fleet.config import tokens
    from fleet.config.tokens import Role

    if len(args.verb) != 2 or args.verb[0] != "token":
        raise UsageError(
            f"`fleet serve {' '.join(args.verb)}` is nothing", hint="to make a token: fleet serve token NAME"
        )
    made = tokens.add(context.home, args.verb[1], Role(args.role))
    if context.json:
        context.print_json({"name": made.name, "role": made.role, "token": made.secret})
    else:
        context.print(made.secret)
        context.note(f"{made.name} may {made.role.value} with it; it is kept in {context.home.tokens}")
    return 0
