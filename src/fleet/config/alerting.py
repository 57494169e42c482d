"""Settings of alerts: whether anything is told, where it goes, and which of it goes where."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from fleet.config.section import A_VARIABLE, END, VARIABLE, Section
from fleet.model.alert import AlertEvent
from fleet.model.clash import ClashError


class Alerts(Section, frozen=True, kw_only=True):
    """Whether people are told when something is wrong, and how. `[channels]` and `[[routes]]` say where to."""

    enabled: Annotated[bool, Meta(description="Whether anything is sent.")] = False
    dry_run: Annotated[bool, Meta(description="Whether what would be sent is only recorded and logged.")] = False
    send_drafts: Annotated[bool, Meta(description="Whether `fleet alert draft --send` may send what it drafted.")] = (
        False
    )
    webhook_env: Annotated[
        str,
        Meta(
            pattern=VARIABLE,
            description="The NAME of a variable with the address of a webhook for all alerts: Slack, Discord or JSON.",
            extra=A_VARIABLE,
        ),
    ] = ""
    attempts: Annotated[int, Meta(ge=1, le=20, description="How often an alert is tried before it is given up.")] = 5
    timeout_seconds: Annotated[
        int, Meta(ge=1, le=300, description="How long a channel has to take an alert, in one try.")
    ] = 10
    repeat_seconds: Annotated[
        int, Meta(ge=0, le=86400, description="How long the same alert is not told again to the same channel.")
    ] = 300
    max_age_seconds: Annotated[
        int, Meta(ge=1, le=2592000, description="How old an alert may be and still be sent.")
    ] = 3600


class Channel(Section, frozen=True, kw_only=True):
    """Where alerts go; repeat the table for each, under a name of its own."""

    kind: Annotated[
        Literal["slack", "discord", "pager_duty", "webhook", "console", "apprise", "plugin"],
        Meta(description="What is there."),
    ]
    webhook_env: Annotated[
        str,
        Meta(
            pattern=VARIABLE,
            description="The NAME of the variable with the address, of slack and discord.",
            extra=A_VARIABLE,
        ),
    ] = ""
    url_env: Annotated[
        str,
        Meta(
            pattern=VARIABLE,
            description="The NAME of the variable with the address, of webhook, apprise and plugin.",
            extra=A_VARIABLE,
        ),
    ] = ""
    secret_env: Annotated[
        str,
        Meta(
            pattern=VARIABLE,
            description="The NAME of the variable with the key that signs, of webhook; or the key of a plugin.",
            extra=A_VARIABLE,
        ),
    ] = ""
    routing_key_env: Annotated[
        str,
        Meta(
            pattern=VARIABLE,
            description="The NAME of the variable with the routing key, of pager_duty.",
            extra=A_VARIABLE,
        ),
    ] = ""
    endpoint_env: Annotated[
        str,
        Meta(
            pattern=VARIABLE,
            description="The NAME of a variable with another address than the US service's, of pager_duty.",
            extra=A_VARIABLE,
        ),
    ] = ""
    severity: Annotated[
        Literal["", "critical", "error", "warning", "info"],
        Meta(description="How bad its alerts are, of pager_duty; nothing means error."),
    ] = ""
    channel: Annotated[
        str, Meta(max_length=256, description="The channel, where the webhook of slack leaves a choice.")
    ] = ""
    name: Annotated[str, Meta(max_length=128, description="What a plugin is registered by in fleet.channels.")] = ""

    def __post_init__(self) -> None:
        needed = {
            "slack": "webhook_env",
            "discord": "webhook_env",
            "webhook": "url_env",
            "apprise": "url_env",
            "pager_duty": "routing_key_env",
            "plugin": "name",
        }.get(self.kind)
        if needed and not getattr(self, needed):
            raise ClashError((needed,), f"is missing; a channel of the kind {self.kind} needs it")
        also = {
            "slack": ("channel",),
            "webhook": ("secret_env",),
            "pager_duty": ("severity", "endpoint_env"),
            "plugin": ("url_env", "secret_env"),
        }
        known = ("kind", needed, *also.get(self.kind, ()))
        for field in self.__struct_fields__:
            if field not in known and getattr(self, field):
                raise ClashError((field,), f"means nothing for a channel of the kind {self.kind}")


class Route(Section, frozen=True, kw_only=True):
    """Which alerts go to a channel; repeat the table for each."""

    channel: Annotated[str, Meta(description="The name of a channel.")]
    events: Annotated[
        tuple[AlertEvent, ...],
        Meta(description="The classes of alerts; none named: all."),
    ] = ()
    teams: Annotated[tuple[str, ...], Meta(description="Only of tasks and runs whose label team is one of these.")] = ()
    labels: Annotated[
        tuple[Annotated[str, Meta(pattern=rf"^[^=]+=.*{END}", extra={"expected": "NAME=VALUE"})], ...],
        Meta(description="Only of tasks and runs that have all of these labels, each written as NAME=VALUE."),
    ] = ()
