"""Pools on this machine: the installed `fleet`, real tmux, and a program that looks like claude."""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from socket import create_server

import pytest

from fleet.config import tokens
from fleet.config.tokens import Role
from fleet.model.states import TaskState
from fleet.supervisor.guard import holders
from tests.support.cli import line_from
from tests.support.pools import Pools, a_person_with_pools
from tests.support.session_host import lives, processes_with, until
from tests.support.sshd import sshd

__all__ = ["a_person_with_pools"]


def test_the_example_flow(pools: Pools) -> None:
    """A dispatch sets a worker up, gives it the task, says how to watch; the agent's end is the task's receipt."""
    pools.begin(trust=True)
    pools.knobs(trust=True)
    assert pools.ok("pool", "allocate", "kite").out == "kite-1\n"
    assert not pools.clone().exists()  # nothing was made
    gate = pools.path / "gate"
    done = pools.ok(
        "dispatch", "--repo", "kite", "--command", f"refactor the auth module\n@@wait {gate}\n@@sh echo x >OUT"
    )
    assert done.lines[0] == "worker   kite-1"
    assert "watch    fleet pool attach kite-1" in done.lines
    assert (
        pools.tmux("display-message", "-p", "-t", "kite-dev", "#W") == "agent:running\n"
    )  # what an attached person sees
    assert "Setting up..." in done.err
    assert "kite-1: the task was delivered (its hook and its own record have it)" in done.err
    uid = done.lines[1].split()[1]
    assert pools.windows() == ["0 shell", "1 agent:running"]
    seen = pools.worker()
    assert (seen["state"], seen["busy"], seen["task"]) == ("running", True, uid)
    assert pools.ok("pool", "busy", "kite-1").code == 0
    assert pools.ok("pool", "allocate", "kite").out == "kite-2\n"
    assert uid in pools.ok("tasks").out
    gate.touch()
    task = pools.until_task(uid, TaskState.COMPLETED)
    assert task.reason == "All done."
    assert (pools.clone() / "OUT").read_text() == "x\n"
    assert pools.windows() == ["0 shell", "1 agent:completed"]
    assert pools.run("pool", "busy", "kite-1").code == 1
    prompt = pools.ok("pool", "history", "kite-1").out
    assert "Claude Code" in prompt


def test_a_worker_is_set_up_once_and_used_again(pools: Pools) -> None:
    """The second dispatch gets the same worker, without a second setup; a scorer judges in its clone."""
    pools.begin()
    for text, code in (("one\n@@sh touch OUT", 0), ("two\n@@sh rm OUT", 1)):
        words = ("dispatch", "--repo", "kite", "--wait", "--score", "test -e OUT", "--command", text)
        done = pools.run(*words)
        assert (done.code, done.lines[0]) == (code, "worker   kite-1")
    assert (pools.clone().parent / "setups").read_text() == "once\n"
    done = pools.ok("pool", "check", "kite-1", "kite", "--silent")
    assert (done.out, done.err) == ("", "")
    (line,) = pools.log.read_text().splitlines()
    assert line.startswith("[20")
    assert "] kite-1 completed it ended its turn (hook Stop) since " in line


def test_any_text_arrives_as_it_is(pools: Pools) -> None:
    """Several lines, quotes, semicolons and 20 kB arrive as one prompt; an Enter that is not heard is repeated."""
    pools.begin()
    pools.knobs(deaf=1)
    text = "fix `it`; \"now\" 'please' $HOME \\n #{x}\n\n  second; line\n" + "é" * 10_000
    done = pools.ok("dispatch", "--repo", "kite", "--wait", "--command", "-", input=text)
    (record,) = (pools.user / ".claude" / "projects" / "here").iterdir()
    told = json.loads(record.read_text().splitlines()[0])["message"]["content"]
    assert told.startswith(text)
    assert "Commit your work at least every 30 minutes" in told
    assert "completed" in done.out


def test_two_dispatchers_at_once(pools: Pools) -> None:
    """Two dispatches at the same moment get two workers; a third waits in the queue until one is free."""
    pools.begin()
    gate = pools.path / "gate"
    words = ("dispatch", "--repo", "kite", "--command", f"work\n@@wait {gate}")
    with ThreadPoolExecutor(2) as both:
        done = list(both.map(lambda _: pools.ok(*words), range(2)))
    assert sorted(one.lines[0] for one in done) == ["worker   kite-1", "worker   kite-2"]
    third = pools.ok(*words)
    assert "is queued: every worker of kite is busy" in third.out
    assert pools.run("pool", "allocate", "kite").code == 3
    uid = third.out.split()[0]
    gate.touch()
    assert pools.until_task(uid, TaskState.COMPLETED).receipts


def test_a_login_screen_waits_for_a_person(pools: Pools) -> None:
    """A coder that nobody is logged in to is not given the task: the dispatch says what a person has to do."""
    pools.begin()
    pools.knobs(login=True)
    done = pools.run("dispatch", "--repo", "kite", "--command", "work")
    assert done.code == 3
    assert "claude on kite-1 is not logged in (it says: Not logged in); see it: fleet pool attach kite-1" in done.out
    assert pools.worker()["state"] == "error"
    pools.knobs()
    uid = done.lines[1].split()[1]
    pools.ok("answer", uid, "done")
    pools.ok("run", "--pools", "--drain", "--quiet")
    assert pools.task(uid).state is TaskState.COMPLETED


def test_a_question_of_trust_is_asked_of_a_person_where_the_pool_says_so(pools: Pools) -> None:
    """With trust = false the dialog is left to a person."""
    pools.begin(trust=False)
    pools.knobs(trust=True)
    done = pools.run("dispatch", "--repo", "kite", "--command", "work")
    assert done.code == 3
    assert "claude on kite-1 waits for an answer (it asks: trust this folder)" in done.out


def test_a_setup_that_fails_is_run_again(pools: Pools) -> None:
    """What failed half-way waits for a person with its last words, and is run again when it was mended."""
    pools.begin()
    script = pools.repo / "scripts" / "dev-setup.sh"
    script.write_text('echo half >>"$HOME/halves"\ntest -e "$HOME/mended" || { echo "no compiler"; exit 3; }\n')
    pools.git("commit", "-qam", "broken")
    done = pools.run("dispatch", "--repo", "kite", "--command", "work")
    assert done.code == 3
    assert "kite-1 cannot be set up: scripts/dev-setup.sh ended with code 3: no compiler" in done.out
    (pools.user / "mended").touch()
    facts = pools.ok("pool", "setup", "kite-1", "kite")
    assert "kite-1 is set up: scripts/dev-setup.sh ran" in facts.out
    assert (pools.user / "halves").read_text() == "half\nhalf\n"


def test_a_repository_that_cannot_be_reached(pools: Pools) -> None:
    """The words of git are the reason; nothing half-made is left."""
    pools.begin(repo="/nowhere/kite.git")
    done = pools.run("pool", "setup", "kite-1", "kite")
    assert done.code == 1
    assert "git cannot clone /nowhere/kite.git" in done.err
    assert not pools.clone().exists()


def test_a_key_that_is_refused(pools: Pools) -> None:
    """ssh's words are the reason, and nothing is left; with a key that is taken the same worker is set up."""
    with sshd() as server:
        known = f"-F /dev/null -o UserKnownHostsFile={server.directory}/known"  # and not the file of who runs the test
        shim = pools.programs / "ssh"
        shim.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} {known} "$@"\n')
        shim.chmod(0o755)
        url = f"ssh://{getpass.getuser()}@127.0.0.1:{server.port}{pools.repo}"
        pools.begin(repo=url, ssh_key=str(server.directory / "host_ed25519"))
        done = pools.run("pool", "setup", "kite-1", "kite")
        assert (done.code, "Permission denied" in done.err) == (1, True), done
        assert not pools.clone().exists()
        pools.ok("config", "set", f"pools.kite.ssh_key={server.identity}")
        pools.ok("pool", "setup", "kite-1", "kite")
        assert (pools.clone() / "README").read_text() == "kite\n"
        (key,) = (
            file for file in pools.clone().parent.iterdir() if file.is_file() and b"PRIVATE KEY" in file.read_bytes()
        )
        assert key.stat().st_mode & 0o777 == 0o600


def test_a_login_from_a_named_secret(pools: Pools) -> None:
    """The coder finds it as a file of its own, that nobody else can read; it is written nowhere else."""
    secret = json.dumps({"claudeAiOauth": {"accessToken": "s3cr3t-login"}})
    pools.set_env("KITE_LOGIN", secret)
    pools.begin(login="KITE_LOGIN")
    pools.ok("dispatch", "--repo", "kite", "--wait", "--command", "work\n@@sh echo $CLAUDE_CONFIG_DIR >WHERE")
    file = Path((pools.clone() / "WHERE").read_text().strip()) / ".credentials.json"
    assert (file.read_text(), file.stat().st_mode & 0o777) == (secret, 0o600)
    found = [one for one in pools.home.path.rglob("*") if one.is_file() and b"s3cr3t-login" in one.read_bytes()]
    assert found == [file]


def test_a_repository_without_a_setup_script(pools: Pools) -> None:
    """It is skipped, with a note."""
    pools.begin(setup="scripts/other.sh")
    assert "there is no scripts/other.sh; skipped" in pools.ok("pool", "setup", "kite-1", "kite").out


def test_an_agent_that_dies_is_never_running(pools: Pools) -> None:
    """The window tells it at once, and the task is tried again until it has failed."""
    pools.begin()
    done = pools.run("dispatch", "--repo", "kite", "--wait", "--command", "work\n@@die")
    assert done.code == 1
    assert pools.worker()["state"] == "error"
    assert pools.windows() == ["0 shell", "1 agent:error"]


def test_a_tmux_server_that_is_killed(pools: Pools) -> None:
    """Its agent is gone with it: the state is an error, and the task is tried again in a new server."""
    pools.begin()
    gate = pools.path / "gate"
    done = pools.ok("dispatch", "--repo", "kite", "--command", f"work\n@@wait {gate}")
    uid = done.lines[1].split()[1]
    pools.tmux("kill-server")
    gate.touch()
    assert pools.until_task(uid, TaskState.COMPLETED).receipts
    assert pools.worker()["state"] == "completed"


def test_a_worker_that_is_rebooted(pools: Pools) -> None:
    """Everything there dies without a word, and tmux with its socket: the task is tried again once it is back."""
    pools.begin()
    gate = pools.path / "gate"
    done = pools.ok("dispatch", "--repo", "kite", "--command", f"work\n@@wait {gate}")
    uid = done.lines[1].split()[1]
    agent = processes_with(f"FLEET_SESSION={uid}.1\0".encode(), files=("environ",))
    assert agent
    for pid in (int(pools.tmux("display-message", "-p", "#{pid}")), *agent):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for socket in pools.sockets.iterdir():
        socket.unlink()
    gate.touch()
    pools.until_task(uid, TaskState.COMPLETED)
    told = [(one["attempt"], one["result"], one["final"]) for one in pools.json("receipts", uid)]
    assert told == [(1, "fail", False), (2, "pass", True)]
    assert pools.worker()["state"] == "completed"


def test_a_person_steps_in(pools: Pools) -> None:
    """Text is sent to the shell and the agent, also of a scrolled pane; a worker that a person uses is busy."""
    pools.begin()
    pools.ok("dispatch", "--repo", "kite", "--wait", "--command", "one")
    gate = pools.path / "gate"
    pools.ok("pool", "send", "kite-1", "shell", f"touch {pools.path}/sent; true")
    pools.tmux("copy-mode", "-t", "kite-dev:1")
    pools.ok("pool", "send", "kite-1", "agent", f"more\n@@wait {gate}")
    until((pools.path / "sent").exists, "what was sent")
    seen = pools.until_state("running")
    assert (seen["busy"], seen["task"]) == (True, None)
    assert pools.ok("dispatch", "--repo", "kite", "--command", "two").lines[0] == "worker   kite-2"
    gate.touch()
    assert pools.run("pool", "send", "kite-1", "nowhere", "x").code == 4


def test_a_supervisor_that_is_killed(pools: Pools) -> None:
    """Killed while the coder starts: the next one gives it the task, once."""
    pools.begin()
    pools.knobs(slow=3)
    with ThreadPoolExecutor(1) as beside:
        dispatch = beside.submit(pools.ok, "dispatch", "--repo", "kite", "--wait", "--command", "work")
        pools.until_state("waiting")
        (held,) = holders(pools.home.path)
        os.kill(held.pid, signal.SIGKILL)
        assert "completed" in dispatch.result().out
    (record,) = (pools.user / ".claude" / "projects" / "here").iterdir()
    assert record.read_text().count('"role": "user"') == 1


def test_a_supervisor_that_is_killed_when_its_agent_is_done(pools: Pools) -> None:
    """It has noted that the agent ended its turn, and nothing else: the next one ends the session, with its words."""
    pools.begin()
    gate = pools.path / "gate"
    uid = pools.ok("dispatch", "--repo", "kite", "--command", f"work\n@@wait {gate}").lines[1].split()[1]
    (held,) = holders(pools.home.path)
    os.kill(held.pid, signal.SIGKILL)
    until(lambda: not holders(pools.home.path), "its end")
    argv = [sys.executable, "-m", "tests.support.supervised", str(pools.home.path), "--die-at", "turned"]
    with subprocess.Popen(argv, env=os.environ, cwd=Path(__file__).parents[2]) as next_one:
        gate.touch()
        assert next_one.wait(60) == -signal.SIGKILL
    pools.ok("run", "--pools", "--drain", "--quiet")
    assert (pools.task(uid).state, pools.task(uid).reason) == (TaskState.COMPLETED, "All done.")


def test_a_worker_is_let_go_and_destroyed(pools: Pools) -> None:
    """Work that is nowhere else is not destroyed without force; a worker at a task not at all."""
    pools.begin()
    gate = pools.path / "gate"
    done = pools.ok("dispatch", "--repo", "kite", "--command", f"work\n@@wait {gate}\n@@sh echo x >NEW")
    assert "works on" in pools.run("pool", "destroy", "kite-1", "--force").err
    gate.touch()
    pools.until_task(done.lines[1].split()[1], TaskState.COMPLETED)
    refused = pools.run("pool", "destroy", "kite-1")
    assert (refused.code, "kite-1 has 1 changed file\n" in refused.err) == (1, True), refused
    pools.ok("pool", "release", "kite-1")
    assert pools.worker()["state"] == "none"
    pools.ok("pool", "destroy", "kite-1", "--force")
    assert not pools.clone().exists()
    assert pools.worker()["state"] == "absent"


def test_what_an_agent_asks_is_a_state(pools: Pools) -> None:
    """One that waits for a permission is waiting, with its words, until it goes on."""
    pools.begin()
    gate = pools.path / "gate"
    pools.ok("dispatch", "--repo", "kite", "--command", f"work\n@@ask\n@@wait {gate}")
    seen = pools.until_state("waiting")
    assert "Claude needs your permission to use Bash" in seen["evidence"]
    gate.touch()
    pools.until_state("completed")


def test_workers_are_seen_from_elsewhere(pools: Pools, tmp_path: Path) -> None:
    """Status and busy are told by a server as at its home, to whoever may look; the other verbs are refused."""
    pools.begin()
    pools.ok("pool", "setup", "kite-1", "kite")
    pools.env["FLEET_TOKEN"] = tokens.add(pools.home, "eve", Role.READ).secret
    with pools.started("serve", "--port", "0") as process:
        found = re.search(r"http://\S+(?=/v1/fleet;)", line_from(process.stderr, seconds=60))
        assert found
        nowhere = {"FLEET_HOME": str(tmp_path / "nowhere"), "FLEET_URL": found[0]}
        for words in (["status"], ["status", "kite", "--json"], ["status", "nope"], ["busy", "kite-1"]):
            here, away = (pools.run("pool", *words, env=env) for env in ({}, nowhere))
            assert (here.code, here.err) == (away.code, away.err)
            told = [re.sub(r" *\d+s ago| {2,}", " ", each.out) for each in (here, away)]  # 9s grows to 10s
            assert told[0] == told[1]
        assert "kite-1  none" in pools.ok("pool", "status", env=nowhere).out
        refused = pools.run("pool", "destroy", "kite-1", env=nowhere)
        assert (refused.code, "`fleet pool destroy` works on a home here" in refused.err) == (2, True)


STUCK_SETUP = """#!/bin/sh
echo once >>../setups
test -e "$HOME/free" && exit
sleep 1000 &
echo $$ $! >"$HOME/began.new" && mv "$HOME/began.new" "$HOME/began"
wait
"""


def stuck_in_setup(pools: Pools) -> tuple[str, list[int]]:
    """A task whose worker's setup script hangs, unless there is `free`; and the processes of the script."""
    (pools.repo / "scripts" / "dev-setup.sh").write_text(STUCK_SETUP)
    pools.git("commit", "-qam", "slow")
    began = pools.user / "began"
    with pools.started("dispatch", "--repo", "kite", "--command", "work") as process:
        until(began.exists, "the setup", seconds=30)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    return err.decode().partition(":")[0], [int(word) for word in began.read_text().split()]


@pytest.mark.parametrize(("verb", "state"), [("stop", TaskState.CANCELLED), ("interrupt", TaskState.BLOCKED)])
def test_a_setup_is_cut_short(pools: Pools, verb: str, state: TaskState) -> None:
    """To stop or interrupt a task ends its worker's setup at once, uncharged; the next dispatch sets it up."""
    pools.begin(max_size=1)
    uid, script = stuck_in_setup(pools)
    pools.ok(verb, uid)
    assert pools.until_task(uid, state).charged == 0
    assert not any(lives(pid) for pid in script)
    directory = pools.clone().parent
    assert (directory / "setup.log").read_text().endswith("--- running scripts/dev-setup.sh\n--- cut short\n")
    assert not {"setup.pid", "kite.new", "ready"} & {path.name for path in directory.iterdir()}
    (pools.user / "free").touch()
    assert pools.ok("dispatch", "--repo", "kite", "--wait", "--command", "work").code == 0
    assert (directory / "setups").read_text() == "once\nonce\n"


def test_a_supervisor_that_stops_does_not_wait_for_a_setup(pools: Pools) -> None:
    """The setup is ended, and the task is in the queue again with all its attempts."""
    pools.begin(max_size=1)
    uid, script = stuck_in_setup(pools)
    pools.ok("run", "stop")
    until(lambda: not holders(pools.home.path), "the supervisor's end", seconds=15)
    assert not any(lives(pid) for pid in script)
    task = pools.task(uid)
    assert (task.state, task.charged) == (TaskState.QUEUED, 0)


def test_a_workers_clone_is_cut_short(pools: Pools) -> None:
    """A repository that never answers is not waited for, and nothing of its clone is left."""
    with create_server(("127.0.0.1", 0)) as server:
        server.settimeout(30)
        pools.begin(repo=f"git://127.0.0.1:{server.getsockname()[1]}/kite.git", max_size=1)
        dispatch = pools.started("dispatch", "--repo", "kite", "--command", "work")
        with dispatch as process, server.accept()[0] as connection:
            assert pools.clone().with_name("kite.new").exists()
            pools.ok("stop", "--all")
            assert process.wait(30) == 1
            connection.settimeout(30)
            while connection.recv(1024):  # until git is gone
                pass
    assert not {"setup.pid", "kite.new", "kite"} & {path.name for path in pools.clone().parent.iterdir()}
