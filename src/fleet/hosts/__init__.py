"""Hosts: what happens on a machine. Here are only the kinds and where each lives; nothing is imported."""

BUILT_IN = {
    "local": "fleet.hosts.kinds:Local",
    "sprite": "fleet.hosts.kinds:Sprite",
    "ssh": "fleet.hosts.kinds:Ssh",
}
"""The same names and places as the entry points of the package; a test holds the two together."""
