"""What a probe tells of a machine, by the real sh."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from fleet.errors import HostGone, HostMissing, TransportError
from fleet.hosts.probe import Login, probe
from fleet.hosts.transport import Completed
from fleet.model.reach import Reach

SECRET = "sk-ant-hunter2"
CLAUDE = {"claudeAiOauth": {"accessToken": SECRET, "refreshToken": "", "expiresAt": 1748276587173, "scopes": ["a"]}}
CODEX = {"OPENAI_API_KEY": None, "tokens": {"refresh_token": SECRET}, "last_refresh": "2025-06-01T10:00:00.123456Z"}


class Here:
    """This machine, with a home of its own; what was printed is kept."""

    def __init__(self, home: Path, error: TransportError | None = None) -> None:
        self.home = home
        self.error = error
        self.printed = b""

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> Completed:
        if self.error is not None:
            raise self.error
        env = {"HOME": str(self.home), "PATH": "/usr/bin:/bin"}
        done = subprocess.run(argv, input=stdin, env=env, capture_output=True, check=False, timeout=30)
        self.printed = done.stdout
        return Completed(done.returncode, done.stdout, done.stderr)

    async def put(self, path: str, data: bytes) -> None:
        raise NotImplementedError

    async def get(self, path: str, *, offset: int = 0, limit: int = 1 << 20) -> bytes:
        raise NotImplementedError

    def stream(self, argv: Sequence[str]) -> AsyncIterator[bytes]:
        raise NotImplementedError


@pytest.mark.parametrize("indent", [None, 2])
def test_logins_are_told_without_their_secrets(tmp_path: Path, indent: int | None) -> None:
    """The times of the coders' own files, and whether they can renew themselves; of what is secret, not a byte."""
    for file, content in ((".claude/.credentials.json", CLAUDE), (".codex/auth.json", CODEX)):
        (tmp_path / file).parent.mkdir()
        (tmp_path / file).write_text(json.dumps(content, indent=indent))
    here = Here(tmp_path)
    found = asyncio.run(probe("a", Reach(kind="local"), here, seconds=30, coder="sh"))
    assert found.facts.logins == (
        Login(coder="claude", expires_at=1748276587173, renews=False),
        Login(coder="codex", renewed_at=1748772000123, renews=True),
    )
    assert SECRET.encode() not in here.printed
    assert (found.host.state, found.facts.coder) == ("up", True)


def test_a_machine_without_logins(tmp_path: Path) -> None:
    """No file, no login; one that is torn has no time."""
    here = Here(tmp_path)
    assert asyncio.run(probe("a", Reach(kind="local"), here, seconds=30, coder="sh")).facts.logins == ()
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/.credentials.json").write_text('{"claudeAiOauth":')
    (login,) = asyncio.run(probe("a", Reach(kind="local"), here, seconds=30, coder="sh")).facts.logins
    assert (login.expires_at, login.renewed_at, login.renews) == (None, None, False)


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (HostMissing("sprite a is missing?"), "unknown"),
        (HostGone("sprite a is missing"), "down"),
        (TransportError("cut"), "down"),
    ],
)
def test_no_single_denial_is_believed(tmp_path: Path, error: TransportError, state: str) -> None:
    """That a provider does not know a machine makes it unknown; only several such answers make it down."""
    found = asyncio.run(probe("a", Reach(kind="sprite"), Here(tmp_path, error), seconds=5)).host
    assert (found.state, found.evidence, found.answered_at) == (state, str(error), None)
