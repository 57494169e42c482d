"""JSON Schemas (2020-12) of what people write for Fleet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from fleet.config.settings import ALIASES, Settings, Supervisor
from fleet.errors import NotFound
from fleet.model.spec import RunSpec, TaskSpec

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema(name: str) -> dict[str, Any]:
    """The schema of that name."""
    provider = PROVIDERS.get(name)
    if provider is None:
        raise NotFound(f"there is no schema `{name}`", hint=f"there are: {', '.join(PROVIDERS)}")
    return provider()


def of(kind: Any, title: str) -> dict[str, Any]:
    """The schema of a type, with its dialect and title."""
    return {"$schema": DIALECT, "title": title, **msgspec.json.schema(kind)}


def settings_schema() -> dict[str, Any]:
    """The schema of fleet.toml, with the keys that may stand without their section."""
    made = of(Settings, "fleet.toml")
    definitions = made["$defs"]
    supervisor = definitions[Supervisor.__name__]["properties"]
    top = definitions[Settings.__name__]["properties"]
    for name in ALIASES:
        top[name] = {**supervisor[name], "deprecated": True, "description": f"The same as supervisor.{name}."}
        del top[name]["default"]
    return made


PROVIDERS: dict[str, Callable[[], dict[str, Any]]] = {
    "settings": settings_schema,
    "task": lambda: of(TaskSpec, "a task in a spec"),
    "run": lambda: of(RunSpec, "a run spec"),
}
