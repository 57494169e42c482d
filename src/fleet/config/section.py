"""What the classes of the settings are made of: the table itself, and how the names in it are written.

`extra` of a Meta says how to speak of the value: `expected` in place of words made from the bounds, `refusal` in
place of the whole sentence, and `private` where a wrong value may be a secret and must not be repeated.
"""

from __future__ import annotations

import msgspec

END = r"$(?!\n)"  # `$` alone would let a line break follow
NAME = rf"[A-Za-z0-9_][A-Za-z0-9_.@:-]{{0,127}}{END}"
VARIABLE = rf"^(?:[A-Z_][A-Z0-9_]*)?{END}"
A_NAME = "a name of letters, digits and . _ @ : - that does not begin with -"
A_VARIABLE = {"refusal": "give the NAME of an environment variable, not the value", "private": True}


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of fleet.toml."""
