"""Write the reference pages from the code, so that they cannot say anything else than it does.

python scripts/reference.py           write docs/reference, and the generated parts of other pages
python scripts/reference.py --check   write nothing; name what differs, and exit 1 if anything does
"""

from __future__ import annotations

import argparse
import ast
import inspect
import io
import re
import sys
import tokenize
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from fleet import errors
from fleet.cli.app import make_parser
from fleet.cli.beads.verbs import VERBS
from fleet.cli.commands import COMMANDS, GROUPS, Command
from fleet.config import fields as settings
from fleet.config.render import literal
from fleet.config.settings import ALIASES
from fleet.model import event, scorer, spec, states

DOCS = Path(__file__).parents[1] / "docs"
COMMON = ("--help", "--json", "--home")  # of every command, so told once
PLAIN: dict[Any, str] = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "true or false",
    bytes: "bytes",
    object: "any value",
    Any: "any value",
}
EXIT_CODES = {
    0: "fine",
    1: "something failed; or the thing is not in a state that allows this",
    2: "wrong usage, a value that cannot be taken, or settings or a spec that cannot be used",
    3: "not finished: results wait for a verifier or a person, or a supervisor did not start",
    4: "not found: a task, a file, a home",
    130: "interrupted with Ctrl-C",
    143: "ended by SIGTERM",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Write, or check."""
    parser = argparse.ArgumentParser(description="Write the reference pages from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 and name what differs")
    check = parser.parse_args(argv).check
    stale = [path for path, text in pages().items() if path.read_text("utf-8") != text]
    for path in stale:
        print(f"{'differs' if check else 'written'}: {path.relative_to(DOCS.parent)}")
        if not check:
            path.write_text(pages()[path], "utf-8")
    if check and stale:
        print("run `make docs`", file=sys.stderr)
    return int(check and bool(stale))


@cache
def pages() -> dict[Path, str]:
    """Every page with generated parts, as it should be."""
    return {DOCS / name: _renewed(DOCS / name, parts) for name, parts in PARTS.items()}


def _renewed(path: Path, parts: dict[str, Callable[[], str]]) -> str:
    """A page with its generated parts written anew: what stands between their two marks. The rest is by hand."""
    text = path.read_text("utf-8")
    for name, write in parts.items():
        begin, end = f"<!-- begin {name}: written by scripts/reference.py -->\n", f"<!-- end {name} -->\n"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise SystemExit(f"{path} has no place for `{name}`: {begin!r} ... {end!r}")
        text = f"{before}{begin}\n{write()}\n{end}{after}"
    return text


# commands


def commands() -> str:
    """Every command, by group, with its arguments and examples."""
    parts = [
        table(("command", "does"), [(f"[`fleet {each.name}`](#fleet-{each.name})", each.help) for each in COMMANDS]),
    ]
    for group, title in GROUPS.items():
        of_group = [each for each in COMMANDS if each.group == group]
        if of_group:
            parts += [f"## {title}", *(part for each in of_group for part in _command(each))]
    return joined(parts)


def _command(command: Command) -> Iterator[str]:
    parser = make_parser(command)
    yield f"### fleet {command.name}"
    yield fenced("text", _usage(parser))
    yield parser.description or ""
    yield from _beads_verbs() if command.name == "bd" else _arguments(parser)
    if parser.epilog:
        yield fenced("sh", inspect.cleandoc(parser.epilog.removeprefix("examples:")))


def _beads_verbs() -> Iterator[str]:
    """What the words after `fleet bd` may be."""
    rows = [(f"`{f'{verb.name} {verb.usage}'.strip()}`", inspect.cleandoc(verb.run.__doc__ or "")) for verb in VERBS]
    yield table(("verb", "does, on Fleet's own queue"), rows)
    yield "`fleet bd VERB --help` lists the flags of a verb."


def _arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The table of a parser's own arguments; of its verbs, one by one."""
    rows = []
    for action in _own(parser):
        if isinstance(action, argparse._SubParsersAction):
            continue
        default = action.default if action.option_strings and action.default not in (None, "", False, []) else None
        shown = f" (default: `{default}`)" if default is not None and str(default) not in (action.help or "") else ""
        rows.append((f"`{_signature(action)}`", f"{action.help or ''}{shown}"))
    if rows:
        yield table(("argument", "meaning"), rows)
    for action in _own(parser):
        if isinstance(action, argparse._SubParsersAction):
            for verb in action.choices.values():
                yield fenced("text", _usage(verb))
                yield verb.description or ""
                yield from _arguments(verb)


def _own(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in parser._actions if not set(action.option_strings) & set(COMMON)]


def _signature(action: argparse.Action) -> str:
    value = _value(action)
    return ", ".join(f"{name} {value}".strip() for name in action.option_strings) or value


def _value(action: argparse.Action) -> str:
    """The words that an argument takes, in the usual notation."""
    if action.nargs == 0:
        return ""
    name = str(action.metavar or action.dest.upper())
    return {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} [{name} ...]"}.get(str(action.nargs), name)


def _usage(parser: argparse.ArgumentParser) -> str:
    """One line; argparse's own differs from one Python to the next."""
    words = [parser.prog]
    own = _own(parser)
    for action in [each for each in own if not each.option_strings] + [each for each in own if each.option_strings]:
        if isinstance(action, argparse._SubParsersAction):
            words.append(f"{{{','.join(action.choices)}}} ...")
        elif action.option_strings:
            words.append(f"[{f'{action.option_strings[0]} {_value(action)}'.strip()}]")
        else:
            words.append(_value(action))
    return " ".join(words)


# settings and specs


def settings_page() -> str:
    """Every setting, by section."""
    parts = []
    for section in settings.sections():
        title = f"[[{section.name}]]" if section.many and not section.named else f"[{_table(section)}]"
        rows = []
        for field in section.fields:
            default = "required" if field.default is msgspec.NODEFAULT else f"`{literal(field.default)}`"
            prefix = _table(section) if section.named else f"{section.name}[]"
            key = f"`{prefix}.{field.name}`" if section.many else f"`{field.key}`"
            rows.append((key, settings.words(field.type), default, field.description))
        parts += [f"## {title}", section.description, table(("key", "expected", "default", "meaning"), rows)]
    names = ", ".join(f"`{name}`" for name in ALIASES)
    return joined([*parts, f"These keys of `[supervisor]` may also stand without their section: {names}."])


def _table(section: settings.SectionInfo) -> str:
    """The name of a table of settings; NAME stands for yours where there may be several."""
    return f"{section.name}.NAME" if section.named else section.name


def spec_page() -> str:
    """The fields of a run and its tasks, then of the objects within."""
    parts = []
    for kind in (spec.RunSpec, spec.TaskSpec):
        parts += [f"## {kind.__name__}", _doc(kind), _fields(kind)]
    within = _objects((spec.RunSpec, spec.TaskSpec)) - {spec.TaskSpec}
    for title, of in (("## Objects", False), ("## Scorers", True)):
        parts.append(title)
        for found in sorted(within, key=lambda each: each.__name__):
            if issubclass(found, scorer.Scorer) is of:
                tag = found.__struct_config__.tag
                parts += [f"### {found.__name__}", f"`kind = {tag}`" * bool(tag), _doc(found), _fields(found)]
    return joined(parts)


# events


def events() -> str:
    """Every kind of event, its fields, and the objects within."""
    kinds = sorted(event.EVENTS, key=event.kind_of)
    parts = [
        table(
            ("kind", "meaning"),
            [(f"[`{event.kind_of(kind)}`](#{event.kind_of(kind).replace('.', '')})", _doc(kind)) for kind in kinds],
        ),
        "## Every event",
        _doc(event.Event),
        _fields(event.Event),
        "## Kinds",
    ]
    for kind in kinds:
        parts += [f"### {event.kind_of(kind)}", _doc(kind)]
        parts += [_fields(kind, without=event.Event)] * (len(_names(kind)) > len(_names(event.Event)))
    parts.append("## Objects")
    for found in sorted(_objects(event.EVENTS), key=lambda each: each.__name__):
        parts += [f"### {found.__name__}", _doc(found), _fields(found)]
    return joined(parts)


def _names(kind: type[msgspec.Struct]) -> list[str]:
    return [info.name for info in msgspec.structs.fields(kind)]


def _objects(kinds: Iterable[type[msgspec.Struct]]) -> set[type[msgspec.Struct]]:
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


# errors


def errors_page() -> str:
    """The tree of errors, and what each means."""
    return joined(
        [
            "## Exit codes",
            table(("code", "meaning"), [(str(code), meaning) for code, meaning in EXIT_CODES.items()]),
            "## The tree",
            fenced("text", "\n".join(_tree(errors.FleetError))),
            "## Each error",
            "`retry` says that the same command may succeed a moment later.",
            table(
                ("error", "exit", "retry", "what happened", "hint"),
                [
                    (f"`{kind.__name__}`", str(kind.exit_code), "yes" if kind.retryable else "", _doc(kind), kind.hint)
                    for kind in error_classes()
                ],
            ),
        ]
    )


def error_classes() -> list[type[errors.FleetError]]:
    """Every error, in the order of the code."""
    found = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, errors.FleetError)]
    unknown = {each.exit_code for each in found} - EXIT_CODES.keys()
    if unknown:
        raise SystemExit(f"scripts/reference.py does not say what these exit codes mean: {sorted(unknown)}")
    return found


def _tree(kind: type[errors.FleetError], depth: int = 0) -> Iterator[str]:
    yield "  " * depth + kind.__name__
    for below in error_classes():
        if kind in below.__bases__:
            yield from _tree(below, depth + 1)


# states


def states_page() -> str:
    """The three tables of moves."""
    parts = []
    for title, kind, moves in (
        ("Task", states.TaskState, states.TASK_MOVES),
        ("Session", states.SessionState, states.SESSION_MOVES),
        ("Run", states.RunState, states.RUN_MOVES),
    ):
        parts += [f"## {title}", _doc(kind), _moves(kind, moves)]
    sets = (
        ("in progress", states.IN_PROGRESS, "has a live session"),
        ("ended", states.ENDED, "has a final receipt"),
        ("open", states.OPEN, "has not ended"),
        ("unmet", states.UNMET, "what needs such a task is skipped"),
    )
    parts += [
        "## Sets of task states",
        table(
            ("name", "states", "meaning"), [(name, _listed(states.TaskState, each), why) for name, each, why in sets]
        ),
        "## From a result to a state",
        _doc(states.Result),
        _results(),
    ]
    return joined(parts)


def task_moves() -> str:
    """The table of a task's moves, for the page that explains it."""
    return joined([_moves(states.TaskState, states.TASK_MOVES), _results()])


def _moves(kind: type[StrEnum], moves: dict[Any, frozenset[Any]]) -> str:
    return table(("from", "to"), [(f"`{old}`", _listed(kind, moves[old]) or "nothing: this is an end") for old in kind])


def _results() -> str:
    rows = [(f"`{result.value}`", f"`{states.STATE_OF_RESULT[result].value}`") for result in states.Result]
    return table(("result of the receipt", "state of the task"), rows)


def _listed(kind: type[StrEnum], some: frozenset[Any]) -> str:
    return ", ".join(f"`{state.value}`" for state in kind if state in some)


# http


def http_page() -> str:
    """Every route: its parameters, what it takes and what it gives."""
    from fleet.api.app import make_routes
    from fleet.config.serving import Api

    document = make_routes(None, Api()).openapi_schema.to_schema()
    routes = [(verb.upper(), path, about) for path, verbs in document["paths"].items() for verb, about in verbs.items()]
    rows = [(f"`{verb} {path}`", about["description"].split("\n")[0]) for verb, path, about in routes]
    parts = [table(("route", "does"), rows), "## Each route"]
    for verb, path, about in routes:
        parts += [f"### {verb} {path}", about["description"], _parameters(about), _bodies(about)]
    return joined(parts)


def _parameters(about: dict[str, Any]) -> str:
    found = about.get("parameters", [])
    rows = [(f"`{one['name']}`", one["in"], one.get("description", ""), _schema(one["schema"])) for one in found]
    return table(("parameter", "in", "meaning", "type"), rows) if rows else ""


def _bodies(about: dict[str, Any]) -> str:
    lines = []
    for media, body in about.get("requestBody", {}).get("content", {}).items():
        lines.append(f"Takes `{media}`: {_schema(body['schema'])}.")
    for status, answer in about["responses"].items():
        for media, body in answer.get("content", {}).items():
            if status.startswith("2"):
                lines.append(f"Answers {status}, `{media}`: {_schema(body['schema'])}.")
    return "\n".join(lines)


def _schema(schema: dict[str, Any]) -> str:
    """A JSON schema in words."""
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2]}`"
    some = schema.get("oneOf") or schema.get("anyOf")
    if some:
        return " or ".join(dict.fromkeys(_schema(one) for one in some))
    if schema.get("type") == "array":
        return f"list of {_schema(schema.get('items', {}))}"
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"])
    bounds = [f"{schema[key]}" for key in ("minimum", "maximum") if key in schema]
    default = f", {schema['default']} if not given" if schema.get("default") is not None else ""
    return f"{schema.get('type', 'any value')}{' ' + ' to '.join(bounds) if bounds else ''}{default}"


# words


def _doc(kind: type) -> str:
    return inspect.cleandoc(kind.__doc__ or "")


def _fields(kind: type[msgspec.Struct], without: type[msgspec.Struct] | None = None) -> str:
    """The table of a struct's fields."""
    hidden = _names(without) if without else []
    remarks = _remarks(kind)
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


def _remarks(kind: type) -> dict[str, str]:
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


PARTS: dict[str, dict[str, Callable[[], str]]] = {
    "concepts/states.md": {"task moves": task_moves},
    "reference/commands.md": {"commands": commands},
    "reference/errors.md": {"errors": errors_page},
    "reference/events.md": {"events": events},
    "reference/http.md": {"http": http_page},
    "reference/settings.md": {"settings": settings_page},
    "reference/spec.md": {"specs": spec_page},
    "reference/states.md": {"states": states_page},
}

if __name__ == "__main__":
    sys.exit(main())
