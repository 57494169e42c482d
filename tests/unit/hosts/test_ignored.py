"""Which of the files that git ignores are kept when a worktree goes."""

from __future__ import annotations

import pytest

from fleet.errors import Conflict
from fleet.hosts.ignored import MOST_KEPT, Leftover, Sorted, leftovers, shown, sort_out, told

NOTES = Leftover(name="notes.md", bytes=4096)
MODULES = Leftover(name="web/node_modules", bytes=300 << 20, remade=True)
MODEL = Leftover(name="model.bin", bytes=MOST_KEPT)


def test_what_a_host_tells_is_read_by_name_and_size() -> None:
    """Odd names too; a copy that did not change is nothing, and counts for nothing where it is in a directory."""
    said = (
        "900\t.git\n4\tnotes.md\n8\ttwo\nlines\n20\tcache/\n12\tsame.env\n40\tout/\n16\tweb/node_modules/\n0\t.git\n"
        "\0out/\0\0"
        "12\tsame.env\n8\tcache/model\n"
    )
    assert leftovers(said) == (
        NOTES,
        Leftover(name="two\nlines", bytes=8192),
        Leftover(name="cache", bytes=12 << 10),
        Leftover(name="out", bytes=40 << 10, remade=True),
        Leftover(name="web/node_modules", bytes=16 << 10, remade=True),
    )


def test_what_no_program_makes_anew_is_kept() -> None:
    """Unless all of it, or none, is asked for."""
    found = (NOTES, MODULES)
    assert sort_out(found, None) == Sorted(kept=(NOTES,), gone=(MODULES,))
    assert sort_out(found, "keep") == Sorted(kept=found)
    assert sort_out(found, "discard") == Sorted(gone=found)


def test_what_is_too_much_to_keep_unasked_is_told() -> None:
    """The largest first, and how much it is."""
    with pytest.raises(Conflict, match=r"git ignores model\.bin, notes\.md \(16 MiB\)") as refused:
        sort_out((NOTES, MODEL), None)
    assert "--ignored discard" in refused.value.hint


@pytest.mark.parametrize(("count", "words"), [(0, "0 KiB"), (1536 << 10, "2 MiB"), (5 << 30, "5.0 GiB")])
def test_sizes_are_told_in_a_unit_that_is_read_at_a_glance(count: int, words: str) -> None:
    """And of many names only the first."""
    many = (Leftover(name="a", bytes=count), *(Leftover(name=str(each), bytes=0) for each in range(6)))
    assert told(many) == f"a, 0, 1, 2, 3 and 2 more ({words})"


def test_a_name_that_is_no_text_or_moves_the_cursor_is_shown_as_escapes() -> None:
    """Letters of any script are shown as they are."""
    odd = b"caf\xe9 \x1b[2J".decode("utf-8", "surrogateescape")
    assert shown(f"ä\n{odd}") == "ä\\ncaf\\xe9 \\x1b[2J"
