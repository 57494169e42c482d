"""The page of commands: each with its arguments and examples, as its parser has them."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Iterator

from fleet.cli.app import make_parser
from fleet.cli.beads.verbs import VERBS
from fleet.cli.commands import COMMANDS, GROUPS, Command
from scripts.pages.words import fenced, joined, table

COMMON = ("--help", "--json", "--home")  # of every command, so told once


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
