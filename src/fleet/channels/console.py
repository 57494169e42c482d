"""The console: a line in the supervisor's log, and on its terminal where it has one."""

from __future__ import annotations

from fleet.channels.channel import Carrier, Rendered
from fleet.model import alert_spec
from fleet.model.notice import Notice


class Console:
    """Says one line."""

    def render(self, adapter: alert_spec.Console, notice: Notice) -> Rendered:
        """The summary, and what to look with."""
        commands = f" ({'; '.join(notice.commands)})" if notice.commands else ""
        return Rendered(target="console", body=notice.summary + commands)

    async def send(self, rendered: Rendered, carrier: Carrier) -> None:
        """Say it."""
        carrier.say(str(rendered.body))
