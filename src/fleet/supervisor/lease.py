"""A supervisor's lease, which it renews in time: without it, somebody else may act."""

from __future__ import annotations

import asyncio

from fleet.errors import FleetError, LeaseLost, may_pass
from fleet.supervisor.house import House


async def keep_lease(house: House) -> None:
    """Renew it for ever. One that is lost, or that we cannot know to hold, ends us before somebody else acts."""
    loop = asyncio.get_running_loop()
    until = loop.time() + house.lease_seconds
    while True:
        await asyncio.sleep(house.lease_seconds / 3)
        asked = loop.time()
        try:
            async with asyncio.timeout(None if house.alone else max(0.1, until - asked)):
                await house.store.renew(house.name, seconds=house.lease_seconds)
            until = asked + house.lease_seconds
        except (FleetError, OSError, TimeoutError) as exc:
            if isinstance(exc, LeaseLost) or not (may_pass(exc) or isinstance(exc, TimeoutError)):
                raise
            house.log("lease_not_renewed", error=str(exc))
            if not house.alone and loop.time() >= until:
                raise LeaseLost("the lease could not be renewed in time") from exc
