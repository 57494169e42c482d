"""Following a fleet: what happens, taken piece by piece, from a home here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fleet.projections.happened import Names

if TYPE_CHECKING:
    from fleet.projections.happened import Happened, Only
    from fleet.store.engine import Bell
    from fleet.store.reads import Reads


class Following(Protocol):
    """Reads on in the ledger of a fleet; nothing is left out, nothing comes twice."""

    @property
    def trouble(self) -> str:
        """Why nothing comes at present; empty while all is well."""

    def more(self) -> list[Happened]:
        """The next piece of what was asked for; empty: nothing is there now."""

    def wait(self, seconds: float) -> bool:
        """Until there may be more, or so long."""

    def close(self) -> None:
        """Let go."""


class LocalFollowing:
    """Of a home here: by its store, and the bell that rings at each commit."""

    trouble = ""

    def __init__(self, reads: Reads, position: str, only: Only, *, bell: Bell | None) -> None:
        self._reads = reads
        self._position = position
        self._only = only
        self._bell = bell
        self._names = Names()

    def more(self) -> list[Happened]:
        """The next piece that holds something."""
        while True:
            piece = self._names.piece(self._reads, self._position, only=self._only)
            at_end, self._position = piece.position == self._position, piece.position
            if at_end or piece.happened:
                return piece.happened

    def wait(self, seconds: float) -> bool:
        """Until the bell rings."""
        return self._bell is not None and self._bell.wait(seconds)

    def close(self) -> None:
        """Stop listening; the store is another's."""
        if self._bell is not None:
            self._bell.close()
