"""Variables of an allow-list: what runs on a host finds them, whatever kind it is of, and no other."""

from __future__ import annotations

import asyncio

from fleet.config.machines import Sprites
from fleet.config.settings import Settings
from fleet.hosts.kinds import Sprite
from fleet.hosts.transport import Transport
from fleet.model.reach import Reach
from tests.support.sprites.server import TOKEN, stand_in

SHOW = ["sh", "-c", 'printf "%s|%s|" "$PROFILE" "${OTHER-}"; cat']


def test_a_command_on_a_sprite_finds_them() -> None:
    """By a run and by a stream, with its words and its input as they are; their values are in no address."""
    environment = {"SPRITES_API_TOKEN": TOKEN, "PROFILE": "it's dark", "OTHER": "not passed on"}
    reach = Reach(kind="sprite", host="one", env_allowlist=("PROFILE", "NOT_SET"))
    with stand_in() as server:
        server.sprite("one")
        transport = Sprite().transport(reach, environment, Settings(sprites=Sprites(url=server.url)))
        assert asyncio.run(transport.run(SHOW, stdin=b"given")).stdout == b"it's dark||given"
        assert asyncio.run(transport.run(["sh", "-c", "exit 3"])).code == 3
        assert asyncio.run(streamed(transport)) == b"it's dark||"


async def streamed(transport: Transport) -> bytes:
    return b"".join([chunk async for chunk in transport.stream(SHOW)])
