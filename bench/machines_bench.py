"""One command on a hundred machines, beside parallel-ssh, Ansible and ClusterShell; a look at two hundred, ten silent.

The machines are one real sshd on as many addresses of 127/8, so both sides share this machine's cores. The others come
from PyPI into an environment of their own (FLEET_BENCH_PEERS names one that is there already).
"""

from __future__ import annotations

import contextlib
import getpass
import os
import pty
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.report import Figure
from tests.support.session_host import children_of, kill
from tests.support.sshd import Sshd, sshd

HOSTS = 100
ROUNDS = 4
PEERS = ("parallel-ssh==2.16.0.post1", "ansible-core==2.19.14", "ClusterShell==1.10.1")
SEEN, SILENT = 190, 10
LOOKS = 3
SETTLED_SECONDS = 1  # after hundreds of processes have ended: what that costs is nobody's figure
PROBE_SECONDS = 15  # as it is where nobody sets it
FLEET = (sys.executable, "-m", "fleet")
PARALLEL_SSH = """
import sys
from pssh.clients import ParallelSSHClient
port, user, key, *hosts = sys.argv[1:]
client = ParallelSSHClient(hosts, user=user, port=int(port), pkey=key, allow_agent=False, num_retries=1)
answers = client.run_command("true")
client.join(answers)
sys.exit(sum(answer.exit_code != 0 for answer in answers))
"""
# The same for all. OpenSSH 9.2 by itself takes one that withstands quantum computers: it costs its client 70 ms of a
# core each time, and nearly hides all else; parallel-ssh has none of that kind. Users have it: that is recorded too.
KEY_EXCHANGE = "KexAlgorithms curve25519-sha256\n"
LISTENERS = 16  # addresses that one sshd listens on at most


class Farm:
    """As many servers as it takes to listen on so many addresses of 127/8, with the keys of one."""

    def __init__(self, first: Sshd, addresses: list[str]) -> None:
        self.first = first
        self.addresses = addresses
        first.stop()
        self._processes = [self._start(place) for place in range(0, len(addresses), LISTENERS)]
        for address in addresses:
            _wait(lambda address=address: _listens(address, first.port))  # type: ignore[misc]

    def _start(self, place: int) -> subprocess.Popen[bytes]:
        self.first.options["ListenAddress"] = "\nListenAddress ".join(
            f"{address}:{self.first.port}" for address in self.addresses[place : place + LISTENERS]
        )
        config = self.first.directory / f"config.{place}"
        config.write_text(self.first._config())
        words = [self.first.program, "-D", "-f", str(config), "-E", str(self.first.directory / "log")]
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True)

    def cut(self) -> None:
        """End every connection; the clients that kept them up end with them."""
        for process in self._processes:
            for pid in children_of(process.pid):
                kill(pid)

    def serves(self) -> bool:
        """Whether a process of some connection is still there."""
        return any(children_of(process.pid) for process in self._processes)

    def stop(self) -> None:
        """Neither listen nor serve."""
        self.cut()
        for process in self._processes:
            process.terminate()
            process.wait(20)


class Bench:
    """A server, a home that knows it by a hundred names, and how each of the others is called."""

    def __init__(self, farm: Farm, directory: Path, peers: Path) -> None:
        self.farm, self.server = farm, farm.first
        server = farm.first
        self.directory = directory
        self.peers = peers / "bin"
        self.known = directory / "known_hosts"
        self.env = {
            "PATH": f"{peers}/bin:{os.environ['PATH']}",
            "HOME": str(directory),
            "FLEET_HOME": str(directory / "home"),
            "XDG_RUNTIME_DIR": str(server.directory / "run"),
            "ANSIBLE_HOST_KEY_CHECKING": "False",
            "ANSIBLE_SSH_ARGS": f"-F {directory / 'key_exchange'} -o ControlMaster=auto -o ControlPersist=60s",
            "ANSIBLE_LOCAL_TEMP": str(directory / "ansible"),
        }
        (server.directory / "run").mkdir(mode=0o700)
        (server.directory / "c").mkdir(mode=0o700)

    def prepare(self, hosts: int) -> None:
        """Everybody's list of the hosts; all believe the same file of keys."""
        addresses = [f"127.0.0.{number}" for number in range(1, hosts + 1)]
        (key,) = (each.with_suffix(".pub").read_text() for each in self.server.keys)
        self.known.write_text("".join(f"[{each}]:{self.server.port} {key}" for each in addresses))
        self.call(*FLEET, "init")
        toml = self.directory / "home" / "fleet.toml"
        toml.write_text(f"[timeouts]\nhealth_probe = {PROBE_SECONDS}\n" + "".join(map(self._table, addresses)))
        user, key_file, port = getpass.getuser(), self.server.identity, self.server.port
        variables = f"ansible_port={port} ansible_user={user} ansible_ssh_private_key_file={key_file}"
        (self.directory / "inventory").write_text("\n".join(f"{each} {variables}" for each in addresses) + "\n")
        plain = f"Port {port}\nUser {user}\nIdentityFile {key_file}\nUserKnownHostsFile {self.known}\nBatchMode yes\n"
        sharing = f"ControlMaster auto\nControlPath {self.server.directory}/c/%h\nControlPersist 60\n"
        (self.directory / "plain").write_text(plain + KEY_EXCHANGE)
        (self.directory / "shared").write_text(plain + KEY_EXCHANGE + sharing)
        (self.directory / "key_exchange").write_text(KEY_EXCHANGE)
        (self.directory / "by_parallel_ssh.py").write_text(PARALLEL_SSH)
        self.addresses = addresses

    def _table(self, address: str) -> str:
        fields = {
            "name": f"bench-host-{address.rpartition('.')[2]}",
            "kind": "ssh",
            "host": address,
            "user": getpass.getuser(),
            "identity": str(self.server.identity),
            "known_hosts": str(self.known),
            "ssh_config": str(self.directory / "key_exchange"),
            "working_directory": str(self.server.home),
            "agent_binary": "sh",
        }
        lines = [f'{name} = "{value}"' for name, value in fields.items()]
        return "\n".join(["\n[[hosts]]", *lines, f"port = {self.server.port}\n"])

    def call(self, *argv: str | Path) -> str:
        """Run something that must succeed."""
        done = subprocess.run(argv, env=self.env, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        assert done.returncode == 0, (argv, done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout

    # the same command, by each

    def fleet(self) -> None:
        """Ours."""
        assert f"Complete: {HOSTS}/{HOSTS} succeeded" in self.call(*FLEET, "exec", "true")

    def parallel_ssh(self) -> None:
        """A library: a script of six lines."""
        words = (str(self.server.port), getpass.getuser(), str(self.server.identity), *self.addresses)
        self.call(self.peers / "python", self.directory / "by_parallel_ssh.py", *words)

    def ansible(self) -> None:
        """Without its Python over there, which would only slow it down."""
        words = ("all", "-i", self.directory / "inventory", "-m", "raw", "-a", "true", "-f", "50")
        self.call(self.peers / "ansible", *words)

    def cluster_shell(self, config: str) -> None:
        """With as many at once as Fleet. `shared`: with ssh's own sharing of connections, which Fleet always has."""
        config = f"-F {self.directory / config}"
        self.call(self.peers / "clush", "-f", "50", "-w", f"127.0.0.[1-{HOSTS}]", "-o", config, "true")

    def forget(self) -> None:
        """End all connections: everybody begins anew."""
        self.farm.cut()
        folders = (self.env["XDG_RUNTIME_DIR"], self.server.directory / "c", self.directory / ".ansible")
        _wait(lambda: not any(path.is_socket() for folder in folders for path in Path(folder).rglob("*")))
        _wait(lambda: not self.farm.serves())
        time.sleep(SETTLED_SECONDS)


def _listens(address: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((address, port)) == 0


def _wait(until: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not until():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextlib.contextmanager
def farm(addresses: int) -> Iterator[Farm]:
    """Servers on the first addresses of 127/8."""
    with sshd(options={"MaxStartups": "300", "MaxSessions": "50"}) as first:
        made = Farm(first, [f"127.0.0.{number}" for number in range(1, addresses + 1)])
        try:
            yield made
        finally:
            made.stop()


def run() -> list[Figure]:
    """All figures, on one server."""
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fleet-bench-")))
        peers = _peers(directory)
        servers = stack.enter_context(farm(SEEN))
        bench = Bench(servers, directory, peers)
        bench.prepare(HOSTS)
        figures = [*_turns(bench, warm=False), *_turns(bench, warm=True), _as_users_have_it(bench)]
        bench.prepare(SEEN + SILENT)
        stack.enter_context(_black_holes(servers.first.port))
        figures += [*_status(bench), _bare(bench)]
    return figures


def _peers(directory: Path) -> Path:
    """Where the others are installed."""
    if given := os.environ.get("FLEET_BENCH_PEERS"):
        return Path(given)
    place = directory / "peers"
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    subprocess.run([place / "bin" / "pip", "install", "--quiet", *PEERS], check=True)
    return place


def _turns(bench: Bench, *, warm: bool) -> list[Figure]:
    """Each in turn, several times over, so that what else the machine does meets all of them alike."""
    acts: dict[str, Callable[[], None]] = {
        "fleet": bench.fleet,
        "parallel-ssh": bench.parallel_ssh,
        "Ansible": bench.ansible,
        "ClusterShell": lambda: bench.cluster_shell("shared" if warm else "plain"),
    }
    took: dict[str, list[float]] = {name: [] for name in acts}
    if warm:
        for act in acts.values():
            act()
    for _ in range(ROUNDS):
        for name, act in acts.items():
            if not warm:
                bench.forget()
            took[name].append(_seconds(act))
    bench.forget()
    ours = took.pop("fleet")
    return [_figure(name, ours, theirs, warm=warm) for name, theirs in took.items()]


def _figure(name: str, ours: list[float], theirs: list[float], *, warm: bool) -> Figure:
    ratio = statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True))
    most = 1.2 if name == "ClusterShell" else 1.0
    word = "warm: connections are up" if warm else "cold: no connection is up"
    measured = f"{ratio:.2f} x ({statistics.median(ours):.2f} s to {statistics.median(theirs):.2f} s)"
    what = f"`fleet exec true` on {HOSTS} hosts, to {name}, {'warm' if warm else 'cold'}"
    return Figure(
        what, measured, f"<= {most:.1f} x", ratio <= most, f"{ROUNDS} rounds in turns, median; {word}; curve25519"
    )


def _as_users_have_it(bench: Bench) -> Figure:
    """With the key exchange that the ssh client chooses by itself."""
    (bench.directory / "key_exchange").write_text("")
    bench.forget()
    ours, theirs = _seconds(bench.fleet), _seconds(bench.parallel_ssh)
    (bench.directory / "key_exchange").write_text(KEY_EXCHANGE)
    bench.forget()
    measured = f"{ours / theirs:.2f} x ({ours:.2f} s to {theirs:.2f} s)"
    what = f"the same on {HOSTS} hosts, to parallel-ssh, cold, with the key exchange of the ssh client itself"
    return Figure(
        what, measured, "recorded", True, "one round; the client's withstands quantum computers, and costs it"
    )


def _seconds(act: Callable[[], None]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


@contextlib.contextmanager
def _black_holes(port: int) -> Iterator[None]:
    """Machines that take a connection and never say a word."""
    with contextlib.ExitStack() as stack:
        for number in range(SEEN + 1, SEEN + SILENT + 1):
            hole = stack.enter_context(socket.socket())
            hole.bind((f"127.0.0.{number}", port))
            hole.listen()
        yield


def _status(bench: Bench) -> list[Figure]:
    """A look at all machines, as at a terminal: when the last that answers is shown, and when it ends."""
    figures = []
    for word in ("cold", "warm"):
        looks = [_looked(bench, cold=word == "cold") for _ in range(LOOKS)]
        shown, ended = (statistics.median(times) for times in zip(*looks, strict=True))
        note = f"{SILENT} of them take a connection and never answer; {word} connections; median of {LOOKS}"
        what = f"`fleet status` of {SEEN + SILENT} hosts, {word}"
        latest = PROBE_SECONDS + 1
        figures += [
            Figure(f"{what}: the {SEEN} that answer are shown after", f"{shown:.1f} s", "<= 3 s", shown <= 3, note),
            Figure(f"{what}: it ends after", f"{ended:.1f} s", f"<= {latest} s", ended <= latest, note),
        ]
    return figures


def _bare(bench: Bench) -> Figure:
    """What the connections alone cost on this machine, whoever asks for them."""
    bench.forget()
    words = ["xargs", "-P", str(SEEN), "-I{}", "ssh", "-F", str(bench.directory / "plain"), "{}", "true"]
    began = time.perf_counter()
    subprocess.run(words, input="\n".join(bench.addresses[:SEEN]), env=bench.env, text=True, check=True)
    took = time.perf_counter() - began
    return Figure(f"`ssh HOST true` for the same {SEEN} by xargs, all at once", f"{took:.1f} s", "recorded", True)


def _looked(bench: Bench, *, cold: bool) -> tuple[float, float]:
    if cold:
        bench.forget()
    master, slave = pty.openpty()
    began = time.perf_counter()
    words = [*FLEET, "status", "--team", "bench"]
    with subprocess.Popen(words, env=bench.env, stdin=slave, stdout=slave, stderr=slave) as process:
        os.close(slave)
        seen, shown = b"", 0.0
        with contextlib.suppress(OSError):  # the other end is closed
            while chunk := os.read(master, 1 << 16):
                seen += chunk
                if not shown and len(re.findall(rb"bench-host-\d+ +up +yes", seen)) == SEEN:
                    shown = time.perf_counter() - began
        assert process.wait(20) == 0, seen
    os.close(master)
    ended = time.perf_counter() - began
    return shown or float("inf"), ended  # not all were shown: they had not answered when their time was over
