"""Plugins of others, as an installed package brings them."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest


def register(path: Path, monkeypatch: pytest.MonkeyPatch, family: str, name: str, module: str) -> None:
    """Install a package whose module, with this text, has the class `Made` registered by that name."""
    site = path / f"site-{name}"
    known = site / f"{name}-1.0.dist-info"
    known.mkdir(parents=True)
    (known / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (known / "entry_points.txt").write_text(f"[fleet.{family}]\n{name} = {name}_of_a_stranger:Made\n")
    (site / f"{name}_of_a_stranger.py").write_text(module)
    monkeypatch.syspath_prepend(site)
    monkeypatch.delitem(sys.modules, f"{name}_of_a_stranger", raising=False)
    importlib.invalidate_caches()
