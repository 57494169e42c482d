"""The management of sprites, against the stand-in: pages, creation, doubt, and nothing woken."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fleet.errors import HostBusy, HostMissing, TransportError
from fleet.hosts.sprite.api import SpriteApi
from fleet.hosts.sprite.presence import APART_SECONDS, Doubt, Presence, check
from tests.support.session_host import do
from tests.support.sprites.server import StandIn, stand_in
from tests.support.sprites.way import api_of


@pytest.fixture(name="server")
def one_server() -> Iterator[StandIn]:
    """A server of its own for each test."""
    with stand_in() as server:
        yield server


@pytest.fixture(name="api")
def ours(server: StandIn) -> SpriteApi:
    """The account that it stands for."""
    return api_of(server)


def test_made_once_shown_labelled_destroyed(api: SpriteApi) -> None:
    """A creation may be repeated; what was destroyed is not known any more."""
    assert do(api.create("one", ("a",))).labels == ("a",)
    assert do(api.create("one")).labels == ("a",)
    assert do(api.label("one", ("b",))).labels == ("b",)
    assert do(api.get("one")).status == "cold"
    do(api.destroy("one"))
    with pytest.raises(HostMissing):
        do(api.get("one"))


def test_every_page_is_read(server: StandIn, api: SpriteApi) -> None:
    """A list of several pages is whole, each sprite once, and asking wakes none."""
    for number in range(55):
        server.sprite(f"s{number:02}")
    assert [sprite.name for sprite in do(api.list())] == [f"s{number:02}" for number in range(55)]
    assert len(server.asked) == 2
    assert [sprite.name for sprite in do(api.list("s1"))] == [f"s1{number}" for number in range(10)]
    assert {machine.status for machine in server.machines.values()} == {"cold"}


@pytest.mark.parametrize("fault", ["endless_pages", "same_token"])
def test_a_list_without_an_end(server: StandIn, api: SpriteApi, fault: str) -> None:
    """An API that always says that there is more is asked no more than it names new pages."""
    server.sprite("one")
    setattr(server.faults, fault, True)
    assert [sprite.name for sprite in do(api.list())] == ["one"]
    assert len(server.asked) <= 3


def test_too_many_creations(server: StandIn, api: SpriteApi) -> None:
    """A wait that is too long is not waited: the error tells how long it would be."""
    server.faults.creation_limit = 0
    with pytest.raises(HostBusy) as caught:
        do(api.create("one"))
    assert caught.value.retry_after_seconds == 30


def test_no_single_answer_makes_a_sprite_missing(server: StandIn, api: SpriteApi) -> None:
    """It is doubted, then missing after several checks over time, and there again as soon as it is seen."""
    server.sprite("one").faults.vanished = True
    server.sprite("other")
    doubt = Doubt("one")
    found = [do(check(api, doubt, "one", now)).presence for now in (0, 1, APART_SECONDS)]
    assert found == [Presence.MISSING_MAYBE, Presence.MISSING_MAYBE, Presence.MISSING]
    server.machines["one"].faults.vanished = False
    assert do(check(api, doubt, "one", APART_SECONDS + 1)).presence is Presence.COLD


def test_the_list_may_know_better(server: StandIn, api: SpriteApi) -> None:
    """A sprite that the question does not find and the list shows is there."""
    server.sprite("one").faults.refuse = 404
    assert do(check(api, Doubt("one"), "one", 0)).presence is Presence.COLD


@pytest.mark.parametrize("fault", [{"refuse": 500}, {"refuse": 401}, {"refuse": 429, "retry_after": "600"}])
def test_an_api_that_fails_is_evidence_of_nothing(server: StandIn, api: SpriteApi, fault: dict[str, object]) -> None:
    """No fault of the API reads as a sprite that is missing, or as one that is well."""
    for name, value in fault.items():
        setattr(server.faults, name, value)
    seen = do(check(api, Doubt("one"), "one", 0))
    assert seen.presence is Presence.UNKNOWN
    assert seen.evidence


def test_nobody_listens() -> None:
    """An API that cannot be reached is an error that says so."""
    with pytest.raises(TransportError, match="cannot ask for sprite one"):
        do(SpriteApi("http://127.0.0.1:1", "token").get("one"))
