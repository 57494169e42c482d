"""Which commands are asked about before they run on several machines."""

from __future__ import annotations

import pytest

from fleet.policy.destructive import looks_destructive


@pytest.mark.parametrize(
    ("command", "sign"),
    [
        ("rm -rf /tmp/x", "deletes files"),
        ("cd /x && sudo rm *", "deletes files"),
        ("/bin/rm x", "deletes files"),
        ("find . -name '*.log' -delete", "deletes files"),
        ("dd if=/dev/zero of=/dev/sda", "writes to a disk"),
        ("sudo reboot", "stops the machine"),
        ("pkill -f claude", "ends processes"),
        ("systemctl --user stop fleet", "stops a service"),
        ("git -C /srv reset --hard origin/main", "throws away work"),
        ("sudo apt-get -y purge nginx", "removes packages"),
        ("psql -c 'DROP TABLE users'", "removes users or data"),
        ("chmod -R 777 /srv", "changes many files"),
        ("> /etc/motd", "empties a file"),
        ("docker system prune -af", "prunes containers"),
        ("echo a\nrm b\n", "deletes files"),
    ],
)
def test_what_destroys(command: str, sign: str) -> None:
    """What deletes, overwrites, stops or throws away is told by what it does."""
    assert looks_destructive(command) == sign


@pytest.mark.parametrize(
    "command",
    [
        "hostname",
        "df -h /",
        "wc -l ~/.env.secrets",
        "echo farm animals",
        "ls -la 2>/dev/null",
        "uptime >&2",
        "cat /etc/os-release | grep VERSION",
        "git status --short",
        "apt list --installed",
        "systemctl status sshd",
        "infisical --version",
        "ls ~/halted ~/dropdb-notes",
        "kubectl get pods",
    ],
)
def test_what_is_harmless(command: str) -> None:
    """What only looks is not asked about."""
    assert looks_destructive(command) is None
