"""The true coders under the true supervisor, against a model on loopback, with nothing of the user's."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from fleet import wiring
from fleet.config import secrets
from fleet.config.settings import Settings, Supervisor
from fleet.model.receipt import Receipt, Usage
from fleet.model.session import Session
from fleet.model.states import ENDED, TaskState
from fleet.model.task import Task, TaskEdit
from fleet.store.reads import Reads
from fleet.supervisor import supervisor as supervising
from fleet.testing.builders import a_task
from tests.support import homes
from tests.support.leftovers import LEFT
from tests.support.model_server import Asked, ModelServer
from tests.support.programs import need
from tests.support.session_host import kill, processes_with, until

T = TypeVar("T")
ROOT = Path(__file__).parents[2]
SECONDS = 90.0
LEFT_SECONDS = 15.0  # for what watches over all sessions, too, to end after the last
NAMES = (
    *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_BASE_URL"),
    *("OPENAI_API_KEY", "CODEX_API_KEY", "OPENAI_BASE_URL"),
    *("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_CLOUD_PROJECT"),
    *("OPENCODE_API_KEY", "OPENROUTER_API_KEY", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"),
)
PROGRAMS = ("claude", "codex", "gemini", "opencode")
SLEEPING = "python3 -c 'import time; time.sleep(60)'"  # claude refuses a plain sleep
CODEX_CONFIG = """\
model = "gpt-5.5"
model_provider = "loopback"
[model_providers.loopback]
name = "loopback"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
request_max_retries = 1
stream_max_retries = 1
"""
# As npm leaves it: else opencode fetches this package, with thousands of files, into every new home.
OPENCODE_LOCK = {"lockfileVersion": 3, "packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}
GEMINI_CONFIG = {
    "model": {"name": "gemini-2.5-pro"},  # else it asks a model which model to ask
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"maxAttempts": 2, "enableAutoUpdate": False},
}


def coders_path() -> str:
    """The directory that scripts/tools keeps the coders in, or the reason why the test cannot be run."""
    told = subprocess.run(
        ["sh", "scripts/tools", "--coders-path"], cwd=ROOT, capture_output=True, text=True, timeout=10, check=True
    )
    path = os.environ.get("FLEET_TEST_CODERS") or told.stdout.strip()
    missing = [name for name in PROGRAMS if not os.access(f"{path}/{name}", os.X_OK)]
    return need(" and ".join(missing), None if missing else path, "run `sh scripts/tools`")


def opencode_config(url: str) -> dict[str, Any]:
    """A provider of its own kind, as a user writes one down."""
    model = {"name": "stand-in", "limit": {"context": 200_000, "output": 8_000}}
    options = {"baseURL": f"{url}/v1", "apiKey": "{env:OPENAI_API_KEY}"}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "loopback", "options": options, "models": {"m1": model}}
    untitled = {"title": {"disable": True}}  # else a fault may strike the request for a title
    return {"model": "loopback/m1", "agent": untitled, "provider": {"loopback": provider}}


class Bench:
    """A home, a directory to work in, and a user who is nobody else."""

    def __init__(self, path: Path, model: ModelServer) -> None:
        self.path = path
        self.model = model
        self.user = path / "user"
        self.work = path / "work"
        for directory in (self.user, self.work):
            directory.mkdir()
        self.home = homes.make(path / "home")
        self.settings = Settings(
            supervisor=Supervisor(coder="claude", model="claude-haiku-4-5", backoff_seconds=0, grace_seconds=1)
        )
        self.url = ""
        self.talk_to()

    def talk_to(self, faults: str = "", **given: str) -> str:
        """Let the coders talk to a model with these faults, and authorise themselves with what is given."""
        self.url = self.model.url(faults)
        given = given or dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"), "sk-test")
        self.home.secrets.unlink(missing_ok=True)
        for name, value in {"ANTHROPIC_BASE_URL": self.url, "GOOGLE_GEMINI_BASE_URL": self.url, **given}.items():
            secrets.put(self.home, name, value)
        self._configure(".codex/config.toml", CODEX_CONFIG.format(url=self.url))
        self._configure(".gemini/settings.json", json.dumps(GEMINI_CONFIG))
        self._configure(".config/opencode/opencode.json", json.dumps(opencode_config(self.url)))
        self._configure(".config/opencode/package-lock.json", json.dumps(OPENCODE_LOCK))
        (self.user / ".config/opencode/node_modules").mkdir(exist_ok=True)
        return self.url

    def _configure(self, name: str, text: str) -> None:
        file = self.user / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def add(self, coder: str, description: str, **fields: Any) -> str:
        """A task in the directory to work in."""
        fields = {"cwd": str(self.work), "coder": coder, "description": description, **fields}
        with homes.opened(self.home) as store:
            (task,) = store.submit([a_task("A task for a real coder", **fields)], by="ana").result()
        return task.uid

    def describe(self, uid: str, description: str) -> None:
        """Say what a task is, once its name is known."""
        with homes.opened(self.home) as store:
            store.edit(uid, TaskEdit(description=description), by="ana").result()

    def fleet(self, *words: str) -> None:
        """A command of the person who looks after it."""
        argv = [sys.executable, "-m", "fleet", "--home", str(self.home.path), *words]
        subprocess.run(argv, check=True, timeout=30, capture_output=True)

    def run(self, done: Callable[[Reads], bool] | None = None, **change: int) -> None:
        """Supervise until it is so; else until every task has ended or waits for a person."""
        configured = msgspec.structs.replace(self.settings.supervisor, **change)
        settings = msgspec.structs.replace(self.settings, supervisor=configured)
        asyncio.run(self._supervise(settings, done or _all_settled))

    async def _supervise(self, settings: Settings, done: Callable[[Reads], bool]) -> None:
        house = wiring.open_house(self.home, settings, coder=None, model=None, echo=None)
        supervisor = supervising.Supervisor(house)
        life = asyncio.ensure_future(supervisor.run())
        try:
            async with asyncio.timeout(SECONDS):
                while not life.done() and not done(house.store):
                    await asyncio.sleep(0.02)
        finally:
            supervisor.stop(agents=True)
            async with asyncio.timeout(SECONDS):
                await life
            house.store.close()

    @contextlib.contextmanager
    def supervisor_process(self) -> Iterator[subprocess.Popen[bytes]]:
        """`fleet run` as a process of its own, to be killed."""
        lines = (f"{name} = {_toml(value)}" for name, value in msgspec.to_builtins(self.settings.supervisor).items())
        self.home.toml.write_text("[supervisor]\n" + "\n".join(lines) + "\n")
        argv = [sys.executable, "-m", "fleet", "--home", str(self.home.path), "run"]
        with (self.path / "supervisor.err").open("ab") as errors:
            process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True)
        try:
            yield process
        finally:
            process.kill()
            process.wait(10)

    # what became of it

    def task(self, uid: str) -> Task:
        """A task as it stands."""
        return self._read(lambda reads: reads.task(uid))

    def sessions(self, uid: str) -> list[Session]:
        """Its sessions, in order."""
        return self._read(lambda reads: reads.sessions(task=uid))

    def receipts(self, uid: str) -> list[Receipt]:
        """Its receipts, in order."""
        return self._read(lambda reads: reads.receipts(task=uid))

    def receipt(self, uid: str) -> Receipt:
        """The last of its receipts."""
        return self.receipts(uid)[-1]

    def said(self, uid: str) -> list[dict[str, Any]]:
        """What its agents said."""
        path = self.home.task_dir(uid) / "log.jsonl"
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        return [msgspec.json.decode(line)["said"] for line in lines if b'"said"' in line]

    def pid_of(self, uid: str) -> int:
        """The process of its session, once it runs."""
        return until(lambda: next((each.pid for each in self.sessions(uid)[-1:] if each.pid), None), "a pid") or 0

    def used(self, session: str) -> Usage:
        """What a session used."""
        return self._read(lambda reads: reads.progress(session).usage)

    def asked(self) -> list[Asked]:
        """What the model was asked to do since it was last chosen."""
        return [each for each in self.model.to(self.url) if each.works]

    def _read(self, ask: Callable[[Reads], T]) -> T:
        with contextlib.closing(wiring.open_reads(self.home, self.settings)) as reads:
            return ask(reads)

    def processes(self) -> list[int]:
        """All processes of its sessions: the marker is in their environment, or the directory in their words."""
        return processes_with(os.fsencode(f"{self.home.sessions}"))

    def agents(self) -> list[int]:
        """All that agents started: the marker is in their environment."""
        return processes_with(os.fsencode(f"FLEET_SESSION_DIR={self.home.sessions}"), files=("environ",))

    def nothing_left(self) -> None:
        """Nothing of any session lives. What watches over all of them goes a little after the last."""
        deadline = time.monotonic() + LEFT_SECONDS
        while left := self.processes():
            if time.monotonic() > deadline:
                names = [Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")[:200] for pid in left]
                for pid in left:
                    kill(pid)
                raise AssertionError(f"left behind: {names}")
            time.sleep(0.02)


def _all_settled(reads: Reads) -> bool:
    return all(task.state in ENDED or task.state is TaskState.BLOCKED for task in reads.tasks())


def _toml(value: object) -> str:
    return msgspec.json.encode(value).decode()


@pytest.fixture(name="model", scope="module")
def a_model() -> Iterator[ModelServer]:
    """One model server for a module."""
    with ModelServer() as server:
        yield server


@pytest.fixture(name="bench")
def a_bench(tmp_path: Path, model: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """A bench, with nothing of the user's environment; at the end no process of a session is left."""
    programs = coders_path()
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("PATH", f"{programs}:{os.environ.get('PATH', '')}")
    bench = Bench(tmp_path, model)
    yield bench
    LEFT.end_within(LEFT_SECONDS, bench.home.sessions)
