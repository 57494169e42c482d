"""The transport contract: this machine, ssh under every kind of login, and a sprite."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.hosts.local import LocalTransport
from fleet.hosts.transport import Transport
from fleet.testing.transport_contract import TransportContract
from fleet.testing.transport_powers import BeginContract, BoundContract, CourseContract, LaunchContract, UnpackContract
from tests.support.programs import need
from tests.support.sprites.server import stand_in
from tests.support.sprites.way import transport_to
from tests.support.sshd import HINT, Sshd, only_busybox, sshd

LOGINS = ("plain", "banner", "busybox", "fish", "tcsh")
BANNER = "echo 'Welcome to this machine!'; echo 'Mind the step.' >&2\n"


class TestLocal(TransportContract, UnpackContract, LaunchContract, CourseContract, BoundContract):
    """This machine, without a way in between."""

    @pytest.fixture
    def transport(self) -> Transport:
        return LocalTransport()

    @pytest.fixture
    def place(self, tmp_path: Path) -> str:
        return str(tmp_path)

    @pytest.mark.parametrize("steps", range(8))
    def test_a_run_that_is_cancelled_while_it_begins(self, transport: Transport, steps: int) -> None:
        """At whatever step of its start it is cancelled: nobody waits for what the program has started meanwhile."""

        async def scene() -> None:
            task = asyncio.create_task(transport.run(["sh", "-c", "sleep 1000; true"], stdin=b"x"))
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            done, _ = await asyncio.wait([task], timeout=20)
            assert done
            assert task.cancelled()

        asyncio.run(scene())


@pytest.fixture(scope="module", params=LOGINS, name="server")
def with_a_login(request: pytest.FixtureRequest) -> Iterator[Sshd]:
    """A real sshd whose user logs in so."""
    with sshd(options=login_as(request.param)) as server:
        if request.param == "banner":
            (server.home / ".bashrc").write_text(BANNER)
        if request.param == "busybox":
            only_busybox(server)
        yield server


def login_as(kind: str) -> dict[str, str]:
    """Options of sshd that put another shell in the place of the login shell."""
    if kind not in ("fish", "tcsh"):
        return {}
    shell = need(kind, shutil.which(kind), HINT)
    return {"ForceCommand": f'exec {shell} -c "$SSH_ORIGINAL_COMMAND"'}


class TestSsh(TransportContract, UnpackContract, CourseContract):
    """Another machine, through the system's ssh client."""

    @pytest.fixture
    def transport(self, server: Sshd) -> Transport:
        return server.shared

    @pytest.fixture
    def place(self, tmp_path: Path) -> str:
        return str(tmp_path)


class TestSshLaunch(LaunchContract, BeginContract, BoundContract):
    """The same machine; what it launches lives on."""

    @pytest.fixture
    def transport(self) -> Iterator[Transport]:
        with sshd() as server:
            yield server.shared

    @pytest.fixture
    def place(self, tmp_path: Path) -> str:
        return str(tmp_path)


@pytest.fixture(scope="module", name="to_sprite")
def way_to_a_sprite() -> Iterator[Transport]:
    """A way to a sprite of the stand-in."""
    with stand_in() as server:
        yield transport_to(server)


class TestSprite(TransportContract, UnpackContract, BeginContract, CourseContract, BoundContract):
    """A sprite, by the API of its provider."""

    @pytest.fixture
    def transport(self, to_sprite: Transport) -> Transport:
        return to_sprite

    @pytest.fixture
    def place(self, tmp_path: Path) -> str:
        return str(tmp_path)
