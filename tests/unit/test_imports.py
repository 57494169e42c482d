"""What the fast commands import. Growth of these lists is a decision, not an accident."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fleet.config.home import Home
from fleet.control.home import prepare
from fleet.testing.builders import a_task
from tests.support.homes import opened

MODEL = (
    *("alert", "clash", "host", "ids", "intent", "reach", "receipt", "run"),
    *("session", "states", "supervisor", "task", "terms", "worker"),
)
CONFIG = (
    *("clock", "environment", "files", "home", "load", "settings"),
    *("section", "machines", "pools", "alerting", "serving"),
)
SHARED = {
    *("fleet", "fleet.errors", "fleet.front", "fleet.front.local", "fleet.front.local_looks"),
    *("fleet.wiring", "fleet.wiring.named", "fleet.wiring.stores"),
    *("fleet.cli", "fleet.cli.app", "fleet.cli.commands", "fleet.cli.context", "fleet.cli.parsing"),
    *("fleet.config", *(f"fleet.config.{name}" for name in CONFIG)),
    *("fleet.model", *(f"fleet.model.{name}" for name in MODEL)),
    *("fleet.projections", "fleet.projections.queue", "fleet.store"),
    *(f"fleet.store.{name}" for name in ("asks", "engine", "leases", "migrate", "reads", "rows", "sqlite")),
    *(f"fleet.store.sqlite.{name}" for name in ("counts", "faults", "reader", "tx")),
}
OURS = {
    "ready": SHARED | {"fleet.cli.ready", "fleet.cli.words"},
    "status": SHARED | {"fleet.cli.status", "fleet.cli.words", "fleet.projections.status", "fleet.store.feedfile"},
}
THEIRS = {"apsw", "msgspec"}
HEAVY = {
    *("asyncio", "concurrent", "ctypes", "dataclasses", "difflib", "email", "getpass", "hashlib", "html", "http"),
    *("importlib.metadata", "importlib.resources", "json", "logging", "multiprocessing", "pickle", "psycopg"),
    *(
        "queue",
        "random",
        "rich",
        "secrets",
        "socket",
        "ssl",
        "subprocess",
        "tempfile",
        "textual",
        "tomlkit",
        "unittest",
    ),
    *("urllib.request", "xml", "yaml", "zipfile", "fleet.cli.add", "fleet.control", "fleet.plugins"),
}
CODE = (
    "import sys; before = set(sys.modules)\n"
    "from fleet.cli import main\n"
    "code = main(sys.argv[1:])\n"
    "print(*set(sys.modules) - before, file=sys.stderr)\n"
    "sys.exit(code)"
)


def imported(home: Path, *argv: str) -> set[str]:
    """The modules that a command takes."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, *argv],
        env={"HOME": str(home.parent), "FLEET_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, bool(done.stdout)) == (0, True), done.stderr
    return set(done.stderr.split())


@pytest.mark.parametrize("command", OURS)
def test_what_a_fast_command_imports(tmp_path: Path, command: str) -> None:
    """Exactly these modules of ours, two of other people's, and none that is heavy."""
    home = Home(tmp_path / "home")
    prepare(home)
    with opened(home) as store:
        store.submit([a_task("x")], by="ana").result()
    found = imported(home.path, command)
    assert {name for name in found if name.split(".")[0] == "fleet"} == OURS[command]
    outside = {name.split(".")[0] for name in found} - set(sys.stdlib_module_names) - {"fleet"}
    assert outside <= THEIRS
    assert not found & HEAVY


@pytest.mark.parametrize("command", ["--version", "--help"])
def test_what_needs_no_store_opens_none(tmp_path: Path, command: str) -> None:
    """The version and the overview need neither the model nor the store nor a decoder."""
    found = imported(tmp_path, command)
    assert {name.split(".")[1] for name in found if name.startswith("fleet.")} == {"cli", "errors"}
    assert not found & (HEAVY | THEIRS)
