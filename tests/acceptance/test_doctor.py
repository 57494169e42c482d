"""`fleet doctor`: what is missing, and what mends it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.cli import Cli
from tests.support.disks import read_only


def a_program(cli: Cli, name: str, script: str) -> str:
    """A program on a PATH of its own, before the real one."""
    place = cli.path / "bin"
    place.mkdir(exist_ok=True)
    file = place / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return f"{place}:{cli.env['PATH']}"


def levels(out: str) -> dict[str, str]:
    """What was looked at, and how it is."""
    return {what: level for level, what in re.findall(r"^(ok|warn|FAIL) +([^:]+): ", out, re.MULTILINE)}


def test_all_is_well(cli: Cli) -> None:
    """With a home and the coder of the settings, nothing fails and the exit code is 0; versions are told."""
    path = a_program(cli, "claude", "echo WARNING: no aliases >&2; echo 9.9.9")
    done = cli.ok("doctor", env={"PATH": path})
    found = levels(done.out)
    assert "FAIL" not in found.values()
    assert {"python", "sqlite", "sh", "setsid or perl", "git", "home", "disk", "settings", "store"} <= found.keys()
    assert f"ok    claude: 9.9.9 at {cli.path}/bin/claude\n" in done.out
    objects = cli.json("doctor", env={"PATH": path})
    assert objects["ok"] is True
    assert {check["what"]: check["level"] for check in objects["checks"]} == found


def test_a_newcomer_is_told_to_begin(newcomer: Cli) -> None:
    """Without a home it fails, says `fleet init`, and makes nothing."""
    done = newcomer.run("doctor")
    assert done.code == 1
    assert f"FAIL  home: there is none at {newcomer.home.path}\n      mend it with: fleet init\n" in done.out
    assert not newcomer.home.path.exists()


def test_a_missing_coder_fails_where_it_is_asked_for(cli: Cli) -> None:
    """The configured coder and those that open tasks name must be there; others are only mentioned."""
    cli.ok("config", "set", "coder=scripted")
    bare = {"PATH": "/usr/bin:/bin"}
    assert "FAIL" not in levels(cli.ok("doctor", env=bare).out).values()
    cli.add("work", "--coder", "codex")
    done = cli.run("doctor", env=bare)
    assert done.code == 1
    assert levels(done.out)["codex"] == "FAIL"
    assert "npm install -g @openai/codex" in done.out
    assert "not asked for: claude, gemini" in done.out


def test_a_program_that_hangs_holds_nothing_up(cli: Cli) -> None:
    """A coder that does not tell its version is given five seconds, then it is said so."""
    path = a_program(cli, "claude", "sleep 600")
    assert "claude: no answer within 5 s" in cli.ok("doctor", env={"PATH": path}).out


def test_a_home_that_cannot_be_written(cli: Cli) -> None:
    """It can be looked into, so all else is told; but nothing can be recorded there, which fails."""
    path = a_program(cli, "claude", "echo 1")
    with read_only(cli.home.path):
        done = cli.run("doctor", env={"PATH": path})
    assert (done.code, levels(done.out)["home"], levels(done.out)["store"]) == (1, "FAIL", "ok")
    assert f"{cli.home.path} cannot be written" in done.out


@pytest.mark.parametrize("mode", [0o755, 0o770])
def test_an_open_home_is_a_warning(cli: Cli, mode: int) -> None:
    """A home that others may look into is told, with the command that closes it; secrets that others may read fail."""
    path = a_program(cli, "claude", "echo 1")
    cli.home.path.chmod(mode)
    done = cli.ok("doctor", env={"PATH": path})
    assert levels(done.out)["home"] == "warn"
    cli.home.secrets.write_text("KEY=value\n")
    cli.home.secrets.chmod(0o644)
    done = cli.run("doctor", env={"PATH": path})
    assert (done.code, levels(done.out)["secrets"]) == (1, "FAIL")
    assert f"chmod 600 {cli.home.secrets}" in done.out
    assert "value" not in done.out


def test_faults_of_the_home_are_found(cli: Cli) -> None:
    """Broken settings, a damaged database and a mirror that lags are each told, with what mends them."""
    path = {"PATH": a_program(cli, "claude", "echo 1")}
    cli.add("work")
    lines = cli.home.mirror.read_bytes().splitlines(keepends=True)
    cli.home.mirror.write_bytes(b"".join(lines[:-1]))
    assert levels(cli.ok("doctor", env=path).out)["mirror"] == "warn"
    cli.add("more")
    assert levels(cli.ok("doctor", env=path).out)["mirror"] == "ok"
    whole = cli.home.toml.read_text()
    cli.home.toml.write_text("nonsense = 1\n")
    assert levels(cli.run("doctor", env=path).out)["settings"] == "FAIL"
    cli.home.toml.write_text(whole)
    for file in cli.home.path.glob("fleet.db*"):
        file.write_bytes(b"not a database" * 1000)
    done = cli.run("doctor", env=path)
    assert (done.code, levels(done.out)["store"]) == (1, "FAIL")
    assert "fleet init --force" in done.out


def test_bd_must_be_there_where_it_keeps_the_queue(cli: Cli, tmp_path: Path) -> None:
    """With source = beads and no bd, that fails with what to do."""
    cli.ok("config", "set", "queue.source=beads")
    done = cli.run("doctor", env={"PATH": "/usr/bin:/bin"})
    assert done.code == 1
    assert levels(done.out)["bd"] == "FAIL"


def test_every_file_with_a_secret_is_looked_at(cli: Cli) -> None:
    """One that others may read fails, is named, and is mended by what is said; `fleet init --force` mends it too."""
    private = cli.home.private
    for path in private:
        path.touch(0o600)
        path.chmod(0o600)
    assert levels(cli.run("doctor").out)["secrets"] == "ok"
    for path in private:
        path.chmod(0o644)
        done = cli.run("doctor")
        assert done.code == 1
        assert f"FAIL  secrets: others may read {path}\n      mend it with: chmod 600 {path}\n" in done.out
        path.chmod(0o600)
    for path in private:
        path.chmod(0o640)
    cli.ok("init", "--force")
    assert levels(cli.run("doctor").out)["secrets"] == "ok"
