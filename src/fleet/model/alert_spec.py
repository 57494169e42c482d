"""Alerts as a spec declares them: which events go where. Addresses and keys are named, never written."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$(?!\n)"
Variable = Annotated[
    str,
    Meta(pattern=VARIABLE, extra_json_schema={"x-expected": "the NAME of an environment variable, not a value"}),
]
AlertEvent = Literal["stale", "restart_exhausted", "needs_human", "budget_exceeded", "verifier_failed", "run_completed"]


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    pass


class Slack(_Part, frozen=True, kw_only=True, tag_field="kind", tag="slack"):
    """An incoming webhook of Slack."""

    webhook_env: Annotated[Variable, Meta(description="The variable that holds its address.")]
    channel: Annotated[str | None, Meta(description="The channel, where the webhook leaves a choice.")] = None


class Webhook(_Part, frozen=True, kw_only=True, tag_field="kind", tag="webhook"):
    """An address that takes JSON."""

    url_env: Annotated[Variable, Meta(description="The variable that holds its address.")]
    secret_env: Annotated[Variable | None, Meta(description="The variable with the key that signs.")] = None


class PagerDuty(_Part, frozen=True, kw_only=True, tag_field="kind", tag="pager_duty"):
    """A service of PagerDuty."""

    routing_key_env: Annotated[Variable, Meta(description="The variable that holds its routing key.")]
    severity: Annotated[
        Literal["critical", "error", "warning", "info"], Meta(description="How bad its alerts are.")
    ] = "error"


class Route(_Part, frozen=True, kw_only=True):
    """Events of these classes go to that adapter."""

    events: Annotated[tuple[AlertEvent, ...], Meta(description="None named: all of them.")] = ()
    adapter: Annotated[str, Meta(description="The name of an adapter.")]


class Alerts(_Part, frozen=True, kw_only=True):
    """Who is told what. Nothing is sent unless it is enabled."""

    enabled: Annotated[bool, Meta(description="Whether anything is sent.")] = False
    dry_run: Annotated[bool, Meta(description="Show what would be sent, and send nothing.")] = False
    routes: Annotated[tuple[Route, ...], Meta(description="Which events go where.")] = ()
    adapters: Annotated[dict[str, Slack | Webhook | PagerDuty], Meta(description="Where to, by name.")] = {}
