"""Supervisors in the background that do not come up: whoever asked for one is told so."""

from __future__ import annotations

import sys

import pytest

from fleet.cli import main
from tests.support.cli import Cli


def test_a_run_whose_supervisor_does_not_start_is_told_as_such(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`run SPEC --detach` says that nobody runs it, how to go on, and ends with code 3; the run is there."""
    spec = cli.path / "spec.json"
    spec.write_text('[{"id": "a", "command": "true"}]')
    monkeypatch.setattr(sys, "executable", "/bin/false")  # what would supervise it cannot be started
    monkeypatch.chdir(cli.path)
    assert main(["--home", str(cli.home.path), "run", str(spec), "--detach"]) == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert "error: the supervisor did not start; see " in said.err
    (run,) = cli.json("status")["runs"]
    assert f"go on with it: fleet run --run {run['id']}" in said.err
