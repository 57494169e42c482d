"""Slack: an incoming webhook. Its text is escaped, so that a reason can neither mention people nor make links."""

from __future__ import annotations

from typing import Any

from fleet.channels.channel import Carrier, Rendered, mark, post_json
from fleet.model import alert_spec
from fleet.model.notice import Notice


class Slack:
    """Posts a text and two blocks."""

    def render(self, adapter: alert_spec.Slack, notice: Notice) -> Rendered:
        """What an incoming webhook takes."""
        text = escaped(notice.summary)
        commands = " | ".join(f"`{escaped(command)}`" for command in notice.commands)
        blocks: list[dict[str, Any]] = [{"type": "section", "text": {"type": "mrkdwn", "text": text}}]
        if commands:
            blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": commands}]})
        body: dict[str, Any] = {"text": text, "blocks": blocks}
        if adapter.channel:
            body["channel"] = adapter.channel
        return Rendered(target=mark(adapter.webhook_env), body=body)

    async def send(self, rendered: Rendered, carrier: Carrier) -> None:
        """One post."""
        await post_json(rendered, carrier)


def escaped(text: str) -> str:
    """The three characters that Slack reads as its own."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
