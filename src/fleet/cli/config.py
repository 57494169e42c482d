"""Show, change, import or describe the settings of the home.

`show` prints what is in force, `get` one of it; `set` and `unset` edit fleet.toml and keep its comments; `import` takes
over a Fleet Manager's config.yaml, a runtime.toml or a JSON file of alerts; `schema` prints a JSON Schema.

Examples:
  fleet config set supervisor.max_concurrent=5
  fleet config show
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet.cli.parsing import add_verb
from fleet.errors import FleetError, NotFound

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.config.edit import Change
    from fleet.config.settings import Settings
    from fleet.front.views import ConfigView

EXAMPLES = {
    "show": ("fleet config show", "fleet config show --raw"),
    "get": ("fleet config get supervisor.max_concurrent", "fleet config get model --json"),
    "set": ("fleet config set supervisor.max_concurrent=5", "fleet config set coder=codex model=o3"),
    "unset": ("fleet config unset supervisor.max_concurrent", "fleet config unset coder model"),
    "import": (
        "fleet config import /opt/fleet-manager/config.yaml --names names.txt",
        "fleet config import ~/old/runtime.toml",
    ),
    "schema": ("fleet config schema", "fleet config schema settings > fleet.schema.json"),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """The verbs of `fleet config`."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    show = add_verb(verbs, "show", "print the settings in force; inherited ones are marked", *EXAMPLES["show"])
    show.add_argument("--raw", action="store_true", help="print the file as it is")
    one = add_verb(verbs, "get", "print one setting as it is in force", *EXAMPLES["get"])
    one.add_argument("key", metavar="KEY", help="a dotted key")
    change = add_verb(verbs, "set", "change settings: all that are given, or none", *EXAMPLES["set"])
    change.add_argument("assignments", metavar="KEY=VALUE", nargs="+", help="a dotted key and its new value")
    back = add_verb(verbs, "unset", "take settings out of fleet.toml: their defaults hold again", *EXAMPLES["unset"])
    back.add_argument("keys", metavar="KEY", nargs="+", help="a dotted key")
    take = add_verb(
        verbs,
        "import",
        "take over a Fleet Manager config.yaml, a runtime.toml or a JSON file of alerts",
        *EXAMPLES["import"],
    )
    take.add_argument("file", metavar="FILE", type=Path, help="the file to take over")
    take.add_argument(
        "--names", metavar="FILE", type=Path, help="semantic names for its sprites: lines API-NAME = NAME"
    )
    describe = add_verb(verbs, "schema", "print a JSON Schema", *EXAMPLES["schema"])
    describe.add_argument("name", nargs="?", default="settings", help="settings (default), task or run")


def run(args: argparse.Namespace, context: Context) -> int:
    """Do what the verb says."""
    if args.verb not in ("show", "get"):
        context.here(f"`fleet config {args.verb}`")
    return VERBS[args.verb](args, context)


def _show(args: argparse.Namespace, context: Context) -> int:
    if context.url:
        if args.raw:
            context.here("--raw")
        return _show_effective(context)
    _require(context)
    return _show_raw(context) if args.raw else _show_effective(context)


def _require(context: Context) -> None:
    from fleet.config.home import require, untrusted_note

    require(context.home)
    note = untrusted_note(context.home)
    if note:
        context.note(f"note: {note}")


def _get(args: argparse.Namespace, context: Context) -> int:
    from fleet.config.edit import field_of
    from fleet.config.render import inline

    field = field_of(args.key)
    if not context.url:
        _require(context)
    found = context.front.config()
    value: Any = found.settings
    for part in field.path:
        if part not in value:
            raise NotFound(f"there is no [{field.section}.{field.entry}]", hint="`fleet config show` prints what is")
        value = value[part]
    if context.json:
        context.print_json({"key": field.key, "value": value, "default": field.key in found.defaults})
    elif value is None:
        context.note(f"{field.key} is not set")
    else:
        context.print(value if isinstance(value, str) else inline(value))
    return 0


def _show_effective(context: Context) -> int:
    from fleet.config.fields import fields
    from fleet.config.render import effective

    found = context.front.config()
    if context.json:
        context.print_json(found)
        return 0
    stated = {field.key for field in fields()} - set(found.defaults)
    text = effective(_settings(found), stated)
    context.print(f"# {found.file or found.home}\n")
    context.out.write(text)
    return 0


def _settings(found: ConfigView) -> Settings:
    import msgspec

    from fleet.config.settings import Settings

    try:
        return msgspec.convert(found.settings, Settings)
    except msgspec.ValidationError as exc:  # by what was put out of them, or by another version
        raise FleetError(f"the settings cannot be read here: {exc}", hint="--json prints them as they came") from exc


def _show_raw(context: Context) -> int:
    from fleet.config.files import read_bytes
    from fleet.config.stated import settings_file

    file = settings_file(context.home)
    data = read_bytes(file) if file else None
    if data is None:
        raise NotFound(f"there is no fleet.toml in {context.home.path}", hint="all settings are defaults")
    if context.json:
        context.print_json({**_where(context), "text": data.decode("utf-8", "replace")})
        return 0
    context.out.flush()
    binary = getattr(context.out, "buffer", None)
    if binary is None:  # not a stream of bytes, as in a test
        context.out.write(data.decode("utf-8", "replace"))
    else:
        binary.write(data)
        binary.flush()
    return 0


def _where(context: Context) -> dict[str, Any]:
    from fleet.config.stated import settings_file

    file = settings_file(context.home)
    return {"home": str(context.home.path), "file": str(file) if file else None}


def _set(args: argparse.Namespace, context: Context) -> int:
    from fleet.config.edit import key_of, set_values

    coders = None
    if "supervisor.coder" in [key_of(assignment) for assignment in args.assignments]:
        from fleet import plugins

        coders = plugins.names("coders")
    changes = set_values(context.home, args.assignments, coders)
    if context.json:
        context.print_json({"changes": changes})
        return 0
    for change in changes:
        context.print(_line(change))
    return 0


def _unset(args: argparse.Namespace, context: Context) -> int:
    from fleet.config.edit import field_of, unset_values

    changes = unset_values(context.home, args.keys)
    if context.json:
        context.print_json({"changes": changes})
        return 0
    for change in changes:
        context.print(_line(change, default=True))
    done = {change.key for change in changes}
    for key in dict.fromkeys(field_of(word).key for word in args.keys):
        if key not in done:
            context.note(f"{key} is not set in fleet.toml: its default is in force")
    return 0


def _import(args: argparse.Namespace, context: Context) -> int:
    from fleet.config.importing import import_file

    done = import_file(context.home, args.file, args.names)
    if context.json:
        context.print_json(done)
        return 0
    for change in done.changes:
        context.print(_line(change))
    for note in done.notes:
        context.note(f"note: {note}")
    if not done.changes:
        context.note(f"note: fleet.toml already says all that {args.file} says")
    return 0


def _schema(args: argparse.Namespace, context: Context) -> int:
    from fleet.config.schema import schema

    context.print_json(schema(args.name))  # a schema is JSON with or without --json
    return 0


def _line(change: Change, *, default: bool = False) -> str:
    """One change, as it reads in fleet.toml, and what was before; `default`: the file does not say it any more."""
    from fleet.config.render import inline

    marks = ["default"] if default and change.new is not None else []
    marks += [f"was {inline(change.old)}"] if change.old is not None and change.old != change.new else []
    told = f"{change.key} = {inline(change.new)}" if change.new is not None else f"{change.key} is not set"
    return f"{told}  ({', '.join(marks)})" if marks else told


VERBS = {"show": _show, "get": _get, "set": _set, "unset": _unset, "import": _import, "schema": _schema}
