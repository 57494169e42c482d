"""What is wrong with the shape of an object of a spec: every error at once, by the schema of its type.

The decoder stops at its first error, so this is asked only when it has found one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import msgspec

from fleet.config.fields import KeyPath
from fleet.config.problems import Problem
from fleet.config.problems import found_words as plain_words
from fleet.model.nearest import did_you_mean, nearest

KINDS = {
    "string": "text",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
ALIKE = 4  # first letters that two names share when one was meant for the other


def shape_problems(value: object, kind: Any, path: KeyPath) -> list[Problem]:
    """Everything that keeps a value from being of a type; `path` is where the value stands."""
    schema = _schema(kind)
    return sorted(set(_errors(value, schema, path, schema)), key=lambda problem: tuple(map(str, problem.path)))


@cache
def _schema(kind: Any) -> dict[str, Any]:
    return msgspec.json.schema(kind)


def _errors(value: object, schema: dict[str, Any], path: KeyPath, whole: dict[str, Any]) -> Iterator[Problem]:
    from jsonschema import Draft202012Validator

    definitions = {"$defs": whole.get("$defs", {})}
    for error in Draft202012Validator({**schema, **definitions}).iter_errors(value):
        yield from _said(error, (*path, *error.absolute_path), whole)


def _said(error: Any, path: KeyPath, whole: dict[str, Any]) -> Iterator[Problem]:
    match error.validator:
        case "additionalProperties":
            known = error.schema.get("properties", {})
            for name in error.instance:
                if name not in known:
                    yield Problem((*path, name), unknown(name, known, _within(known, whole)))
        case "required":
            for name in error.validator_value:
                if name not in error.instance:
                    yield Problem((*path, name), f"is missing; expected {_expected(error.schema['properties'][name])}")
        case "anyOf":
            yield from _of_several(error, path, whole)
        case "minItems":
            yield Problem(path, "is empty; expected at least one")
        case _ if error.schema.get("x-private"):  # what stands there may be a secret
            yield Problem(path, f"expected {_expected(error.schema)}, found something else")
        case _:
            yield Problem(path, f"expected {_expected(error.schema)}, found {found_words(error.instance)}")


def _of_several(error: Any, path: KeyPath, whole: dict[str, Any]) -> Iterator[Problem]:
    """Of several types, the one that was meant: by its kind where they have one, else by what was found."""
    choices = list(_choices(error.validator_value, whole))
    tagged = {_tag(each): each for each in choices if _tag(each)}
    if tagged and isinstance(error.instance, Mapping):
        kind = error.instance.get("kind")
        if kind in tagged:
            yield from _errors(error.instance, tagged[kind], path, whole)
        elif kind is None:
            yield _without_kind(error.instance, tagged, path)
        else:
            yield Problem((*path, "kind"), _not_among(kind, list(tagged)))
        return
    meant = [each for each in choices if each.get("type") == _type_of(error.instance)]
    if meant:
        yield from _errors(error.instance, meant[0], path, whole)
    else:
        yield Problem(path, f"expected {_expected(error.schema)}, found {found_words(error.instance)}")


def _without_kind(instance: Mapping[str, Any], tagged: Iterable[str], path: KeyPath) -> Problem:
    """It may stand there under another name: then what was meant is plain."""
    for name, value in instance.items():
        if isinstance(value, str) and value in tagged:
            return Problem((*path, name), "unknown field; did you mean `kind`?")
    return Problem((*path, "kind"), f"is missing; expected one of {', '.join(tagged)}")


def found_words(value: object) -> str:
    """What was found, for a person."""
    return "an object" if isinstance(value, Mapping) else "a list" if isinstance(value, list) else plain_words(value)


def _choices(schemas: Iterable[dict[str, Any]], whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for each in schemas:
        if "anyOf" in each:
            yield from _choices(each["anyOf"], whole)
        else:
            yield _resolved(each, whole)


def unknown(name: str, known: Iterable[str], within: Mapping[str, str] | None = None) -> str:
    """What to say of a field that nobody knows: the nearest that is known, here or one level down."""
    names = list(known)
    if within and name in within:
        return f"unknown field; did you mean `{within[name]}`?"
    near = nearest(name, names) or next((word for word in names if name[:ALIKE] == word[:ALIKE]), "")
    return f"unknown field; did you mean `{near}`?" if near else f"unknown field; valid: {', '.join(names)}"


def _within(known: Mapping[str, Any], whole: dict[str, Any]) -> dict[str, str]:
    """The fields of the objects in these fields, by name."""
    found: dict[str, str] = {}
    for name, schema in known.items():
        for each in [schema, *schema.get("anyOf", [])]:
            inner = _resolved(each, whole)
            if not _tag(inner):
                found |= {below: f"{name}.{below}" for below in inner.get("properties", {})}
    return found


def _not_among(word: object, valid: list[str]) -> str:
    return f"expected one of {', '.join(valid)}, found {found_words(word)}{did_you_mean(str(word), valid)}"


def _resolved(schema: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    place = schema.get("$ref", "")
    found: dict[str, Any] = whole["$defs"][place.rpartition("/")[2]] if place else schema
    return found


def _tag(schema: Mapping[str, Any]) -> str:
    values = schema.get("properties", {}).get("kind", {}).get("enum", [""])
    return str(values[0]) if len(values) == 1 else ""


def _type_of(value: object) -> str:
    kinds = ((bool, "boolean"), (str, "string"), (int, "integer"), (float, "number"), (list, "array"), (dict, "object"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "null")


def _expected(schema: Mapping[str, Any]) -> str:
    """What a schema takes, for a person."""
    if "x-expected" in schema:
        return str(schema["x-expected"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_expected(each) for each in schema["anyOf"] if each.get("type") != "null"))
    if "enum" in schema:
        return "one of " + ", ".join(str(each) for each in schema["enum"])
    if "$ref" in schema:
        return "an object"
    words = KINDS.get(str(schema.get("type")), "another value")
    if "minLength" in schema and "maxLength" in schema:
        return f"{words} of {schema['minLength']} to {schema['maxLength']} characters"
    if "minLength" in schema:
        return f"{words} that is not empty"
    if "minimum" in schema and "maximum" in schema:
        return f"{words} from {schema['minimum']} to {schema['maximum']}"
    if "exclusiveMinimum" in schema:
        return f"{words} above {schema['exclusiveMinimum']}" + (
            f" and up to {schema['maximum']}" if "maximum" in schema else ""
        )
    return f"{words} of at least {schema['minimum']}" if "minimum" in schema else words
