"""The page of MCP: every tool, what it takes and what it gives."""

from __future__ import annotations

import msgspec

from fleet.api.mcp.schema import schema_of
from fleet.api.mcp.tools import TOOLS, Tool
from scripts.pages.http import in_words
from scripts.pages.words import joined, remarks_of, table


def mcp_page() -> str:
    """The tools by profile, then each with its arguments and the fields of its result."""
    rows = [(f"[`{tool.name}`](#{tool.name})", tool.role.value, tool.about) for tool in TOOLS]
    return joined(
        [table(("tool", "profile", "does"), rows), "## Each tool", *(part for tool in TOOLS for part in _tool(tool))]
    )


def _tool(tool: Tool) -> list[str]:
    kind = "looks only" if tool.role.value == "read" else "destructive" if tool.destructive else "adds"
    return [
        f"### {tool.name}",
        f"{tool.about} ({kind})",
        _fields("argument", tool.takes),
        _fields("gives", tool.gives),
    ]


def _fields(head: str, kind: type[msgspec.Struct]) -> str:
    schema, remarks = schema_of(kind), remarks_of(kind)
    needed = schema.get("required", [])
    rows = [
        (
            f"`{name}`",
            in_words(about),
            "yes" if name in needed else "",
            about.get("description") or remarks.get(name, ""),
        )
        for name, about in schema.get("properties", {}).items()
    ]
    return table((head, "type", "always", "meaning"), rows) if rows else ""
