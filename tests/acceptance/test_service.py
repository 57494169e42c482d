"""`fleet service`, in a scratch root or with stand-ins for what keeps time: the machine's own is not touched."""

from __future__ import annotations

import json
import os
import pty
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from tests.support.cli import FLEET, Cli, everything_in
from tests.support.keepers import stand_ins
from tests.support.programs import need

TOKEN = "org/1/2/not-a-real-token"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory that is taken for /."""
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def stand_in(cli: Cli, tmp_path: Path) -> Path:
    """Programs first on the PATH that keep what they are told; the directory where."""
    return stand_ins(cli, tmp_path / "stand-in")


def installed(root: Path) -> set[str]:
    """Every file below a root that is not of a home."""
    return {path for path, data in everything_in(root).items() if data is not None and "home" not in Path(path).parts}


def test_systemd_in_a_scratch_root(cli: Cli, root: Path) -> None:
    """Units, scripts and the links that enable them are written, can be looked at, and are gone after uninstall."""
    words = ("--system", "--by", "systemd", "--root", str(root))
    done = cli.ok("service", "install", "--supervisor", "--pool-check", "30m", *words)
    assert done.lines[0] == "Installed for the whole machine, by systemd"
    assert done.lines[1].split() == ["health", "every", "15", "minutes", "/usr/local/bin/fleet-healthcheck"]
    assert "logs to /var/log/fleet-healthcheck.log" in done.out
    units = root / "etc/systemd/system"
    assert os.readlink(units / "timers.target.wants/fleet-health.timer") == "../fleet-health.timer"
    assert (units / "multi-user.target.wants/fleet-supervisor.service").resolve() == units / "fleet-supervisor.service"
    assert "OnCalendar=*:0/15" in (units / "fleet-health.timer").read_text()
    assert cli.ok("service", "status", "--root", str(root)).lines[1].startswith("ok    health")
    removed = cli.json("service", "uninstall", "--root", str(root))
    assert "/usr/local/bin/fleet-healthcheck" in removed["files"]
    assert installed(root) == set()
    assert not (root / "etc").exists()
    assert cli.home.toml.exists()


def test_the_units_satisfy_systemd(cli: Cli, root: Path) -> None:
    """systemd's own check of the units finds nothing to say."""
    analyze = need("systemd-analyze", shutil.which("systemd-analyze"), "apt-get install systemd")
    shutil.copytree("/usr/lib/systemd/system", root / "usr/lib/systemd/system", symlinks=True)
    words = ("--supervisor", "--pool-check", "30m", "--system", "--by", "systemd", "--root", str(root))
    cli.ok("service", "install", *words)
    units = [str(path) for path in (root / "etc/systemd/system").glob("fleet-*")]
    assert len(units) == 5
    checked = subprocess.run(
        [analyze, "verify", "--man=no", f"--root={root}", *units],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (checked.returncode, checked.stderr) == (0, "")


def test_cron_keeps_what_others_wrote(cli: Cli, stand_in: Path) -> None:
    """Lines are added to the crontab, changed in their place, and taken out; all others are as they were."""
    tab = stand_in / "tab"
    tab.write_text("MAILTO=ana\n0 3 * * * backup")
    cli.ok("service", "install", "--user", "--by", "cron")
    script = f"{cli.env['HOME']}/.local/bin/fleet-healthcheck"
    assert tab.read_text().splitlines() == [
        *("MAILTO=ana", "0 3 * * * backup", f"# BEGIN fleet service: {cli.home.path}"),
        *(f"*/15 * * * * {script}", f"# END fleet service: {cli.home.path}"),
    ]
    assert cli.ok("service", "install", "--user", "--by", "cron").lines[0].startswith("Nothing has changed")
    cli.ok("service", "install", "--user", "--by", "cron", "--health-every", "1h", "--supervisor")
    assert f"0 * * * * {script}" in tab.read_text().splitlines()
    assert cli.json("service", "status")["ok"]
    tab.write_text("MAILTO=ana\n0 3 * * * backup\n")
    broken = cli.run("service", "status")
    assert broken.code == 1
    assert "the crontab of" in broken.out
    mended = cli.json("service", "install", "--user", "--by", "cron", "--health-every", "1h", "--supervisor")
    assert [path.partition(" of ")[0] for path in mended["changed"]] == ["the crontab"]
    assert cli.json("service", "status")["ok"]
    cli.ok("service", "uninstall")
    assert tab.read_text() == "MAILTO=ana\n0 3 * * * backup\n"
    assert not Path(script).exists()
    assert cli.run("service", "status").code == 4
    assert cli.run("service", "uninstall").code == 4


def test_a_crontab_that_was_not_there(cli: Cli, stand_in: Path) -> None:
    """It is made, and taken away again."""
    cli.ok("service", "install", "--user", "--by", "cron")
    assert (stand_in / "tab").exists()
    cli.ok("service", "uninstall")
    assert not (stand_in / "tab").exists()


def test_what_cron_runs(cli: Cli, stand_in: Path) -> None:
    """The script in the crontab works with nothing but what cron gives it; its log is shown by status."""
    cli.home.toml.write_text('[[hosts]]\nname = "here"\nkind = "local"\nworking_directory = "/tmp"\n')
    cli.ok("service", "install", "--user", "--by", "cron")
    script = Path(cli.env["HOME"]) / ".local/bin/fleet-healthcheck"
    ran = subprocess.run(
        [script],
        env={"SHELL": "/bin/sh", "LOGNAME": "ana"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, ""), ran
    job = cli.json("service", "status")["service"]["jobs"][0]
    assert job["log"] == str(cli.home.logs / "healthcheck.log")
    assert "OK - All" in job["last"]
    assert f"  kept    {job['log']}" in cli.ok("service", "uninstall").lines


def test_systemd_is_told(cli: Cli, stand_in: Path) -> None:
    """Units are loaded and started, restarted where they changed, stopped and forgotten at the end; linger is told."""
    calls = stand_in / "calls"

    def told() -> list[str]:
        lines = calls.read_text().replace("--user --no-pager ", "").splitlines()
        calls.unlink()
        return lines

    first = cli.ok("service", "install", "--user", "--by", "systemd", "--supervisor")
    assert "loginctl enable-linger" in first.err
    assert told() == ["daemon-reload", "restart fleet-health.timer", "restart fleet-supervisor.service"]
    cli.ok("service", "install", "--user", "--by", "systemd", "--supervisor")
    assert told() == ["start fleet-health.timer", "start fleet-supervisor.service"]
    cli.ok("service", "install", "--user", "--by", "systemd", "--health-every", "30m")
    assert told() == ["stop fleet-supervisor.service", "daemon-reload", "restart fleet-health.timer"]
    units = Path(cli.env["XDG_CONFIG_HOME"]) / "systemd/user"
    assert {path.name for path in units.glob("fleet-*")} == {"fleet-health.service", "fleet-health.timer"}
    assert "next: Mon 2026-02-02 06:30:00 UTC" in cli.ok("service", "status").out
    told()
    cli.ok("service", "uninstall")
    gone = ["stop fleet-health.timer", "clean --what=state fleet-health.timer"]
    assert told() == [*gone, "daemon-reload", "reset-failed fleet-*"]
    assert not units.exists()


def test_a_supervisor_that_cron_keeps_up(cli: Cli, stand_in: Path) -> None:
    """Its script starts one where there is none, and leaves alone the one that there is; uninstalling tells of it."""
    cli.ok("service", "install", "--user", "--by", "cron", "--supervisor", "--no-health")
    script = Path(cli.env["HOME"]) / ".local/bin/fleet-supervisor"
    try:
        for _ in range(2):
            ran = subprocess.run([script], env={"SHELL": "/bin/sh"}, capture_output=True, timeout=60, check=False)
            assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
        assert len(cli.json("run", "status")["supervisors"]) == 1
        assert "`fleet run stop` ends it" in cli.ok("service", "uninstall").err
    finally:
        cli.ok("run", "stop")


def test_from_cron_to_systemd(cli: Cli, stand_in: Path) -> None:
    """Installing by another keeper of time leaves nothing of the first."""
    cli.ok("service", "install", "--user", "--by", "cron")
    cli.ok("service", "install", "--user", "--by", "systemd")
    assert not (stand_in / "tab").exists()
    assert cli.json("service", "status")["service"]["by"] == "systemd"


def test_the_token_is_kept_and_never_shown(cli: Cli, root: Path) -> None:
    """From a file or the environment it goes into the home's secrets, mode 0600, and nowhere else."""
    given = root.parent / "token"
    given.write_text(TOKEN + "\n")
    words = ("service", "install", "--system", "--by", "cron", "--root", str(root))
    done = cli.ok(*words, "--token-file", str(given))
    secrets = Path(f"{root}{cli.home.secrets}")
    assert secrets.read_text() == f"SPRITES_API_TOKEN={TOKEN}\n"
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o600
    again = cli.ok(*words)
    assert "was kept before" in again.out
    later = cli.ok(*words, env={"SPRITES_API_TOKEN": TOKEN + "-2"})
    assert secrets.read_text() == f"SPRITES_API_TOKEN={TOKEN}-2\n"
    assert TOKEN not in "".join(part for one in (done, again, later) for part in (one.out, one.err))
    assert [path for path, data in everything_in(root).items() if data and TOKEN.encode() in data] == [
        str(secrets.relative_to(root))
    ]
    assert cli.run(*words, "--token-file", "/nowhere").code == 4
    assert cli.run(*words, "--token-file", "-", input="two words").code == 2


def test_the_token_is_asked_for_at_a_terminal(cli: Cli, root: Path) -> None:
    """Once, and what is typed is not echoed."""
    words = [*FLEET, "service", "install", "--system", "--by", "cron", "--root", str(root)]
    master, slave = pty.openpty()
    with subprocess.Popen(words, env=cli.env, stdin=slave, stdout=slave, stderr=slave, start_new_session=True) as asked:
        os.close(slave)
        seen = b""
        while b"SPRITES_API_TOKEN" not in seen:
            seen += os.read(master, 4096)
        os.write(master, TOKEN.encode() + b"\n")
        try:
            while chunk := os.read(master, 4096):
                seen += chunk
        except OSError:  # the other end is closed
            pass
        assert asked.wait(30) == 0
    os.close(master)
    assert TOKEN.encode() not in seen
    assert TOKEN in Path(f"{root}{cli.home.secrets}").read_text()


def test_what_is_somebody_elses_stays(cli: Cli, root: Path) -> None:
    """A file of that name that was not made for this home is not overwritten; nothing else is written either."""
    theirs = root / "usr/local/bin/fleet-healthcheck"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("#!/bin/sh\n# mine\n")
    done = cli.run("service", "install", "--system", "--by", "systemd", "--root", str(root))
    assert done.code == 1
    assert "is there already" in done.err
    assert installed(root) == {"usr/local/bin/fleet-healthcheck"}
    assert theirs.read_text() == "#!/bin/sh\n# mine\n"


def test_a_dry_run_writes_nothing(cli: Cli, root: Path) -> None:
    """It prints what would be written, whole."""
    shown = cli.ok("service", "install", "--system", "--by", "cron", "--supervisor", "--root", str(root), "--dry-run")
    assert "*/15 * * * * /usr/local/bin/fleet-healthcheck" in shown.lines
    assert "health --quiet --log /var/log/fleet-healthcheck.log" in shown.out
    assert everything_in(root) == {}
    plan = json.loads(cli.ok("service", "install", "--by", "systemd", "--root", str(root), "--dry-run", "--json").out)
    assert [job["name"] for job in plan["jobs"]] == ["health"]


def test_what_cannot_be_installed(cli: Cli, root: Path) -> None:
    """A time that cron cannot say, nothing to do, a home that is not there: told before anything is written."""
    words = ("service", "install", "--by", "cron", "--root", str(root))
    uneven = cli.run(*words, "--health-every", "7m")
    assert uneven.code == 2
    assert "the nearest that does is 6m" in uneven.err
    assert cli.run(*words, "--no-health").code == 2
    assert cli.run("--home", str(root / "none"), "service", "install", "--by", "cron").code == 4
    assert everything_in(root) == {}
