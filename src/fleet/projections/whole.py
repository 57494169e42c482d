"""How a view becomes JSON: the ledger leaves out what has its default, people and programs get every field."""

from __future__ import annotations

import msgspec


def whole(value: object) -> object:
    """A view, or a list of them, with every field of its own."""
    if isinstance(value, list):
        return [whole(each) for each in value]
    return msgspec.structs.asdict(value) if isinstance(value, msgspec.Struct) else value
