"""What an agent asks of its task has bounds: it is kept for good."""

from __future__ import annotations

import pytest

from fleet.errors import FleetError
from fleet.hosts.outbox import Request
from fleet.supervisor.requests import LONGEST_TEXT, MOST_REMARKS, bounded


def test_a_long_text_is_kept_in_short() -> None:
    """Its beginning and its end are kept, and how much is left out; what is short stays as it is."""
    long = bounded(Request(number=1, verb="close", fields={"reason": "y" * 10**6}, text=f"begin{'x' * 10**6}end"))
    assert (long.text[:6], long.text[-4:]) == ("beginx", "xend")
    assert "characters left out" in long.text
    assert max(len(long.text), len(long.fields["reason"])) <= LONGEST_TEXT
    fine = Request(number=MOST_REMARKS, verb="comment", fields={"id": "fleet-abc"}, text="so far so good")
    assert bounded(fine) == fine


def test_remarks_have_an_end() -> None:
    """After so many a remark is refused, and the agent is told; it can still ask, and say that it is done."""
    with pytest.raises(FleetError, match="this session has made 1,000 requests: no further remark is kept"):
        bounded(Request(number=MOST_REMARKS + 1, verb="comment", text="again"))
    for verb in ("ask", "close", "update"):
        assert bounded(Request(number=MOST_REMARKS + 1, verb=verb, text="?")).text == "?"
