"""The text of a new fleet.toml: every setting with its description and, commented out, its default."""

from __future__ import annotations

import textwrap

import msgspec

from fleet.config.fields import Field, SectionInfo, bare, sections, words
from fleet.config.render import literal

HEAD = """\
# Settings of this Fleet home. A line such as `# model = ...` shows a default: take the `# ` away to change it,
# or run `fleet config set KEY=VALUE`, which keeps your comments. `fleet config show` prints what is in force.
"""
SET_IN = "#     # "
EXAMPLES = {
    "hosts.name": "builder-1",
    "hosts.kind": "ssh",
    "hosts.host": "builder-1.example.com",
    "hosts.working_directory": "/srv/work",
    "hosts.agent_binary": "claude",
    "workers.id": "builder-1a",
    "workers.host": "builder-1",
    "coders.argv": ["mycli", "--json", "{prompt}"],
    "coders.output": "jsonl",
    "channels.kind": "slack",
    "channels.webhook_env": "FLEET_SLACK_WEBHOOK",
    "routes.channel": "mine",
    "routes.events": ["needs_human", "restart_exhausted"],
    "pools.repo": "git@github.com:example/kite.git",
    "updates.command": "npm install -g mytool@latest",
}


def template() -> str:
    """What `fleet init` writes; loading it gives the defaults, with or without the marks taken away."""
    return "\n".join([HEAD, *(_array(each) if each.many else _table(each) for each in sections())])


def _table(section: SectionInfo) -> str:
    lines = [f"# {section.description}", f"[{section.name}]"]
    for field in section.fields:
        lines += [f"# {_described(field)}", f"# {field.name} = {literal(field.default)}"]
    return "\n".join(lines) + "\n"


def _array(section: SectionInfo) -> str:
    """An array has no default to show, so an example stands there, set in."""
    header = f"[{section.name}.mine]" if section.named else f"[[{section.name}]]"
    lines = [f"# {section.description} An example:", f"#     {header}"]
    for field in section.fields:
        optional = field.default is not msgspec.NODEFAULT
        default = f" Default: {literal(field.default)}" if optional else ""
        lines += textwrap.wrap(f"{_described(field)}{default}", 110, initial_indent=SET_IN, subsequent_indent=SET_IN)
        lines.append(f"#     {field.name} = {literal(EXAMPLES.get(field.key, field.default))}")
    return "\n".join(lines) + "\n"


def _described(field: Field) -> str:
    """The description, and the choices or bounds where there are any."""
    return field.description if bare(field.type) is str else f"{field.description} ({words(field.type)})"
