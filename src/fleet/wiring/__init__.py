"""From settings to live objects: the only place where an implementation is chosen."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from fleet.config.environment import environ
from fleet.config.home import Home
from fleet.config.settings import Settings
from fleet.wiring.named import checked_coders, load_channel, load_coder, open_source
from fleet.wiring.named import init_beads as init_beads
from fleet.wiring.named import open_transport as open_transport
from fleet.wiring.stores import make_store as make_store
from fleet.wiring.stores import mirroring as mirroring
from fleet.wiring.stores import open_reads as open_reads
from fleet.wiring.stores import open_store as open_store
from fleet.wiring.stores import prepare_store as prepare_store

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.api.desk import Desk
    from fleet.control.alerting import Alerting
    from fleet.control.control import Control
    from fleet.control.hosts import HostVerbs
    from fleet.control.landing import Landing
    from fleet.control.pools import PoolVerbs
    from fleet.front.local import LocalFront
    from fleet.front.remote import RemoteFront
    from fleet.hosts.pool_worker import PoolWorker
    from fleet.policy.allocation import Member
    from fleet.store.reads import Reads
    from fleet.store.store import Store
    from fleet.supervisor.house import House, Only, OnlyPools, OnlyVerify
    from fleet.supervisor.journal import Echo
    from fleet.supervisor.messenger import Messenger

LOOK_SECONDS = 50.0  # at a machine, for somebody elsewhere, who waits a minute for an answer


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
            landing=lambda: make_landing(home, current(), over, look_seconds=LOOK_SECONDS),
        ).named(by)

    return Desk(home, current, store=store, front=front, report=report)


def open_front(
    home: Home,
    settings: Callable[[], Settings],
    *,
    reads: Callable[[], Reads] | None = None,
    control: Callable[[str], Control] | None = None,
    landing: Callable[[], Landing] | None = None,
) -> LocalFront:
    """The front of a home here, over what is open already; else each is opened when it is first asked for."""
    import os
    from contextlib import ExitStack
    from functools import cache, partial

    from fleet.front.local import LocalFront

    opened = ExitStack()
    store = cache(lambda: opened.enter_context(closing(open_store(home, settings()))))
    after = cache(lambda: mirroring(home, settings(), store()))
    return LocalFront(
        home,
        settings=settings,
        reads=reads or cache(lambda: opened.enter_context(closing(open_reads(home, settings())))),
        control=control or (lambda by: make_control(home, settings(), store(), by=by or whoami(), after=after())),
        landing=landing or (lambda: make_landing(home, settings(), store())),
        pool_worker=partial(pool_worker, home),
        coders=checked_coders,
        base=os.getcwd,
        close=opened.close,
    )


def open_remote(url: str, token_env: str, *, insecure: bool) -> RemoteFront:
    """The front of a fleet that is served elsewhere. Nothing is asked yet."""
    from fleet.errors import UsageError
    from fleet.front.address import checked
    from fleet.front.client import Client
    from fleet.front.remote import RemoteFront

    url = checked(url, insecure=insecure)  # first: a token for no address helps nobody
    token = environ().get(token_env, "").strip()
    if not token:
        raise UsageError(
            f"${token_env} holds no token for {url}",
            hint="put one there, which `fleet serve token NAME` made; --token-env names another variable",
        )
    return RemoteFront(Client(url, token))


def open_landing(home: Home, settings: Settings) -> Landing:
    """The verbs of worktrees, here and on other machines, in the name of whoever runs this."""
    return make_landing(home, settings, open_store(home, settings))


def make_landing(home: Home, settings: Settings, store: Store, *, look_seconds: float | None = None) -> Landing:
    """The same over a store that is open; `look_seconds` bounds what a look may take."""
    from fleet.control.landing import Landing
    from fleet.hosts.machine import local_host
    from fleet.policy.placement import reach_here, reach_of

    return Landing(
        store,
        home,
        by=whoami(),
        machine=local_host(),
        reach=lambda name: reach_of(name, settings, store.run),
        here=lambda one: reach_here(one.worker, store.run(one.run) if one.run else None, settings),
        open_transport=lambda reach: open_transport(reach, settings, home),
        look_seconds=look_seconds,
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
        open_transport=lambda reach, current: open_transport(reach, current, home),
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
