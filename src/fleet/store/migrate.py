"""Migrations: numbered SQL files, each applied once, in order, in one transaction with its number."""

from __future__ import annotations

import re
from typing import NamedTuple

from fleet.errors import StoreTooNew


class Migration(NamedTuple):
    """One step from a schema to the next."""

    number: int
    name: str
    sql: str


def migrations(dialect: str) -> list[Migration]:
    """All steps for a database, first to last."""
    from importlib.resources import files  # here: it is heavy, and a home is seldom brought up to date

    found = []
    for entry in files("fleet.store").joinpath("migrations", dialect).iterdir():
        match = re.fullmatch(r"(\d{4})_(\w+)\.sql", entry.name)
        if match:
            found.append(Migration(int(match[1]), match[2], entry.read_text("utf-8")))
    return sorted(found)


NEWEST = 8  # a test holds this to the files, so that opening a home need not list them


def check(version: int, where: str) -> bool:
    """Whether steps are missing. A schema that is newer than this program is not touched."""
    if version > NEWEST:
        raise StoreTooNew(f"{where} has schema {version}; this Fleet knows schemas up to {NEWEST}")
    return version < NEWEST
