"""The home: where it is, and what lies where in it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from fleet.config.environment import environ, expand, user_home
from fleet.config.files import account_of, failed
from fleet.errors import HomeError, NoHome, UsageError
from fleet.model.ids import check_token

NAME = ".fleet"
SIGNS = ("fleet.toml", "fleet.db", "runtime.toml")  # a directory with one of these is a home


class Home(msgspec.Struct, frozen=True):
    """A directory that holds, or will hold, one queue with its settings and records."""

    path: Path
    ignored: Path | None = None  # a home nearer by that was passed over, because it is not trusted

    @property
    def toml(self) -> Path:
        """The settings."""
        return self.path / "fleet.toml"

    @property
    def runtime_toml(self) -> Path:
        """The settings that an older supervisor left here."""
        return self.path / "runtime.toml"

    @property
    def db(self) -> Path:
        """The database, where it is SQLite."""
        return self.path / "fleet.db"

    @property
    def mirror(self) -> Path:
        """The ledger as readable text."""
        return self.path / "fleet.jsonl"

    @property
    def logs(self) -> Path:
        """The supervisor's own logs."""
        return self.path / "logs"

    @property
    def old_logs(self) -> Path:
        """The logs that an older supervisor left here; they are read too."""
        return self.path / "logging"

    @property
    def tasks(self) -> Path:
        """One directory per task, named by its uid."""
        return self.path / "tasks"

    @property
    def sessions(self) -> Path:
        """One directory per local session, named by its id."""
        return self.path / "sessions"

    @property
    def worktrees(self) -> Path:
        """One git worktree per task that works in one, named by its uid."""
        return self.path / "worktrees"

    @property
    def artifacts(self) -> Path:
        """What sessions left, kept by content: `<first two digits>/<sha256>`."""
        return self.path / "artifacts"

    @property
    def bells(self) -> Path:
        """The sockets of those who wait for news."""
        return self.path / "bells"

    @property
    def leases(self) -> Path:
        """The file locks of the supervisors."""
        return self.path / "leases"

    @property
    def beads(self) -> Path:
        """The queue of beads, where that is the source."""
        return self.path / ".beads"

    @property
    def secrets(self) -> Path:
        """Values that fleet.toml only names."""
        return self.path / "secrets.env"

    @property
    def tokens(self) -> Path:
        """Who may use the API, each with a token."""
        return self.path / "api-tokens"

    @property
    def requests(self) -> Path:
        """What was answered to requests that carried an idempotency key."""
        return self.path / "requests"

    @property
    def serving(self) -> Path:
        """Where this home is served, a file for each process that does."""
        return self.path / "serving"

    @property
    def codes(self) -> Path:
        """What links to the dashboard hold in place of tokens: digests, each a file."""
        return self.path / "codes"

    @property
    def dashboard(self) -> Path:
        """What a browser is given to open: it leads to the dashboard, with a code."""
        return self.path / "dashboard.html"

    @property
    def private(self) -> tuple[Path, ...]:
        """Every file with a secret in it: nobody else may read them."""
        return (self.secrets, self.tokens, self.dashboard)

    @property
    def exists(self) -> bool:
        """Whether somebody has made this home."""
        return looks_like_home(self.path)

    def task_dir(self, uid: str) -> Path:
        """The directory of one task."""
        return self.tasks / check_token(uid, "task")


def resolve(flag: str | None, *, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Home:
    """The home to use: --home, else $FLEET_HOME, else the nearest trusted `.fleet/` upward, else `~/.fleet`."""
    env = environ() if env is None else env
    if flag is not None:
        if not flag.strip():
            raise UsageError("--home needs a directory, and an empty one was given")
        return Home(_absolute(flag, env, cwd))
    if env.get("FLEET_HOME", "").strip():
        return Home(_absolute(env["FLEET_HOME"], env, cwd))
    default = _absolute(f"~/{NAME}", env, cwd)
    found, ignored = _upward(default, env, cwd)
    return Home(found or default, ignored)


def require(home: Home) -> Home:
    """The home, which must exist."""
    if home.exists:
        return home
    note = untrusted_note(home)
    raise NoHome(f"there is no Fleet home at {home.path} yet", hint=note and f"{note}; or run `fleet init`")


def refuse_root_elsewhere(home: Home) -> None:
    """Root leaves nothing in the home of another: its owner could neither read it, nor write there again.

    An owner without an account here is that of a directory that was mounted into a container, where all is root's.
    """
    if os.geteuid() != 0:
        return
    own = Path(user_home(environ()))
    where = home.path if home.path.exists() or home.path.parent != own else own
    owner = account_of(where) if where.exists() and where.stat().st_uid != 0 else ""
    if owner:
        raise HomeError(
            f"{where} belongs to {owner}, and you are root: {owner} could not use what you leave there",
            hint=f"run it as {owner}, with `sudo -H -u {owner}`; or choose a home of your own with --home",
        )


def untrusted_note(home: Home, cwd: Path | None = None) -> str | None:
    """What to say about a home that was passed over, if one was."""
    if home.ignored is None:
        return None
    here = home.ignored.parent == _here(cwd)
    name, where = (f"./{NAME}", "") if here else (str(home.ignored), f" in {home.ignored.parent}")
    return f"{name} is not on your trusted list and was not used; run `fleet init --here`{where} to trust it"


def looks_like_home(path: Path) -> bool:
    """Whether a directory holds something that only a home holds."""
    try:
        return any((path / sign).is_file() for sign in SIGNS)
    except OSError as exc:
        raise failed(exc, "look into", path) from exc


def _upward(default: Path, env: Mapping[str, str], cwd: Path | None) -> tuple[Path | None, Path | None]:
    """The nearest trusted home upward, and the nearest that was passed over before it."""
    here = _here(cwd)
    ignored: Path | None = None
    for directory in (here, *here.parents) if here else ():
        candidate = directory / NAME
        if not os.path.isdir(candidate):  # never raises, where Path.is_dir may
            continue
        if candidate == default or os.path.realpath(candidate) == os.path.realpath(default):
            break  # the user's own home needs no trust
        from fleet.config.trust import is_trusted

        if is_trusted(candidate, env):
            return candidate, ignored
        if ignored is None and os.access(candidate, os.R_OK | os.X_OK) and looks_like_home(candidate):
            ignored = candidate
    return None, ignored


def _here(cwd: Path | None) -> Path | None:
    try:
        return cwd or Path.cwd()
    except FileNotFoundError:  # the directory was removed under us
        return None


def _absolute(text: str, env: Mapping[str, str], cwd: Path | None) -> Path:
    """The path as written, but absolute: links and `..` stay, so that it is the one the user knows."""
    path = Path(expand(text, env))
    if path.is_absolute():
        return path
    here = _here(cwd)
    if here is None:
        raise HomeError(f"`{text}` is relative, and the current directory no longer exists")
    return here / path
