"""Editing fleet.toml: the value is there, the rest is untouched, and nothing is written when anything is wrong."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.config.edit import Change, set_values, unset_values
from fleet.config.fields import Field, bare, fields, notes
from fleet.config.home import Home
from fleet.config.layout import Layout
from fleet.config.load import load
from fleet.config.render import literal
from fleet.config.settings import Settings
from fleet.config.stated import stated_keys
from fleet.config.template import template
from fleet.errors import ConfigError, FleetError, NoHome, UsageError

LAYOUTS = {
    "template": template(),
    "empty": "",
    "comment only": "# mine",
    "sections": '# top\n[supervisor] # s\nmodel = "opus"   # m\n\n# q\n[queue]\n\n[[hosts]]\nname = "a"\n',
    "dotted": '# top\nsupervisor.model = "opus" # m\nstore.mirror = "on"\ntimeouts.api_status = 3',
    "inline": 'supervisor = { model = "opus" } # s\nqueue = {}\n[store]\n',
    "short names": 'max_concurrent = 2 # n\nmodel = "opus"\n\n[store]\nmirror = "off"\n',
    "windows": '[supervisor]\r\n# model = "x"\r\n\r\n[store] # s\r\nmirror = "on"\r\n',
    "a text that looks like a setting": '[supervisor]\nmodel = "a"\n[[hosts]]\nname = "a"\n[store]\nschema = "x"\n',
}


def set_value(home: Home, assignment: str, known_coders: Collection[str] | None = None) -> Change:
    """Set one `key=value`."""
    (change,) = set_values(home, [assignment], known_coders)
    return change


def values(field: Field) -> st.SearchStrategy[Any]:
    """Values that a setting takes."""
    by_key: dict[str, st.SearchStrategy[Any]] = {
        "supervisor.model": st.text("aé\"\\'#=[]{}.,😀 ", max_size=12).map(lambda text: f"m{text}".strip()),
        "supervisor.budget_usd": st.one_of(st.integers(0, 10**6), st.floats(0, 10**6)),
        "store.url": st.sampled_from(["", "postgresql://u@h/d", "postgres:///x?host=/run"]),
        "store.password_env": st.from_regex(r"[A-Z_][A-Z0-9_]*", fullmatch=True),
        "sprites.url": st.sampled_from(["https://api.example.com", "http://127.0.0.1:8080"]),
        "sprites.token_env": st.from_regex(r"[A-Z_][A-Z0-9_]*", fullmatch=True),
        "api.host": st.sampled_from(["127.0.0.1", "::1", "fleet.example"]),
        "api.names": st.lists(st.sampled_from(["fleet.example", "[::1]"]), max_size=2).map(tuple),
        "api.origins": st.lists(st.sampled_from(["https://desk.example"]), max_size=1).map(tuple),
        "alerts.webhook_env": st.from_regex(r"[A-Z_][A-Z0-9_]*", fullmatch=True),
    }
    names = st.from_regex(r"[a-z][a-z0-9_]{0,20}", fullmatch=True)
    if get_origin(bare(field.type)) is Literal:
        return st.sampled_from(get_args(bare(field.type)))
    if bare(field.type) is bool:
        return st.booleans()
    if bare(field.type) is int:
        (bounds,) = notes(field.type)
        return st.integers(int(bounds.ge or 0), int(bounds.le or 0))
    if field.section == "timeouts":
        return st.one_of(st.integers(1, 86400), st.floats(0.001, 86400))
    return by_key.get(field.key, names if field.key != "queue.prefix" else names.map(lambda n: n.replace("_", "-")))


edits = st.sampled_from(list(fields())).flatmap(lambda field: st.tuples(st.just(field), values(field)))


@given(st.sampled_from(sorted(LAYOUTS)), st.lists(edits, min_size=1, max_size=4), st.booleans())
def test_any_value_in_any_layout(layout: str, wanted: list[tuple[Field, Any]], quoted: bool) -> None:
    """Whatever is set is read back; every comment and every other value is as it was, in the same order."""
    with tempfile.TemporaryDirectory() as directory:
        home = Home(Path(directory))
        home.toml.write_bytes(LAYOUTS[layout].encode())
        before = load(home)
        texts = [literal(value) if quoted or not isinstance(value, str) else value for _, value in wanted]
        set_values(home, [f"{field.key}={text}" for (field, _), text in zip(wanted, texts, strict=True)])
        after = load(home)
        expected = {field.key: value for field, value in wanted}
        for field in fields():
            section = getattr(after if field.key in expected else before, field.section)
            now = getattr(getattr(after, field.section), field.name)
            assert now == expected.get(field.key, getattr(section, field.name))
        assert after.hosts == before.hosts
        new = home.toml.read_bytes().decode()
        assert comments(LAYOUTS[layout]) == comments(new)
        assert ("\r\n" in LAYOUTS[layout]) == ("\r\n" in new)


@given(st.sampled_from(sorted(LAYOUTS)), st.lists(st.sampled_from(list(fields())), min_size=1, max_size=4))
def test_any_value_is_taken_out_of_any_layout(layout: str, wanted: list[Field]) -> None:
    """The defaults are in force again; every comment and every other value is as it was, in the same order."""
    with tempfile.TemporaryDirectory() as directory:
        home = Home(Path(directory))
        home.toml.write_bytes(LAYOUTS[layout].encode())
        before, stated = load(home), stated_keys(home)
        keys = {field.key for field in wanted}
        changes = unset_values(home, [field.key for field in wanted])
        assert {change.key for change in changes} == keys & stated
        after, untouched = load(home), Settings()
        for field in fields():
            expected = untouched if field.key in keys else before
            assert getattr(getattr(after, field.section), field.name) == getattr(
                getattr(expected, field.section), field.name
            )
        assert (after.hosts, stated_keys(home)) == (before.hosts, stated - keys)
        assert comments(LAYOUTS[layout]) == comments(home.toml.read_bytes().decode())
        if not changes:
            assert home.toml.read_bytes() == LAYOUTS[layout].encode()


def test_what_is_left_when_a_setting_is_taken_out(home: Home) -> None:
    """Its line goes, what was remarked beside it stays, and one that is given twice goes from both places."""
    home.toml.write_text('model = "a"\n[supervisor]\n# of mine\nmodel = "a"  # the big one\ncoder = "codex"\n')
    assert unset_values(home, ["supervisor.model"]) == [Change("supervisor.model", "a", "sonnet")]
    assert home.toml.read_text() == '[supervisor]\n# of mine\n# the big one\ncoder = "codex"\n'
    home.toml.write_text('supervisor = { model = "a", coder = "codex" }\n')
    unset_values(home, ["model"])
    assert home.toml.read_text() == 'supervisor = { coder = "codex" }\n'
    unset_values(home, ["coder"])
    assert home.toml.read_text() == "supervisor = { }\n"
    assert unset_values(home, ["coder"]) == []


def test_what_is_needed_is_not_taken_out(home: Home) -> None:
    """The file is checked as a whole before it is written, and a key that nobody knows has the nearest named."""
    home.toml.write_text('[channels.ops]\nkind = "file"\npath = "/tmp/x"\n')
    before = home.toml.read_text()
    with pytest.raises(ConfigError):
        unset_values(home, ["channels.ops.kind"])
    with pytest.raises(UsageError, match=r"did you mean supervisor\.max_concurrent"):
        unset_values(home, ["supervisor.max_concurent"])
    with pytest.raises(UsageError, match="supervisor is a table"):
        unset_values(home, ["supervisor"])
    assert home.toml.read_text() == before


def comments(text: str) -> list[str]:
    """What stands behind a `#` that is in no value."""
    places = sorted(Layout(text).values.values())
    outer = [place for place in places if not any(o.start < place.start < o.end for o in places)]
    for place in reversed(outer):
        text = text[: place.start] + text[place.end :]
    return [line.partition("#")[2] for line in text.splitlines() if "#" in line]


def test_it_stands_after_its_default(home: Home) -> None:
    """In the file that init writes, a new value stands right after the commented default."""
    assert set_value(home, "supervisor.max_concurrent=5") == Change("supervisor.max_concurrent", 3, 5)
    lines = home.toml.read_text().splitlines()
    place = lines.index("# max_concurrent = 3")
    assert lines[place + 1] == "max_concurrent = 5"
    assert [line for line in lines if line != "max_concurrent = 5"] == template().splitlines()


def test_it_stands_in_its_section(home: Home) -> None:
    """Without a commented default a new value is the last of its section; a new section is the last of the file."""
    home.toml.write_text('[supervisor]\nmodel = "a"  # mine\n\n# about the queue\n[queue]\nsource = "fleet"\n')
    set_values(home, ["coder=codex", "queue.prefix=x", "store.mirror=off"])
    assert home.toml.read_text() == (
        '[supervisor]\nmodel = "a"  # mine\ncoder = "codex"\n\n# about the queue\n'
        '[queue]\nsource = "fleet"\nprefix = "x"\n\n[store]\nmirror = "off"\n'
    )


def test_a_comment_in_a_text_is_no_comment(home: Home) -> None:
    """A line of a long string that looks like a commented default is left alone."""
    text = '[supervisor]\nmodel = """m\\\n# coder = 1\\\n"""\n'
    home.toml.write_text(text)
    set_value(home, "coder=codex")
    assert home.toml.read_text() == text + 'coder = "codex"\n'


def test_it_is_changed_where_it_stands(home: Home) -> None:
    """A short name at the top is changed there, and one that is given twice is changed in both places."""
    home.toml.write_text("max_concurrent = 2\n")
    set_value(home, "supervisor.max_concurrent=9")
    assert home.toml.read_text() == "max_concurrent = 9\n"
    home.toml.write_text("max_concurrent = 2\n[supervisor]\nmax_concurrent = 2 # c\n")
    set_value(home, "max_concurrent=4")
    assert home.toml.read_text() == "max_concurrent = 4\n[supervisor]\nmax_concurrent = 4 # c\n"


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        ("model=opus", "opus"),
        ('model="opus"', "opus"),
        ("model='opus'", "opus"),
        ("model = GPT-OSS 120B ", "GPT-OSS 120B"),
        ("model=a=b", "a=b"),
        ("model=3", "3"),
        ("model=true", "true"),
        ("max_concurrent= 1_0", 10),
        ("timeouts.api_status=2.5", 2.5),
        ("store.url=", ""),
        ('store.url=""', ""),
        ("store.mirror=on", "on"),
    ],
)
def test_values_have_the_type_of_their_setting(home: Home, assignment: str, expected: object) -> None:
    """A word means text where text is expected, bare or quoted, and a number where a number is."""
    assert set_value(home, assignment).new == expected


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        ("max_concurrent=three", 'supervisor.max_concurrent: expected an integer from 1 to 1000, found "three"'),
        ("max_concurrent=", 'supervisor.max_concurrent: expected an integer from 1 to 1000, found ""'),
        ("max_concurrent=0", "supervisor.max_concurrent: expected an integer from 1 to 1000, found 0"),
        ("max_concurrent=3\nmodel='x'", "supervisor.max_concurrent: expected an integer from 1 to 1000"),
        ("supervisor.max_concurent=3", "supervisor.max_concurent: unknown key; did you mean supervisor.max_concurrent"),
        ("url=x", "url: unknown key; did you mean store.url?"),
        ("hosts=[]", "hosts is a list of tables"),
        ("hosts.0.name=x", "hosts is a list of tables"),
        ("supervisor=x", "supervisor is a table"),
        ("model", "expected KEY=VALUE"),
        ("=x", "expected KEY=VALUE"),
        ('model="x', "supervisor.model: expected the name of a model, found a quote that does not end"),
        ("store.mirror=true", 'store.mirror: expected "auto", "on" or "off", found true'),
        ("alerts.webhook_env=https://h/x", "give the NAME of an environment variable, not the value"),
        ("store.password_env=hunter2", "give the NAME of an environment variable, not the value"),
        ("store.url=postgresql://u:hunter2@h/d", "store.url: holds a password; use ~/.pgpass"),
        ("model=\udcff", "not UTF-8 text"),
        ("max_concurrent=\udcff", "not UTF-8 text"),
    ],
)
def test_refused_and_nothing_written(home: Home, assignment: str, expected: str) -> None:
    """A wrong key or value is an error in words, without any secret, and the file is not touched."""
    before = home.toml.stat()
    with pytest.raises(UsageError) as caught:
        set_value(home, assignment)
    assert expected in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert (home.toml.stat().st_ino, home.toml.read_text()) == (before.st_ino, template())


def test_all_or_nothing(home: Home) -> None:
    """Of several settings either all are written or none."""
    with pytest.raises(UsageError):
        set_values(home, ["model=opus", "max_concurrent=0"])
    assert home.toml.read_text() == template()
    assert [change.key for change in set_values(home, ["model=opus", "max_concurrent=2"])] == [
        "supervisor.model",
        "supervisor.max_concurrent",
    ]


ACME = 'coders.acme.argv=["acme", "{prompt}"]'


def test_a_coder_has_settings_of_its_own(home: Home) -> None:
    """By its name, typed and checked; comments stay, a new table is the last of the file, an old one is added to."""
    home.toml.write_text('# mine\n[coders.claude]\nprogram = "/opt/claude"  # pinned\n')
    changes = set_values(home, ['coders.claude.secrets=["A_KEY"]', ACME, "coders.acme.context_limit=5"])
    assert changes[0] == Change("coders.claude.secrets", (), ["A_KEY"])
    set_value(home, "coders.claude.program=/usr/bin/claude")
    assert home.toml.read_text() == (
        '# mine\n[coders.claude]\nprogram = "/usr/bin/claude"  # pinned\nsecrets = ["A_KEY"]\n\n'
        '[coders.acme]\nargv = ["acme", "{prompt}"]\ncontext_limit = 5\n'
    )
    set_value(home, "coders.my.own.program=x")
    assert '[coders."my.own"]\nprogram = "x"\n' in home.toml.read_text()
    assert load(home).coders["my.own"].program == "x"


@pytest.mark.parametrize(
    ("assignment", "said"),
    [
        ("coders.acme.context_limit=many", "coders.acme.context_limit: expected an integer"),
        ('coders.acme.secrets=["sk-123"]', "give the NAME of an environment variable, not the value"),
        ("coders.acme.secrets=KEY", "coders.acme.secrets: expected an array of values"),
        ("coders.acme.output=xml", 'coders.acme.output: expected "text"'),
        ("coders.acme.programme=x", "did you mean coders.acme.program?"),
        ("coders=x", "coders: unknown key; valid keys: coders.NAME.program, "),
        ("coders.acme.python=here", "expected FILE:CLASS"),
        ("nosuch.key=1", "nosuch.key: unknown key; the sections are: supervisor, queue, "),
    ],
)
def test_a_setting_of_a_coder_is_checked(home: Home, assignment: str, said: str) -> None:
    """As every other one, and nothing is written."""
    before = home.toml.read_bytes()
    with pytest.raises((UsageError, ConfigError)) as caught:
        set_value(home, assignment)
    assert said in str(caught.value)
    assert "sk-123" not in str(caught.value)
    assert home.toml.read_bytes() == before


def test_the_coders_of_the_file_are_coders_too(home: Home) -> None:
    """One that it makes can be chosen, also in the step that makes it; a table that makes none cannot."""
    set_values(home, [ACME, "coder=acme"], known_coders=("claude",))
    set_value(home, "coders.other.program=/opt/other")
    with pytest.raises(UsageError, match='there is no coder "other"') as caught:
        set_value(home, "coder=other", known_coders=("claude",))
    assert caught.value.hint == "there are: acme, claude"


def test_registered_coders(home: Home) -> None:
    """Where the caller knows the coders, no other is taken."""
    with pytest.raises(UsageError, match='no coder "cladue"') as caught:
        set_value(home, "coder=cladue", known_coders=("claude", "codex"))
    assert "claude, codex" in caught.value.hint
    assert set_value(home, "coder=codex", known_coders=("claude", "codex")).new == "codex"
    assert set_value(home, "coder=other").new == "other"


def test_a_file_with_faults(home: Home) -> None:
    """Other faults of the file are told with the lines that the user sees; a fault that is set right is cured."""
    home.toml.write_text('[supervisor]\nmax_concurrent = "three"\n[queue]\nsource = 1\n')
    with pytest.raises(ConfigError, match=r"fleet.toml:4: queue.source"):
        set_value(home, "max_concurrent=3")
    home.toml.write_text('[supervisor]\nmax_concurrent = "three"\n')
    assert set_value(home, "max_concurrent=3") == Change("supervisor.max_concurrent", "three", 3)
    home.toml.write_text("[supervisor\n")
    with pytest.raises(ConfigError, match=r"fleet.toml:1:12"):
        set_value(home, "max_concurrent=3")
    home.toml.write_text("supervisor = 3\n")
    with pytest.raises(ConfigError, match=r"fleet.toml:1: supervisor: expected a table"):
        set_value(home, "max_concurrent=3")


def test_an_old_secret_is_not_repeated(home: Home) -> None:
    """Who replaces a password in an address does not see it again."""
    home.toml.write_text('[store]\nurl = "postgresql://u:hunter2@h/d"\n')
    assert set_value(home, "store.url=postgresql://u@h/d").old == "(not shown)"


def test_an_older_home_keeps_what_it_said(tmp_path: Path) -> None:
    """The first change in a home with a runtime.toml makes a fleet.toml that says what that said."""
    (tmp_path / "runtime.toml").write_text("max_concurrent = 7\n")
    set_value(Home(tmp_path), "model=opus")
    supervisor = load(Home(tmp_path)).supervisor
    assert (supervisor.max_concurrent, supervisor.model) == (7, "opus")


def test_no_home(tmp_path: Path) -> None:
    """Setting makes no home."""
    with pytest.raises(NoHome):
        set_value(Home(tmp_path / "none"), "model=opus")
    assert not (tmp_path / "none").exists()


def test_the_mode_stays(home: Home) -> None:
    """The file keeps its mode, and only the lock is left beside it."""
    home.toml.chmod(0o640)
    set_value(home, "model=opus")
    assert stat.S_IMODE(home.toml.stat().st_mode) == 0o640
    assert sorted(os.listdir(home.path)) == ["fleet.toml", "fleet.toml.lock"]


def test_editors_at_the_same_time(home: Home) -> None:
    """Processes that set different keys at once lose nothing of each other."""
    wanted = ["max_concurrent=11", "model=m1", "queue.prefix=p1", "store.schema=s1", "timeouts.api_status=12"]
    code = (
        "import sys; from pathlib import Path\n"
        "from fleet.config.edit import set_values; from fleet.config.home import Home\n"
        "set_values(Home(Path(sys.argv[1])), [sys.argv[2]])"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(home.path), each]) for each in wanted]
    assert [each.wait() for each in running] == [0] * len(wanted)
    after = load(home)
    found = (after.supervisor.max_concurrent, after.supervisor.model, after.queue.prefix)
    assert found == (11, "m1", "p1")
    assert (after.store.schema, after.timeouts.api_status) == ("s1", 12)


def test_a_home_that_cannot_be_written(home: Home) -> None:
    """Where the lock cannot be made, that is an error in words."""
    (home.path / "fleet.toml.lock").mkdir()
    with pytest.raises(FleetError, match="cannot lock"):
        set_value(home, "model=opus")
