"""Alerts as a spec declares them: which events go where. Addresses and keys are named, never written."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from fleet.model.alert import AlertEvent

VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$(?!\n)"
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$(?!\n)"
Variable = Annotated[
    str,
    Meta(
        pattern=VARIABLE,
        extra_json_schema={"x-expected": "the NAME of an environment variable, not a value", "x-private": True},
    ),
]
Name = Annotated[
    str,
    Meta(
        pattern=NAME,
        extra_json_schema={
            "x-expected": "letters, digits, `.`, `-` or `_`, at most 128 of them, the first a letter or digit"
        },
    ),
]
Word = Annotated[str, Meta(min_length=1, max_length=256)]
Severity = Literal["critical", "error", "warning", "info"]


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    pass


class Slack(_Part, frozen=True, kw_only=True, tag_field="kind", tag="slack"):
    """An incoming webhook of Slack."""

    webhook_env: Annotated[Variable, Meta(description="The variable that holds its address.")]
    channel: Annotated[Word | None, Meta(description="The channel, where the webhook leaves a choice.")] = None


class Discord(_Part, frozen=True, kw_only=True, tag_field="kind", tag="discord"):
    """A webhook of Discord."""

    webhook_env: Annotated[Variable, Meta(description="The variable that holds its address.")]


class Webhook(_Part, frozen=True, kw_only=True, tag_field="kind", tag="webhook"):
    """An address that takes JSON."""

    url_env: Annotated[Variable, Meta(description="The variable that holds its address.")]
    secret_env: Annotated[Variable | None, Meta(description="The variable with the key that signs.")] = None


class PagerDuty(_Part, frozen=True, kw_only=True, tag_field="kind", tag="pager_duty"):
    """A service of PagerDuty."""

    routing_key_env: Annotated[Variable, Meta(description="The variable that holds its routing key.")]
    severity: Annotated[Severity, Meta(description="How bad its alerts are.")] = "error"
    endpoint_env: Annotated[
        Variable | None, Meta(description="The variable with another address than that of PagerDuty's US service.")
    ] = None


class Console(_Part, frozen=True, kw_only=True, tag_field="kind", tag="console"):
    """The supervisor's own log and terminal."""


class Apprise(_Part, frozen=True, kw_only=True, tag_field="kind", tag="apprise"):
    """Any service that the apprise library knows; it is installed as an extra."""

    url_env: Annotated[Variable, Meta(description="The variable that holds apprise's address of the service.")]


class Plugin(_Part, frozen=True, kw_only=True, tag_field="kind", tag="plugin"):
    """A channel that somebody else registered in `fleet.channels`."""

    name: Annotated[Name, Meta(description="The name that it is registered by.")]
    url_env: Annotated[Variable | None, Meta(description="The variable that holds its address.")] = None
    secret_env: Annotated[Variable | None, Meta(description="The variable with its key.")] = None


Adapter = Slack | Discord | Webhook | PagerDuty | Console | Apprise | Plugin


class Route(_Part, frozen=True, kw_only=True):
    """Events of these classes go to that adapter."""

    events: Annotated[tuple[AlertEvent, ...], Meta(description="None named: all of them.")] = ()
    adapter: Annotated[str, Meta(description="The name of an adapter.")]
    labels: Annotated[dict[str, str], Meta(description="Only of tasks and runs that have all of these labels.")] = {}
    teams: Annotated[
        tuple[str, ...], Meta(description="Only of tasks and runs whose label `team` is one of these.")
    ] = ()


class Alerts(_Part, frozen=True, kw_only=True):
    """Who is told what. Nothing is sent unless it is enabled."""

    enabled: Annotated[bool, Meta(description="Whether anything is sent.")] = False
    dry_run: Annotated[bool, Meta(description="Record what would be sent, and send nothing.")] = False
    routes: Annotated[tuple[Route, ...], Meta(description="Which events go where.")] = ()
    adapters: Annotated[dict[Name, Adapter], Meta(description="Where to, by name.")] = {}


def channel_kind(adapter: Adapter) -> str:
    """The name that its channel is registered by."""
    return adapter.name if isinstance(adapter, Plugin) else str(adapter.__struct_config__.tag)


def variables(adapter: Adapter) -> dict[str, str]:
    """The variables that an adapter names, by field."""
    fields = msgspec.structs.asdict(adapter)
    return {name: value for name, value in fields.items() if name.endswith("_env") and value}
