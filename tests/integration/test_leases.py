"""The leases of supervisors as file locks, and the signs of life in them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from fleet.store.leases import Leases


def test_a_sign_of_life_is_as_old_as_the_last_renewal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process reads for how long the holder has been silent; each renewal begins anew."""
    now = time.monotonic_ns()
    monkeypatch.setattr(time, "monotonic_ns", lambda: now)
    holder, other = Leases(tmp_path / "leases"), Leases(tmp_path / "leases")
    holder.take("sup")
    assert other.silent_ms("sup") == 0
    now += 45 * 10**9
    assert other.silent_ms("sup") == 45_000
    holder.take("sup")
    assert other.silent_ms("sup") == 0
    holder.close()


@pytest.mark.parametrize("left", [None, b"", b"nonsense"])
def test_where_nothing_is_known_nobody_is_accused(tmp_path: Path, left: bytes | None) -> None:
    """A lease of an earlier version is empty; one that is not there, or that something else wrote to, tells nothing."""
    if left is not None:
        (tmp_path / "sup").write_bytes(left)
    assert Leases(tmp_path).silent_ms("sup") is None


def test_a_time_to_come_is_no_silence(tmp_path: Path) -> None:
    """After a boot the clock begins anew: what was left by the last one is not of this holder."""
    (tmp_path / "sup").write_bytes(b"%020d" % (time.monotonic_ns() + 10**12))
    assert Leases(tmp_path).silent_ms("sup") == 0
