"""`fleet health` and `fleet report`: the lines, exit codes, logs and files of the first Fleet Manager."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import socket
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.cli import Cli
from tests.support.disks import read_only
from tests.support.machines import declare, local_host, several, ssh_host
from tests.support.sshd import Sshd

STAMP = r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\]"


@pytest.fixture(scope="module")
def server() -> Iterator[Sshd]:
    with several(2) as found:
        yield found


@pytest.fixture
def well(cli: Cli, server: Sshd) -> Cli:
    """Somebody whose two machines are well."""
    declare(cli, ssh_host(server, "agents-synth-01", 1, api_name="forge"), local_host("here"), server=server)
    return cli


@pytest.fixture
def ill(well: Cli, server: Sshd) -> Cli:
    """Somebody with a third machine that nobody can reach."""
    declare(well, ssh_host(server, "dev-workspace-01", 9, api_name="mallet"))
    return well


def log_of(cli: Cli) -> list[str]:
    """The lines of the log that a home has by itself."""
    return (cli.home.logs / "healthcheck.log").read_text().splitlines()


def test_all_healthy(well: Cli) -> None:
    """One line and exit code 0; quietly, nothing; the log has a line of each check."""
    assert well.ok("health").out == "OK: All 2 hosts healthy\n"
    assert well.ok("health", "--quiet")[1:] == ("", "")
    assert well.ok("health", "--host", "here").out == "OK: 1 host healthy\n"
    lines = log_of(well)
    assert len(lines) == 3
    assert all(re.fullmatch(rf"{STAMP} OK - All hosts healthy", line) for line in lines)


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_who_is_ill(ill: Cli, quiet: list[str]) -> None:
    """The ill are listed by the provider's name, with the reason, and the exit code is 1; quiet or not, every time."""
    for _ in range(2):
        done = ill.run("health", *quiet)
        assert (done.code, done.out) == (1, "UNHEALTHY hosts:\n  mallet: unresponsive\n")
        assert "mallet: cannot reach host 127.0.0.9: " in done.err
    assert re.fullmatch(rf"{STAMP} ALERT - UNHEALTHY: mallet \(unresponsive\)", log_of(ill)[-1])


def test_one_fault_of_the_provider(cli: Cli) -> None:
    """Where all sprites cannot be asked about, that is one fault, and the exit code is 1."""
    cli.env["SPRITES_API_TOKEN"] = ""
    with cli.home.toml.open("a") as file:
        file.write("".join(f'[[hosts]]\nname = "s-{number}"\nkind = "sprite"\n' for number in range(3)))
    done = cli.run("health")
    assert done.code == 1
    head, line = done.lines
    assert head == "UNHEALTHY sprites:"
    assert line.startswith("  api: all 3 are error at once")
    assert cli.json("report")["errors"][0].startswith("api: all 3 are error at once")


def test_where_the_log_goes(well: Cli, tmp_path: Path) -> None:
    """By the setting, else by the option; one that cannot be written is told, and changes nothing else."""
    one, other = tmp_path / "new" / "one.log", tmp_path / "other.log"
    well.ok("config", "set", f"health.log_file={one}")
    well.ok("health", "--host", "here")
    well.ok("health", "--host", "here", "--log", str(other))
    assert one.read_text().endswith(" OK - All hosts healthy\n")
    assert other.read_text().endswith(" OK - All hosts healthy\n")
    done = well.ok("health", "--host", "here", "--log", "/proc/no/such.log")
    assert done.out == "OK: 1 host healthy\n"
    assert "note: the check is not logged: " in done.err


def test_health_as_json(ill: Cli) -> None:
    """The same as an object, and the same exit code."""
    done = ill.run("health", "--json")
    told = json.loads(done.out)
    assert (done.code, told["ok"], told["machines"]["unhealthy"]) == (1, False, 1)


def test_a_change_of_state_is_an_event(ill: Cli, server: Sshd) -> None:
    """The ledger hears when a machine becomes ill or well, with an alert, not of each check; since when is known."""
    ill.run("health")
    before = ill.events()
    ill.run("health")
    assert ill.events() == before
    first = ill.json("status", "--no-probe", "--host", "mallet")["machines"][0]
    text = ill.home.toml.read_text()
    ill.home.toml.write_text(text.replace("127.0.0.9", "127.0.0.2"))
    assert ill.ok("health").out == "OK: All 3 hosts healthy\n"
    assert ill.events() == before + 2
    second = ill.json("status", "--no-probe", "--host", "mallet")["machines"][0]
    assert second["since"] > first["since"]


def test_an_interrupted_check_judges_nobody(well: Cli, server: Sshd) -> None:
    """Ctrl-C is exit code 130: nothing is said of who was not waited for, in no log."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        dark = ssh_host(server, "dark-box-01", 1).replace(
            f"port = {server.port}", f"port = {listener.getsockname()[1]}"
        )
        declare(well, dark)
        with well.started("health", "--host", "dark-*") as process:
            listener.settimeout(30)
            with listener.accept()[0]:  # it is under way
                process.send_signal(signal.SIGINT)
                out, _ = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, b"")
    assert not (well.home.logs / "healthcheck.log").exists()


def test_the_report(ill: Cli) -> None:
    """The fields of the first manager, in its order, and more after them."""
    told = ill.json("report")
    assert list(told)[:6] == ["timestamp", "total", "healthy", "unhealthy", "sprites", "errors"]
    stamp = datetime.fromisoformat(told["timestamp"])
    assert stamp.tzinfo is not None
    assert abs((datetime.now(UTC) - stamp).total_seconds()) < 120
    assert (told["total"], told["healthy"], told["unhealthy"]) == (3, 2, 1)
    assert [each["api_name"] for each in told["sprites"]] == ["forge", "here", "mallet"]
    assert told["errors"][0].startswith("mallet: unresponsive: cannot reach host")
    assert json.loads(ill.ok("report", "--no-probe").out)["unhealthy"] == 1


def test_a_report_in_a_file(well: Cli, tmp_path: Path) -> None:
    """It is replaced in one step, and nothing else is printed or left."""
    file = tmp_path / "out" / "fleet-report.json"
    file.parent.mkdir()
    file.write_text("old")
    file.chmod(0o644)
    assert well.ok("report", "-o", str(file))[1:] == ("", "")
    assert json.loads(file.read_text())["total"] == 2
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert [path.name for path in file.parent.iterdir()] == ["fleet-report.json"]
    assert well.run("report", "-o", str(tmp_path / "no" / "x.json")).code == 1


def test_where_a_report_cannot_be_written(ill: Cli, tmp_path: Path) -> None:
    """It is said before any host is asked, with what to do; no directory is made, and nothing is touched."""
    file = tmp_path / "file"
    file.write_text("old")
    before = sorted(tmp_path.iterdir())
    for target, said, hint in [
        (
            tmp_path / "a b" / "x.json",
            f"{tmp_path / 'a b'} does not exist",
            f"make it first: mkdir -p '{tmp_path}/a b'",
        ),
        (tmp_path, "it is a directory", f"name a file in it, as {tmp_path / 'fleet-report.json'}"),
        (file / "x.json", f"{file} is not a directory", "name another place"),
    ]:
        done = ill.run("report", "-o", str(target))
        assert done == (1, "", f"error: cannot write {target}: {said}\nhint: {hint}\n")
    assert (sorted(tmp_path.iterdir()), file.read_text()) == (before, "old")
    assert [each["since"] for each in ill.json("status", "--no-probe", "--host", "*")["machines"]] == [None, None, None]


def test_a_report_where_nothing_may_be_written(well: Cli, tmp_path: Path) -> None:
    """A file that is not ours to write, or whose directory is not, is told as that, and stays."""
    (tmp_path / "shut").mkdir()
    file = tmp_path / "shut" / "old.json"
    file.write_text("old")
    with read_only(tmp_path / "shut"):
        done = well.run("report", "-o", str(file))
        assert (done.code, done.err.splitlines()[0]) == (1, f"error: cannot write {file}: you may not write to it")
        done = well.run("report", "-o", str(file.with_name("new.json")))
        assert (done.code, done.err.count("you may not make files in")) == (1, 1)
    assert [(each.name, each.read_text()) for each in file.parent.iterdir()] == [("old.json", "old")]


def test_a_report_into_a_pipe(well: Cli, tmp_path: Path) -> None:
    """What is no file is written to, and is not replaced by one; so is what a link leads to."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with well.started("report", "--no-probe", "-o", str(pipe)) as process:
        assert json.loads(pipe.read_bytes())["total"] == 2
        assert process.wait(30) == 0
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert json.loads(well.ok("report", "--no-probe", "-o", "/dev/stdout").out)["total"] == 2
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "real.json")
    well.ok("report", "--no-probe", "-o", str(link))
    assert (link.is_symlink(), json.loads(link.read_text())["total"]) == (True, 2)


def test_other_formats(ill: Cli) -> None:
    """Markdown, CSV and HTML tell the same; what a machine says cannot become markup."""
    ill.run("health")
    rows = list(csv.DictReader(ill.ok("report", "--no-probe", "--format", "csv").lines))
    assert [(row["api_name"], row["healthy"], row["reason"]) for row in rows] == [
        ("forge", "yes", ""),
        ("here", "yes", ""),
        ("mallet", "no", "unresponsive"),
    ]
    markdown = ill.ok("report", "--no-probe", "--format", "md").out
    row = "| dev-workspace-01 | mallet | ssh | dev | workspace | down | no |  |  | no | unresponsive | 0 | 1 |  |  |\n"
    assert row in markdown
    assert "\n- mallet: unresponsive: cannot reach host" in markdown
    html = ill.ok("report", "--no-probe", "--format", "html").out
    assert html.startswith("<!doctype html>")
    assert "<td>mallet</td>" in html
    assert ill.run("report", "--format", "pdf").code == 2
