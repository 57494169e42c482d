"""The page of settings: every key of fleet.toml."""

from __future__ import annotations

import msgspec

from fleet.config import fields as settings
from fleet.config.render import literal
from fleet.config.settings import ALIASES
from scripts.pages.words import joined, table


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
