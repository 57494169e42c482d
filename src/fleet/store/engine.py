"""The contract between the verbs, which are written once, and the two databases that can carry them out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from fleet.store.pending import Pending

T = TypeVar("T")
Asked: TypeAlias = "tuple[Callable[[Tx], Any], Pending[Any]]"  # a body, and whom its outcome is told
Value: TypeAlias = "str | int | bytes | None"
Row: TypeAlias = "tuple[Any, ...]"


class Tx(Protocol):
    """One transaction. SQL is the same text on both databases, with `?` for each value."""

    now: int  # UTC milliseconds at the start of the transaction
    for_update: str  # appended to a SELECT that is followed by a write of the same row
    skip_locked: str  # the same, passing over rows that another transaction holds
    heads: dict[str, tuple[int, bytes]]  # sequence and hash of the newest event of each subject that is held
    present: set[str]  # supervisors that have not left, and whose lease nobody but this process can end

    def rows(self, sql: str, *values: Value) -> list[Row]:
        """All rows of a query."""

    def run(self, sql: str, *values: Value) -> int:
        """How many rows a statement changed."""

    def event(self, *values: Value) -> int:
        """Write an event: its subject, the one before it, kind, time, hash and body. Returns its sequence."""

    def many(self, sql: str, values: Iterable[tuple[Value, ...]]) -> None:
        """One statement for each tuple of values."""

    def exclusively(self, what: str) -> None:
        """From here to the end of the transaction nobody else is between these words with the same `what`."""

    def count(self, scope: str, key: str, by: int) -> None:
        """Keep a running count, where the database counts that way; said before the event that changes it."""

    def counts(self, scope: str) -> dict[str, int]:
        """How many tasks of a run (or of all: `*`) have each facet."""

    def lease(self, supervisor: str, seconds: float) -> None:
        """Hold or extend a supervisor's lease."""

    def holds(self, supervisor: str) -> bool:
        """Whether this process itself holds the lease, so that it cannot end behind its back."""

    def lapsed(self, supervisor: str) -> bool:
        """Whether a supervisor's lease has ended: by the database's clock, or, on SQLite, when its process did."""

    def released(self, supervisor: str) -> bool:
        """Whether its lease has ended for good, without anybody's word. A time does not: that clock may be set."""

    def silent_ms(self, supervisor: str) -> int | None:
        """For how long who holds a lease has given no sign of life; None where that is not known, or ends the lease."""

    def place(self, seq: int) -> tuple[bytes, str] | None:
        """The hash of an event, and the position in the feed after it."""

    def feed(self, after: str, limit: int) -> tuple[list[Row], str]:
        """Events (seq, hash, body, position) after a position, in an order that a reader can resume from and miss
        nothing; and the position after the last of them. ValueError: that is no position."""

    def end(self) -> str:
        """The position after all that a reader of the feed would be given now."""


class Bell(Protocol):
    """A listener that wakes when something was committed."""

    def wait(self, timeout: float) -> bool:
        """True when it rang. False after `timeout` seconds: look anyway, a ring may have been lost."""

    def fileno(self) -> int:
        """For a loop's add_reader; call wait(0) to take the ring."""

    def close(self) -> None:
        """Stop listening."""


class Engine(Protocol):
    """A database that holds a ledger."""

    def write(self, body: Callable[[Tx], T]) -> Pending[T]:
        """Run `body` in a transaction. All of it is committed and durable, or nothing is. May run it more than once."""

    def write_each(self, asked: Sequence[Asked]) -> None:
        """Run several in one transaction. What refuses one takes back it alone; where there is no commit, all are
        told so. Their outcomes may be there later than this returns."""

    def read(self, ask: Callable[[Tx], T]) -> T:
        """Run `ask` on a consistent snapshot. Takes no write lock and creates nothing."""

    def now(self) -> int:
        """The time by which it records, in UTC milliseconds: that of all who share the database."""

    def listen(self) -> Bell:
        """Be told of commits, by any process."""

    def close(self) -> None:
        """Finish what was asked for, then let go."""


class Over:
    """An engine over another, which alters how is written: all else is as there, and that is its owner's to close."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def read(self, ask: Callable[[Tx], T]) -> T:
        return self._engine.read(ask)

    def now(self) -> int:
        return self._engine.now()

    def listen(self) -> Bell:
        return self._engine.listen()

    def close(self) -> None:
        """Nothing of its own is open."""
