"""The OpenAPI document: as the framework makes it of the routes, with errors as they are told, and bodies that may be
left out."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Request
from litestar.openapi.plugins import JsonRenderPlugin

from fleet.api.problems import MEDIA_TYPE, Problem

NAME = "Problem"


class Document(JsonRenderPlugin):
    """Gives it to programs."""

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        """The document, whose generator knows only its own way to tell errors."""
        return super().render(request, as_it_is(openapi_schema))


def as_it_is(document: dict[str, Any]) -> dict[str, Any]:
    """Every route, where it does not do what was asked, answers with a problem; a body that may be null need not be."""
    components = document["components"]
    schemas = {**components["schemas"], **msgspec.json.schema(Problem)["$defs"]}
    paths = {
        path: {
            verb: {**one, **_request(one.get("requestBody")), "responses": _responses(one["responses"])}
            for verb, one in verbs.items()
        }
        for path, verbs in document["paths"].items()
    }
    return {**document, "components": {**components, "schemas": schemas}, "paths": paths}


def _request(body: dict[str, Any] | None) -> dict[str, Any]:
    if body is None:
        return {}
    kinds = [kind for one in body["content"].values() for kind in one["schema"].get("oneOf", ())]
    return {"requestBody": {**body, "required": {"type": "null"} not in kinds}}


def _responses(told: dict[str, Any]) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{NAME}"}
    problem = {"description": "What went wrong (RFC 9457).", "content": {MEDIA_TYPE: {"schema": schema}}}
    return {**{status: one for status, one in told.items() if status < "400"}, "default": problem}
