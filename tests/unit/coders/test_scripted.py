"""The scripted coder, played by real shells."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fleet.coders.coder import Exit, Work
from fleet.coders.scripted import Scripted
from fleet.errors import UsageError
from fleet.model.outcome import Outcome, OutcomeKind
from fleet.model.stream import AnySaid, Context, Denied, Notice, Retrying, Text, Thinking, ToolEnded, Used

SHELLS = [
    pytest.param(shell, marks=pytest.mark.skipif(not shutil.which(shell[0]), reason=f"there is no {shell[0]}"))
    for shell in (("sh",), ("dash",), ("bash",), ("busybox", "sh"))
]


def work(steps: list[Any], cwd: Path, **fields: Any) -> Work:
    """Work that spells out its steps."""
    prompt = f"Some words before.\n@@scripted {json.dumps(steps)}\nand after"
    return Work(task="t", session="s", prompt=prompt, cwd=str(cwd), **fields)


def play(
    steps: list[Any], cwd: Path, shell: tuple[str, ...] = ("sh",), **fields: Any
) -> tuple[list[AnySaid], Outcome, str]:
    """What a shell makes of the steps."""
    coder = Scripted()
    launch = coder.launch(work(steps, cwd, **fields))
    ran = subprocess.run(
        [*shell, *launch.argv[1:]],
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", **launch.env},
        input=launch.prompt.encode(),
        capture_output=True,
        timeout=20,
        check=False,
    )
    state, events = coder.begin(), list[AnySaid]()
    for line in ran.stdout.split(b"\n"):
        state, said = coder.parse(state, line)
        events += said
    stderr = ran.stderr.decode()
    return events, coder.outcome(state, Exit(code=ran.returncode), stderr), stderr


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_every_shell_plays_the_same(shell: tuple[str, ...], tmp_path: Path) -> None:
    """Words, calls, files and numbers come out whole in every shell."""
    odd = 'a "quoted" \\ back\\nslash, $HOME `x` %s\nsecond\tline ☃'
    steps = [
        {"say": odd},
        {"think": "hmm"},
        {"tool": "Bash"},
        {"fail": "Edit"},
        {"run": "printf '%s' \"a  b\" > 'with blank'; test -f 'with blank'"},
        {"run": "exit 3"},
        {"write": ["sub/out.txt", odd]},
        {"usage": [10, 20, 30, 40]},
        {"context": 1234},
        {"retry": "overloaded"},
        {"lines": 3},
        {"sleep": 0},
        {"stderr": "oops"},
        {"raw": "no JSON"},
        {"raw": '{"kind":"unheard"}'},
    ]
    events, outcome, stderr = play(steps, tmp_path, shell)
    assert [event.text for event in events if isinstance(event, Text)] == [odd, "line 1", "line 2", "line 3"]
    assert Thinking(text="hmm") in events
    assert [event.ok for event in events if isinstance(event, ToolEnded)] == [True, False, True, False, True]
    assert (tmp_path / "sub/out.txt").read_text("utf-8") == odd
    assert (tmp_path / "with blank").read_text() == "a  b"
    assert Used(input_tokens=10, output_tokens=20, cached_tokens=30, cost_microusd=40) in events
    assert Context(tokens=1234) in events
    assert Retrying(reason="overloaded") in events
    assert stderr == "oops\n"
    assert outcome.kind is OutcomeKind.OK


@pytest.mark.parametrize("kind", list(OutcomeKind))
def test_it_can_end_in_every_way(kind: OutcomeKind, tmp_path: Path) -> None:
    """A result that names an outcome has it."""
    events, outcome, _ = play([{"say": "so be it"}, {"end": kind.value}, {"say": "never"}], tmp_path)
    assert outcome == Outcome(kind=kind, reason="so be it")
    assert Text(text="never") not in events


def test_it_can_reach_its_plans_limit(tmp_path: Path) -> None:
    """The moment of reset arrives."""
    outcome = play([{"limit": 1794735747000}], tmp_path)[1]
    assert (outcome.kind, outcome.resets_at) == (OutcomeKind.PLAN_LIMIT, 1794735747000)


def test_it_can_just_die(tmp_path: Path) -> None:
    """An exit code without a result is a crash."""
    assert play([{"exit": 7}], tmp_path)[1].kind is OutcomeKind.CRASHED


def test_a_denial_without_a_success_is_denied(tmp_path: Path) -> None:
    """As with the real ones, it counts only when nothing else went well."""
    assert play([{"deny": "Bash"}], tmp_path)[1].kind is OutcomeKind.DENIED
    events, outcome, _ = play([{"deny": "Bash"}, {"tool": "Read"}], tmp_path)
    assert outcome.kind is OutcomeKind.OK
    assert Denied(tool="Bash") in events


def test_it_asks_and_closes_as_an_agent_does(tmp_path: Path) -> None:
    """It calls the program `fleet`, which its session puts on the path."""
    shim = tmp_path / "fleet"
    shim.write_text('#!/bin/sh\nprintf "%s|" "$@" >> called\n')
    shim.chmod(0o755)
    steps = [{"run": "PATH=$PWD:$PATH; fleet show"}, {"ask": "is it's ok?"}, {"close": "all done"}]
    launch = Scripted().launch(work(steps, tmp_path))
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", **launch.env}
    subprocess.run(launch.argv, cwd=tmp_path, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    assert (tmp_path / "called").read_text() == "show|ask|is it's ok?|close|all done|"


def test_permissions_are_recorded_as_not_applicable(tmp_path: Path) -> None:
    """It has no tools of its own, and says so when given a list, a profile or a role."""
    events = play([{"say": "hi"}], tmp_path, tools=("git", "rg"), tool_profile="read-only", role="reviewer")[0]
    (told,) = (event.text for event in events if isinstance(event, Notice))
    assert told.endswith("do not apply to the scripted coder: profile read-only, tools git rg, role reviewer")


def test_it_reads_the_hosts_script_when_the_prompt_has_none(tmp_path: Path) -> None:
    """Without the line in the prompt it plays $FLEET_SCRIPT, which is passed on by name."""
    launch = Scripted().launch(Work(task="t", session="s", prompt="just words", cwd=str(tmp_path)))
    assert launch.secrets == ("FLEET_SCRIPT",)
    env = {"PATH": "/usr/bin:/bin", "FLEET_SCRIPT": "say from the host\nend ok"}
    ran = subprocess.run(launch.argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    assert b"from the host" in ran.stdout


@pytest.mark.parametrize(
    "steps", ["{", "{}", "[1]", '[{"fly":1}]', '[{"lines":"many"}]', '[{"write":"x"}]', '[{"a":1,"b":2}]']
)
def test_a_script_that_makes_no_sense_is_refused(steps: str) -> None:
    """A typo does not start anything."""
    with pytest.raises(UsageError):
        Scripted().launch(Work(task="t", session="s", prompt=f"@@scripted {steps}", cwd="/"))
