"""What stands behind the columns of a machine in `fleet status`."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.cli.machine_table import row
from fleet.config.clock import utc_ms
from fleet.config.machines import Host as Declared
from fleet.model.host import Host
from fleet.projections.machines import Machine, seen_last

HOUR_MS = 3_600_000
COLUMNS = 70  # before the note, with names of 30


def note(*, recalls: bool = True, **known: Any) -> str:
    """Of a machine of which this is known; moments are given in hours before now."""
    now = utc_ms()
    known |= {name: now - known[name] * HOUR_MS for name in ("since", "probed_at", "answered_at") if name in known}
    machine = Machine(name="a-b-1", api_name="x", kind="sprite", team="a", role="b", status="up", **known)
    return row(machine, 30, recalls=recalls)[COLUMNS:]


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({"healthy": True, "answered_at": 2, "probed_at": 2}, "probed 2h00m ago"),
        ({"healthy": True, "answered_at": 3, "probed_at": 2}, "answered 3h00m ago; its provider knew it 2h00m ago"),
        ({"healthy": True, "draining": True, "recalls": False, "probed_at": 2}, "it takes no new work"),
        (
            {"healthy": False, "detail": "no", "since": 5, "probed_at": 2, "answered_at": 6},
            "no; unhealthy for 5h00m; answered 6h00m ago; probed 2h00m ago",
        ),
        ({"healthy": False, "detail": "no", "since": 2, "probed_at": 2}, "no; never answered; probed 2h00m ago"),
        ({"healthy": None, "detail": "it was never probed"}, "it was never probed"),
        ({"healthy": None, "asleep": True, "answered_at": 1, "recalls": False}, "asleep; answered 1h00m ago"),
        (
            {"healthy": None, "asleep": True, "answered_at": 2, "probed_at": 1},
            "asleep; answered 2h00m ago; its provider said so 1h00m ago",
        ),
    ],
)
def test_what_is_told_of_a_machine(known: dict[str, Any], said: str) -> None:
    """What is wrong, for how long, when it last answered and was last asked: each where it is known, none twice."""
    assert note(**known) == said


@pytest.mark.parametrize(
    ("answered_at", "found"),
    [(9, (True, True, False, True)), (5, (None, None, True, None))],
)
def test_one_that_was_let_sleep_is_asleep(answered_at: int, found: tuple[bool | None, ...]) -> None:
    """A sprite that a probe woke has answered; one of which only its provider told is asleep, as a look would say."""
    known = Host(
        name="a",
        kind="sprite",
        state="up",
        since=1,
        latency_ms=3,
        probed_at=9,
        status="warm",
        coder=True,
        answered_at=answered_at,
    )
    seen = seen_last(Declared(name="a", kind="sprite"), known)
    assert (seen.responsive, seen.healthy, seen.asleep, seen.coder) == found
