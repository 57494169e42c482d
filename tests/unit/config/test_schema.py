"""The JSON Schema of fleet.toml."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import jsonschema
import pytest

from fleet.config.load import LISTS
from fleet.config.schema import schema
from fleet.config.template import template
from fleet.errors import NotFound


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    """A validator of the schema, which is itself valid."""
    made = schema("settings")
    jsonschema.Draft202012Validator.check_schema(made)
    return jsonschema.Draft202012Validator(made)


@pytest.mark.parametrize(
    "text",
    [
        "",
        template(),
        re.sub(r"(?m)^# (\w+ = )", r"\1", template()),
        'max_concurrent = 5\n[[hosts]]\nname = "a"\n[timeouts]\napi_status = 0.5\n',
    ],
)
def test_what_loads_is_valid(validator: jsonschema.Draft202012Validator, text: str) -> None:
    """What Fleet takes, the schema takes."""
    assert validator.is_valid(tomllib.loads(text))


@pytest.mark.parametrize(
    "table",
    [
        {"supervisor": {"max_concurrent": 0}},
        {"supervisor": {"max_concurent": 1}},
        {"nothing": {}},
        {"store": {"mirror": "maybe"}},
        {"hosts": [{"kind": "ssh"}]},
        {"hosts": [{"name": "-x"}]},
        {"max_concurrent": "3"},
        {"timeouts": {"api_status": 0}},
    ],
)
def test_what_does_not_load_is_not_valid(validator: jsonschema.Draft202012Validator, table: dict[str, Any]) -> None:
    """What Fleet refuses, the schema refuses."""
    assert not validator.is_valid(table)


def test_every_property_is_described() -> None:
    """An editor that reads the schema can explain each key."""
    for definition in schema("settings")["$defs"].values():
        assert definition["description"]
        for name, each in definition["properties"].items():
            assert "description" in each or "$ref" in each or name in LISTS


def test_a_schema_that_is_not_there() -> None:
    """An unknown name is told with those that are known."""
    with pytest.raises(NotFound) as caught:
        schema("nothing")
    assert "settings" in caught.value.hint
