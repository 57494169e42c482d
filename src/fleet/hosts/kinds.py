"""The kinds of hosts: from how a machine is reached to a transport. Registered as `fleet.hosts`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from fleet.config.machines import Host
from fleet.config.pools import SPRITE_HOME
from fleet.config.settings import Settings
from fleet.errors import HostUnfit
from fleet.hosts.transport import Transport
from fleet.model.reach import Reach

if TYPE_CHECKING:
    from fleet.hosts.ssh.address import SshAddress

LONGEST_CONNECT_SECONDS = 60
OWN = ".fleet"  # our directory in a host's working directory


class HostKind(Protocol):
    """One kind of host; made without arguments."""

    def transport(self, reach: Reach, environment: Mapping[str, str], settings: Settings) -> Transport:
        """A way to the machine; nothing is connected yet. `environment` and `settings` are the operator's own."""


class Local:
    """This machine."""

    def transport(self, reach: Reach, environment: Mapping[str, str], settings: Settings) -> Transport:  # noqa: ARG002
        from fleet.hosts.local import LocalTransport

        return LocalTransport()


class Ssh:
    """A machine that is reached by the system's ssh client."""

    def transport(self, reach: Reach, environment: Mapping[str, str], settings: Settings) -> Transport:
        from fleet.hosts.ssh.connection import socket_folder
        from fleet.hosts.ssh.transport import SshTransport

        return SshTransport(ssh_address(reach, settings), socket_folder(environment), environment)


def ssh_address(reach: Reach, settings: Settings) -> SshAddress:
    """Where an ssh host is, and how it is reached."""
    from fleet.hosts.ssh.address import SshAddress

    return SshAddress(
        host=reach.host,
        user=reach.user,
        port=reach.port,
        identity=reach.identity,
        proxy_jump=reach.proxy_jump,
        known_hosts=reach.known_hosts,
        host_key_fingerprint=reach.host_key_fingerprint,
        ssh_config=reach.ssh_config,
        connect_seconds=max(1, min(LONGEST_CONNECT_SECONDS, round(settings.timeouts.health_probe))),
        variables=reach.env_allowlist,
    )


class Sprite:
    """A machine of a provider, which sleeps when it seems idle."""

    def transport(self, reach: Reach, environment: Mapping[str, str], settings: Settings) -> Transport:
        from fleet.hosts.sprite.api import SpriteApi
        from fleet.hosts.sprite.transport import SpriteTransport

        variable = settings.sprites.token_env
        token, seconds = environment.get(variable, ""), float(settings.timeouts.api_status)
        api = SpriteApi(settings.sprites.url, token, answer_seconds=seconds, token_env=variable)
        return SpriteTransport(api, sprite_name(reach), variables=passed_on(reach, environment))


def sprite_name(reach: Reach) -> str:
    """What its provider calls a sprite."""
    name = reach.host or (reach.api_name or reach.name if isinstance(reach, Host) else "")
    if not name:
        raise HostUnfit("a sprite without a name cannot be reached", hint="give its name as `host`")
    return name


def working_directory(reach: Reach) -> str:
    """Where work happens on a remote host; on a sprite that names no place, in its home."""
    return reach.working_directory or (SPRITE_HOME if reach.kind == "sprite" else "/")


def state_directory(reach: Reach) -> str:
    """Fleet's own directory on a remote host."""
    return f"{working_directory(reach).rstrip('/')}/{OWN}"


def passed_on(reach: Reach, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of the allow-list that have a value here. An agent is given them by `start`, as its secrets are:
    the runner gives it nothing else of the environment that it was called in. Commands find them there too.
    """
    return {name: environment[name] for name in reach.env_allowlist if name in environment}
