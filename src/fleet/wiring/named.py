"""What the settings or a spec call by a name: coders, channels, the way to a machine, the queue outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.config.environment import environ
from fleet.config.home import Home
from fleet.config.settings import Settings

if TYPE_CHECKING:
    from fleet.channels.channel import Channel
    from fleet.coders.coder import Coder
    from fleet.control.specs import Coders
    from fleet.hosts.kinds import HostKind
    from fleet.hosts.transport import Transport
    from fleet.model.reach import Reach
    from fleet.sources.source import Source


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


def init_beads(home: Home, settings: Settings, force: bool) -> str | None:
    """Let bd make its queue in the home, where that is the source; returns what there is to say about it."""
    if settings.queue.source != "beads":
        return None
    from fleet.sources.beads import init_beads

    return init_beads(home, prefix=settings.queue.prefix, force=force, env=environ())


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

    from fleet.coders.contained import ask
    from fleet.control.specs import Coders
    from fleet.plugins import check_coder

    load = cache(lambda name: load_coder(name, settings))
    return Coders(
        default=default,
        check=lambda name: check_coder(name, settings.own_coders),
        permissions=lambda name, task: ask(
            name, load(name), "permissions", task.worker.tools, task.worker.tool_profile, may_refuse=True
        ),
    )


def checked_coders(settings: Settings, coder: str | None) -> Coders:
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
