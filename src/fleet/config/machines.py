"""Settings of machines: which there are, who provides them, how long they are waited for, what is kept on them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from fleet.config.section import A_NAME, A_VARIABLE, END, NAME, Section
from fleet.model.reach import Reach


class Host(Reach, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A machine; repeat the table for each."""

    name: Annotated[
        str,
        Meta(pattern=rf"^{NAME}", description="What you call it; unique.", extra={"expected": A_NAME}),
    ]
    api_name: Annotated[
        str,
        Meta(
            pattern=rf"^(?:{NAME})?{END}",
            description="What its provider calls it, where that differs from the name.",
            extra={"expected": f"nothing, or {A_NAME}"},
        ),
    ] = ""


Seconds = Annotated[int, Meta(gt=0, le=86400)] | Annotated[float, Meta(gt=0, le=86400)]


class Timeouts(Section, frozen=True, kw_only=True):
    """How long Fleet waits for a machine, in seconds."""

    api_status: Annotated[Seconds, Meta(description="For the sprites API to tell a machine's state.")] = 10
    health_probe: Annotated[Seconds, Meta(description="For a machine to answer a probe.")] = 15
    command_exec: Annotated[Seconds, Meta(description="For a command of `fleet exec` to end.")] = 60


class Status(Section, frozen=True, kw_only=True):
    """What `fleet status` does about machines."""

    wake: Annotated[
        bool, Meta(description="Whether a sprite that sleeps is woken to be probed. Each waking costs money.")
    ] = False


class Sprites(Section, frozen=True, kw_only=True):
    """The provider of hosts of kind sprite."""

    url: Annotated[
        str,
        Meta(
            pattern=rf"^https?://[^\s@?#]+{END}",
            description="Where its API is.",
            extra={"expected": "an address that begins with https://"},
        ),
    ] = "https://api.sprites.dev"
    token_env: Annotated[
        str,
        Meta(
            pattern=rf"^[A-Z_][A-Z0-9_]*{END}",
            description="The NAME of an environment variable with the token.",
            extra=A_VARIABLE,
        ),
    ] = "SPRITES_API_TOKEN"


class Health(Section, frozen=True, kw_only=True):
    """What `fleet health` leaves behind, and when people hear of it."""

    alert_after: Annotated[
        int,
        Meta(ge=1, le=100, description="How many checks in a row must find a machine down before an alert is raised."),
    ] = 1
    keep_days: Annotated[
        int, Meta(ge=1, le=3650, description="For how many days it is kept how machines answered their probes.")
    ] = 30

    log_file: Annotated[str, Meta(description="The file in the home, or anywhere, that gets a line of each check.")] = (
        "logs/healthcheck.log"
    )


class Update(Section, frozen=True, kw_only=True):
    """How `fleet update NAME` updates a package; repeat the table for each."""

    command: Annotated[str, Meta(min_length=1, description="What updates it, for sh.", extra={"expected": "a command"})]
    version: Annotated[
        str, Meta(description="What prints its version, for sh; empty: the package's name with --version.")
    ] = ""
