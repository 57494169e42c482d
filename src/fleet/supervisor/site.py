"""A site: one host as its supervisor uses it: the way there, and where on it things are kept."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import NoReturn

from fleet.config.home import Home
from fleet.errors import TransportError
from fleet.hosts.follower import Follower
from fleet.hosts.kinds import sprite_name, state_directory, working_directory
from fleet.hosts.session import HostedSession
from fleet.hosts.transport import Completed, Transport
from fleet.hosts.watch import LocalWatch
from fleet.hosts.watcher import Watcher
from fleet.model.ids import check_token
from fleet.model.reach import Reach
from fleet.model.session import Session, name_there


class Site:
    """One host. `state` is Fleet's own directory there; `directory` is where a task works that names none."""

    def __init__(
        self, name: str, transport: Transport, *, state: str, directory: str, reach: Reach | None, follower: Follower
    ) -> None:
        self.name = name
        self.transport = transport
        self.state = state
        self.directory = directory
        self.reach = reach  # None: this machine
        self.follower = follower
        self.as_root = False  # of another machine: as its probe told

    @property
    def is_here(self) -> bool:
        """Whether it is the machine that we run on."""
        return self.reach is None

    @property
    def sessions(self) -> str:
        """One directory per session, named by its id."""
        return f"{self.state}/sessions"

    def name_of(self, session: Session) -> str:
        """What its task is called on this host: other homes may have one of that id on it too."""
        check_token(session.id, "session")
        return session.task if self.is_here else name_there(session.id)

    def task_dir(self, session: Session) -> str:
        """The directory of its task."""
        return f"{self.state}/tasks/{self.name_of(session)}"

    def artifacts(self, session: Session) -> str:
        """What the agents of its task are given and leave."""
        return f"{self.task_dir(session)}/artifacts"

    def hosted(self, session: Session) -> HostedSession:
        """A session on this host, acted upon with its epoch."""
        return HostedSession(self.transport, self.sessions, session.id, session.epoch)

    @property
    def heard_at(self) -> float:
        """By the loop's clock: when a host that is watched last gave a sign of life; 0: not yet."""
        return (self.follower.heard_at or 0.0) if isinstance(self.follower, Watcher) else 0.0

    def is_heard_since(self, then: float) -> bool:
        """Whether the channel of a host that is watched is open, and was since then."""
        return isinstance(self.follower, Watcher) and self.follower.failed is None and self.heard_at > then


def here(name: str, transport: Transport, home: Home) -> Site:
    """The machine that we run on: its state is the home, and looking costs nothing."""
    path = str(home.path)
    return Site(name, transport, state=path, directory=path, reach=None, follower=LocalWatch())


def there(name: str, transport: Transport, reach: Reach, log: Callable[..., object]) -> Site:
    """Another machine: its sessions are followed over one channel."""
    directory = working_directory(reach).rstrip("/") or "/"
    state = state_directory(reach)

    def told(event: str, **fields: object) -> None:
        log(event, host=name, **fields)

    watcher = Watcher(transport, f"{state}/sessions", log=told)
    return Site(name, transport, state=state, directory=directory, reach=reach, follower=watcher)


def place_of(reach: Reach) -> tuple[str, ...]:
    """Which machine it is, and where Fleet's own directory is on it, whatever the host is called."""
    machine = sprite_name(reach) if reach.kind == "sprite" else f"{reach.user}@{reach.host}:{reach.port}"
    return (reach.kind, machine, reach.proxy_jump, state_directory(reach))


class Nowhere:
    """The way to a host that nothing describes any more: silent until it is declared again."""

    def __init__(self, name: str) -> None:
        self._name = name

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> Completed:  # noqa: ARG002
        self._fail()

    async def put(self, path: str, data: bytes) -> None:  # noqa: ARG002
        self._fail()

    async def get(self, path: str, *, offset: int = 0, limit: int = 1 << 20) -> bytes:  # noqa: ARG002
        self._fail()

    async def stream(self, argv: Sequence[str]) -> AsyncIterator[bytes]:  # noqa: ARG002
        self._fail()
        yield b""

    def _fail(self) -> NoReturn:
        raise TransportError(
            f"host {self._name} is not declared any more", hint="declare it again in fleet.toml: a session is on it"
        )
