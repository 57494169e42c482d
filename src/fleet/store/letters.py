"""Letters by chance: what new ids are made of."""

from __future__ import annotations

import os

from fleet.model.ids import ALPHABET

_LETTERS = "".join(ALPHABET[byte % len(ALPHABET)] for byte in range(256)).encode()  # a letter for each byte


def letters(count: int) -> str:
    """So many."""
    return os.urandom(count).translate(_LETTERS).decode()
