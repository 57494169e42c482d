"""Many verbs at a time: in pieces of one transaction each, every verb in them done or refused by itself.

Whoever is killed in between has done whole pieces; to say the same again does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, TypeVar

from fleet.errors import REFUSED, FleetError, StoreError
from fleet.store.store import Store

T = TypeVar("T")
Later: TypeAlias = Callable[[], T]  # what came of a verb, once it is committed; raises what it was refused for
Begin: TypeAlias = Callable[[Store, str], Later[T]]
AT_ONCE = 200  # enough that the commits are few, and not so many that others wait long for the end of one


def each(store: Store, words: Sequence[str], begin: Begin[T], after: Callable[[], object]) -> Iterator[T | FleetError]:
    """What came of the verb for each word, in order; a piece is committed before anything of it is given."""
    for start in range(0, len(words), AT_ONCE):
        with store.together() as gathering:
            begun = [_begun(begin, gathering, word) for word in words[start : start + AT_ONCE]]
        done = [one if isinstance(one, FleetError) else _done(one) for one in begun]
        after()
        yield from done


def _begun(begin: Begin[T], store: Store, word: str) -> Later[T] | FleetError:
    try:
        return begin(store, word)
    except REFUSED as exc:
        return exc


def _done(later: Later[T]) -> T | FleetError:
    try:
        return later()
    except StoreError:  # nothing of the piece was written
        raise
    except FleetError as exc:
        return exc
