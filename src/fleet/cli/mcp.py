"""Serve this fleet to manager agents by MCP: the verbs of the command line as tools, and the runbook as a prompt.

Without --http it talks on stdin and stdout: `claude mcp add fleet -- fleet mcp`. With --http it listens at /mcp and
needs the tokens of the API; a token reaches no further than its role. What is done stands in the ledger as mcp:CLIENT.
--profile read offers only tools that look; operate also those that steer and submit.

Examples:
  fleet mcp --profile operate
  fleet mcp --http 127.0.0.1:7879
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.errors import Conflict, ProgramMissing, UsageError, how_to_install

if TYPE_CHECKING:
    from fleet.api.mcp.server import Offer
    from fleet.cli.context import Context
    from fleet.config.serving import Api

INTERRUPTED, TERMINATED = 130, 143


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet mcp`."""
    parser.add_argument("--profile", choices=["read", "operate"], default="read", help="what is offered")
    parser.add_argument("--http", metavar="HOST:PORT", help="listen there; port 0 takes a free one")
    parser.add_argument("--insecure", action="store_true", help="without TLS on an address that others can reach")


def run(args: argparse.Namespace, context: Context) -> int:
    """Serve until stdin ends, or until told to stop."""
    import asyncio

    from fleet.config.environment import environ
    from fleet.config.home import require
    from fleet.config.tokens import Role

    require(context.home)
    if args.profile == "operate" and environ().get("FLEET_TASK_ID"):
        raise Conflict("an agent inside a session does not steer its fleet", hint="fleet mcp --profile read")
    _require_sdk()
    api = None if args.http is None else _place(args, context)
    from fleet import wiring
    from fleet.api.mcp.server import Offer
    from fleet.config.load import Current

    front = wiring.open_front(context.home, Current(context.home, context.settings))
    offer = Offer(front.named, Role(args.profile))
    try:
        asyncio.run(_stdio(offer) if api is None else _http(api, offer, context))
    finally:
        offer.close()
        front.close()
    return 0


def _require_sdk() -> None:
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        raise ProgramMissing("the MCP SDK is not installed", hint=how_to_install("mcp"))


async def _stdio(offer: Offer) -> None:
    """A read of stdin cannot be taken back: when told to stop, we leave as soon as what was begun is done."""
    import asyncio
    import os
    import signal

    from fleet.api.mcp.serving import over_stdio

    def leave(code: int) -> None:
        offer.close()
        os._exit(code)

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, leave, INTERRUPTED)
    loop.add_signal_handler(signal.SIGTERM, leave, TERMINATED)
    await over_stdio(offer.make_server())


def _place(args: argparse.Namespace, context: Context) -> Api:
    from msgspec.structs import replace

    from fleet.api.server import check_place

    host, colon, port = args.http.rpartition(":")
    if not (colon and host and port.isascii() and port.isdecimal() and int(port) < 1 << 16):
        raise UsageError(f"--http takes HOST:PORT, not `{args.http}`", hint="fleet mcp --http 127.0.0.1:7879")
    api = replace(context.settings.api, host=host, port=int(port))
    check_place(api, insecure=args.insecure)
    return api


async def _http(api: Api, offer: Offer, context: Context) -> None:
    import asyncio
    import signal

    from fleet.api.desk import words_of
    from fleet.api.mcp.serving import PATH, over_http
    from fleet.api.server import bind, url_of
    from fleet.cli.serve import require_tokens
    from fleet.config.tokens import Current

    require_tokens(context)
    stop = asyncio.Event()
    for sign in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(sign, stop.set)

    def ready() -> None:
        url = f"{url_of(api, bound)}{PATH}"
        if context.json:
            context.print_json({"url": url, "tokens": str(context.home.tokens)})
        else:
            context.note(f"Serving MCP at {url}; tokens are in {context.home.tokens}")
        context.out.flush()
        context.err.flush()

    with bind(api) as bound:
        await over_http(
            offer.make_server(),
            api,
            bound,
            stop,
            tokens=Current(context.home),
            failed=lambda exc, where: context.note(words_of(exc, where)),
            ready=ready,
        )
