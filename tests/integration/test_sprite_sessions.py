"""The life of sessions on a sprite: what is true on this machine is true over there.

The tests are those of this machine; only the host differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.test_session_io import (  # noqa: F401  # run here, on a sprite
    small_disk,
    test_a_large_prompt_on_stdin,
    test_an_agent_that_fills_the_disk,
    test_an_answer_has_a_code,
    test_an_unfinished_last_line,
    test_forgetting,
    test_forgetting_keeps_what_is_not_ours,
    test_much_output,
    test_no_room_to_prepare,
    test_no_room_to_start,
    test_output_past_the_cap_ends_it,
    test_requests_of_many_at_once,
    test_secrets_are_nowhere_but_in_the_agent,
    test_variables_of_any_bytes,
    test_words_of_any_bytes,
)
from tests.integration.test_session_life import (  # noqa: F401
    test_a_directory_that_is_not_there,
    test_a_program_that_is_not_there,
    test_a_session_from_beginning_to_end,
    test_a_torn_record_is_no_record,
    test_abandon_loses_to_what_runs,
    test_an_unprepared_session_cannot_start,
    test_lower_epochs_are_refused,
    test_observers_of_a_start,
    test_start_and_abandon_have_one_winner,
    test_sweep_does_not_stop_an_agent,
    test_the_agent_is_apart_and_fresh,
    test_the_environment_is_small,
    test_the_slot_is_free_when_the_leader_ends,
    test_two_starts_run_once,
    test_what_is_abandoned_never_starts,
)
from tests.integration.test_session_stop import (  # noqa: F401
    test_a_neighbour_is_not_touched,
    test_a_stop_before_the_start,
    test_an_agent_may_end_in_order,
    test_it_escalates,
    test_nothing_is_left,
)
from tests.support.session_host import SessionHost
from tests.support.sprites.server import StandIn, stand_in
from tests.support.sprites.way import transport_to


@pytest.fixture(scope="module")
def server() -> Iterator[StandIn]:
    """The API of the sprite's provider."""
    with stand_in() as server:
        yield server


@pytest.fixture
def host(server: StandIn, tmp_path: Path) -> Iterator[SessionHost]:
    """A place for sessions on a sprite; nothing of them may be left at the end."""
    host = SessionHost(tmp_path, ("sh",), transport_to(server))
    yield host
    host.nothing_left()


@pytest.fixture
def one_host(host: SessionHost) -> SessionHost:
    """The same, for what needs one shell only on this machine."""
    return host
