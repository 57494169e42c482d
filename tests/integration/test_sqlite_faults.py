"""What goes wrong under a SQLite home: no right to write, no space, another version, damage, a holder that is stuck."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from fleet import wiring
from fleet.config.home import Home
from fleet.config.settings import Settings
from fleet.control.control import Control
from fleet.errors import (
    StoreBusy,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreTooNew,
)
from fleet.store import bell as _loaded_before_a_child_loses_its_rights  # noqa: F401
from fleet.store.filelock import FileLock
from fleet.store.restore import is_sound
from fleet.store.sqlite.faults import NETWORK, refuse_network
from fleet.testing.audit import audit
from fleet.testing.builders import a_task
from tests.support.children import child, in_child
from tests.support.cli import Cli, everything_in
from tests.support.disks import read_only, small_disk
from tests.support.homes import add, flip, make, opened, titles
from tests.support.ledgers import exported, read_or_none

# a home that cannot be written


@pytest.fixture
def public(tmp_path: Path) -> Iterator[Path]:
    """A directory that others may look into, which pytest's own may not be."""
    with tempfile.TemporaryDirectory(prefix="fleet-faults-") as name:
        os.chmod(name, 0o755)
        yield Path(name)
        for path in [Path(name), *Path(name).rglob("*")]:  # so that it can be removed
            os.chmod(path, 0o700)


def crashed(home: Home, where: Path, *, shm: bool = False) -> Home:
    """A copy of a home as a crash leaves it: what was committed last is in the -wal alone."""
    with opened(home) as store:
        add(store, "only in the wal")
        shutil.copytree(home.path, where)
    for name in () if shm else ("fleet.db-shm",):
        (where / name).unlink()
    assert (where / "fleet.db-wal").stat().st_size
    return Home(where)


def forbid_writing(home: Home) -> None:
    """Anybody may read, nobody but root may write."""
    for path in [home.path, *home.path.rglob("*")]:
        os.chmod(path, 0o555 if path.is_dir() else 0o444)


@pytest.mark.parametrize("wal", ["absent", "present", "present with -shm"])
@pytest.mark.parametrize("how", ["modes", "mount"])
def test_a_home_that_cannot_be_written_can_be_read(public: Path, wal: str, how: str) -> None:
    """All that was committed is read, also what is in the -wal alone; a write is StoreReadOnly; no file changes."""
    home = make(public / "home")
    with opened(home) as store:
        add(store, "first")
    if wal != "absent":
        home = crashed(home, public / "copy", shm=wal != "present")
    expected = titles(home) if wal == "absent" else ["first", "only in the wal"]
    for name in ("fleet.db-wal", "fleet.db-shm") if wal == "absent" else ():
        (home.path / name).unlink(missing_ok=True)

    def look() -> tuple[list[str], list[str], str]:
        with contextlib.closing(wiring.open_reads(home, Settings())) as reads:
            seen = [task.title for task in reads.tasks()], [found.id for found in reads.supervisors()]
        with pytest.raises(StoreReadOnly) as caught, opened(home) as store:
            add(store, "in vain")
        with pytest.raises(StoreReadOnly), contextlib.closing(wiring.open_reads(home, Settings())) as reads:
            reads.listen()
        return *seen, str(caught.value)

    before = everything_in(home.path)
    if how == "modes":
        forbid_writing(home)
        seen, present, error = in_child(look, as_nobody=True)
    else:
        with read_only(home.path):
            seen, present, error = look()
    assert seen == expected
    assert present == []
    assert str(home.path) in error
    assert everything_in(home.path) == before


def test_commands_on_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    """Reading commands work as ever; those that write are exit 1 with a hint, and leave nothing behind."""
    cli = Cli(tmp_path)
    cli.ok("init")
    uid = cli.add("work")
    before = everything_in(cli.home.path)
    with read_only(cli.home.path):
        for argv in (
            ["ready"],
            ["status"],
            ["show", uid],
            ["tasks"],
            ["ledger", "tail"],
            ["ledger", "verify"],
            ["log"],
        ):
            assert cli.run(*argv).code == 0, argv
        for argv in (["add", "x"], ["stop", uid], ["task", uid, "set", "priority=0"], ["ledger", "tail", "-f"]):
            done = cli.run(*argv)
            assert done.code == 1, argv
            assert done.err.startswith("error: the store at ")
            assert "hint: check the owner and mode of the home" in done.err
    assert everything_in(cli.home.path) == before


def test_a_lease_that_may_not_be_looked_at_is_taken_to_hold(public: Path) -> None:
    """Who may not look at a supervisor's lease does not call it gone."""
    home = make(public / "home")
    with opened(home) as store:
        store.join("sup-1", machine="here", pid=1, seconds=60).result()
    forbid_writing(home)
    os.chmod(home.leases, 0o700)

    def present() -> list[str]:
        with contextlib.closing(wiring.open_reads(home, Settings())) as reads:
            return [found.id for found in reads.supervisors()]

    assert present() == []  # root, or the owner, sees that nobody holds it
    if os.geteuid() == 0:
        assert in_child(present, as_nobody=True) == ["sup-1"]


# no space


def added_for_ever(control: Control) -> Iterator[str]:
    """The ids of tasks, each after it was acknowledged."""
    while True:
        yield control.add(a_task("work", description="y" * 20_000)).uid


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    """Adding until the disk is full ends in StoreFull; all that was acknowledged is there; with space it goes on."""
    with small_disk(tmp_path / "disk", kilobytes=2048) as disk:
        home = make(disk / "home")
        ballast = disk / "ballast"
        ballast.write_bytes(b"x" * 200_000)
        acknowledged: list[str] = []
        with contextlib.closing(wiring.open_control(home, Settings(), by="ana")) as control:
            with pytest.raises(StoreFull) as caught:
                acknowledged.extend(added_for_ever(control))
            assert (caught.value.exit_code, caught.value.retryable) == (1, True)
            assert "nothing was written" in str(caught.value)
            assert [task.uid for task in control.reads.tasks()] == acknowledged
        assert len(acknowledged) > 5
        with contextlib.closing(wiring.open_reads(home, Settings())) as reads:
            assert [task.uid for task in reads.tasks()] == acknowledged
            audit(reads)
        ballast.unlink()
        with contextlib.closing(wiring.open_control(home, Settings(), by="ana")) as control:
            acknowledged.append(control.add(a_task("there is space again")).uid)
            assert [task.uid for task in control.reads.tasks()] == acknowledged
            audit(control.reads)
            assert home.mirror.read_bytes() == exported(control.reads)
        assert is_sound(home.db)


def test_a_disk_that_is_full_from_the_start(tmp_path: Path) -> None:
    """In a home without room for a byte reading works, adding is exit 1 with a hint, and with space all is well."""
    with small_disk(tmp_path / "disk", kilobytes=1024) as disk:
        cli = Cli(disk)
        cli.ok("init")
        uid = cli.add("work")
        for left in ("fleet.db-wal", "fleet.db-shm"):
            (cli.home.path / left).unlink(missing_ok=True)
        with open(disk / "ballast", "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"x" * 4096)
        assert [task["id"] for task in cli.json("ready")] == [uid]
        done = cli.run("add", "one too many")
        assert (done.code, done.out) == (1, "")
        assert done.err.startswith("error: no space is left for the store at ")
        assert "hint: free some space" in done.err
        assert [task["id"] for task in cli.json("ready")] == [uid]
        (disk / "ballast").unlink()
        cli.add("now it fits")
        assert cli.ok("ledger", "verify").out == "OK: 2 events in 2 chains hold\n"
        assert cli.home.mirror.read_text() == cli.ok("ledger", "export").out


def test_a_group_commit_that_meets_a_full_disk_fails_as_one(tmp_path: Path) -> None:
    """In a group every verb either was refused for want of space or is there; no other error comes through."""
    with small_disk(tmp_path / "disk", kilobytes=2048) as disk:
        home = make(disk / "home")
        with contextlib.closing(wiring.open_store(home, Settings(), grouped=True)) as store:
            kept, refused = set(), 0
            for _ in range(15):
                pending = [store.submit([a_task("work", description="y" * 20_000)], by="ana") for _ in range(10)]
                for each in pending:
                    try:
                        kept.add(each.result(60)[0].uid)
                    except StoreFull:
                        refused += 1
            assert kept == {task.uid for task in store.tasks()}
            assert kept
            assert refused
            audit(store)


# another version


@pytest.mark.parametrize("wal", [False, True], ids=["closed", "with a -wal"])
def test_a_home_of_a_newer_version_is_not_touched(tmp_path: Path, wal: bool) -> None:
    """Reading and writing are both StoreTooNew, init --force too, and no byte of the database changes."""
    home = make(tmp_path / "home")
    with opened(home) as store:
        add(store, "from the future")
        connection = apsw.Connection(str(home.db))
        connection.pragma("user_version", 999)
        if wal:
            shutil.copytree(home.path, tmp_path / "copy")
        connection.close()
    if wal:
        home = Home(tmp_path / "copy")
        assert (home.path / "fleet.db-wal").stat().st_size
    before = [read_or_none(Path(f"{home.db}{end}")) or b"" for end in ("", "-wal")]
    mirror = read_or_none(home.mirror)
    for act in (
        lambda: wiring.open_reads(home, Settings()),
        lambda: wiring.open_store(home, Settings()),
        lambda: wiring.open_control(home, Settings()),
        lambda: wiring.prepare_store(home, Settings(), force=False),
        lambda: wiring.prepare_store(home, Settings(), force=True),
    ):
        with pytest.raises(StoreTooNew, match="has schema 999; this Fleet knows schemas up to") as caught:
            act()
        assert caught.value.hint == "upgrade Fleet on this machine"
    assert [read_or_none(Path(f"{home.db}{end}")) or b"" for end in ("", "-wal")] == before
    assert read_or_none(home.mirror) == mirror


# a holder that is stuck


def test_a_stopped_holder_is_named_and_waited_for_no_longer_than_asked(tmp_path: Path) -> None:
    """While the lock's holder is stopped a write is StoreBusy with its pid; once it goes on, so does everybody."""
    home = make(tmp_path / "home")
    waiting, go = os.pipe()

    def hold(saying: int) -> None:
        with FileLock(Path(f"{home.db}.lock"), 10):
            os.write(saying, b"held\n")
            os.read(waiting, 1)

    with opened(home, busy_seconds=0.2) as store, child(hold) as holder:
        assert holder.line() == "held"
        holder.send(signal.SIGSTOP)
        for _ in range(2):
            with pytest.raises(StoreBusy, match=f"process {holder.pid} has held the store's write lock for 0.2 s"):
                add(store, "too soon")
        assert titles(home) == []  # readers never wait
        holder.send(signal.SIGCONT)
        os.write(go, b"!")
        assert holder.wait() == 0
        add(store, "in time")
        assert titles(home) == ["in time"]
        audit(store)
    os.close(waiting)
    os.close(go)


@pytest.mark.parametrize("where", ["a program of its own", "a program with an alarm", "a thread"])
def test_waiting_ends_in_time_wherever_it_is_done(tmp_path: Path, where: str) -> None:
    """The deadline holds in a main thread, in one whose alarm clock is taken, in any other; the clock is left alone."""
    home = make(tmp_path / "home")

    def wait() -> str:
        def ring(number: int, frame: object) -> None:
            raise AssertionError("not our alarm")

        theirs = ring if where == "a program with an alarm" else signal.SIG_DFL
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, theirs)
        errors: list[str] = []

        def write(name: str) -> None:
            try:
                with opened(home, busy_seconds=0.2) as store:
                    add(store, name)
            except StoreBusy as exc:
                errors.append(str(exc))

        if where == "a thread":
            thread = threading.Thread(target=write, args=("in vain",))
            thread.start()
            thread.join()
        else:
            write("in vain")
        assert signal.getsignal(signal.SIGALRM) is theirs
        assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
        return errors[0]

    lock = FileLock(Path(f"{home.db}.lock"), 10)
    with lock:
        error = in_child(wait)
    lock.close()
    assert f"process {os.getpid()} has held the store's write lock for 0.2 s; nothing was written" in error
    with opened(home, busy_seconds=5) as store:
        add(store, "in time")
    assert titles(home) == ["in time"]


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    """The lock of a process that was killed is free at once, and what it had begun never happened."""
    home = make(tmp_path / "home")

    def begin(saying: int) -> None:
        with FileLock(Path(f"{home.db}.lock"), 10):
            connection = apsw.Connection(str(home.db))
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO cursors VALUES ('half', '1', 0)")
            os.write(saying, b"begun\n")
            signal.pause()

    with opened(home, busy_seconds=5) as store:
        with child(begin) as holder:
            assert holder.line() == "begun"
            holder.send(signal.SIGKILL)
            holder.wait()
        add(store, "at once")
        assert store.cursor("half") == ""


def test_writers_of_one_process_do_not_get_into_each_others_way(tmp_path: Path) -> None:
    """Verbs may be called from any thread: each is whole, and none fails for another's sake."""
    from concurrent.futures import ThreadPoolExecutor

    home = make(tmp_path / "home")
    with opened(home) as store, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: add(store, f"task {n}"), range(80)))
        assert len(store.tasks()) == 80
        audit(store)


# where a home may be


MOUNTS = (
    "proc /proc proc rw 0 0\n"
    "/dev/sda1 / ext4 rw 0 0\n"
    "server:/export {base}/nfs nfs4 rw 0 0\n"
    "tmpfs {base}/nfs/local tmpfs rw 0 0\n"
    "//server/share {base}/with\\040space cifs rw 0 0\n"
    "//server/share {base}/with\\011tab\\134 fuse.sshfs rw 0 0\n"
    "server:/export {base}/covered nfs rw 0 0\n"
    "/dev/sdb1 {base}/covered ext4 rw 0 0\n"
)


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("here", None),
        ("nfs/home", "nfs4"),
        ("nfs", "nfs4"),
        ("nfs2", None),
        ("nfs/local/home", None),
        ("with space/home", "cifs"),
        ("with\ttab\\/home", "fuse.sshfs"),
        ("covered/home", None),
    ],
)
def test_network_filesystems_are_refused(tmp_path: Path, place: str, kind: str | None) -> None:
    """A home on a network filesystem is refused by name, whatever its mount point is called; others are not."""
    mounts = MOUNTS.format(base=tmp_path)
    path = tmp_path / place / "fleet.db"
    if kind is None:
        refuse_network(path, mounts)
        return
    with pytest.raises(StoreError, match=rf"is on a network filesystem \({kind}\)") as caught:
        refuse_network(path, mounts)
    assert kind in NETWORK
    assert "PostgreSQL" in caught.value.hint


@pytest.mark.parametrize(
    "name",
    [
        "with space",
        "日本語-🦑",
        "a#b?c%20d&mode=ro",
        "semi;colon 'single' \"double\"",
        "back\\slash",
        "new\nline",
        "/".join(["a-very-long-directory-name"] * 8),
    ],
    ids=["space", "unicode", "uri", "quotes", "backslash", "newline", "long"],
)
def test_a_home_may_be_called_anything(tmp_path: Path, name: str) -> None:
    """Writing, reading, the bell, the mirror and restoring work under any path, of any length."""
    home = make(tmp_path / name)
    with opened(home) as store, opened(home) as other:
        bell = other.listen()
        try:
            add(store, "ding")
            assert bell.wait(10)
        finally:
            bell.close()
        wiring.mirroring(home, Settings(), store)()
    assert titles(home) == ["ding"]
    flip(home.db, 4096, b"\xff" * 8192)
    wiring.prepare_store(home, Settings(), force=True)
    assert titles(home) == ["ding"]


def test_a_bell_that_nobody_listens_to_is_taken_down(tmp_path: Path) -> None:
    """The socket of a listener that was killed is removed by the next commit; a full one does not hold it up."""
    home = make(tmp_path / "home")

    def listen(saying: int) -> None:
        with contextlib.closing(wiring.open_reads(home, Settings())) as reads:
            bell = reads.listen()
            os.write(saying, b"listening\n")
            signal.pause()
            bell.close()

    with opened(home) as store:
        deaf = store.listen()
        with child(listen) as listener:
            assert listener.line() == "listening"
            assert len(os.listdir(home.bells)) == 2
            for n in range(50):  # more than a socket's queue holds
                add(store, f"task {n}")
            listener.send(signal.SIGKILL)
            listener.wait()
        add(store, "after")
        assert len(os.listdir(home.bells)) == 1
        assert deaf.wait(0)
        assert not deaf.wait(0)
        deaf.close()
        shutil.rmtree(home.bells)
        add(store, "no bells at all")
