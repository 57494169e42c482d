"""Discord: a webhook. Mentions are turned off, so that a reason cannot wake a whole server."""

from __future__ import annotations

from fleet.channels.channel import Carrier, Rendered, mark, post_json
from fleet.model import alert_spec
from fleet.model.notice import Notice

LONGEST = 2000  # characters of one message


class Discord:
    """Posts one message."""

    def render(self, adapter: alert_spec.Discord, notice: Notice) -> Rendered:
        """What a webhook takes."""
        commands = "\n".join(f"`{command}`" for command in notice.commands)
        content = f"**{notice.summary}**\n{commands}"[:LONGEST]
        return Rendered(
            target=mark(adapter.webhook_env),
            body={"content": content, "username": "Fleet", "allowed_mentions": {"parse": []}},
        )

    async def send(self, rendered: Rendered, carrier: Carrier) -> None:
        """One post."""
        await post_json(rendered, carrier)
