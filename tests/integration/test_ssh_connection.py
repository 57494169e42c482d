"""The connection to an ssh host: one for all, to the right machine, with the operator's own configuration."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from fleet.errors import HostUnfit, HostUntrusted, TransportError, UsageError
from fleet.hosts.ssh.address import SshAddress
from fleet.hosts.ssh.connection import private_folder, socket_folder
from tests.support import ssh_parent
from tests.support.children import NOBODY
from tests.support.programs import need
from tests.support.session_host import do, lives, processes_with, until
from tests.support.sshd import Sshd, sshd

HELLO = ["echo", "hello"]


@pytest.fixture(name="server")
def listening() -> Iterator[Sshd]:
    """A real sshd."""
    with sshd() as server:
        yield server


@pytest.fixture(scope="module")
def with_each_key() -> Iterator[Sshd]:
    """A real sshd with a key of each kind."""
    with sshd(kinds=("ed25519", "ecdsa", "rsa")) as server:
        yield server


async def many(server: Sshd, count: int) -> list[bytes]:
    """That many programs at once."""
    done = await asyncio.gather(*(server.shared.run(["echo", str(number)]) for number in range(count)))
    return [each.stdout for each in done]


# one connection


def test_all_share_one_connection(server: Sshd) -> None:
    """Programs that are run at once, from the first on, share one connection."""
    assert do(many(server, 30)) == [f"{number}\n".encode() for number in range(30)]
    assert len(server.connections()) == 1


def test_a_long_command_that_opens_the_connection(server: Sshd) -> None:
    """It takes as long as it takes, past the time for connecting, and others share its connection meanwhile."""
    patient = server.transport(connect_seconds=1)

    async def scene() -> tuple[bool, bytes]:
        first = asyncio.create_task(patient.run(["sh", "-c", "sleep 3; echo first"]))
        await asyncio.sleep(0)  # it is on its way
        assert (await patient.run(HELLO)).stdout == b"hello\n"
        return first.done(), (await first).stdout

    assert do(scene()) == (False, b"first\n")
    assert len(server.connections()) == 1


def test_a_host_that_stops_in_the_middle_of_a_greeting(server: Sshd) -> None:
    """A machine that says that it speaks ssh, and nothing more, is an error in time."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        lost = server.transport(port=listener.getsockname()[1], connect_seconds=1)

        async def scene() -> None:
            trying = asyncio.create_task(lost.run(HELLO))
            met, _ = await asyncio.to_thread(listener.accept)
            with met:
                met.sendall(b"SSH-2.0-silent\r\n")
                with pytest.raises(TransportError, match="no answer within 2 s"):
                    await trying

        do(scene())


def test_a_server_that_allows_few_sessions() -> None:
    """Where the server takes only two at once on a connection, the others wait for their turn and none is lost."""
    with sshd(options={"MaxSessions": "2"}) as server:
        assert do(many(server, 12)) == [f"{number}\n".encode() for number in range(12)]
        assert len(server.connections()) == 1


def test_a_restarted_server(server: Sshd) -> None:
    """After a restart of sshd the next call makes a new connection by itself."""
    assert do(server.shared.run(HELLO)).stdout == b"hello\n"
    server.stop()
    with pytest.raises(TransportError, match="Connection refused"):
        do(server.shared.run(HELLO))
    server.start()
    assert do(server.shared.run(HELLO)).stdout == b"hello\n"


def test_a_master_that_was_killed(server: Sshd, tmp_path: Path) -> None:
    """A socket that nobody answers any more is no obstacle."""
    assert do(server.shared.run(HELLO)).stdout == b"hello\n"
    (master,) = processes_with(os.fsencode(server.directory / "s") + b"/", files=("cmdline",))
    os.kill(master, signal.SIGKILL)
    until(lambda: not lives(master))
    assert do(server.shared.run(HELLO)).stdout == b"hello\n"


def test_a_cut_in_the_middle_is_an_error(server: Sshd, tmp_path: Path) -> None:
    """A program whose connection breaks is not mistaken for one that ended, and it is ended over there."""

    async def scene() -> None:
        running = asyncio.create_task(server.shared.run(["sh", "-c", f"echo $$ >{tmp_path}/pid; exec sleep 1000"]))
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            await asyncio.sleep(0.01)
        assert server.cut() == 1
        with pytest.raises(TransportError):
            await running

    do(scene())
    until(lambda: not lives(int((tmp_path / "pid").read_text())), "the end of the far program")


def test_a_parent_that_was_killed(server: Sshd, tmp_path: Path) -> None:
    """kill -9 of the process that runs a program over there ends that program."""
    argv = [sys.executable, ssh_parent.__file__, str(server.directory), str(server.port), str(tmp_path / "pid")]
    with subprocess.Popen(argv, start_new_session=True) as parent:
        pid = int(until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text()))
        assert lives(pid)
        parent.kill()
    until(lambda: not lives(pid), "the end of the far program")


# the right machine


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_pinned_key(with_each_key: Sshd, place: int) -> None:
    """Whichever of its keys is pinned, the host is believed, also when it is met again."""
    server = with_each_key
    transport = server.transport(host_key_fingerprint=server.fingerprint(place))
    assert do(transport.run(HELLO)).stdout == b"hello\n"
    do(transport.close())
    assert do(transport.run(HELLO)).stdout == b"hello\n"


def test_a_wrong_key_is_refused(server: Sshd) -> None:
    """A host without the pinned key is refused before anything is sent; both fingerprints are told."""
    wrong = "SHA256:" + "A" * 43
    with pytest.raises(HostUntrusted) as caught:
        do(server.transport(host_key_fingerprint=wrong).run(HELLO))
    assert wrong in str(caught.value)
    assert server.fingerprint(0) in str(caught.value)
    assert "Accepted" not in (server.directory / "log").read_text()


def test_a_key_that_changes_is_refused(server: Sshd) -> None:
    """A host that comes back with another key is refused, although its key was once seen and right."""
    transport = server.transport(host_key_fingerprint=server.fingerprint(0))
    assert do(transport.run(HELLO)).code == 0
    server.stop()
    server.new_keys()
    server.start()
    accepted = (server.directory / "log").read_text().count("Accepted")
    with pytest.raises(HostUntrusted):
        do(transport.run(HELLO))
    assert (server.directory / "log").read_text().count("Accepted") == accepted


def test_an_unknown_host_is_refused(server: Sshd, tmp_path: Path) -> None:
    """A host whose key is not in the file that was named is refused."""
    (tmp_path / "known").write_text("")
    with pytest.raises(HostUntrusted, match="verification failed"):
        do(server.transport(known_hosts=str(tmp_path / "known")).run(HELLO))


# the operator's own configuration


def test_the_ssh_configuration_is_honoured(server: Sshd, tmp_path: Path) -> None:
    """A name, port, user, key and jump of the user's own ssh configuration are used."""
    config = tmp_path / "config"
    config.write_text(
        f"Host builder\n HostName 127.0.0.1\n Port {server.port}\n IdentityFile {server.identity}\n"
        f" UserKnownHostsFile {server.known_hosts()}\n RemoteCommand false\n RequestTTY force\n LocalForward 1 a:1\n"
    )
    transport = server.transport(host="builder", port=0, identity="", ssh_config=str(config))
    assert do(transport.run(HELLO)).stdout == b"hello\n"


def test_by_way_of_another(server: Sshd, tmp_path: Path) -> None:
    """A host behind another is reached by ProxyJump, its own key is the one that is checked."""
    config = tmp_path / "config"
    config.write_text(
        f"Host gate\n HostName 127.0.0.1\n Port {server.port}\n IdentityFile {server.identity}\n"
        f" UserKnownHostsFile {server.known_hosts()}\n"
    )
    with sshd() as behind:
        (server.directory / "authorized_keys").write_text(
            "".join(each.identity.with_suffix(".pub").read_text() for each in (server, behind))
        )
        transport = behind.transport(
            proxy_jump="gate", ssh_config=str(config), host_key_fingerprint=behind.fingerprint()
        )
        assert do(transport.run(HELLO)).stdout == b"hello\n"
        assert (server.directory / "log").read_text().count("Accepted") >= 1
        do(transport.close())


# variables


def test_variables_arrive_and_are_nowhere_else(tmp_path: Path) -> None:
    """An allow-listed variable is in the far program's environment, and in no argument of any process."""
    mark = uuid4().hex  # a process of somebody else may say anything but this
    value = f"a 'value'\n$(id) of {mark}"
    with sshd(options={"AcceptEnv": "MY_PROFILE"}) as server:
        transport = server.transport({"MY_PROFILE": value, "OTHER": "x"}, variables=("MY_PROFILE", "NOT_SET_HERE"))

        async def scene() -> bytes:
            script = 'printf %s "$MY_PROFILE,${OTHER-none},${NOT_SET_HERE-none}"; read x <"$0"'
            os.mkfifo(tmp_path / "go")
            running = asyncio.create_task(transport.run(["sh", "-c", script, str(tmp_path / "go")]))
            while not processes_with(os.fsencode(tmp_path / "go"), files=("cmdline",)):
                await asyncio.sleep(0.01)
            assert processes_with(mark.encode(), files=("cmdline",)) == []
            await asyncio.to_thread((tmp_path / "go").write_text, "\n")
            return (await running).stdout

        assert do(scene()) == f"{value},none,none".encode()


@pytest.mark.parametrize("warm", [False, True])
def test_variables_that_are_dropped(server: Sshd, warm: bool) -> None:
    """A server that does not accept a variable is an error that tells what to change, also if others are connected."""
    if warm:
        assert do(server.shared.run(HELLO)).code == 0
    transport = server.transport({"MY_PROFILE": "x"}, variables=("MY_PROFILE",))
    for _ in range(2):
        with pytest.raises(HostUnfit, match="does not accept MY_PROFILE") as caught:
            do(transport.run(HELLO))
        assert "AcceptEnv MY_PROFILE" in caught.value.hint
        assert "x" not in str(caught.value).split()
    assert len(server.connections()) == 1


@pytest.mark.parametrize(
    "name", ["MY_TOKEN", "db_password", "OPENAI_API_KEY", "A_SECRET_B", "SSH_PRIVATE_KEY", "A=B", "-x"]
)
def test_names_that_are_refused(name: str) -> None:
    """A name that looks secret, or is none, is never sent."""
    with pytest.raises(UsageError):
        SshAddress(host="builder", variables=(name,))


# hostile and silent


@pytest.mark.parametrize(
    "fields",
    [
        {"host": "-oProxyCommand=touch pwned"},
        {"host": "a b"},
        {"host": "$(touch pwned)"},
        {"host": ""},
        {"host": "h", "user": "-l"},
        {"host": "h", "user": "a;b"},
        {"host": "h", "proxy_jump": "-oProxyCommand=x"},
        {"host": "h", "proxy_jump": "a,`id`"},
        {"host": "h", "identity": "-v"},
        {"host": "h", "identity": 'x" y'},
        {"host": "h", "known_hosts": "-x\n"},
        {"host": "h", "port": 70000},
        {"host": "h", "host_key_fingerprint": "MD5:00"},
    ],
)
def test_hostile_words_are_refused(fields: dict[str, str]) -> None:
    """No word of an address can be an option of ssh, or more than a word for a shell."""
    with pytest.raises(UsageError):
        SshAddress(**fields)  # type: ignore[arg-type]


def test_a_login_that_runs_nothing() -> None:
    """An account whose login shell refuses commands is told as such, with what it said."""
    with (
        sshd(options={"ForceCommand": "echo This account is not available."}) as server,
        pytest.raises(HostUnfit, match="not available"),
    ):
        do(server.shared.run(HELLO))


def test_a_silent_host_slows_nobody(server: Sshd) -> None:
    """A host that takes connections and says nothing is an error after its own time, and others go on meanwhile."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        lost = server.transport(port=silent.getsockname()[1], connect_seconds=2)

        async def scene() -> list[float]:
            waiting = asyncio.create_task(lost.run(HELLO))
            await server.shared.run(HELLO)
            times = []
            while not waiting.done():
                began = time.monotonic()
                assert (await server.shared.run(HELLO)).stdout == b"hello\n"
                times.append(time.monotonic() - began)
            with pytest.raises(TransportError, match="cannot reach host"):
                await waiting
            return times

        times = do(scene())
        assert len(times) > 10
        assert sorted(times)[len(times) // 2] < 0.5


def test_ssh_is_missing(server: Sshd, tmp_path: Path) -> None:
    """A machine without ssh is told so."""
    need("ssh", shutil.which("ssh"), "install it")
    server.environment["PATH"] = str(tmp_path)
    with pytest.raises(TransportError, match="not installed"):
        do(server.transport().run(HELLO))


def test_the_folder_of_sockets_is_ours_alone(tmp_path: Path) -> None:
    """A directory that others may enter, or a link, is not used for sockets."""
    for open_to_others in (0o755, 0o770):
        (tmp_path / "s").mkdir(exist_ok=True)
        (tmp_path / "s").chmod(open_to_others)
        with pytest.raises(TransportError, match="alone"):
            private_folder(tmp_path / "s")
    (tmp_path / "mine").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    with pytest.raises(TransportError, match="alone"):
        private_folder(tmp_path / "link")
    assert private_folder(tmp_path / "new").stat().st_mode & 0o777 == 0o700
    assert socket_folder({"XDG_RUNTIME_DIR": "/no/such/place"}) == Path(f"/tmp/fleet-ssh-{os.geteuid()}")
    assert socket_folder({"XDG_RUNTIME_DIR": str(tmp_path / ("x" * 90))}) == Path(f"/tmp/fleet-ssh-{os.geteuid()}")


def test_what_another_user_made_is_not_our_folder_of_sockets(tmp_path: Path) -> None:
    """Neither a directory of others under our name, nor the runtime directory of whoever called `su`, is used."""
    with tempfile.TemporaryDirectory(prefix="f-", dir="/tmp") as runtime:  # names of sockets have little room
        ours = {"XDG_RUNTIME_DIR": runtime, "HOME": "/home/ana"}
        assert socket_folder(ours) == Path(runtime) / "fleet-ssh"
        theirs = Path(runtime, f"fleet-ssh-{os.geteuid()}")
        theirs.symlink_to(tmp_path)
        assert socket_folder({"HOME": "/home/ana"}, runtime) == Path("/home/ana/.cache/fleet-ssh")
        assert socket_folder({"HOME": f"/home/{'x' * 90}"}, runtime) == theirs  # and is refused there
        theirs.unlink()
        assert socket_folder({"HOME": "/home/ana"}, runtime) == theirs
        if os.geteuid() == 0:
            os.chown(runtime, NOBODY, NOBODY)
            assert socket_folder(ours) == Path(f"/tmp/fleet-ssh-{os.geteuid()}")
