"""The kinds of hosts: from how a machine is reached to a transport. Registered as `fleet.hosts`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from fleet.hosts.transport import Transport
from fleet.model.reach import Reach

LONGEST_CONNECT_SECONDS = 60


class HostKind(Protocol):
    """One kind of host; made without arguments."""

    def transport(self, reach: Reach, environment: Mapping[str, str], *, connect_seconds: float) -> Transport:
        """A way to the machine; nothing is connected yet. `environment` is the operator's own."""


class Local:
    """This machine."""

    def transport(self, reach: Reach, environment: Mapping[str, str], *, connect_seconds: float) -> Transport:  # noqa: ARG002
        from fleet.hosts.local import LocalTransport

        return LocalTransport()


class Ssh:
    """A machine that is reached by the system's ssh client."""

    def transport(self, reach: Reach, environment: Mapping[str, str], *, connect_seconds: float) -> Transport:
        from fleet.hosts.ssh.address import SshAddress
        from fleet.hosts.ssh.connection import socket_folder
        from fleet.hosts.ssh.transport import SshTransport

        address = SshAddress(
            host=reach.host,
            user=reach.user,
            port=reach.port,
            identity=reach.identity,
            proxy_jump=reach.proxy_jump,
            known_hosts=reach.known_hosts,
            host_key_fingerprint=reach.host_key_fingerprint,
            ssh_config=reach.ssh_config,
            connect_seconds=max(1, min(LONGEST_CONNECT_SECONDS, round(connect_seconds))),
            variables=reach.env_allowlist,
        )
        return SshTransport(address, socket_folder(environment), environment)


def sessions_root(reach: Reach) -> str:
    """The directory on a remote host that holds the directories of its sessions."""
    return f"{reach.working_directory.rstrip('/')}/.fleet/sessions"


def passed_on(reach: Reach, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of the allow-list that have a value here. An agent is given them by `start`, as its secrets are:
    the runner gives it nothing else of the environment that it was called in.
    """
    return {name: environment[name] for name in reach.env_allowlist if name in environment}
