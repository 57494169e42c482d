"""What the kernel of this machine tells and keeps for sessions: its boot, a process's start, and their cgroups.

The runner finds and makes the same by itself where it must; from here it takes a question to the system, not a process.
"""

from __future__ import annotations

import contextlib
import os
import time
from functools import cache

MOUNTS = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
OURS = "fleet-"  # how the name of a session's cgroup begins
ORPHANED_SECONDS = 600.0  # an empty one is not about to be entered any more


@cache
def boot_id() -> str:
    """Which boot of the machine this is; empty where the kernel does not say."""
    return _read("/proc/sys/kernel/random/boot_id").decode("ascii", "replace").strip()


def start_time(pid: int) -> str:
    """When a process began, as the kernel counts it; empty when there is no such process."""
    return _life(pid)[1]


def has_ended(pid: int, start: str, boot: str) -> bool:
    """Whether that very process does not live any more: its number alone may be another's by now. False: who knows."""
    if not boot_id():
        return False
    state, began = _life(pid)
    return boot != boot_id() or began != start or state in "ZX"


def _life(pid: int) -> tuple[str, str]:
    """The state of a process, and when it began; both empty when there is none."""
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return (fields[0].decode("ascii"), fields[19].decode("ascii")) if len(fields) > 19 else ("", "")


def make_cgroup(session: str) -> str:
    """The path of a new one within our own; empty where the machine lets us make none."""
    if not (parent := own_cgroup()):
        return ""
    # Another home may have a session of the same name: who clears that one must not find ours, empty yet, by its path.
    path = f"{parent}/{OURS}{session}.{os.urandom(6).hex()}"
    try:
        os.mkdir(path)
    except OSError:
        return ""
    return path


def cgroup_of(directory: str) -> str:
    """The one that the runner of the session in that directory has claimed, if any."""
    words = _read(f"{directory}/claim").decode("utf-8", "replace").split("\n", 1)[0].split(" ", 6)
    return words[6] if len(words) > 6 and words[0] == "runner" else ""


def remove_cgroup(path: str) -> None:
    """Unless it is not there, or something lives in it: the kernel sees to that."""
    if os.path.basename(path).startswith(OURS):
        with contextlib.suppress(OSError):
            os.rmdir(path)


def remove_orphaned_cgroups(parent: str, *, seconds: float = ORPHANED_SECONDS) -> None:
    """The empty ones that have been there for so long: of homes that were taken away, of runners that were killed."""
    with contextlib.suppress(OSError), os.scandir(parent) as found:
        old = time.time() - seconds
        for path in [each.path for each in found if each.name.startswith(OURS) and each.stat().st_ctime <= old]:
            remove_cgroup(path)


def own_cgroup() -> str:
    """Where we are in the unified hierarchy, as a path; empty where there is none, or its processes are not ours."""
    inside = next((line[3:] for line in _read("/proc/self/cgroup").split(b"\n") if line.startswith(b"0::")), b"")
    mount = next((each for each in MOUNTS if os.access(f"{each}/cgroup.procs", os.F_OK)), "")
    path = mount + os.fsdecode(inside).rstrip("/")
    return path if inside and mount and os.access(f"{path}/cgroup.procs", os.W_OK) else ""


def _read(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, 4096)
    except OSError:
        return b""
    finally:
        os.close(fd)
