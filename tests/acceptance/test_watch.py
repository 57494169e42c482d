"""`fleet watch`: events in words as they come, what is left out, and where it begins."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import time

import pytest

from fleet.model.run import NewRun
from fleet.testing.builders import a_task
from tests.support.cli import FLEET, Cli, line_from


def test_it_tells_what_happens(cli: Cli) -> None:
    """A line for each event as it comes: time, task, a word, its title and a sentence; Ctrl-C says how to go on."""
    old = cli.add("long ago")
    with cli.started("watch") as watching:
        assert re.fullmatch(r"--- \d{4}-\d\d-\d\d", line_from(watching.stdout))
        assert line_from(watching.stdout)[10:] == f"{old:<12}  added      long ago"
        assert line_from(watching.stderr) == "no supervisor is running: fleet run"
        with cli.control() as control:
            control.block(old, "question", "Which\nhost?")
            control.answer(old, "This \x1b[31mone.")
            control.steer.stop(old, "no longer wanted")
        said = [line_from(watching.stdout) for _ in range(3)]
        assert [line[10:] for line in said] == [
            f'{old:<12}  asks       long ago: Which host?; fleet answer {old} "..."',
            f"{old:<12}  answered   long ago: by ana: This \N{REPLACEMENT CHARACTER}[31mone.",
            f"{old:<12}  cancelled  long ago: no longer wanted",
        ]
        watching.send_signal(signal.SIGINT)
        assert watching.wait(20) == 130
        assert line_from(watching.stderr) == "to go on from here: fleet watch --after 4"
    with cli.started("watch", "--after", "3", "--json") as watching:
        first = json.loads(line_from(watching.stdout))
        assert (first["seq"], first["event"]["kind"]) == (4, "task.settled")


def test_what_is_left_out(cli: Cli) -> None:
    """--run, --task and --kind narrow it down, together too; a family of kinds stands for all of its kinds."""
    with cli.store() as store:
        (other,) = store.submit([a_task("other")], by="ana").result()
        made = store.submit([a_task("a", task_id="a"), a_task("b", task_id="b")], by="ana", run=NewRun(name="N"))
        one, two = made.result()
        for task in (other, one, two):
            store.comment(task.uid, f"about {task.title}", by="ana").result()
        store.cancel(one.uid, "enough", by="ana").result()
        store.cancel(two.uid, "enough", by="ana").result()

    def seen(*argv: str, until: str) -> list[str]:
        lines: list[str] = []
        with cli.started("watch", *(argv if "--since" in argv else ("--after", "0", *argv))) as watching:
            while not lines or until not in lines[-1]:
                lines.append(line_from(watching.stdout))
        return [line.split()[2] for line in lines[1:]]

    assert seen("--run", str(one.run), until="run over") == [
        *("run", "added", "added", "remark", "remark", "cancelled", "cancelled", "run"),
    ]
    assert seen("--task", one.uid, until="cancelled") == ["added", "remark", "cancelled"]
    assert seen("--task", one.uid, "--kind", "task.commented,run", until="about a") == ["remark"]
    assert seen("--kind", "run", until="over") == ["run", "run"]
    assert seen("--since", "1h", "--kind", "task.commented", until="about b") == ["remark"] * 3


def test_the_newest_are_those_that_are_asked_for(cli: Cli) -> None:
    """-n counts lines that are shown, not events that are passed over."""
    first, *_ = [cli.add(f"task {n}") for n in range(4)]
    with cli.started("watch", "-n", "1", "--task", first) as watching:
        line_from(watching.stdout)
        assert line_from(watching.stdout).endswith("task 0")


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (("--kind", "task.setled"), 2, "unknown kind of event `task.setled`"),
        (("--since", "yesterday"), 2, "must be like 10m, 2h, 14:30"),
        (("--since", "1h", "--after", "1"), 2, "not allowed with"),
        (("--after", "-1"), 2, "--after"),
        (("--after", "99"), 4, "there is no event 99"),
        (("--task", "fleet-000"), 4, "fleet-000"),
        (("--run", "nothing"), 4, "nothing"),
    ],
)
def test_what_makes_no_sense(cli: Cli, argv: tuple[str, ...], code: int, words: str) -> None:
    """What cannot be meant ends at once, with its reason."""
    done = cli.run("watch", *argv)
    assert (done.code, done.out) == (code, "")
    assert words in done.err


@pytest.mark.parametrize("colour", [True, False])
def test_colour_is_for_terminals(cli: Cli, colour: bool) -> None:
    """At a terminal the word has the colour of its meaning; with NO_COLOR the line is plain."""
    uid = cli.add("work")
    with cli.control() as control:
        control.block(uid, "question", "Which?")
    ours, theirs = pty.openpty()
    env = {**cli.env, "TERM": "xterm-256color", **({} if colour else {"NO_COLOR": "1"})}
    with subprocess.Popen(
        [*FLEET, "watch"], cwd=cli.cwd, env=env, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        seen, deadline = b"", time.monotonic() + 30
        while b"fleet run" not in seen:
            assert select.select([ours], [], [], max(0.0, deadline - time.monotonic()))[0], seen
            seen += os.read(ours, 1 << 16)
        process.kill()
    os.close(ours)
    assert (b"\x1b[33masks      \x1b[0m work: Which?" in seen) is colour
    assert (b"\x1b" in seen) is colour
