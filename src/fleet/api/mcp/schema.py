"""What a tool takes and gives, as JSON Schema with an object at its root, as MCP asks for."""

from __future__ import annotations

from typing import Any

import msgspec

REF = "#/$defs/{name}"


def schema_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The schema of a struct, on its own."""
    (root,), parts = msgspec.json.schema_components([kind], schema_hook=_anything, ref_template=REF)
    name = str(root["$ref"]).rpartition("/")[2]
    top = dict(parts.pop(name))
    top.pop("title", None)
    return {**top, "$defs": parts} if parts else top


def _anything(kind: type) -> dict[str, Any]:
    """Where anything may stand, as in the metadata of a task."""
    if kind is object:
        return {"description": "Anything."}
    raise NotImplementedError
