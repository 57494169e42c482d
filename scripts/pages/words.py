"""What the pages are made of: tables, blocks, and structs in words."""

from __future__ import annotations

import ast
import inspect
import io
import re
import tokenize
import types
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

PLAIN: dict[Any, str] = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "true or false",
    bytes: "bytes",
    object: "any value",
    Any: "any value",
}


def doc(kind: type) -> str:
    return inspect.cleandoc(kind.__doc__ or "")


def fields_of(kind: type[msgspec.Struct], without: type[msgspec.Struct] | None = None) -> str:
    """The table of a struct's fields."""
    hidden = names_of(without) if without else []
    remarks = remarks_of(kind)
    rows = []
    for info in msgspec.structs.fields(kind):
        if info.name in hidden:
            continue
        notes = [meta.description for meta in getattr(info.type, "__metadata__", ()) if meta.description]
        needed = "yes" if info.required else ""
        rows.append((f"`{info.name}`", _type(info.type), needed, (notes or [remarks.get(info.name, "")])[-1]))
    return table(("field", "type", "required", "meaning"), rows)


def _type(kind: Any) -> str:
    """A type in words."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _type(args[0])
    if origin in (Union, types.UnionType):
        known = [each for each in args if each not in (types.NoneType, msgspec.UnsetType)]
        return " or ".join([*map(_type, known), *["null"] * (types.NoneType in args)])
    if origin is tuple:
        return f"list of {_type(args[0])}"
    if origin is dict:
        return f"object of {_type(args[1])}"
    if origin is Literal:
        return " or ".join(f"`{each}`" for each in args)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return " or ".join(f"`{member.value}`" for member in kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return f"[{kind.__name__}](#{kind.__name__.lower()})"
    return PLAIN[kind]


def remarks_of(kind: type) -> dict[str, str]:
    """What the comments beside the fields of a class say, its bases included."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if issubclass(each, msgspec.Struct) and each is not msgspec.Struct:
            found |= _remarks_in(inspect.cleandoc("\n" + inspect.getsource(each)) + "\n")
    return found


def _remarks_in(source: str) -> dict[str, str]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
    (body,) = ast.parse(source).body
    assert isinstance(body, ast.ClassDef)
    found = {}
    for node in body.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.end_lineno in comments:
            found[node.target.id] = re.sub(r"\bNone\b", "null", comments[node.end_lineno])
    return found


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; what a cell says stays on one line."""
    lines = [heads, ["---"] * len(heads), *rows]
    cells = [[" ".join(cell.split()).replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join("|" + "|".join(f" {cell} " if cell != "---" else cell for cell in line) + "|" for line in cells)


def fenced(language: str, text: str) -> str:
    """A block of code."""
    return f"```{language}\n{text}\n```"


def joined(parts: Iterable[str]) -> str:
    """A page: its parts, with an empty line between."""
    return "\n\n".join(part for part in parts if part) + "\n"


def names_of(kind: type[msgspec.Struct]) -> list[str]:
    return [info.name for info in msgspec.structs.fields(kind)]


def objects_in(kinds: Iterable[type[msgspec.Struct]]) -> set[type[msgspec.Struct]]:
    """The structs that these hold, and those that they hold in turn."""
    found: set[type[msgspec.Struct]] = set()
    todo = [info.type for kind in kinds for info in msgspec.structs.fields(kind)]
    while todo:
        kind = todo.pop()
        todo += get_args(kind)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind not in found:
            found.add(kind)
            todo += [info.type for info in msgspec.structs.fields(kind)]
    return found
