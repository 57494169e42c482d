"""Declare a host in fleet.toml, or take it out again: checked as a whole, written in one step, comments kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_origin, get_type_hints

from fleet.config.edit import lock_path, open_draft, save
from fleet.config.files import locked
from fleet.config.home import Home, require
from fleet.config.machines import Host
from fleet.config.problems import problems
from fleet.config.render import host_table
from fleet.config.splice import remove
from fleet.errors import Conflict, NotFound, UsageError
from fleet.model.ids import some_of
from fleet.model.reach import NEEDED

ALIASES = {"codewhale_binary": "agent_binary"}
HINT = "such as `fleet hosts add builder-1 host=builder.example.com working_directory=/srv/work agent_binary=claude`"


def add_host(home: Home, name: str, assignments: Sequence[str]) -> dict[str, Any]:
    """One more `[[hosts]]`, of kind ssh unless it says otherwise. Returns what was written."""
    values: dict[str, Any] = {"name": name, "kind": "ssh"}
    types = get_type_hints(Host)
    for assignment in assignments:
        field, equals, text = assignment.partition("=")
        if not equals:
            raise UsageError(f"`{assignment}`: expected FIELD=VALUE", hint=HINT)
        if field not in types or field == "name":
            raise UsageError(f"a host has no field `{field}`", hint=f"it has: {', '.join(sorted(types))}")
        values[field] = _typed(text, types[field])
    _check(values)
    require(home)
    with locked(lock_path(home)):
        draft = open_draft(home)
        if any(host.get("name") == name for host in draft.table.get("hosts", [])):
            raise Conflict(f"there is a host `{name}` already", hint=f"edit {home.toml}, or remove it first")
        draft.add("hosts", values, host_table(values))
        save(home, draft)
    return values


def _check(values: dict[str, Any]) -> None:
    """Refuse what cannot be declared, in the words of the command line: no file has it yet."""
    given = {ALIASES.get(name, name) for name, value in values.items() if value}
    missing = [f"{name}=..." for name in NEEDED if name not in given] if values["kind"] == "ssh" else []
    if missing:
        raise UsageError(f"an ssh host needs {', '.join(missing)}", hint=HINT)
    for problem in problems(values, Host):
        raise UsageError(f"{problem.key}: {problem.text}", hint=HINT)


def remove_host(home: Home, name: str) -> None:
    """Take a host out. NotFound: it is not there. ConfigError: a worker needs it."""
    require(home)
    with locked(lock_path(home)):
        draft = open_draft(home)
        hosts = draft.table.get("hosts", [])
        place = next((at for at, host in enumerate(hosts) if host.get("name") == name), None)
        if place is None:
            known = f"there are: {some_of(str(host.get('name')) for host in hosts)}" if hosts else "there are no hosts"
            raise NotFound(f"no host `{name}` is declared in {home.toml}", hint=known)
        draft.text = remove(draft.text, ("hosts", place))
        del hosts[place]
        if not hosts:
            del draft.table["hosts"]
        save(home, draft)


def _typed(text: str, kind: Any) -> Any:
    """A word of the command line, by the type of its field; a list has commas in it."""
    if get_origin(kind) is tuple:
        return [word for word in text.split(",") if word]
    if kind is int and text.isdecimal():
        return int(text)
    return {"true": True, "false": False}.get(text, text) if kind is bool else text
