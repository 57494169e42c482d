"""What a Fleet Manager's config.yaml says, with the line of every key; and the names that go with it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from fleet.config.fields import KeyPath
from fleet.config.machines import Timeouts
from fleet.config.section import A_NAME, NAME
from fleet.errors import ConfigError

if TYPE_CHECKING:
    import yaml

Sprite = Annotated[str, Meta(pattern=rf"^{NAME}", extra={"expected": A_NAME})]
Address = Annotated[
    str,
    Meta(
        pattern=r"^$|^https?://[^\s\x00-\x1f\x7f']+$(?!\n)",
        extra={"expected": "an address that begins with https://, or nothing", "private": True},
    ),
]


class ManagerAlerts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where it sends its alerts."""

    webhook_url: Address = ""


class ManagerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file."""

    sprites: tuple[Sprite, ...] = ()
    timeouts: Timeouts = Timeouts()
    alerts: ManagerAlerts = ManagerAlerts()


def parse_manager(text: str, path: Path) -> dict[str, Any]:
    """The keys that the file gives, checked. Raises ConfigError with every fault and its line."""
    import yaml

    try:
        root = yaml.compose(text, yaml.SafeLoader)
        table = _without_nothing(yaml.safe_load(text))
    except yaml.YAMLError as exc:
        raise _syntax_error(path, exc) from exc
    except (RecursionError, ValueError) as exc:  # such as a date in February with 31 days
        raise ConfigError(f"{path.name}: not YAML that can be read: {exc}", hint=f"the file is {path}") from exc
    _refuse_repeated(root, path)
    try:
        msgspec.convert(table, ManagerConfig)
    except msgspec.ValidationError as exc:
        raise _explain(root, path, table, str(exc)) from exc
    assert isinstance(table, dict)
    return table


def parse_names(text: str, path: Path) -> dict[str, str]:
    """From the name of the API to the semantic one: a line `hammer = agents-review-claude-01` for each machine."""
    names: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.partition("#")[0].strip()
        if not stripped:
            continue
        api_name, equals, name = (part.strip() for part in stripped.partition("="))
        wrong = next((word for word in (api_name, name) if not re.match(NAME, word)), None)
        if not equals:
            raise _name_error(path, number, "expected API-NAME = SEMANTIC-NAME")
        if wrong is not None:
            raise _name_error(path, number, f'expected {A_NAME}, found "{wrong}"')
        if api_name in names or name in names.values():
            raise _name_error(path, number, f"{api_name if api_name in names else name} is given twice")
        names[api_name] = name
    return names


def _name_error(path: Path, line: int, words: str) -> ConfigError:
    return ConfigError(f"{path.name}:{line}: {words}", hint=f"the file is {path}")


def _without_nothing(value: Any) -> Any:
    """A key with nothing behind it is YAML's way to leave it out."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        return value
    return {
        str(name): {str(inner): each for inner, each in item.items() if each is not None}
        if isinstance(item, dict)
        else item
        for name, item in value.items()
        if item is not None
    }


def _refuse_repeated(root: yaml.Node | None, path: Path) -> None:
    """A key given twice is no fault to the YAML parser, which drops the first."""
    import yaml

    inner = [pair[1] for pair in root.value] if isinstance(root, yaml.MappingNode) else []
    for node in (root, *inner):
        seen: set[str] = set()
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if key.value in seen:
                line = key.start_mark.line + 1
                raise ConfigError(f"{path.name}:{line}: {key.value}: is given twice", hint=f"the file is {path}")
            if isinstance(key.value, str):
                seen.add(key.value)


def _explain(root: yaml.Node | None, path: Path, table: Any, fallback: str) -> ConfigError:
    from fleet.config.problems import problems

    found = sorted((_line(root, each.path), f"{each.key}: {each.text}") for each in problems(table, ManagerConfig))
    lines = [f"{path.name}:{line}: {words.removeprefix(': ')}" for line, words in found]
    return ConfigError("\n".join(lines) or f"{path.name}: {fallback}", hint=f"the file is {path}")


def _line(node: yaml.Node | None, path: KeyPath) -> int:
    """The line, from 1, where a key stands, or the nearest thing around it that does."""
    import yaml

    line = node.start_mark.line + 1 if node else 1
    for part in path:
        if isinstance(node, yaml.MappingNode):
            pair = next((each for each in node.value if each[0].value == str(part)), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            pair = (node.value[part], node.value[part])
        else:
            pair = None
        if pair is None:
            break
        line, node = pair[0].start_mark.line + 1, pair[1]
    return line


def _syntax_error(path: Path, exc: yaml.YAMLError) -> ConfigError:
    mark = getattr(exc, "problem_mark", None)
    words = getattr(exc, "problem", None) or str(exc).splitlines()[0]
    place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
    return ConfigError(f"{path.name}{place}: not YAML: {words}", hint=f"the file is {path}")
