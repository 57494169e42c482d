"""A real sshd for the tests: its own keys, configuration and directory, on a loopback port, gone afterwards."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fleet.hosts.ssh.address import SshAddress
from fleet.hosts.ssh.transport import SshTransport
from tests.support.programs import need
from tests.support.session_host import children_of, kill, lives

SECONDS = 20.0
HINT = "run `sh scripts/tools`"


class Sshd:
    """One server, and `shared`, a way to it."""

    def __init__(
        self, directory: Path, *, kinds: tuple[str, ...] = ("ed25519",), options: Mapping[str, str] | None = None
    ):
        self.directory = directory
        self.home = directory / "home"
        self.home.mkdir()
        self.program = need("sshd", shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin"), HINT)
        self.port = _free_port()
        self.keys = [self._key(f"host_{kind}", kind) for kind in kinds]
        self.identity = self._key("identity", "ed25519")
        self.options = dict(options or {})
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        self.shared = self.transport()
        self._variables = {"HOME": str(self.home)}
        self._process: subprocess.Popen[bytes] | None = None

    # the server

    def start(self) -> None:
        """Listen, on the same port as before."""
        (self.directory / "config").write_text(self._config())
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # where it shuts itself in while nobody has logged in
        log = self.directory / "log"
        words = [self.program, "-D", "-f", str(self.directory / "config"), "-E", str(log)]
        self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True)
        deadline = time.monotonic() + SECONDS
        while not self._listens():
            assert self._process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, "sshd did not listen"
            time.sleep(0.01)

    def set_environment(self, **variables: str) -> None:
        """What every login over there finds in its environment, from now on."""
        self._variables |= variables
        self.stop()
        self.start()

    def new_keys(self) -> None:
        """Another machine from now on, to those who look at its keys."""
        for key in self.keys:
            key.unlink()
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", key], check=True)

    def cut(self) -> int:
        """End every connection as a broken network would: the far side learns nothing, no goodbye is said."""
        found = self.connections()
        served = [pid for parent in found for pid in (parent, *children_of(parent)) if _is_sshd(pid)]
        for pid in found:
            kill(pid)
        _wait_for_the_end_of(served)
        return len(found)

    def connections(self) -> list[int]:
        """The processes that serve connections; the one of the listener is not among them."""
        return children_of(self._process.pid) if self._process else []

    def stop(self) -> None:
        """Neither listen nor serve."""
        if self._process is None:
            return
        served = [pid for parent in self.connections() for pid in (parent, *children_of(parent)) if _is_sshd(pid)]
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(SECONDS)
        for pid in served:
            kill(pid)
        _wait_for_the_end_of(served)
        self._process = None

    # the way there

    def address(self, **fields: Any) -> SshAddress:
        """How it is reached; its key is believed, and no configuration of the user's is read."""
        if not {"known_hosts", "host_key_fingerprint", "ssh_config"} & set(fields):
            fields["known_hosts"] = str(self.known_hosts())
        given = {"host": "127.0.0.1", "user": getpass.getuser(), "port": self.port, "identity": str(self.identity)}
        return SshAddress(**{**given, "ssh_config": "/dev/null", **fields})

    def transport(
        self, environment: Mapping[str, str] | None = None, *, sockets: str = "s", **fields: Any
    ) -> SshTransport:
        """A way to it, with a directory of sockets that is the server's own: another one is another connection."""
        folder = self.directory / sockets
        return SshTransport(self.address(**fields), folder, {**self.environment, **(environment or {})})

    def known_hosts(self) -> Path:
        """A file with its keys."""
        file = self.directory / "known_hosts"
        lines = [f"[127.0.0.1]:{self.port} {key.with_suffix('.pub').read_text()}" for key in self.keys]
        file.write_text("".join(lines))
        return file

    def fingerprint(self, place: int = 0) -> str:
        """As ssh-keygen prints it."""
        done = subprocess.run(["ssh-keygen", "-lf", self.keys[place]], check=True, capture_output=True, text=True)
        return done.stdout.split()[1]

    def _key(self, name: str, kind: str) -> Path:
        need("ssh-keygen", shutil.which("ssh-keygen"), HINT)
        file = self.directory / name
        subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", "test", "-f", file], check=True)
        return file

    def _config(self) -> str:
        authorized = self.directory / "authorized_keys"
        authorized.write_text(self.identity.with_suffix(".pub").read_text())
        options = {
            "ListenAddress": f"127.0.0.1:{self.port}",
            "PidFile": "none",
            "AuthorizedKeysFile": str(authorized),
            "StrictModes": "no",
            "UsePAM": "no",
            "PasswordAuthentication": "no",
            "PermitRootLogin": "prohibit-password",
            "PrintMotd": "no",
            "SetEnv": " ".join(f"{name}={value}" for name, value in self._variables.items()),
            **self.options,
        }
        lines = [f"HostKey {key}" for key in self.keys] + [f"{name} {value}" for name, value in options.items()]
        return "\n".join(lines) + "\n"

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


def only_busybox(server: Sshd) -> None:
    """From now on whoever logs in finds no program but those of busybox, and its sh."""
    busybox = need("busybox", shutil.which("busybox"), "run `sh scripts/tools`")
    place = server.directory / "bin"
    place.mkdir()
    subprocess.run([busybox, "--install", "-s", str(place)], check=True, stderr=subprocess.DEVNULL)
    server.set_environment(PATH=str(place))


def busybox_sh(server: Sshd) -> None:
    """From now on `sh` is busybox over there; the other programs are as they were."""
    place = server.directory / "bin"
    place.mkdir()
    (place / "sh").symlink_to(need("busybox", shutil.which("busybox"), "run `sh scripts/tools`"))
    server.set_environment(PATH=f"{place}:{os.environ['PATH']}")


def slow_sh(server: Sshd, seconds: float) -> None:
    """From now on every `sh` takes its time over there before it begins."""
    shadow(server, "sh", f'sleep {seconds}\nexec /bin/sh "$@"')


def shadow(server: Sshd, name: str, script: str) -> None:
    """From now on a program over there is this script."""
    place = server.directory / f"shadow-{name}"
    place.mkdir()
    program = place / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    server.set_environment(PATH=f"{place}:{os.environ['PATH']}")


@contextlib.contextmanager
def sshd(**given: Any) -> Iterator[Sshd]:
    """A server that listens, in a directory with a short name."""
    directory = Path(tempfile.mkdtemp(prefix="fleet-sshd-", dir="/tmp"))
    try:
        server = Sshd(directory, **given)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for_the_end_of(pids: list[int]) -> None:
    deadline = time.monotonic() + SECONDS
    while any(lives(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _is_sshd(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip().startswith("sshd")
    return False
