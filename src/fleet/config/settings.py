"""Every setting: its type, its bounds, its default and its description.

The JSON Schema, the comments in a new fleet.toml, the errors and the reference are all made from these classes.
`extra` of a Meta says how to speak of the value: `expected` in place of words made from the bounds, `refusal` in
place of the whole sentence, and `private` where a wrong value may be a secret and must not be repeated.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from fleet.model.clash import ClashError
from fleet.model.reach import Reach
from fleet.model.worker import Worker

END = r"$(?!\n)"  # `$` alone would let a line break follow
NAME = rf"[A-Za-z0-9_][A-Za-z0-9_.@:-]{{0,127}}{END}"
VARIABLE = rf"^(?:[A-Z_][A-Z0-9_]*)?{END}"
A_NAME = "a name of letters, digits and . _ @ : - that does not begin with -"
A_VARIABLE = {"refusal": "give the NAME of an environment variable, not the value", "private": True}

ALIASES = ("max_concurrent", "coder", "model", "context_pressure_threshold_pct")  # also taken without [supervisor]

DEFAULT_MODEL = "sonnet"
OTHER_VENDORS = ("agy", "codex", "gemini", "opencode")
MODELLESS = ("command", "scripted")


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of fleet.toml."""


class Supervisor(Section, frozen=True, kw_only=True):
    """How tasks are run."""

    max_concurrent: Annotated[int, Meta(ge=1, le=1000, description="How many sessions may run at once.")] = 3
    coder: Annotated[
        str,
        Meta(
            pattern=rf"^[A-Za-z0-9][A-Za-z0-9._-]{{0,127}}{END}",
            description="The coder of a task that names none.",
            extra={"expected": "the name of a coder"},
        ),
    ] = "claude"
    model: Annotated[
        str,
        Meta(
            pattern=rf"^[^\s\x00-\x1f\x7f-][^\x00-\x1f\x7f]{{0,199}}{END}",
            description="The model of a task that names none; each coder reads it in its own way.",
            extra={"expected": "the name of a model"},
        ),
    ] = DEFAULT_MODEL
    context_pressure_threshold_pct: Annotated[
        int,
        Meta(ge=1, le=100, description="End a session when its prompt fills this share of the context, in per cent."),
    ] = 90
    max_attempts: Annotated[int, Meta(ge=1, le=100, description="How often a task is tried before it has failed.")] = 3
    backoff_seconds: Annotated[int, Meta(ge=0, le=86400, description="How long to wait before the second attempt.")] = 5
    max_backoff_seconds: Annotated[int, Meta(ge=0, le=86400, description="The longest wait between two attempts.")] = (
        300
    )
    backoff_multiplier: Annotated[
        int, Meta(ge=1, le=100, description="By how much each wait is longer than the one before.")
    ] = 2
    timeout_seconds: Annotated[
        int, Meta(ge=0, le=2592000, description="How long a session may run; 0 means as long as it likes.")
    ] = 0
    idle_seconds: Annotated[
        int,
        Meta(ge=0, le=2592000, description="How long a session may be silent while no tool runs; 0 means for ever."),
    ] = 1800
    budget_tokens: Annotated[
        int,
        Meta(
            ge=0,
            le=10**9,
            description="Tokens that a task may use in all its attempts, output and uncached input; 0: any.",
        ),
    ] = 0
    budget_tool_calls: Annotated[
        int, Meta(ge=0, le=10**9, description="Tool calls that a task may make in all its attempts; 0: any.")
    ] = 0
    budget_seconds: Annotated[
        int, Meta(ge=0, le=2592000, description="How long a task may run in all its attempts together; 0: any time.")
    ] = 0
    budget_usd: Annotated[
        Annotated[int, Meta(ge=0, le=10**6)] | Annotated[float, Meta(ge=0, le=10**6)],
        Meta(description="Dollars that a task may cost in all its attempts, as its coder tells; 0: any."),
    ] = 0
    budget_pause: Annotated[
        bool, Meta(description="Whether a task that exceeds its budget waits for a person; else it has failed.")
    ] = False
    isolation: Annotated[
        Literal["none", "worktree"],
        Meta(description="Where a task works that does not say: in its directory, or in a git worktree of its own."),
    ] = "none"
    share_directories: Annotated[
        bool, Meta(description="Whether several agents may change one directory in place at the same time.")
    ] = False
    grace_seconds: Annotated[
        int, Meta(ge=0, le=600, description="How long an agent has between one signal to end and the next.")
    ] = 5
    keep_sessions_days: Annotated[
        int,
        Meta(ge=0, le=3650, description="How long the raw output of an ended task's sessions is kept; 0: for ever."),
    ] = 14
    keep_logs_days: Annotated[
        int, Meta(ge=0, le=3650, description="How long the supervisor's own logs are kept; 0: for ever.")
    ] = 30

    @property
    def inherited_model(self) -> str:
        """The model of a task that names none, when it gets the configured coder; empty: that coder's own default.

        A command has no model. And a model that nobody configured is one of claude's: no other vendor knows it.
        """
        foreign = self.model == DEFAULT_MODEL and self.coder in OTHER_VENDORS
        return "" if foreign or self.coder in MODELLESS else self.model


class Queue(Section, frozen=True, kw_only=True):
    """Where tasks come from."""

    source: Annotated[
        Literal["fleet", "beads"],
        Meta(description="Whose queue is worked on: Fleet's own, or the one that the bd program keeps."),
    ] = "fleet"
    prefix: Annotated[
        str,
        Meta(
            pattern=rf"^[a-z][a-z0-9-]{{0,31}}{END}",
            description="What the ids of new tasks begin with.",
            extra={"expected": "a lower-case letter, then up to 31 of a-z, 0-9 and -"},
        ),
    ] = "fleet"


class Store(Section, frozen=True, kw_only=True):
    """Where the queue and the ledger are kept."""

    url: Annotated[
        str,
        Meta(
            pattern=r"^$|^postgres(?:ql)?://",
            description="A PostgreSQL address without its password; empty for a SQLite file in the home.",
            extra={"expected": "an address that begins with postgresql://, or nothing", "private": True},
        ),
    ] = ""
    schema: Annotated[
        str,
        Meta(
            pattern=rf"^(?!pg_)[a-z_][a-z0-9_]{{0,62}}{END}",
            description="The schema that holds the tables, on PostgreSQL.",
            extra={"expected": "a lower-case identifier of at most 63 characters"},
        ),
    ] = "fleet"
    password_env: Annotated[
        str,
        Meta(
            pattern=VARIABLE,
            description="The NAME of an environment variable with the password; ~/.pgpass is honoured without it.",
            extra=A_VARIABLE,
        ),
    ] = ""
    mirror: Annotated[
        Literal["auto", "on", "off"],
        Meta(description="Whether the ledger is also written to fleet.jsonl; auto means on for SQLite only."),
    ] = "auto"

    def __post_init__(self) -> None:
        if self.url and holds_password(self.url):
            raise ClashError(("url",), "holds a password; use ~/.pgpass, or name a variable in store.password_env")


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
    """What `fleet health` leaves behind."""

    log_file: Annotated[str, Meta(description="The file in the home, or anywhere, that gets a line of each check.")] = (
        "logs/healthcheck.log"
    )


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
        tuple[
            Annotated[
                Literal[
                    "stale",
                    "restart_exhausted",
                    "needs_human",
                    "budget_exceeded",
                    "verifier_failed",
                    "run_completed",
                    "host_unhealthy",
                    "host_recovered",
                ],
                Meta(),
            ],
            ...,
        ],
        Meta(description="The classes of alerts; none named: all."),
    ] = ()
    teams: Annotated[tuple[str, ...], Meta(description="Only of tasks and runs whose label team is one of these.")] = ()
    labels: Annotated[
        tuple[Annotated[str, Meta(pattern=rf"^[^=]+=.*{END}", extra={"expected": "NAME=VALUE"})], ...],
        Meta(description="Only of tasks and runs that have all of these labels, each written as NAME=VALUE."),
    ] = ()


A_HOST = rf"^[A-Za-z0-9.:\[\]-]{{1,255}}{END}"


class Api(Section, frozen=True, kw_only=True):
    """How `fleet serve` listens."""

    host: Annotated[
        str,
        Meta(
            pattern=A_HOST,
            description="The address to listen on; anything but loopback needs tls_cert and tls_key.",
            extra={"expected": "an address or the name of one"},
        ),
    ] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="The port to listen on; 0 takes a free one.")] = 7878
    names: Annotated[
        tuple[Annotated[str, Meta(pattern=A_HOST)], ...],
        Meta(description="Names, besides those of loopback, under which it may be asked for."),
    ] = ()
    origins: Annotated[
        tuple[Annotated[str, Meta(pattern=rf"^https?://[^/\s]+{END}")], ...],
        Meta(description="Origins of web pages that may use it; none but its own, if nothing is given."),
    ] = ()
    tls_cert: Annotated[str, Meta(description="A file with its certificate, in PEM; empty for plain HTTP.")] = ""
    tls_key: Annotated[str, Meta(description="A file with the certificate's private key, in PEM.")] = ""
    requests_per_second: Annotated[
        int, Meta(ge=1, le=1_000_000, description="How many requests of one token are answered in a second.")
    ] = 500
    max_streams: Annotated[
        int, Meta(ge=1, le=100_000, description="How many clients may follow the events at the same time.")
    ] = 1000
    max_body_kib: Annotated[
        int,
        Meta(ge=1, le=16384, description="The largest request that is read, in KiB, a spec included."),
    ] = 4096


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


class Coder(Section, frozen=True, kw_only=True):
    """How a coder is run, or a coder of your own; repeat the table for each."""

    program: Annotated[str, Meta(description="The program to run in the place of the usual one.")] = ""
    secrets: Annotated[
        tuple[Annotated[str, Meta(pattern=rf"^[A-Z_][A-Z0-9_]*{END}", extra=A_VARIABLE)], ...],
        Meta(description="NAMES of further variables that only this coder's process gets."),
    ] = ()
    argv: Annotated[
        tuple[str, ...],
        Meta(description="A coder from a template: its words, with {prompt}, {model} and {cwd} in them."),
    ] = ()
    output: Annotated[
        Literal["text", "jsonl", "agy", "claude", "codex", "gemini", "opencode"],
        Meta(description="What a coder from a template prints: words, or the stream of a coder that Fleet knows."),
    ] = "text"
    python: Annotated[
        str, Meta(description="A coder from a file of Python: the file, a colon, and the name of its class.")
    ] = ""
    context_limit: Annotated[
        int, Meta(ge=0, le=100_000_000, description="How many tokens its context holds; 0 where that is not known.")
    ] = 0

    def __post_init__(self) -> None:
        if self.argv and self.python:
            raise ClashError(("python",), "argv is given too; a coder is made of one of them")
        if self.python and ":" not in self.python:
            raise ClashError(("python",), "expected FILE:CLASS")


class Update(Section, frozen=True, kw_only=True):
    """How `fleet update NAME` updates a package; repeat the table for each."""

    command: Annotated[str, Meta(min_length=1, description="What updates it, for sh.", extra={"expected": "a command"})]
    version: Annotated[
        str, Meta(description="What prints its version, for sh; empty: the package's name with --version.")
    ] = ""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that fleet.toml may say."""

    supervisor: Supervisor = Supervisor()
    queue: Queue = Queue()
    store: Store = Store()
    timeouts: Timeouts = Timeouts()
    status: Status = Status()
    sprites: Sprites = Sprites()
    health: Health = Health()
    alerts: Alerts = Alerts()
    api: Api = Api()
    hosts: tuple[Host, ...] = ()
    workers: tuple[Worker, ...] = ()
    coders: dict[str, Coder] = {}
    channels: dict[str, Channel] = {}
    routes: tuple[Route, ...] = ()
    updates: dict[str, Update] = {}

    @property
    def own_coders(self) -> tuple[str, ...]:
        """The coders that the file itself makes."""
        return tuple(name for name, coder in self.coders.items() if coder.argv or coder.python)

    def __post_init__(self) -> None:
        names = _unique("hosts", "name", "host", [host.name for host in self.hosts])
        _unique("workers", "id", "worker", [worker.id for worker in self.workers])
        for place, worker in enumerate(self.workers):
            if isinstance(worker.host, str) and worker.host not in names:
                known = ", ".join(sorted(names)) or "none"
                raise ClashError(("workers", place, "host"), f'there is no host "{worker.host}"; there are: {known}')
        for name in self.channels:
            if not re.fullmatch(NAME, name):
                raise ClashError(("channels", name), f"expected {A_NAME}")
        for place, route in enumerate(self.routes):
            if route.channel not in self.channels:
                known = ", ".join(sorted(self.channels)) or "none"
                raise ClashError(
                    ("routes", place, "channel"), f'there is no channel "{route.channel}"; there are: {known}'
                )


def _unique(section: str, field: str, what: str, names: list[str]) -> set[str]:
    seen: dict[str, int] = {}
    for place, name in enumerate(names):
        first = seen.setdefault(name, place)
        if first != place:
            raise ClashError((section, place, field), f'"{name}" is also the {field} of {what} {first + 1}')
    return set(seen)


def holds_password(url: str) -> bool:
    """Whether a PostgreSQL address carries a password, before the host or among its parameters."""
    from urllib.parse import unquote

    rest = url.partition("://")[2]
    address, _, parameters = rest.partition("?")
    if "@" not in address and "/" not in address:
        address = rest  # a `?` within a password
    user, _, _ = address.rpartition("@")
    if user.partition(":")[2]:
        return True
    pairs = [unquote(word).partition("=") for word in parameters.split("&")]
    return any(name.strip().lower().endswith("password") and value for name, _, value in pairs)
