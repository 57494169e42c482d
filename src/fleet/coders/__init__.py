"""Coders: the agents that Fleet can drive. Here are only their names and where each lives; nothing is imported."""

BUILT_IN = {
    "agy": "fleet.coders.agy:Agy",
    "claude": "fleet.coders.claude:Claude",
    "codex": "fleet.coders.codex:Codex",
    "command": "fleet.coders.command:Command",
    "gemini": "fleet.coders.gemini:Gemini",
    "opencode": "fleet.coders.opencode:Opencode",
    "scripted": "fleet.coders.scripted:Scripted",
}
"""The same names and places as the entry points of the package; a test holds the two together."""
