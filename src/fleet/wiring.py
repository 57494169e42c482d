"""From settings to live objects: the only place where an implementation is chosen."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from fleet.config.environment import environ
from fleet.config.home import Home, require
from fleet.config.settings import Settings
from fleet.errors import StoreCorrupt

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.api.desk import Desk
    from fleet.channels.channel import Channel
    from fleet.coders.coder import Coder
    from fleet.control.alerting import Alerting
    from fleet.control.control import Control
    from fleet.control.hosts import HostVerbs
    from fleet.control.landing import Landing
    from fleet.control.pools import PoolVerbs
    from fleet.control.specs import Coders
    from fleet.front.local import LocalFront
    from fleet.front.remote import RemoteFront
    from fleet.hosts.kinds import HostKind
    from fleet.hosts.pool_worker import PoolWorker
    from fleet.hosts.transport import Transport
    from fleet.model.reach import Reach
    from fleet.policy.allocation import Member
    from fleet.sources.source import Source
    from fleet.store.engine import Engine
    from fleet.store.reads import Reads
    from fleet.store.store import Store
    from fleet.supervisor.house import House, Only, OnlyPools, OnlyVerify
    from fleet.supervisor.journal import Echo
    from fleet.supervisor.messenger import Messenger


def open_reads(home: Home, settings: Settings) -> Reads:
    """The store, for looking only. Never creates a home or a ledger."""
    from fleet.store.reads import Reads

    require(home)
    if settings.store.url:
        return Reads(_postgres(home, settings), prefix=settings.queue.prefix)
    from fleet.store.sqlite.reader import SqliteReader

    _refuse_lost(home)
    return Reads(SqliteReader(home.db, bells=home.bells, leases=home.leases), prefix=settings.queue.prefix)


def open_store(home: Home, settings: Settings, *, grouped: bool = False) -> Store:
    """The store, for writing too. The home must be there; its schema is brought up to date."""
    require(home)
    return make_store(home, settings, grouped=grouped)


def make_store(home: Home, settings: Settings, *, grouped: bool = False) -> Store:
    """The store, made if it is not there yet."""
    from fleet.store.store import Store

    if settings.store.url:
        engine: Engine = _postgres(home, settings, create=True, grouped=grouped)
    else:
        from fleet.store.sqlite.writer import SqliteWriter

        _refuse_lost(home)
        engine = SqliteWriter(home.db, bells=home.bells, leases=home.leases, grouped=grouped)
    return Store(engine, prefix=settings.queue.prefix)


def prepare_store(home: Home, settings: Settings, *, force: bool) -> list[str]:
    """Make the store, or bring it up to date. `force` also replaces a damaged SQLite database. Returns notes."""
    notes = []
    if force and not settings.store.url:
        from fleet.store.restore import is_sound

        if _is_lost(home) or (home.db.exists() and not is_sound(home.db)):
            notes.append(_restore(home))
    with closing(make_store(home, settings)) as store:
        mirroring(home, settings, store)()
    return notes


def _restore(home: Home) -> str:
    import time

    from fleet.store.restore import restore

    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    back = restore(home.db, home.mirror, stamp=stamp, bells=home.bells, leases=home.leases)
    lost = f", {back.dropped} could not be placed" if back.dropped else ""
    kept = ", ".join(path.name for path in back.aside)
    if not kept:
        return f"the database was missing and is built anew from {back.events} events{lost}"
    return f"the database was damaged and is built anew from {back.events} events{lost}; the old one is kept as {kept}"


def _is_lost(home: Home) -> bool:
    """Whether the database is gone from a home whose mirror still tells of it."""
    return not home.db.exists() and home.mirror.exists() and home.mirror.stat().st_size > 0


def _refuse_lost(home: Home) -> None:
    """Beginning an empty ledger in the place of a lost one would hide the loss."""
    if _is_lost(home):
        raise StoreCorrupt(
            f"{home.db} is missing, but {home.mirror.name} tells of a ledger",
            hint="run `fleet init --force`: it builds the database anew from fleet.jsonl",
        )


def open_control(home: Home, settings: Settings, *, by: str | None = None) -> Control:
    """Every verb that a person can issue, in the name of whoever runs this."""
    store = open_store(home, settings)
    return make_control(home, settings, store, by=by or whoami(), after=mirroring(home, settings, store))


def make_control(home: Home, settings: Settings, store: Store, *, by: str, after: Callable[[], object]) -> Control:
    """The verbs over a store that is open, in somebody's name."""
    from fleet.control.control import Control
    from fleet.hosts.machine import local_host
    from fleet.plugins import check_coder

    return Control(
        store,
        home,
        by=by,
        machine=local_host(),
        configured=settings.supervisor,
        check_coder=lambda name: check_coder(name, settings.own_coders),
        after=after,
    )


def open_desk(home: Home, settings: Settings, *, report: Callable[[str], object]) -> Desk:
    """What the API works with. To be made in the loop that serves it."""
    from fleet.api.desk import Desk
    from fleet.config.load import Current

    store = open_store(home, settings)
    after = mirroring(home, settings, store)
    current = Current(home, settings)

    def front(over: Store, by: str) -> LocalFront:
        return open_front(
            home,
            current,
            reads=lambda: over,
            control=lambda name: make_control(home, current(), over, by=name, after=after),
        ).named(by)

    return Desk(home, current, store=store, front=front, report=report)


def open_front(
    home: Home,
    settings: Callable[[], Settings],
    *,
    reads: Callable[[], Reads] | None = None,
    control: Callable[[str], Control] | None = None,
) -> LocalFront:
    """The front of a home here, over what is open already; else each is opened when it is first asked for."""
    import os
    from contextlib import ExitStack
    from functools import cache

    from fleet.front.local import LocalFront

    opened = ExitStack()
    store = cache(lambda: opened.enter_context(closing(open_store(home, settings()))))
    after = cache(lambda: mirroring(home, settings(), store()))
    return LocalFront(
        home,
        settings=settings,
        reads=reads or cache(lambda: opened.enter_context(closing(open_reads(home, settings())))),
        control=control or (lambda by: make_control(home, settings(), store(), by=by or whoami(), after=after())),
        coders=_checked_coders,
        base=os.getcwd,
        close=opened.close,
    )


def open_remote(url: str, token_env: str, *, insecure: bool) -> RemoteFront:
    """The front of a fleet that is served elsewhere. Nothing is asked yet."""
    from fleet.errors import UsageError
    from fleet.front.client import Client
    from fleet.front.remote import RemoteFront

    token = environ().get(token_env, "").strip()
    if not token:
        raise UsageError(
            f"${token_env} holds no token for {url}",
            hint="put one there, which `fleet serve token NAME` made; --token-env names another variable",
        )
    return RemoteFront(Client(url, token, insecure=insecure))


def open_landing(home: Home, settings: Settings) -> Landing:
    """The verbs of worktrees, here and on other machines, in the name of whoever runs this."""
    from fleet.control.landing import Landing
    from fleet.hosts.machine import local_host
    from fleet.policy.placement import reach_of

    store = open_store(home, settings)
    return Landing(
        store,
        home,
        by=whoami(),
        machine=local_host(),
        reach=lambda name: reach_of(name, settings, store.run),
        open_transport=lambda reach: open_transport(reach, settings, home),
    )


def open_host_verbs(home: Home, settings: Settings) -> HostVerbs:
    """The verbs of hosts, in the name of whoever runs this."""
    from fleet.control.hosts import HostVerbs
    from fleet.policy.placement import hosts_of

    return HostVerbs(
        open_store(home, settings),
        home,
        by=whoami(),
        declared=hosts_of(settings),
        open_transport=lambda reach: open_transport(reach, settings, home),
        probe_seconds=settings.timeouts.health_probe,
        health=settings.health,
    )


def pool_worker(home: Home, settings: Settings, member: Member) -> PoolWorker:
    """A worker of a pool, on its host. Nothing is connected yet."""
    from fleet.hosts.local import LocalTransport
    from fleet.hosts.pool_worker import worker_at
    from fleet.policy.placement import hosts_of

    reach = member.own or (hosts_of(settings)[member.host] if member.host else None)
    transport = open_transport(reach, settings, home) if reach is not None else LocalTransport()
    pool = settings.pools[member.pool]
    return worker_at(member.pool, pool, member.worker, transport, home=str(home.path), reach=reach)


def open_pools(home: Home, settings: Settings, reads: Reads) -> PoolVerbs:
    """The verbs on workers of pools."""
    from fleet.config.secrets import lookup
    from fleet.control.pools import PoolVerbs

    def secrets(names: tuple[str, ...]) -> dict[str, str]:
        return {name: value for name in names if (value := lookup(home, name)) is not None}

    return PoolVerbs(
        settings,
        at=lambda member: pool_worker(home, settings, member),
        live=lambda: reads.sessions(live=True),
        secrets=secrets,
        coder=lambda name: load_coder(name or settings.supervisor.coder, settings),
    )


def init_beads(home: Home, settings: Settings, force: bool) -> str | None:
    """Let bd make its queue in the home, where that is the source; returns what there is to say about it."""
    if settings.queue.source != "beads":
        return None
    from fleet.sources.beads import init_beads

    return init_beads(home, prefix=settings.queue.prefix, force=force, env=environ())


def open_house(
    home: Home,
    settings: Settings,
    *,
    coder: str | None,
    model: str | None,
    echo: Echo | None,
    only: Only | OnlyPools | OnlyVerify | None = None,
    name: str = "",
) -> House:
    """What a supervisor needs, on this machine."""
    import os

    from fleet.channels.http import HttpCarrier
    from fleet.config.secrets import lookup
    from fleet.hosts.local import LocalTransport
    from fleet.hosts.machine import local_host
    from fleet.supervisor.house import House
    from fleet.supervisor.journal import Journal

    store = open_store(home, settings, grouped=True)
    journal = Journal(home.logs, echo)
    return House(
        name=name or f"sup-{os.urandom(4).hex()}",
        store=store,
        home=home,
        settings=settings,
        transport=LocalTransport(),
        machine=local_host(),
        load_coder=load_coder,
        open_transport=lambda reach: open_transport(reach, settings, home),
        load_channel=load_channel,
        carrier=HttpCarrier(lambda name: lookup(home, name), lambda line: journal.write("alert", text=line)),
        secrets=lambda name: lookup(home, name),
        journal=journal,
        coder=coder,
        model=model,
        mirror=mirroring(home, settings, store),
        source=open_source(home, settings) if only is None else None,
        only=only,
    )


def open_transport(reach: Reach, settings: Settings, home: Home) -> Transport:
    """The way to a machine that the settings or a spec describe. Nothing is connected yet."""
    from fleet import plugins

    environment = environ()
    if reach.kind == "sprite":  # its token may also stand in the home, which is where cron and systemd find it
        from fleet.config.secrets import lookup

        environment = {**environment, settings.sprites.token_env: lookup(home, settings.sprites.token_env) or ""}
    kind: HostKind = plugins.load("hosts", reach.kind)
    return kind.transport(reach, environment, settings)


def open_source(home: Home, settings: Settings) -> Source | None:
    """The outside queue that feeds this home's, if there is one. It need not answer yet."""
    if settings.queue.source != "beads":
        return None
    from fleet.sources.beads import Bd, find_bd
    from fleet.sources.beads_source import BeadsSource

    return BeadsSource(home, lambda: Bd(home, find_bd(environ()), environ()))


def load_coder(name: str, settings: Settings) -> Coder:
    """A coder by its name: of the settings, of a file, or registered."""
    from fleet import plugins

    options = settings.coders.get(name)
    if options is not None and options.argv:
        from fleet.coders.template import TemplateCoder

        limit = options.context_limit or None
        return TemplateCoder(name, options.argv, output=options.output, secrets=options.secrets, context_limit=limit)
    if options is not None and options.python:
        made: Coder = plugins.load_file(options.python)
        return made
    found: Coder = plugins.load("coders", name)
    return found


def spec_coders(settings: Settings, default: str) -> Coders:
    """What is to be known of coders to read a spec; each is loaded once."""
    from functools import cache

    from fleet.control.specs import Coders
    from fleet.plugins import check_coder

    load = cache(lambda name: load_coder(name, settings))
    return Coders(
        default=default,
        check=lambda name: check_coder(name, settings.own_coders),
        permissions=lambda name, task: load(name).permissions(task.worker.tools, task.worker.tool_profile),
    )


def _checked_coders(settings: Settings, coder: str | None) -> Coders:
    """The coders of a spec; `coder` is for tasks that name none, in the place of the settings' own."""
    from fleet.plugins import check_coder

    if coder:
        check_coder(coder, settings.own_coders)
    return spec_coders(settings, coder or settings.supervisor.coder)


def load_channel(kind: str) -> Channel:
    """A channel by the name that it is registered by."""
    from fleet import plugins

    made: Channel = plugins.load("channels", kind)
    return made


def open_alerting(home: Home, settings: Settings, say: Callable[[str], object]) -> Alerting:
    """The verbs of alerts, in the name of whoever runs this."""
    from fleet.channels.http import HttpCarrier
    from fleet.config.secrets import lookup
    from fleet.control.alerting import Alerting

    return Alerting(
        open_store(home, settings),
        settings,
        by=whoami(),
        load_channel=load_channel,
        secrets=lambda name: lookup(home, name),
        carrier=lambda: HttpCarrier(lambda name: lookup(home, name), say),
    )


def open_messenger(home: Home, settings: Settings) -> Messenger:
    """Who sends alerts for a command that may find no supervisor up. To be made before what may raise them."""
    import os

    from fleet.model.ids import CHECK
    from fleet.supervisor.messenger import Messenger

    name = f"{CHECK}{os.urandom(4).hex()}"
    return Messenger(open_house(home, settings, coder=None, model=None, echo=None, name=name))


def mirroring(home: Home, settings: Settings, reads: Reads) -> Callable[[], object]:
    """What keeps fleet.jsonl up with the ledger, or nothing."""
    wanted = settings.store.mirror == "on" or (settings.store.mirror == "auto" and not settings.store.url)
    if not wanted:
        return lambda: None
    from fleet.store.mirror import Mirror

    return Mirror(home.mirror, reads).catch_up


def whoami() -> str:
    """The person on whose behalf this process acts."""
    for name in ("FLEET_ACTOR", "USER", "LOGNAME"):
        if environ().get(name):
            return environ()[name]
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def _postgres(home: Home, settings: Settings, *, create: bool = False, grouped: bool = False) -> Engine:
    from fleet.config.secrets import lookup
    from fleet.store.postgres import PostgresEngine

    store = settings.store
    password = lookup(home, store.password_env) if store.password_env else None
    return PostgresEngine(store.url, schema=store.schema, password=password, create=create, grouped=grouped)
