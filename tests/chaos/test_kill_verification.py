"""Supervisors are killed while results are verified: each verifier runs once, and each task has one final receipt."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from fleet.model.states import Result
from fleet.model.terms import Terms
from tests.support.session_host import until
from tests.support.supervised import ENDS, RESCUES, STEPS, Campaign

ROUNDS = int(os.environ.get("FLEET_CHAOS_ROUNDS", "5"))
SEED = int(os.environ.get("FLEET_CHAOS_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
VERIFIER = "echo $$ >>{work}/$FLEET_TASK_ID.verified; echo looks good; sleep 0.3; echo the end of $FLEET_TASK_ID"

ONCE = ("scored", "judging")  # of the work, and of the verifier: a task comes to each once, to the others twice

pytestmark = pytest.mark.timeout(60 + 30 * ROUNDS)


class Verified(Campaign):
    """Tasks whose results are verified by a command."""

    def add_verified(self, n: int = 1) -> list[str]:
        """Tasks that end soon, and a verifier for each."""
        scorer: dict[str, object] = {"kind": "command", "command": VERIFIER.format(work=self.work)}
        return self.add(n, lines=2, terms=Terms(scorer=scorer, expected_artifacts=("log", "receipt")))

    def check_verified(self) -> None:
        """Every verifier ran once, and its receipt is the one that counts."""
        self.check()
        with self.store() as store:
            for task in store.tasks():
                assert len((self.work / f"{task.uid}.verified").read_text().split()) == 1
                partial, final = store.receipts(task=task.uid)
                assert (partial.result, final.result, final.supersedes) == (Result.PARTIAL, Result.PASS, partial.id)
                assert {"log", "receipt", "verifier_stdout"} <= {ref.kind for ref in final.artifacts}


def test_a_supervisor_killed_at_every_point_of_a_verification(tmp_path: Path) -> None:
    """Wherever a supervisor is killed, the verifier runs on or is begun once, and settles the one partial receipt."""
    chance = random.Random(SEED)
    print(f"FLEET_CHAOS_SEED={SEED}")
    campaign = Verified(tmp_path)
    for point in chance.sample(STEPS + ENDS + ("judging",), len(STEPS + ENDS) + 1):
        campaign.add_verified()
        campaign.killed_at(point, 1 if point in ONCE else 2)
    for point in RESCUES:
        (uid,) = campaign.add_verified()
        verified = campaign.work / f"{uid}.verified"
        with campaign.supervisor() as process:
            until(verified.exists, "a verifier")
            process.kill()
        campaign.killed_at(point)
    campaign.drain()
    campaign.check_verified()


def test_a_supervisor_killed_at_any_moment_of_a_verification(tmp_path: Path) -> None:
    """Whenever supervisors are killed, each result is verified once and settled once."""
    chance = random.Random(SEED)
    print(f"FLEET_CHAOS_SEED={SEED}")
    campaign = Verified(tmp_path)
    campaign.add_verified(4)
    while campaign.kills < ROUNDS:
        if not campaign.killed_after(chance.uniform(0.0, 0.9)) or chance.random() < 0.5:
            campaign.add_verified(2)
    campaign.drain()
    campaign.check_verified()
