"""A served fleet, watched from elsewhere: the same lines, screen and table as at home, over lost connections too."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import time
from collections.abc import Iterator

import pytest

from fleet import wiring
from fleet.api.hub import HEARTBEAT_SECONDS
from fleet.cli.screen.app import Top
from fleet.cli.screen.away import AwayDesk
from fleet.cli.screen.desk import AnyDesk, Desk
from fleet.config import tokens
from fleet.config.tokens import Role
from fleet.front.client import SILENCE_SECONDS
from fleet.front.remote import RemoteFront
from fleet.model.run import NewRun
from fleet.testing.builders import a_task
from tests.support.boards import fill, screen, until
from tests.support.cli import FLEET, Cli, line_from

SECONDS = 60
PASSED = re.compile(r"\d+(?:s|m|h|d)\b")  # of the time, until it was looked at
IN_TURN = {
    "name": "turn",
    "tasks": [
        {"id": "a", "name": "First", "command": ["sh", "-c", "until test -e go; do sleep 0.05; done"]},
        {"id": "b", "command": ["sh", "-c", "exit 3"], "needs": ["a"], "retry_policy": {"max_attempts": 1}},
        {"id": "c", "command": ["true"], "needs": ["b"]},
    ],
}


class Served:
    """A home, and its server, which can be killed and started anew in the same place."""

    def __init__(self, cli: Cli) -> None:
        self.cli = cli
        self.port = "0"
        self._stack = contextlib.ExitStack()
        self._server: subprocess.Popen[bytes] | None = None
        cli.env["FLEET_TOKEN"] = tokens.add(cli.home, "bob", Role.OPERATE).secret
        self.start()

    @property
    def url(self) -> list[str]:
        """The words that name it."""
        return ["--url", f"http://127.0.0.1:{self.port}"]

    def start(self) -> None:
        """Serve."""
        self._server = self._stack.enter_context(self.cli.started("serve", "--port", self.port))
        found = re.search(r"http://127.0.0.1:(\d+)(?=/v1/fleet;)", line_from(self._server.stderr, seconds=SECONDS))
        assert found
        self.port = found[1]

    def kill(self) -> None:
        """At once; nobody is told."""
        assert self._server
        self._server.kill()
        self._server.wait()

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """It stays connected, and does nothing."""
        assert self._server
        self._server.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._server.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End it."""
        self._stack.close()


@pytest.fixture
def served(cli: Cli) -> Iterator[Served]:
    """A home that is served."""
    with contextlib.closing(Served(cli)) as found:
        yield found


def lines_until(process: subprocess.Popen[bytes], words: str) -> list[str]:
    """What a process prints, up to a line with these words."""
    found = [line_from(process.stdout, seconds=SECONDS)]
    while words not in found[-1]:
        found.append(line_from(process.stdout, seconds=SECONDS))
    return found


def test_the_same_lines(served: Served) -> None:
    """`fleet watch` prints the same here and elsewhere, wherever it begins and whatever it leaves out, also as JSON."""
    cli = served.cli
    with cli.store() as store:
        (other,) = store.submit([a_task("other")], by="ana").result()
        made = store.submit([a_task("a 翻", task_id="a"), a_task("b", task_id="b")], by="ana", run=NewRun(name="N"))
        one, two = made.result()
        store.comment(other.uid, "first\u2028line \x1b", by="ana").result()
        for task in (one, two, other):
            store.cancel(task.uid, f"enough of {task.title}", by="ana").result()
    for argv, last in (
        (["--after", "0"], "enough of other"),
        (["--json"], "enough of other"),
        (["--run", str(one.run), "--since", "1h"], "run over"),
        (["--task", one.uid[-3:], "-n", "1"], "enough of a"),
        (["--kind", "task.commented,task.settled", "-n", "2"], "enough of other"),
    ):
        with cli.started("watch", *argv) as here, cli.started(*served.url, "watch", *argv) as away:
            seen = lines_until(here, last)
            assert lines_until(away, last) == seen
            for process in (here, away):
                process.send_signal(signal.SIGINT)
                assert process.wait(SECONDS) == 130
    for argv in (["--after", "99"], ["--run", "nope"]):
        assert (done := cli.run(*served.url, "watch", *argv)) == cli.run("watch", *argv)
        assert (done.code, done.out) == (4, "")


@pytest.mark.parametrize("argv", [[], ["--kind", "task"], ["--task", "ID"]])
def test_a_lost_connection(served: Served, argv: list[str]) -> None:
    """A server that is killed and started anew is waited for, in a word on stderr; nothing is missed, nothing twice."""
    cli = served.cli
    with cli.store() as store:
        (task,) = store.submit([a_task("work", uid="fleet-abc")], by="ana").result()
    argv = [task.uid if word == "ID" else word for word in argv]
    with cli.started(*served.url, "watch", *argv) as watching:
        assert len(lines_until(watching, "added")) == 2
        assert line_from(watching.stderr) == "no supervisor is running: fleet run"
        served.kill()
        assert "it is asked again until it answers" in line_from(watching.stderr, seconds=SECONDS)
        with cli.store() as store:
            for n in range(20):
                store.comment(task.uid, f"remark {n}", by="ana").result()
        served.start()
        assert line_from(watching.stderr, seconds=SECONDS).endswith("it answers again")
        said = lines_until(watching, "remark 19")
        assert [line.rpartition(" ")[2] for line in said] == [str(n) for n in range(20)]
        watching.send_signal(signal.SIGINT)
        assert watching.wait(SECONDS) == 130
        assert line_from(watching.stderr) == f"to go on from here: fleet {' '.join(served.url)} watch --after 21"


def test_a_server_that_is_frozen(served: Served) -> None:
    """One that is connected and says nothing is told soon, not when a minute is over; thawed, it is heard again."""
    assert 2 * HEARTBEAT_SECONDS < SILENCE_SECONDS < 15
    cli = served.cli
    with cli.store() as store:
        (task,) = store.submit([a_task("work")], by="ana", run=NewRun(name="N")).result()
    with (
        cli.started(*served.url, "watch") as watching,
        cli.started(*served.url, "logs", task.uid, "-f") as logs,
        cli.started(*served.url, "wait", str(task.run)) as waiting,
    ):
        for process, words in ((watching, "no supervisor"), (logs, "is queued"), (waiting, "no supervisor")):
            while words not in line_from(process.stderr, seconds=SECONDS):
                pass
        with served.frozen():
            began = time.monotonic()
            for process, words in ((watching, "says nothing any more"), (logs, "in time"), (waiting, "in time")):
                said = line_from(process.stderr, seconds=SECONDS)
                assert said.endswith(f"{words}; it is asked again until it answers")
            assert time.monotonic() - began < 2 * SILENCE_SECONDS
        for process in (watching, logs, waiting):
            assert line_from(process.stderr, seconds=SECONDS).endswith("it answers again")


def test_a_watch_that_has_seen_nothing_misses_nothing(served: Served) -> None:
    """Where the connection is lost before the first event, all that came meanwhile is told, not the newest alone."""
    cli = served.cli
    with cli.started(*served.url, "watch", "-n", "3") as watching:
        assert line_from(watching.stderr, seconds=SECONDS) == "no supervisor is running: fleet run"
        served.kill()
        line_from(watching.stderr, seconds=SECONDS)
        with cli.store() as store:
            store.submit([a_task(f"task {n}", uid=f"fleet-a{n}") for n in range(9)], by="ana").result()
        served.start()
        assert len(lines_until(watching, "task 8")) == 10


def test_the_tail_of_a_ledger_elsewhere_is_followed(served: Served) -> None:
    """The newest of a task, however long ago, then what comes, as at home; a server that starts anew is waited for."""
    cli = served.cli
    with cli.store() as store:
        mine, other = store.submit([a_task("mine", uid="fleet-abc"), a_task("other")], by="ana").result()
        for n in range(60):
            store.comment(other.uid, f"remark {n}", by="ana").result()
    argv = ["ledger", "tail", "-f", "-n", "1", "--task", mine.uid]
    with cli.started(*argv) as here, cli.started(*served.url, *argv) as away:
        assert lines_until(here, "mine") == lines_until(away, "mine")
        served.kill()
        assert "it is asked again until it answers" in line_from(away.stderr, seconds=SECONDS)
        with cli.store() as store:
            store.comment(other.uid, "not mine", by="ana").result()
            store.comment(mine.uid, "at last", by="ana").result()
        served.start()
        assert len(seen := lines_until(away, "at last")) == 1
        assert lines_until(here, "at last") == seen


def test_a_token_that_is_taken_away_ends_it(served: Served) -> None:
    """What coming back cannot mend ends the watch, with its reason and its code."""
    with served.cli.started(*served.url, "watch") as watching:
        line_from(watching.stderr, seconds=SECONDS)
        served.kill()
        line_from(watching.stderr, seconds=SECONDS)
        kept = [line for line in served.cli.home.tokens.read_text().splitlines() if " bob " not in line]
        served.cli.home.tokens.write_text("\n".join(kept) + "\n")
        served.start()
        assert watching.wait(SECONDS) == 1
        assert "does not take the token" in line_from(watching.stderr)


def test_what_makes_no_sense_ends_it(cli: Cli) -> None:
    """A server that says what no Fleet says is not asked again: the watch ends with that, and does not wait on."""
    cli.env["FLEET_TOKEN"] = "flt_any"
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(SECONDS)
        with cli.started("--url", f"http://127.0.0.1:{server.getsockname()[1]}", "watch", "--json") as watching:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(head + b'id: 1\nevent: task.odd\ndata: {"position":"1"}\n\n')
                server.close()  # nothing tells of another version
                assert watching.wait(SECONDS) == 1
            assert watching.stderr
            assert "makes no sense" in json.loads(watching.stderr.read())["error"]


def test_the_same_screen(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """`fleet top` shows the same here and elsewhere; a killed server is told of, and seen again when it is back."""
    cli = served.cli
    monkeypatch.setenv("FLEET_TOKEN", cli.env["FLEET_TOKEN"])
    with cli.store() as store:
        fill(store)

        async def shown(desk: AnyDesk) -> str:
            app = Top(desk)
            async with app.run_test(size=(180, 40)) as pilot:
                await until(pilot, lambda text: "QUEUED (2)" in text)
                return screen(pilot)

        async def scene(front: RemoteFront) -> None:
            local, remote = await shown(Desk(cli.home)), await shown(AwayDesk(front, served.url))
            assert f"{cli.home.path} at {served.url[1]}" in remote
            assert [PASSED.sub("", line).split() for line in remote.splitlines()[1:]] == [
                PASSED.sub("", line).split() for line in local.splitlines()[1:]
            ]
            away = AwayDesk(front, served.url)
            app = Top(away, clock=away.clock, poll_seconds=0.2)
            async with app.run_test(size=(180, 40)) as pilot:
                await until(pilot, lambda text: "QUEUED (2)" in text)
                served.kill()
                assert "fleet-que" in await until(pilot, lambda text: "no answer (shown as of" in text)
                store.cancel("fleet-que", "no longer wanted", by="ana").result()
                served.start()
                assert "no answer" not in await until(pilot, lambda text: "QUEUED (0)" in text)

        with contextlib.closing(wiring.open_remote(served.url[1], "FLEET_TOKEN", insecure=False)) as front:
            asyncio.run(scene(front))
    here, away = cli.json("top"), json.loads(cli.ok(*served.url, "top", "--json").out)
    assert {**away, "at": 0, "running": 0} == {**here, "at": 0, "running": 0}
    assert [each["id"] for each in away["running"]] == [each["id"] for each in here["running"]]
    assert cli.run(*served.url, "top").code == 2


def test_the_same_progress(served: Served) -> None:
    """`fleet run SPEC` tells the same here and elsewhere while it waits, over a killed server too; it ends the same."""
    cli = served.cli
    (cli.cwd / "turn.json").write_text(json.dumps(IN_TURN))
    told = []
    with cli.started("run"):
        until_supervised(cli)
        assert cli.ok(*served.url, "run", "status") == cli.ok("run", "status")
        for flags in ([], served.url):
            (cli.cwd / "go").unlink(missing_ok=True)
            with cli.started(*flags, "run", "turn.json") as running:
                err = [line_from(running.stderr, seconds=SECONDS)]
                while "started" not in err[-1]:
                    err.append(line_from(running.stderr, seconds=SECONDS))
                if flags:
                    served.kill()
                    assert "it is asked again until it answers" in line_from(running.stderr, seconds=SECONDS)
                (cli.cwd / "go").touch()
                if flags:
                    served.start()
                assert running.wait(SECONDS) == 1
                assert running.stdout
                assert running.stderr
                out = running.stdout.read().decode()
                err += [line for line in running.stderr.read().decode().splitlines() if "answers again" not in line]
            told.append([timeless(line) for line in (*err, *out.splitlines())])
    assert told[0] == told[1]
    assert [line for line in told[1] if "fail (task)" in line]


def test_a_log_and_a_table_outlast_a_server(served: Served) -> None:
    """`fleet logs -f`, `wait` and `tasks --watch` say that the server is away, and go on when it is back."""
    cli = served.cli
    with cli.store() as store:
        (task,) = store.submit([a_task("work", uid="fleet-abc", task_id="a")], by="ana", run=NewRun(name="N")).result()
    log = cli.task_file(task.uid, "log.jsonl")
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text('{"session":"fleet-abc.1","at":1,"event":{"kind":"text","text":"before"}}\n')
    ours, theirs = pty.openpty()
    with (
        cli.started(*served.url, "logs", task.uid, "-f", "--raw") as logs,
        cli.started(*served.url, "wait", str(task.run)) as waiting,
        subprocess.Popen([*FLEET, *served.url, "tasks", "-w", "--status", "all"], env=cli.env, stdout=theirs) as table,
    ):
        os.close(theirs)
        lines_until(logs, "before")
        drawn(ours, b"queued 1")
        assert "no supervisor is running" in line_from(waiting.stderr, seconds=SECONDS)
        served.kill()
        drawn(ours, b"cannot reach")
        for process in (waiting, logs):
            while "it is asked again until it answers" not in line_from(process.stderr, seconds=SECONDS):
                pass
        with log.open("a") as opened:
            opened.write('{"session":"fleet-abc.1","at":2,"event":{"kind":"text","text":"after"}}\n')
        with cli.store() as store:
            store.cancel(task.uid, "enough", by="ana").result()
        served.start()
        lines_until(logs, "after")
        assert (logs.wait(SECONDS), waiting.wait(SECONDS)) == (0, 1)
        drawn(ours, b"queued 0")
        table.send_signal(signal.SIGINT)
        assert table.wait(SECONDS) == 130
    os.close(ours)


def drawn(terminal: int, words: bytes) -> None:
    """Wait until a terminal shows these words."""
    seen, deadline = b"", time.monotonic() + SECONDS
    while words not in seen:
        assert select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))[0], seen
        seen += os.read(terminal, 1 << 16)


def timeless(line: str) -> str:
    """A line without the time, the names that every run has of its own, and how long it took."""
    line = re.sub(r"^\d\d:\d\d:\d\d", "TIME", line)
    return " ".join(PASSED.sub("AGO", re.sub(r"turn-\w+", "RUN", line)).split())


def until_supervised(cli: Cli) -> None:
    """Wait until a supervisor is there."""
    with cli.started("watch", "--kind", "supervisor.joined") as watching:
        lines_until(watching, "joined")
