"""Apprise: every service that its library knows. Its library is installed by who wants it."""

from __future__ import annotations

import asyncio

from fleet.channels.channel import Carrier, Rendered, filled, mark
from fleet.errors import ChannelError, ChannelRefused, how_to_install
from fleet.model import alert_spec
from fleet.model.notice import Notice


class Apprise:
    """Hands title and text to the library, in a thread: it blocks."""

    def render(self, adapter: alert_spec.Apprise, notice: Notice) -> Rendered:
        """A title and a text."""
        text = "\n".join([notice.summary, *notice.commands])
        return Rendered(target=mark(adapter.url_env), body={"title": f"Fleet {notice.alert}", "body": text})

    async def send(self, rendered: Rendered, carrier: Carrier) -> None:
        """One try; the library does not tell why it failed."""
        url = filled(rendered.target, carrier)
        try:
            told = await asyncio.to_thread(_notify, url, rendered.body)
        except ImportError as exc:
            raise ChannelRefused(f"apprise is not installed: {how_to_install('apprise')}") from exc
        if told is None:
            raise ChannelRefused("its variable holds no address that apprise knows")
        if not told:
            raise ChannelError("apprise could not deliver it")


def _notify(url: str, body: dict[str, str]) -> bool | None:
    from apprise import Apprise as Library

    library = Library()
    if not library.add(url):
        return None
    return bool(library.notify(title=body["title"], body=body["body"]))
