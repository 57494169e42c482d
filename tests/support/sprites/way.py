"""The way to a stand-in sprite, as Fleet goes it."""

from __future__ import annotations

from fleet.hosts.sprite.api import SpriteApi
from fleet.hosts.sprite.transport import SpriteTransport
from tests.support.sprites.server import TOKEN, StandIn


def api_of(server: StandIn, token: str = TOKEN) -> SpriteApi:
    """The account that the server stands for."""
    return SpriteApi(server.url, token, token_env="SPRITES_API_TOKEN")


def transport_to(server: StandIn, name: str = "one") -> SpriteTransport:
    """A way to a sprite, which is there from now on."""
    return SpriteTransport(api_of(server), name, hold_socket=str(server.sprite(name).socket))
