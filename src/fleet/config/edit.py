"""Change fleet.toml: typed by the schema, checked as a whole, written in one step, comments kept."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec

from fleet.config.fields import Field, bare, extra, fields, find, sections, words
from fleet.config.files import locked, write_atomic
from fleet.config.home import Home, require
from fleet.config.load import parse, parse_toml, read_text
from fleet.config.problems import problems, unknown
from fleet.config.runtime import Runtime, read_runtime
from fleet.config.settings import ALIASES, Settings
from fleet.config.splice import append, drop, put
from fleet.config.template import template
from fleet.errors import ConfigError, UsageError


class Change(msgspec.Struct, frozen=True):
    """One setting before and after."""

    key: str
    old: Any
    new: Any


class Draft:
    """A fleet.toml that is being changed: its text, and what the text must say in the end."""

    def __init__(self, text: str, table: dict[str, Any]) -> None:
        self.text = text
        self.table = table

    def stated(self, field: Field) -> bool:
        """Whether the file gives this setting, in any way that is accepted."""
        return any(True for _ in self._places(field))

    def value(self, field: Field) -> Any:
        """What is in force now; None for what must be given and is not."""
        for holder, name in self._places(field):
            return holder[name]
        return None if field.default is msgspec.NODEFAULT else field.default

    def set(self, field: Field, value: Any) -> None:
        """Give a setting its value, wherever the file states it."""
        places = list(self._places(field))
        if not places:
            self.text = put(self.text, field.path, value)
            holder = self.table.setdefault(field.section, {})
            if field.entry and isinstance(holder, dict):
                holder = holder.setdefault(field.entry, {})
            if isinstance(holder, dict):  # else the check will tell
                holder[field.name] = value
        for holder, name in places:
            self.text = put(self.text, (name,) if holder is self.table else field.path, value)
            holder[name] = value

    def unset(self, field: Field) -> None:
        """Take a setting out, wherever the file states it."""
        for holder, name in list(self._places(field)):
            self.text = drop(self.text, (name,) if holder is self.table else field.path)
            del holder[name]
        left = _loads(self.text) or {}
        if self.table.get(field.section) == {} and field.section not in left:  # it was made by its dotted names alone
            del self.table[field.section]

    def set_host(self, place: int, name: str, value: Any) -> None:
        """Change one field of a host that the file has."""
        self.text = put(self.text, ("hosts", place, name), value)
        self.table["hosts"][place][name] = value

    def add(self, section: str, values: dict[str, Any], block: str) -> None:
        """Add an entry to an array of tables."""
        self.text = append(self.text, block)
        self.table.setdefault(section, []).append(values)

    def _places(self, field: Field) -> Iterable[tuple[dict[str, Any], str]]:
        if field.section == "supervisor" and field.name in ALIASES and field.name in self.table:
            yield self.table, field.name
        holder = self.table.get(field.section)
        if field.entry and isinstance(holder, dict):
            holder = holder.get(field.entry)
        if isinstance(holder, dict) and field.name in holder:
            yield holder, field.name


def open_draft(home: Home) -> Draft:
    """The home's fleet.toml; where there is none, a new one."""
    text = read_text(home.toml)
    return new_draft(read_runtime(home.runtime_toml)) if text is None else Draft(text, parse_toml(text, home.toml))


def new_draft(runtime: Runtime | None = None) -> Draft:
    """A new fleet.toml, which keeps what a runtime.toml says."""
    draft = Draft(template(), tomllib.loads(template()))
    for name, value in (runtime.values if runtime else {}).items():
        field = find(name)
        assert field is not None  # runtime.toml has been checked against these very fields
        draft.set(field, value)
    return draft


def save(home: Home, draft: Draft) -> None:
    """Check a draft as a whole, then write it in one step. Nothing is written when anything is wrong."""
    check(home, draft)
    write_atomic(home.toml, draft.text.encode())


def check(home: Home, draft: Draft) -> None:
    """Refuse a draft that does not load, or that would not say what was meant."""
    try:
        if _loads(draft.text) == draft.table:
            parse(draft.text, home.toml)
            return
    except ConfigError:
        _tell_present_faults(home)
        raise
    _tell_present_faults(home)
    raise ConfigError("fleet.toml is laid out in a way that cannot be edited here", hint=f"edit {home.toml}")


def _tell_present_faults(home: Home) -> None:
    """The faults that the file has now go first: they are told with the lines that the user sees."""
    present = read_text(home.toml)
    if present is not None:
        parse(present, home.toml)


def set_values(home: Home, assignments: Sequence[str], known_coders: Collection[str] | None = None) -> list[Change]:
    """Set each `key=value`, or none of them. Raises UsageError before anything is written."""
    wanted = [_wanted(assignment) for assignment in assignments]
    require(home)
    with locked(lock_path(home)):
        draft = open_draft(home)
        changes = []
        for field, value in wanted:
            changes.append(Change(field.key, _shown(field, draft.value(field)), value))
            draft.set(field, value)
        check(home, draft)
        if known_coders is not None:
            _check_coder(home, draft, wanted, known_coders)
        write_atomic(home.toml, draft.text.encode())
    return changes


def unset_values(home: Home, keys: Sequence[str]) -> list[Change]:
    """Take settings out of the file, all or none: their defaults are in force again. Those that it does not give are
    not among the changes."""
    wanted = {field.key: field for field in map(field_of, keys)}
    require(home)
    with locked(lock_path(home)):
        draft = open_draft(home)
        stated = [field for field in wanted.values() if draft.stated(field)]
        changes = []
        for field in stated:
            old = _shown(field, draft.value(field))
            draft.unset(field)
            changes.append(Change(field.key, old, draft.value(field)))
        if changes:
            save(home, draft)
    return changes


def _check_coder(home: Home, draft: Draft, wanted: Iterable[tuple[Field, Any]], registered: Collection[str]) -> None:
    """Refuse a coder that is neither registered nor made by the file, as it will be."""
    own = parse(draft.text, home.toml).own_coders
    for field, value in wanted:
        if field.key == "supervisor.coder" and value not in (*registered, *own):
            known = ", ".join(sorted({*registered, *own}))
            raise UsageError(f'{field.key}: there is no coder "{value}"', hint=f"there are: {known}")


def lock_path(home: Home) -> Path:
    """Whoever holds the lock of this file may change fleet.toml."""
    return home.path / "fleet.toml.lock"


def key_of(assignment: str) -> str:
    """The dotted key that a `key=value` means; raises UsageError where there is none."""
    return field_of(_split(assignment)[0]).key


def _wanted(assignment: str) -> tuple[Field, Any]:
    key, text = _split(assignment)
    field = field_of(key)
    value = typed(text, field)
    for problem in problems({field.name: value}, _alone(field)):
        if problem.path[:1] == (field.name,):  # what else the table needs, it may have
            raise UsageError(f"{field.key}: {problem.text}")
    return field, value


def _split(assignment: str) -> tuple[str, str]:
    key, equals, text = assignment.partition("=")
    if not equals or not key.strip():
        raise UsageError("expected KEY=VALUE", hint="such as `fleet config set supervisor.max_concurrent=5`")
    try:
        assignment.encode()
    except UnicodeEncodeError as exc:
        raise UsageError("a word was given that is not UTF-8 text") from exc
    return key.strip(), text.strip()


def field_of(key: str) -> Field:
    """The setting that a dotted key means; raises UsageError, with the nearest one, where there is none."""
    field = find(key)
    if field:
        return field
    for section in sections():
        if section.named and key.split(".", 1)[0] == section.name:
            entry = key.split(".")[1] if "." in key else "NAME"
            valid = [f"{section.name}.{entry}.{field.name}" for field in section.fields]
            raise UsageError(f"{key}: {unknown(key, valid)}")
        if section.many and key.split(".", 1)[0] == section.name:
            hint = "`fleet config show` prints it; to change it, edit fleet.toml"
            raise UsageError(f"{section.name} is a list of tables, not one setting", hint=hint)
        if key == section.name:
            listed = ", ".join(field.key for field in section.fields)
            raise UsageError(f"{key} is a table", hint=f"give one of its settings: {listed}")
    raise UsageError(f"{key}: {unknown(key, (each.key for each in fields()), elsewhere=True)}")


def typed(text: str, field: Field) -> Any:
    """The value that a word of the command line means, by the type of its setting."""
    quoted = text.startswith(('"', "'"))
    if bare(field.type) is str and not quoted:
        return text
    found, value = _loads_value(text)
    if quoted and not found:
        raise UsageError(f"{field.key}: expected {words(field.type)}, found a quote that does not end")
    return value if found else text


def _loads_value(text: str) -> tuple[bool, Any]:
    table = _loads(f"value = {text}") or {}
    return (True, table["value"]) if table.keys() == {"value"} else (False, None)


def _loads(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None


def _alone(field: Field) -> Any:
    """The table of a setting, for checking this one alone."""
    kind = next(info.type for info in msgspec.structs.fields(Settings) if info.name == field.section)
    return get_args(kind)[1] if field.entry else kind


def _shown(field: Field, value: Any) -> Any:
    """The old value, unless it is one that must not be repeated."""
    wrong = extra(field.type, "private") and problems({field.name: value}, _alone(field))
    return "(not shown)" if wrong else value
