"""Where an ssh host is and how it is to be reached: checked words, and the options they make."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import msgspec

from fleet.errors import UsageError
from fleet.model.clash import ClashError
from fleet.model.reach import check_hops, check_variable, check_word

CONNECT_SECONDS = 10
ALIVE_SECONDS, ALIVE_COUNT = 5, 3  # a connection on which nobody answers for so long, so often, is dead
UNNAMED = ("variables", "connect_seconds", "alive_seconds")  # a connection is the same whatever these are


class SshAddress(msgspec.Struct, frozen=True, kw_only=True):
    """One machine. A word that ssh could take for an option, or a shell for more than a word, is refused."""

    host: str  # a name, an address, or a `Host` of the user's own ssh configuration
    user: str = ""
    port: int = 0  # 0: as the configuration says
    identity: str = ""  # a file with a private key
    proxy_jump: str = ""
    known_hosts: str = ""  # a file: only the keys in it are believed
    host_key_fingerprint: str = ""  # SHA256:...: only this key is believed
    ssh_config: str = ""  # a file in place of the user's own ssh configuration
    connect_seconds: int = CONNECT_SECONDS
    alive_seconds: int = ALIVE_SECONDS  # how often a silent host is asked whether it lives
    variables: tuple[str, ...] = ()  # names that are sent along, where they have a value here

    def __post_init__(self) -> None:
        try:
            check_word("host", self.host)
            for name in ("user", "identity", "known_hosts", "host_key_fingerprint", "ssh_config"):
                if word := getattr(self, name):
                    check_word(name, word)
            check_hops(self.proxy_jump)
            for name in self.variables:
                check_variable(name)
        except ClashError as exc:
            raise UsageError(f"an ssh host cannot be used: {exc.path[0]}: {exc}") from exc
        if not 0 <= self.port < 65536:
            raise UsageError(f"an ssh host cannot be used: port: {self.port} is no port")

    @property
    def key(self) -> str:
        """A short name for the connection that this address leads to: what differs in any word has another."""
        words = (getattr(self, name) for name in self.__struct_fields__ if name not in UNNAMED)
        return sha256("\0".join(map(str, words)).encode()).hexdigest()[:16]

    def options(self) -> list[str]:
        """The words for ssh that make a connection, but for its socket and the believed keys."""
        words = ["-T", "-x", "-a"]  # no terminal, no windows, and no use of our keys from over there
        if self.ssh_config:
            words += ["-F", self.ssh_config]
        if self.port:
            words += ["-p", str(self.port)]
        if self.user:
            words += ["-l", self.user]
        if self.identity:
            words += ["-i", self.identity, "-o", "IdentitiesOnly=yes"]
        if self.proxy_jump:
            words += ["-J", self.proxy_jump]
        return words + as_options(
            BatchMode="yes",
            ConnectTimeout=self.connect_seconds,
            ConnectionAttempts=1,
            ServerAliveInterval=self.alive_seconds,
            ServerAliveCountMax=ALIVE_COUNT,
            LogLevel="ERROR",
            ClearAllForwardings="yes",
            PermitLocalCommand="no",
            RemoteCommand="none",
            UpdateHostKeys="no",
        )

    def terminal(self, line: str) -> list[str]:
        """The words that show a person what a line of shell does there, on their own terminal."""
        known = only_keys_of(self.known_hosts) if self.known_hosts else []
        return ["ssh", "-t", *self.options()[1:], *known, "--", self.host, line]


def as_options(**options: object) -> list[str]:
    """The words that set options of ssh."""
    return [word for name, value in options.items() for word in ("-o", f"{name}={value}")]


def only_keys_of(file: str | Path) -> list[str]:
    """The words that make ssh believe the keys in a file, and no other."""
    return as_options(UserKnownHostsFile=f'"{file}"', GlobalKnownHostsFile="/dev/null", StrictHostKeyChecking="yes")
