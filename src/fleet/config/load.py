"""From fleet.toml to Settings: fast when the file is right, exact about every fault when it is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from fleet.config.files import read_bytes
from fleet.config.home import Home
from fleet.config.settings import ALIASES, Settings
from fleet.errors import ConfigError, HomeError

# Settings of which there may be many tables.
LISTS = ("hosts", "workers", "coders", "channels", "routes", "updates", "pools")


def load(home: Home) -> Settings:
    """The settings of a home; where a file says nothing, the defaults. Raises ConfigError with every fault."""
    text = read_text(home.toml)
    if text is not None:
        return parse(text, home.toml)
    from fleet.config.runtime import read_runtime

    runtime = read_runtime(home.runtime_toml)
    return msgspec.convert({"supervisor": runtime.values}, Settings) if runtime else Settings()


class Current:
    """The settings as the file has them now; where it cannot be used, as they were. For what runs long."""

    def __init__(self, home: Home, settings: Settings) -> None:
        self._home = home
        self._settings = settings

    def __call__(self) -> Settings:
        try:
            self._settings = load(self._home)
        except (ConfigError, HomeError):
            return self._settings
        return self._settings


def parse(text: str, path: Path) -> Settings:
    """The settings that a text states; `path` names it in errors."""
    if states_nothing(text):
        return Settings()  # all that reads TOML and checks types need not be made: a fifth of a short command's time
    table = parse_toml(text, path)
    try:
        return msgspec.convert(_folded(table), Settings)
    except (msgspec.ValidationError, ValueError) as exc:
        from fleet.config.problems import settings_problems

        raise explain(text, path, settings_problems(table), str(exc)) from exc


def read_text(path: Path) -> str | None:
    """The text of a settings file, or None where there is none."""
    data = read_bytes(path)
    if data is None:
        return None
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        raise ConfigError(f"{path.name}:{line}: not UTF-8 text", hint=f"the file is {path}") from exc


def parse_toml(text: str, path: Path) -> dict[str, Any]:
    """What a TOML text says; a syntax error is told with its line and column."""
    import tomllib  # not at the top: a home with the settings it was made with starts faster without it

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise _syntax_error(text, path, str(exc)) from exc
    except RecursionError as exc:
        raise ConfigError(f"{path.name}: values are nested too deep", hint=f"the file is {path}") from exc


def states_nothing(text: str) -> bool:
    """Whether a TOML text has only comments and headers of sections, each once, as a new fleet.toml has."""
    lines = [line for raw in text.splitlines() if (line := raw.strip()) and not line.startswith("#")]
    sections = {f"[{name}]" for name in Settings.__struct_fields__ if name not in LISTS}
    return len(set(lines)) == len(lines) and sections.issuperset(lines)


def explain(text: str, path: Path, problems: list[Any], fallback: str) -> ConfigError:
    """One error that tells every problem of a TOML text, each with its line."""
    from fleet.config.layout import Layout

    layout = Layout(text)
    found = sorted((layout.line(problem.path), f"{problem.key}: {problem.text}") for problem in problems)
    lines = [f"{path.name}:{line}: {words}" for line, words in found]
    return ConfigError("\n".join(lines) or f"{path.name}: {fallback}", hint=f"the file is {path}")


def _folded(table: dict[str, Any]) -> dict[str, Any]:
    """The table with the keys that may stand without their section put into it."""
    bare = {name: table[name] for name in ALIASES if name in table}
    if not bare:
        return table
    section = table.get("supervisor", {})
    if isinstance(section, dict):
        for name, value in bare.items():
            if section.get(name, value) != value:
                raise ValueError(f"{name} is given twice")
        section = {**section, **bare}
    rest = {name: value for name, value in table.items() if name not in bare}
    return {**rest, "supervisor": section}


def _syntax_error(text: str, path: Path, message: str) -> ConfigError:
    words, _, place = message.rpartition(" (at ")
    lines = text.replace("\r\n", "\n").split("\n")
    if place.startswith("line "):
        line, column = (int(word.split()[-1]) for word in place.rstrip(")").split(", "))
    else:  # at the end of the document
        line, column = len(lines), len(lines[-1]) + 1
    words = words[:1].lower() + words[1:]
    key, equals, _ = lines[line - 1][: column - 1].partition("=")
    if words == "invalid value" and equals:  # the value is not repeated: it may be a secret
        words += f" for {key.strip()}; is it text without quotes?"
    return ConfigError(f"{path.name}:{line}:{column}: not TOML: {words}", hint=f"the file is {path}")
