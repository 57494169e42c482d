"""A runtime.toml, as older supervisors keep it in their home: what of it Fleet takes over."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from fleet.config.load import explain, parse_toml, read_text
from fleet.config.settings import ALIASES, Supervisor

DROPPED = "telegram_"  # of newer files; Fleet has no such channel


class Runtime(NamedTuple):
    """What a runtime.toml says."""

    values: dict[str, Any]  # keys of [supervisor]
    notes: list[str]


def read_runtime(path: Path) -> Runtime | None:
    """What the file says, or None where there is none. Raises ConfigError with every fault."""
    text = read_text(path)
    return None if text is None else parse_runtime(text, path)


def parse_runtime(text: str, path: Path) -> Runtime:
    """What a text says that was read from `path`."""
    table = parse_toml(text, path)
    dropped = [name for name in table if name.startswith(DROPPED)]
    values = {name: value for name, value in table.items() if name not in dropped}
    try:
        msgspec.convert(values, _model())
    except msgspec.ValidationError as exc:
        from fleet.config.problems import problems

        raise explain(text, path, problems(values, _model()), str(exc)) from exc
    return Runtime(values, [f"{path.name}: {name} was not taken over" for name in dropped])


def _model() -> Any:
    fields = [info for info in msgspec.structs.fields(Supervisor) if info.name in ALIASES]
    spec = [(info.name, info.type, info.default) for info in fields]
    return msgspec.defstruct("RuntimeToml", spec, frozen=True, kw_only=True, forbid_unknown_fields=True)
