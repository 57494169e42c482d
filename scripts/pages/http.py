"""The page of the API: every route, from its own OpenAPI document."""

from __future__ import annotations

from typing import Any

from fleet.api.app import make_routes
from fleet.config.serving import Api
from scripts.pages.words import joined, table


def http_page() -> str:
    """Every route: its parameters, what it takes and what it gives."""
    document = make_routes(None, Api()).openapi_schema.to_schema()
    routes = [(verb.upper(), path, about) for path, verbs in document["paths"].items() for verb, about in verbs.items()]
    rows = [(f"`{verb} {path}`", about["description"].split("\n")[0]) for verb, path, about in routes]
    parts = [table(("route", "does"), rows), "## Each route"]
    for verb, path, about in routes:
        parts += [f"### {verb} {path}", about["description"], _parameters(about), _bodies(about)]
    return joined(parts)


def _parameters(about: dict[str, Any]) -> str:
    found = about.get("parameters", [])
    rows = [(f"`{one['name']}`", one["in"], one.get("description", ""), in_words(one["schema"])) for one in found]
    return table(("parameter", "in", "meaning", "type"), rows) if rows else ""


def _bodies(about: dict[str, Any]) -> str:
    lines = []
    for media, body in about.get("requestBody", {}).get("content", {}).items():
        lines.append(f"Takes `{media}`: {in_words(body['schema'])}.")
    for status, answer in about["responses"].items():
        for media, body in answer.get("content", {}).items():
            if status.startswith("2"):
                lines.append(f"Answers {status}, `{media}`: {in_words(body['schema'])}.")
    return "\n".join(lines)


def in_words(schema: dict[str, Any]) -> str:
    """A JSON schema in words."""
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2]}`"
    some = schema.get("oneOf") or schema.get("anyOf")
    if some:
        return " or ".join(dict.fromkeys(in_words(one) for one in some))
    if schema.get("type") == "array":
        return f"list of {in_words(schema.get('items', {}))}"
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"])
    bounds = [f"{schema[key]}" for key in ("minimum", "maximum") if key in schema]
    default = f", {schema['default']} if not given" if schema.get("default") is not None else ""
    return f"{schema.get('type', 'any value')}{' ' + ' to '.join(bounds) if bounds else ''}{default}"
