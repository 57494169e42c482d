"""How machines answered over time: `fleet hosts history`, the figures in `fleet report`, and what is recalled."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from fleet.model.host import Host
from tests.support.cli import Cli
from tests.support.machines import declare, local_host


@pytest.fixture
def fleet(cli: Cli) -> Cli:
    """Somebody with a machine that was probed four times and failed once, and one that never was."""
    declare(cli, local_host("dev-box-01", api_name="mallet"), local_host("dev-new-01"))
    with cli.store() as store:
        for state, ms, evidence in (
            ("up", 10, ""),
            ("up", 30, ""),
            ("down", None, "no answer"),
            ("unknown", None, "?"),
        ):
            host = Host(name="dev-box-01", kind="local", state=state, since=0, latency_ms=ms, evidence=evidence)
            store.probed(host, by="ana").result()
    return cli


def test_the_history_of_a_host(fleet: Cli) -> None:
    """Uptime and latency as bars and figures, what is so now and since when, and what changed, newest first."""
    done = fleet.ok("hosts", "history", "mallet", "--since", "1h")
    assert done.lines[0].startswith("dev-box-01 (mallet): unknown for ")
    (up,) = [line for line in done.lines if line.startswith("  uptime")]
    (ms,) = [line for line in done.lines if line.startswith("  latency")]
    assert up.endswith("66.67 % (2 of 3 probes, 1 learned nothing)")
    assert ms.endswith("20 ms on average, 30 ms at most")
    assert "█" in ms
    changes = done.lines[done.lines.index("Changes:") + 1 :]
    assert [line.split()[2] for line in changes] == ["unknown", "down", "up"]
    assert changes[1].endswith("no answer")


def test_the_same_as_json(fleet: Cli) -> None:
    """Every figure, in pieces of one length."""
    told = fleet.json("hosts", "history", "dev-box-01")
    assert (told["total"]["probes"], told["total"]["uptime_pct"], told["total"]["ms_most"]) == (4, 66.67, 30)
    assert sum(piece["probes"] for piece in told["pieces"]) == 4
    assert len(told["pieces"]) == 48
    assert [change["state"] for change in told["changes"]] == ["unknown", "down", "up"]
    assert fleet.json("hosts", "history", "dev-box-01", "--since", "2100-01-01")["total"]["probes"] == 0


def test_a_host_that_was_never_probed(fleet: Cli) -> None:
    """Nothing is said of its uptime; one that is not there is exit code 4."""
    done = fleet.ok("hosts", "history", "dev-new-01")
    assert done.lines[:3] == ["dev-new-01: unknown", "  it was never probed", "  it has never answered"]
    assert "not known: no probes" in done.out
    assert fleet.run("hosts", "history", "nobody").code == 4
    assert fleet.run("hosts", "history", "dev-new-01", "--since", "soon").code == 2


def test_availability_in_reports(fleet: Cli) -> None:
    """Each format has the figures; --since says of which time."""
    told = json.loads(fleet.ok("report", "--no-probe").out)["availability"]
    assert (told["dev-box-01"]["uptime_pct"], told["dev-new-01"]["uptime_pct"]) == (66.67, None)
    rows = list(csv.DictReader(fleet.ok("report", "--no-probe", "--format", "csv").lines))
    assert [(row["uptime_pct"], row["probes"], row["ms_mean"]) for row in rows] == [("66.67", "4", "20"), ("", "0", "")]
    assert "| 66.67 | 4 | 20 | 30 |\n" in fleet.ok("report", "--no-probe", "--format", "md").out
    assert "<td>66.67</td>" in fleet.ok("report", "--no-probe", "--format", "html").out
    rows = list(csv.DictReader(fleet.ok("report", "--no-probe", "--format", "csv", "--since", "2100-01-01").lines))
    assert [row["probes"] for row in rows] == ["0", "0"]


def test_what_is_recalled(fleet: Cli, tmp_path: Path) -> None:
    """--no-probe shows what the last probes found, the coder among it, and when that was; nobody is asked."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "claude").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "claude").chmod(0o755)
    path = f"{tmp_path / 'bin'}:{fleet.env['PATH']}"
    fleet.ok("status", "--host", "mallet", env={"PATH": path})
    lines = fleet.ok("status", "--no-probe").lines
    assert lines[4].startswith("dev-box-01 (mallet)                               up            yes     ")
    assert lines[4][82:].startswith("yes     probed ")
    assert lines[5][50:].startswith("unknown       -       -         -       it was never probed")


def test_the_history_is_of_one_host(fleet: Cli) -> None:
    """A word that means several is refused: the history of the first of them would be taken for that of all."""
    done = fleet.run("hosts", "history", "dev-*")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: several hosts are meant: dev-")
