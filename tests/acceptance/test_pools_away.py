"""Pools elsewhere: the same flow over a real sshd, and on sprites that are made when they are needed."""

from __future__ import annotations

import json
import subprocess

from fleet.model.states import TaskState
from tests.support.away import reach, table
from tests.support.pools import Pools, a_person_with_pools
from tests.support.sprites.server import TOKEN, stand_in
from tests.support.sshd import sshd

__all__ = ["a_person_with_pools"]


def test_on_an_ssh_host(pools: Pools) -> None:
    """Set up, started, given its task and concluded over there; a key that is refused is told in ssh's words."""
    with sshd() as server:
        server.set_environment(TMUX_TMPDIR=str(pools.sockets.parent))
        pools.set_env("XDG_RUNTIME_DIR", str(server.directory))
        host = reach(server, pools.path / "far", agent_binary=str(pools.program))
        refused = reach(
            server, pools.path / "far", agent_binary="claude", identity=str(server.directory / "host_ed25519")
        )
        tables = table("hosts", {"name": "builder", **host}) + table("hosts", {"name": "shut", **refused})
        other = '[pools.api]\nrepo = "/x"\nhosts = ["shut"]\n'
        pools.begin(f"{tables}{other}", hosts=["builder"], max_size=1)
        gate = pools.path / "gate"
        done = pools.ok("dispatch", "--repo", "kite", "--command", f"work\n@@wait {gate}\n@@sh echo x >OUT")
        assert "Setting up..." in done.err
        seen = pools.worker()
        assert (seen["state"], seen["host"], seen["busy"]) == ("running", "builder", True)
        assert "ssh -t " in pools.ok("pool", "attach", "kite-1").out
        gate.touch()
        task = pools.until_task(done.lines[1].split()[1], TaskState.COMPLETED)
        assert task.reason == "All done."
        assert (pools.path / "far" / ".fleet" / "pools" / "kite-1" / "kite" / "OUT").read_text() == "x\n"
        assert pools.worker()["state"] == "completed"
        silent = pools.json("pool", "status", "api")[0]
        assert (silent["state"], silent["busy"]) == ("unknown", None)
        assert "Permission denied" in silent["evidence"]
        pools.ok("pool", "destroy", "kite-1", "--force")


def test_on_a_sprite(pools: Pools) -> None:
    """A sprite that is not there is made and set up; it is shown without being woken; in the end it is destroyed."""
    with stand_in() as server:
        pools.set_env("SPRITE_TOKEN", TOKEN)
        probe = server.sprite("other")
        home = probe.root.parent / "kite-1" / "home"
        more = f'[sprites]\nurl = "{server.url}"\ntoken_env = "SPRITE_TOKEN"\n'
        more += f"[coders.claude]\nprogram = {json.dumps(str(pools.program))}\n"
        pools.begin(more, host="sprite", directory=str(home), max_size=1)
        assert pools.worker()["state"] == "absent"
        gate = pools.path / "gate"
        done = pools.ok("dispatch", "--repo", "kite", "--command", f"work\n@@wait {gate}\n@@sh echo x >OUT")
        assert pools.worker()["state"] == "running"
        windows = ["tmux", "list-windows", "-t", "kite-dev", "-F", "#W"]  # its own server is tmux's usual one
        machine = server.machines["kite-1"]
        shown = subprocess.run(windows, env=machine.environment(), capture_output=True, text=True, check=True)
        assert shown.stdout.split() == ["shell", "agent:running"]
        gate.touch()
        pools.until_task(done.lines[1].split()[1], TaskState.COMPLETED)
        assert (home / "kite" / "OUT").read_text() == "x\n"
        assert pools.ok("pool", "attach", "kite-1").lines == ["sprite console -s kite-1", "tmux attach -t kite-dev"]
        pools.ok("pool", "destroy", "kite-1", "--force")
        assert "kite-1" not in server.machines
