"""The settings as a list to walk: one source for the template, the errors, the editing and the reference."""

from __future__ import annotations

import types
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import msgspec

from fleet.config.settings import ALIASES, Settings

KeyPath = tuple[str | int, ...]


class Field(NamedTuple):
    """One setting."""

    section: str
    name: str
    type: Any
    default: Any  # msgspec.NODEFAULT where it must be given
    description: str
    entry: str = ""  # which of the tables of its section, where each has a name of its own

    @property
    def key(self) -> str:
        """Its dotted name."""
        return ".".join(str(part) for part in self.path)

    @property
    def path(self) -> KeyPath:
        """Where it stands in fleet.toml."""
        return (self.section, self.entry, self.name) if self.entry else (self.section, self.name)


class SectionInfo(NamedTuple):
    """One table of fleet.toml, or an array of them."""

    name: str
    description: str
    many: bool
    named: bool  # many, each under a name of its own
    fields: tuple[Field, ...]


@cache
def sections() -> tuple[SectionInfo, ...]:
    """Every section, in the order of the classes."""
    return tuple(_section(info) for info in msgspec.structs.fields(Settings))


def fields() -> Iterator[Field]:
    """Every setting that has one place, so not those of hosts, workers, coders, channels and routes."""
    return (field for section in sections() if not section.many for field in section.fields)


def find(key: str) -> Field | None:
    """The setting of a dotted name, or of a name that is accepted without its section."""
    wanted = f"supervisor.{key}" if key in ALIASES else key
    return next((field for field in fields() if field.key == wanted), None) or _of_entry(key)


def _of_entry(key: str) -> Field | None:
    """`coders.acme.program`: a setting of a table that has a name of its own."""
    name, _, rest = key.partition(".")
    entry, _, last = rest.rpartition(".")
    found = (field for section in sections() if section.named and section.name == name for field in section.fields)
    return next((field._replace(entry=entry) for field in found if field.name == last and entry), None)


def bare(kind: Any) -> Any:
    """A type without its notes."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def notes(kind: Any) -> list[msgspec.Meta]:
    """The notes of a type, the outermost last."""
    return list(getattr(kind, "__metadata__", ()))


def extra(kind: Any, name: str) -> Any:
    """What the notes say beyond the bounds: `expected`, `refusal`, `private`."""
    found = [meta.extra[name] for meta in notes(kind) if meta.extra and name in meta.extra]
    return found[-1] if found else None


def words(kind: Any) -> str:
    """What is expected, for a person."""
    said = extra(kind, "expected")
    if said:
        return str(said)
    plain = bare(kind)
    origin = get_origin(plain)
    if origin is Literal:
        *others, last = [f'"{choice}"' for choice in get_args(plain)]
        return f"{', '.join(others)} or {last}"
    if origin in (Union, types.UnionType):
        return f"a number{_bounds(get_args(plain)[0])}"
    if origin is tuple:
        return f"an array of {'tables' if is_table(get_args(plain)[0]) else 'values'}"
    if is_table(plain) or origin is dict:
        return "a table"
    return {int: "an integer", bool: "true or false", str: "a string"}.get(plain, str(plain)) + _bounds(kind)


def is_table(kind: Any) -> bool:
    """Whether values of this type are tables."""
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _section(info: msgspec.structs.FieldInfo) -> SectionInfo:
    named = get_origin(info.type) is dict
    many = named or get_origin(info.type) is tuple
    cls = get_args(info.type)[-1 if named else 0] if many else info.type
    return SectionInfo(
        name=info.name,
        description=(cls.__doc__ or "").strip(),
        many=many,
        named=named,
        fields=tuple(
            Field(info.name, each.name, each.type, each.default, notes(each.type)[-1].description or "")
            for each in sorted(msgspec.structs.fields(cls), key=lambda each: not each.required)  # first what it needs
        ),
    )


def _bounds(kind: Any) -> str:
    for meta in notes(kind):
        if meta.ge is not None and meta.le is not None:
            return f" from {meta.ge} to {meta.le}"
        if meta.gt is not None and meta.le is not None:
            return f" above {meta.gt} and up to {meta.le}"
    return ""
