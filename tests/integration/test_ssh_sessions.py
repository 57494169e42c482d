"""The life of sessions on an ssh host: what is true on this machine is true over there, under dash and busybox.

The tests are those of this machine; only the host differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.test_session_hosts import runs_and_stops
from tests.integration.test_session_io import (  # noqa: F401  # run here, over ssh
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
from tests.support.leftovers import LEFT
from tests.support.session_host import LEFT_SECONDS, SessionHost
from tests.support.sshd import Sshd, busybox_sh, only_busybox, sshd


@pytest.fixture(scope="module", params=["dash", "busybox"])
def server(request: pytest.FixtureRequest) -> Iterator[Sshd]:
    """A machine over there, whose sh is one or the other."""
    with sshd() as server:
        if request.param == "busybox":
            busybox_sh(server)
        yield server


@pytest.fixture
def host(server: Sshd, tmp_path: Path) -> Iterator[SessionHost]:
    """A place for sessions over there; nothing of them may be left at the end."""
    host = SessionHost(tmp_path, ("sh",), server.shared)
    yield host
    LEFT.end_within(LEFT_SECONDS, host.root)


@pytest.fixture
def one_host(host: SessionHost) -> SessionHost:
    """The same, for what needs one shell only on this machine."""
    return host


def test_nothing_but_busybox(tmp_path: Path) -> None:
    """Sessions run, and are stopped, on a machine over there that has no other program."""
    with sshd() as server:
        only_busybox(server)
        host = SessionHost(tmp_path, ("sh",), server.shared)
        runs_and_stops(host)
        host.nothing_left()
