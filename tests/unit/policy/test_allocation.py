"""Which workers a pool may have, and which is the next."""

from __future__ import annotations

import pytest

from fleet.config.machines import Host
from fleet.config.pools import Pool
from fleet.config.settings import Settings
from fleet.errors import NotFound
from fleet.model.reach import Reach
from fleet.model.session import Defaults, Lane, Slot, accepts
from fleet.policy.allocation import allocate, member_named, members, pool_named
from fleet.policy.placement import crews_of_pools, hosts_of, offer, pool_host

HERE = Pool(repo="/srv/kite.git", max_size=3)
DEFAULTS = Defaults(coder="claude", model="")


def test_its_workers_are_numbered() -> None:
    """By the pool's name, or by the prefix that it gives; on this machine, spread over hosts, or each a sprite."""
    assert [one.worker for one in members("kite", HERE)] == ["kite-1", "kite-2", "kite-3"]
    assert [one.worker for one in members("kite", Pool(repo="/x", prefix="k", max_size=1))] == ["k-1"]
    spread = members("kite", Pool(repo="/x", hosts=("a", "b"), max_size=3))
    assert [one.host for one in spread] == ["a", "b", "a"]
    (sprite,) = members("kite", Pool(repo="/x", host="sprite", max_size=1))
    assert (sprite.host, sprite.own is not None and sprite.own.host) == ("kite-1", "kite-1")


@pytest.mark.parametrize(
    ("known", "busy", "worker"),
    [
        ((), (), "kite-1"),
        (("kite-1",), (), "kite-1"),
        (("kite-1",), ("kite-1",), "kite-2"),
        (("kite-1", "kite-3"), ("kite-1",), "kite-3"),
        (("kite-1", "kite-2"), ("kite-1", "kite-2", "kite-3"), None),
    ],
)
def test_the_next_one(known: tuple[str, ...], busy: tuple[str, ...], worker: str | None) -> None:
    """One that is set up and idle, else the next number, else none; with the reason."""
    found = allocate(list(members("kite", HERE)), known, busy)
    assert found.worker == worker
    assert found.reason


def test_names() -> None:
    """Pools and workers are found by name, or the error lists what there is."""
    settings = Settings(pools={"kite": HERE})
    assert member_named(settings, "kite-3").pool == "kite"
    with pytest.raises(NotFound, match="kite-4"):
        member_named(settings, "kite-4")
    with pytest.raises(NotFound, match="no pool `api`"):
        pool_named(settings, "api")


def test_a_worker_takes_the_tasks_of_its_pool_alone() -> None:
    """Others are not offered to it, and its own to nobody else, even to a slot that has every capability."""
    settings = Settings(pools={"kite": HERE})
    usual = Slot(worker="local#1", host="local@m")
    slots = offer([usual], crews_of_pools(settings), {}, set(), machine="local@m", like=usual).slots
    assert [slot.worker for slot in slots] == ["local#1", "kite-1#1", "kite-2#1", "kite-3#1"]
    pinned = Lane(None, None, None, ("pool:kite", "worker:kite-2"))
    assert [slot.worker for slot in slots if accepts(slot, pinned, DEFAULTS)] == ["kite-2#1"]
    plain = Lane(None, None, None, ())
    assert [slot.worker for slot in slots if accepts(slot, plain, DEFAULTS)] == ["local#1"]
    assert not accepts(usual, pinned, DEFAULTS)


def test_a_sprite_is_made_when_it_is_needed() -> None:
    """A worker that is a machine of its own is offered before there is one; one on a declared host is not."""
    own = Settings(pools={"kite": Pool(repo="/x", host="sprite", max_size=1)})
    assert (pool_host(own, "kite-1") or Reach(kind="local")).kind == "sprite"
    assert not hosts_of(own)  # nobody is asked for a machine that is not there yet
    like = Slot(worker="", host="local@m")
    assert offer([], crews_of_pools(own), {}, set(), machine="local@m", like=like).slots
    host = Host(name="a", kind="ssh", host="a", working_directory="/srv", agent_binary="claude")
    there = Settings(hosts=(host,), pools={"kite": Pool(repo="/x", hosts=("a",), max_size=1)})
    assert not offer([], crews_of_pools(there), {}, set(), machine="local@m", like=like).slots
