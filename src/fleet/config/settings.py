"""Every setting: its type, its bounds, its default and its description.

The JSON Schema, the comments in a new fleet.toml, the errors and the reference are all made from these classes.
Sections that belong together have a module of their own: machines, pools, alerting, serving.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from fleet.config.alerting import Alerts, Channel, Route
from fleet.config.machines import Health, Host, Sprites, Status, Timeouts, Update
from fleet.config.pools import Pool, check_name
from fleet.config.section import A_NAME, A_VARIABLE, END, NAME, VARIABLE, Section
from fleet.config.serving import Api
from fleet.model.clash import ClashError
from fleet.model.ids import some_of
from fleet.model.worker import Worker

ALIASES = ("max_concurrent", "coder", "model", "context_pressure_threshold_pct")  # also taken without [supervisor]

DEFAULT_MODEL = "sonnet"
OTHER_VENDORS = ("agy", "codex", "gemini", "opencode")
MODELLESS = frozenset({"command", "scripted"})  # coders that only do as they are told: no model, and no judgement


class Supervisor(Section, frozen=True, kw_only=True):
    """How tasks are run."""

    max_concurrent: Annotated[
        int, Meta(ge=1, le=1000, description="How many sessions may run at once, without those of declared workers.")
    ] = 3
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
    max_output_mb: Annotated[
        int, Meta(ge=0, le=10**6, description="MB that a session may print; then it is ended as over budget; 0: any.")
    ] = 1000
    max_log_mb: Annotated[
        int,
        Meta(ge=0, le=10**6, description="MB that a session may add to its log; past that its end is added; 0: any."),
    ] = 100
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
        bool,
        Meta(description="Whether agents whose tasks name the same directory may change it in place at the same time."),
    ] = False
    grace_seconds: Annotated[
        int, Meta(ge=0, le=600, description="How long an agent has between one signal to end and the next.")
    ] = 5
    keep_sessions_days: Annotated[
        int,
        Meta(
            ge=0,
            le=3650,
            description="How long an ended task's raw output, and its files on other hosts, are kept; 0: for ever.",
        ),
    ] = 14
    keep_dropped_days: Annotated[
        int,
        Meta(ge=0, le=3650, description="How long what a dropped worktree left of an ended task is kept; 0: for ever."),
    ] = 90
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
        if self.output != "text" and not self.argv:
            raise ClashError(("output",), "belongs to a coder from a template, which argv makes")


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
    pools: dict[str, Pool] = {}

    @property
    def own_coders(self) -> tuple[str, ...]:
        """The coders that the file itself makes."""
        return tuple(name for name, coder in self.coders.items() if coder.argv or coder.python)

    def __post_init__(self) -> None:
        names = _unique("hosts", "name", "host", [host.name for host in self.hosts])
        _unique("workers", "id", "worker", [worker.id for worker in self.workers])
        for place, worker in enumerate(self.workers):
            if isinstance(worker.host, str) and worker.host not in names:
                known = some_of(names)
                raise ClashError(("workers", place, "host"), f'there is no host "{worker.host}"; there are: {known}')
        self._check_hosts()
        for name, pool in self.pools.items():
            check_name(name)
            for host in pool.hosts:
                if host not in names:
                    known = some_of(names)
                    raise ClashError(("pools", name, "hosts"), f'there is no host "{host}"; there are: {known}')
        for name in self.channels:
            if not re.fullmatch(NAME, name):
                raise ClashError(("channels", name), f"expected {A_NAME}")
        for place, route in enumerate(self.routes):
            if route.channel not in self.channels:
                known = ", ".join(sorted(self.channels)) or "none"
                raise ClashError(
                    ("routes", place, "channel"), f'there is no channel "{route.channel}"; there are: {known}'
                )

    def _check_hosts(self) -> None:
        """What a host says only in vain, as things stand around it."""
        manned = {worker.host: worker.id for worker in self.workers if isinstance(worker.host, str)}
        for place, host in enumerate(self.hosts):
            if host.max_concurrent_tasks != 1 and host.name in manned:
                text = f"worker {manned[host.name]} is on it: a worker says itself how many tasks it may run at once"
                raise ClashError(("hosts", place, "max_concurrent_tasks"), text)
        here = {host.name for host in self.hosts if host.kind == "local"}
        for name, pool in self.pools.items():
            if vain := here.intersection(pool.hosts):
                text = f'"{min(vain)}" is this machine, where workers are if no hosts are named'
                raise ClashError(("pools", name, "hosts"), text)


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
