"""What loading the settings costs: every command does it first."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from fleet.config.home import Home
from fleet.config.trust import trust

HEAVY = {
    "yaml",
    "tomlkit",
    "difflib",
    "jsonschema",
    "asyncio",
    "subprocess",
    "tempfile",
    "shutil",
    "dataclasses",
    "json",
}
SECTIONS = {"section", "machines", "pools", "alerting", "serving"}
OURS = {"environment", "home", "files", "settings", "load"} | SECTIONS


CODE = (
    "import sys; before = set(sys.modules)\n"
    "from fleet.config.home import resolve; from fleet.config.load import load\n"
    "print(load(resolve(None)).supervisor.model, *set(sys.modules) - before)"
)


def loaded_from(cwd: Path, env: dict[str, str]) -> tuple[str, set[str]]:
    """The model that a process there finds in the settings, and the modules that this took."""
    done = subprocess.run([sys.executable, "-c", CODE], env=env, cwd=cwd, capture_output=True, text=True, check=True)
    model, *modules = done.stdout.split()
    return model, set(modules)


def test_loading_imports_little(home: Home, env: dict[str, str]) -> None:
    """Loading a file without faults imports the decoder, the TOML parser, and of this room only what it needs."""
    model, modules = loaded_from(home.path, {**env, "FLEET_HOME": str(home.path)})
    assert model == "sonnet"
    assert not {name.split(".")[0] for name in modules} & HEAVY
    ours = {name.removeprefix("fleet.config.") for name in modules if name.startswith("fleet.config.")}
    assert ours == OURS


def test_a_trusted_home_costs_little_more(tmp_path: Path, env: dict[str, str]) -> None:
    """Looking at the trusted list imports nothing heavy either."""
    (tmp_path / ".fleet").mkdir()
    (tmp_path / ".fleet" / "fleet.toml").write_text('model = "here"')
    trust(tmp_path / ".fleet", env)
    model, modules = loaded_from(tmp_path, env)
    assert model == "here"
    assert not {name.split(".")[0] for name in modules} & HEAVY
