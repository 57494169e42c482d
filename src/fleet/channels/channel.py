"""The contract of a channel: a notice is rendered, and what was rendered is sent. Secrets come in at the sending."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import msgspec

from fleet.model.notice import Notice

JSON = {"Content-Type": "application/json"}


class Rendered(msgspec.Struct, frozen=True, kw_only=True):
    """What will leave, with `<redacted:env:NAME>` in the place of every secret: it may be shown and kept."""

    target: str  # the address, or the mark of the variable that holds it
    headers: dict[str, str] = {}
    body: Any = None


class Carrier(Protocol):
    """What a channel may use to send. Raises only ChannelError."""

    def secret(self, name: str) -> str:
        """The value of a named variable. ChannelRefused where there is none."""

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> None:
        """One try to bring bytes to an address; anything but a 2xx answer is an error."""

    def say(self, line: str) -> None:
        """Show a line to whoever looks at this process."""


class Channel(Protocol):
    """One way out. Made without arguments; holds no state."""

    def render(self, adapter: Any, notice: Notice) -> Rendered:
        """What will be sent. Pure: no secret, no clock, no I/O."""

    async def send(self, rendered: Rendered, carrier: Carrier) -> None:
        """One try. Raises ChannelError; the caller has set a deadline, and decides on the next try."""


@runtime_checkable
class SupportsResolve(Protocol):
    """A channel that can be told that a trouble is over: it renders notices with the action `resolve` too."""

    resolves: bool


def mark(variable: str) -> str:
    """What stands for the value of a variable."""
    return f"<redacted:env:{variable}>"


def filled(text: str, carrier: Carrier) -> str:
    """A text that may be such a mark, with the value in its place."""
    if text.startswith("<redacted:env:") and text.endswith(">"):
        return carrier.secret(text.removeprefix("<redacted:env:")[:-1])
    return text


async def post_json(rendered: Rendered, carrier: Carrier) -> None:
    """Send a body as it was rendered to the address that its target names."""
    await carrier.post(filled(rendered.target, carrier), encoded(rendered.body), JSON | rendered.headers)


def encoded(body: Any) -> bytes:
    """The bytes of a JSON body."""
    return msgspec.json.encode(body)
