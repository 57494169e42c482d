"""A clash: fields that are right each by itself and wrong together."""

from __future__ import annotations


class ClashError(ValueError):
    """Fields that cannot stand together, or a value that only its own rule can judge; `path` leads to it."""

    def __init__(self, path: tuple[str | int, ...], text: str) -> None:
        super().__init__(text)
        self.path = path
