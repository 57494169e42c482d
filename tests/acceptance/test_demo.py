"""`fleet demo`: a real run that anybody can see, with no key and no trace."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

from tests.support.cli import Cli, line_from


def in_temp(cli: Cli) -> dict[str, str]:
    """A directory for temporary files that nobody else uses, as an environment."""
    place = cli.path / "temporary"
    place.mkdir(exist_ok=True)
    return {"TMPDIR": str(place)}


def test_the_demo_shows_a_run(newcomer: Cli) -> None:
    """Five tasks are completed: one after a crash, one after an answer, some by a second
    supervisor; the ledger verifies, and nothing is left."""
    env = in_temp(newcomer)
    done = newcomer.ok("demo", env=env)
    assert len(re.findall(r"^fleet-\w+  completed ", done.out, re.MULTILINE)) == 5
    assert re.search(r"^fleet ledger verify: OK, \d+ events in \d+ chains hold$", done.out, re.MULTILINE)
    assert 'Choose the currency: asks "Which currency does the shop use?"' in done.err
    assert "Fix the total: attempt 1 of 3: it was ended by SIGKILL" in done.err
    assert "Write the manual: fleet-" in done.err
    assert "is taken over, where it stands" in done.err
    assert list(Path(env["TMPDIR"]).iterdir()) == []
    assert not newcomer.home.path.exists()


def test_the_demo_can_be_kept(newcomer: Cli) -> None:
    """With --keep the home stays, its ledger verifies, and the files that the agents wrote are there."""
    done = newcomer.ok("demo", "--keep", "--json", env=in_temp(newcomer))
    found = json.loads(done.out)
    assert [task["state"] for task in found["tasks"]] == ["completed"] * 5
    home = Path(found["home"])
    assert newcomer.json("--home", str(home), "ledger", "verify")["events"] == found["events"]
    assert "Euro." in (home.parent / "project" / "RELEASE").read_text()


def test_the_demo_can_be_broken_off(newcomer: Cli) -> None:
    """Ctrl-C ends the demo with 130, its agents with it, and leaves nothing behind."""
    env = in_temp(newcomer)
    newcomer.env |= env
    with newcomer.started("demo") as process:
        while "Write the manual: starts" not in line_from(process.stderr):
            pass
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
    assert list(Path(env["TMPDIR"]).iterdir()) == []
