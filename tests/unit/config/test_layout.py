"""Where things stand in a TOML text, judged by the standard parser."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fleet.config.fields import KeyPath
from fleet.config.layout import Layout

TEXT = '''\
# a comment with [brackets] and = signs
title = "a # b"  # not in the string
"quoted key" = 'c:\\path'
a.b . "c.d" = 1

[table]
list = [ 1, "]", [2, 3],  # ] inside
  { x = 1, y.z = "}" },
]
text = """
# list = 7
[table]
quote: \\""" ""\\"
"""
raw = \'\'\'
[[hosts]]
\'\'\'\'\'
when = 1979-05-27 07:32:00

[ table . "sub table" ]
n = inf

[[hosts]]
name = "a"
[[hosts.disks]]
size = 1
[[hosts.disks]]
size = 2
[[hosts]]
name = "b"
[hosts.net]
ip = "x"
[[ hosts.disks ]]
size = 3
'''


def at(data: Any, path: KeyPath) -> Any:
    for part in path:
        data = data[part]
    return data


def leaves(data: Any, path: KeyPath = ()) -> set[KeyPath]:
    if isinstance(data, dict):
        return {leaf for key, value in data.items() for leaf in leaves(value, (*path, key))}
    if isinstance(data, list):
        return {leaf for place, value in enumerate(data) for leaf in leaves(value, (*path, place))}
    return {path}


def assert_agrees(text: str) -> None:
    """Each value that the parser finds is where the layout says, and no other."""
    data = tomllib.loads(text)
    layout = Layout(text)
    assert leaves(data) <= layout.values.keys()
    for path, place in layout.values.items():
        assert tomllib.loads(f"v = {text[place.start : place.end]}")["v"] == at(data, path)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_every_value_is_found(ending: str) -> None:
    """In a text with everything that TOML has, every value is found at its place."""
    assert_agrees(TEXT.replace("\n", ending))


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("title",), 2),
        (("quoted key",), 3),
        (("a", "b", "c.d"), 4),
        (("table",), 6),
        (("table", "list", 0), 7),
        (("table", "list", 3, "y", "z"), 8),
        (("table", "text"), 10),
        (("table", "when"), 18),
        (("table", "sub table"), 20),
        (("table", "sub table", "n"), 21),
        (("hosts",), 23),
        (("hosts", 0, "disks", 1, "size"), 28),
        (("hosts", 1), 29),
        (("hosts", 1, "net", "ip"), 32),
        (("hosts", 1, "disks", 0, "size"), 34),
        (("hosts", 1, "missing", "deeper"), 29),
        (("missing",), 1),
    ],
)
def test_lines(path: KeyPath, line: int) -> None:
    """A key is on its line; what is missing is on the line of what should hold it."""
    assert Layout(TEXT).line(path) == line


def test_tables_cover_the_text() -> None:
    """The root and each header have a stretch of the text, one after the other."""
    tables = Layout(TEXT).tables
    assert [table.path for table in tables][:4] == [(), ("table",), ("table", "sub table"), ("hosts", 0)]
    assert tables[0].start == 0
    assert tables[-1].end == len(TEXT)


scalars = st.one_of(
    st.sampled_from(
        ["1", "-2.5e3", "true", "1979-05-27", "07:32:00", '"a # = ] } \\" x"', "'lit # ]'", '"""\nm # ]\n"""', '""']
    ),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda each: "[" + ", # c ]\n".join(each) + "\n]"),
        st.lists(inner, max_size=2).map(
            lambda each: "{" + ", ".join(f"k{n} = {v}" for n, v in enumerate(each) if "\n" not in v) + "}"
        ),
    ),
    max_leaves=5,
)
names = st.sampled_from(["a", "b", "hosts", '"q.k"', "'l k'", "x . y", 'a."="', "b-1"])
lines = st.one_of(
    st.builds("{} = {}".format, names, values),
    st.builds("  {}={} # tail = 1".format, names, values),
    st.builds("[{}]".format, names),
    st.builds("[[ {} ]] # head".format, names),
    st.sampled_from(["", "# a = 1", "  # [x]"]),
)


@given(st.lists(lines, max_size=10))
def test_any_text_that_the_parser_takes(parts: list[str]) -> None:
    """Whatever the parser accepts, the layout agrees with it."""
    text = "\n".join(parts)
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assume(False)
    assert_agrees(text)
