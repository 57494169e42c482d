"""What the home's file says itself, as opposed to what is inherited."""

from __future__ import annotations

from pathlib import Path

from fleet.config.edit import open_draft
from fleet.config.fields import fields
from fleet.config.home import Home


def settings_file(home: Home) -> Path | None:
    """The file that is read: fleet.toml, else a runtime.toml, else none."""
    return next((path for path in (home.toml, home.runtime_toml) if path.is_file()), None)


def stated_keys(home: Home) -> frozenset[str]:
    """The dotted names of the settings that the file gives."""
    draft = open_draft(home)
    return frozenset(field.key for field in fields() if draft.stated(field))
