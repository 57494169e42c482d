"""Sending, for every channel alike: what leaves, a deadline for each try, backoff, Retry-After honoured, a last try."""

from __future__ import annotations

import asyncio
import random

import msgspec

from fleet.channels.channel import Carrier, Channel, Rendered
from fleet.errors import ChannelError, ChannelRefused, FleetError
from fleet.model.alert_spec import Adapter
from fleet.model.notice import Notice

FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
LONGEST_RETRY_AFTER = 300.0  # a receiver that wants to be left alone for longer is given up


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    ok: bool
    attempts: int
    detail: str = ""  # why not; never an address


def render(channel: Channel, adapter: Adapter, notice: Notice) -> Rendered:
    """What a channel will send. FleetError: it cannot be told there, and why not."""
    try:
        rendered = channel.render(adapter, notice)
    except FleetError:
        raise
    except (Exception, SystemExit) as exc:  # a stranger's channel may raise anything, and its text may hold a secret
        raise ChannelRefused(f"it cannot be rendered: {type(exc).__name__}") from exc
    if not isinstance(rendered, Rendered):
        raise ChannelRefused(f"it cannot be rendered: the channel gave a {type(rendered).__name__}")
    return rendered


async def send(
    channel: Channel,
    rendered: Rendered,
    carrier: Carrier,
    *,
    attempts: int,
    timeout_seconds: float,
    first_wait: float = FIRST_WAIT,
) -> Sent:
    """Try until it is taken, refused, or tried often enough. Never raises but when cancelled."""
    wait = first_wait
    for attempt in range(1, attempts + 1):
        asked: float | None = None
        try:
            async with asyncio.timeout(timeout_seconds):
                await channel.send(rendered, carrier)
            return Sent(ok=True, attempts=attempt)
        except TimeoutError:
            detail, again = f"it did not answer within {timeout_seconds:g} s", True
        except ChannelError as exc:
            detail, again, asked = str(exc), exc.retryable, exc.after_seconds
        except (Exception, SystemExit) as exc:  # a stranger's channel may raise anything, and its text a secret
            detail, again = f"the channel failed: {type(exc).__name__}", False
        if not again or attempt == attempts:
            break
        if asked is not None and asked > LONGEST_RETRY_AFTER:
            detail += f"; it asks to be left alone for {asked:.0f} s"
            break
        await asyncio.sleep(asked if asked is not None else wait * (0.5 + random.random() / 2))
        wait = min(wait * 2, LONGEST_WAIT)
    return Sent(ok=False, attempts=attempt, detail=detail)
