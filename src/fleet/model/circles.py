"""Circles among things that need each other: none of them could ever begin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping


def circles(needs: Mapping[str, Iterable[str]]) -> Iterator[list[str]]:
    """Each circle once, from the name where it was entered, by what each needs, back to that name.

    What is needed and has no needs of its own here is in no circle. A long chain is walked without recursion.
    """
    done: set[str] = set()
    for start, first in needs.items():
        trail: dict[str, Iterator[str]] = {start: iter(first)} if start not in done else {}
        while trail:
            node = next(reversed(trail))
            step = next(trail[node], None)
            if step is None:
                del trail[node]
                done.add(node)
            elif step in trail:
                names = list(trail)
                yield [*names[names.index(step) :], step]
            elif step in needs and step not in done:
                trail[step] = iter(needs[step])
