"""Loading: what is taken, and what an operator is told when it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.config.home import Home
from fleet.config.load import load
from fleet.config.settings import Settings
from fleet.errors import ConfigError, HomeError


def message(home: Home, text: str) -> str:
    """What loading this text says."""
    home.toml.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(home)
    assert str(home.toml) in caught.value.hint
    return str(caught.value)


def test_no_file_means_defaults(tmp_path: Path) -> None:
    """A home without a file, and one with an empty file, have the defaults."""
    assert load(Home(tmp_path)) == Settings()
    (tmp_path / "fleet.toml").touch()
    assert load(Home(tmp_path)) == Settings()


def test_names_without_their_section(home: Home) -> None:
    """The short names are taken, beside their section too, as long as the two agree."""
    home.toml.write_text('max_concurrent = 5\nmodel = "opus"\n[supervisor]\nmax_concurrent = 5\ncoder = "codex"\n')
    supervisor = load(home).supervisor
    assert (supervisor.max_concurrent, supervisor.model, supervisor.coder) == (5, "opus", "codex")


def test_given_twice(home: Home) -> None:
    """A setting that is given twice and differs is an error."""
    assert message(home, "max_concurrent = 5\n[supervisor]\nmax_concurrent = 6\n") == (
        "fleet.toml:1: max_concurrent: supervisor.max_concurrent is given too and differs; keep one of them"
    )


def test_a_byte_order_mark_is_no_fault(home: Home) -> None:
    """A file saved by an editor that marks its encoding loads all the same."""
    home.toml.write_bytes(b"\xef\xbb\xbfmodel = 'opus'\r\n")
    assert load(home).supervisor.model == "opus"


def test_an_unknown_key(home: Home) -> None:
    """An unknown key is told with its line and the nearest valid one."""
    text = "# one\n\n[supervisor]\n\n\n\nmax_concurent = 3\n"
    assert message(home, text) == "fleet.toml:7: supervisor.max_concurent: unknown key; did you mean max_concurrent?"


def test_a_wrong_type(home: Home) -> None:
    """A wrong value is told with what was expected and what was found."""
    assert message(home, '\n[supervisor]\nmax_concurrent = "three"\n') == (
        'fleet.toml:3: supervisor.max_concurrent: expected an integer from 1 to 1000, found "three"'
    )


def test_every_fault_at_once(home: Home) -> None:
    """All faults of a file are told in one go, in the order of their lines."""
    text = (
        'modle = "x"\n'
        "[supervisor]\n"
        "max_concurrent = 0\n"
        "[store]\n"
        'mirror = "maybe"\n'
        "nonsense = 1\n"
        "[timeouts]\n"
        "api_status = true\n"
        "[[hosts]]\n"
        'kind = "ssh"\n'
        "[[hosts]]\n"
        'name = "-x"\n'
        "[extra]\n"
    )
    assert message(home, text).splitlines() == [
        "fleet.toml:1: modle: unknown key; did you mean model?",
        "fleet.toml:3: supervisor.max_concurrent: expected an integer from 1 to 1000, found 0",
        'fleet.toml:5: store.mirror: expected "auto", "on" or "off", found "maybe"',
        "fleet.toml:6: store.nonsense: unknown key; valid keys: url, schema, password_env, mirror",
        "fleet.toml:8: timeouts.api_status: expected a number above 0 and up to 86400, found true",
        (
            "fleet.toml:9: hosts[0].name: is missing; "
            "expected a name of letters, digits and . _ @ : - that does not begin with -"
        ),
        (
            "fleet.toml:12: hosts[1].name: "
            'expected a name of letters, digits and . _ @ : - that does not begin with -, found "-x"'
        ),
        (
            "fleet.toml:13: extra: unknown key; valid keys: supervisor, queue, store, timeouts, status, sprites, "
            "health, alerts, api, hosts, workers, coders, channels, routes, updates, pools, max_concurrent, coder, "
            "model, context_pressure_threshold_pct"
        ),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("supervisor.modell = 'x'", "fleet.toml:1: supervisor.modell: unknown key; did you mean model?"),
        ("supervisor = { coder = 'a',\nmodel = 3 }", None),
        ("supervisor = 3", "fleet.toml:1: supervisor: expected a table, found 3"),
        ("[hosts]\nname = 'a'", "fleet.toml:1: hosts: expected an array of tables, found a table"),
        (
            "[[hosts]]\nname = 'a'\nkind = 'ssh'\nhost = '-oProxy=x'",
            'fleet.toml:4: hosts[0].host: expected a name or address that does not begin with -, found "-oProxy=x"',
        ),
        (
            "[[hosts]]\nname = 'a'\nkind = 'ssh'\nhost = 'h'\nworking_directory = '/w'",
            "fleet.toml:1: hosts[0].agent_binary: is missing; an ssh host needs a program's name or path",
        ),
        (
            "[[workers]]\nid = 'w'\nhost = {kind = 'local', hots = 'h'}",
            "fleet.toml:3: workers[0].host.hots: unknown key; did you mean host?",
        ),
        ("[[workers]]\nid = 'w'\nhost = 'x'", 'fleet.toml:3: workers[0].host: there is no host "x"; there are: none'),
        (
            "[[workers]]\nid = 'w'\nhost = 3",
            "fleet.toml:3: workers[0].host: expected the name of a host, or a table, found 3",
        ),
        ("url = 'x'", "fleet.toml:1: url: unknown key; did you mean store.url?"),
        (
            "[ 'queue' ]\n\"source\" = 'bead'",
            'fleet.toml:2: queue.source: expected "fleet" or "beads", found "bead"',
        ),
        (
            "hosts = [\n  {name='a'},\n  {name='a'},\n]",
            'fleet.toml:3: hosts[1].name: "a" is also the name of host 1',
        ),
        ("[timeouts]\napi_status = [1]", None),
    ],
)
def test_faults_in_any_layout(home: Home, text: str, expected: str | None) -> None:
    """Dotted keys, inline tables, quoted keys and arrays have their lines too."""
    found = message(home, text)
    assert found.startswith("fleet.toml:")
    assert expected in (None, found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\nmodel = opus\n", "fleet.toml:2:9: not TOML: invalid value for model; is it text without quotes?"),
        ("[supervisor\n", "fleet.toml:1:12: not TOML: expected ']' at the end of a table declaration"),
        ("a = [1,\n", "fleet.toml:2:1: not TOML: invalid value"),
        ("model\r\n", "fleet.toml:1:6: not TOML: expected '=' after a key in a key/value pair"),
        ("a = 1\na = 2\n", "fleet.toml:2:6: not TOML: cannot overwrite a value"),
    ],
)
def test_broken_toml(home: Home, text: str, expected: str) -> None:
    """A syntax error is told with its line and column."""
    assert message(home, text) == expected


def test_nested_too_deep(home: Home) -> None:
    """Values that nest without end are refused in words."""
    assert "too deep" in message(home, "a = " + "[" * 100_000)


def test_bytes_that_are_no_text(home: Home) -> None:
    """A file that is not UTF-8 is told with its line."""
    home.toml.write_bytes(b"a = 1\nb = '\xff'\n")
    with pytest.raises(ConfigError, match=r"fleet.toml:2: not UTF-8"):
        load(home)


def test_a_file_without_end(home: Home) -> None:
    """A file of more than 1 MiB is refused, not read."""
    home.toml.write_bytes(b"#" * (1 << 20) + b"\n")
    with pytest.raises(ConfigError, match="larger than 1024 KiB"):
        load(home)


def test_a_directory_in_its_place(tmp_path: Path) -> None:
    """Where a directory stands in its place, that is said."""
    (tmp_path / "fleet.toml").mkdir()
    with pytest.raises(HomeError, match="directory"):
        load(Home(tmp_path))


@pytest.mark.parametrize(
    "text",
    [
        '[store]\nurl = "postgresql://u:hunter2@h/d"',
        '[store]\nurl = "mysql://u:hunter2@h/d"',
        '[store]\npassword_env = "hunter2"',
        '[alerts]\nwebhook_env = "https://h/hunter2"',
        "[store]\nurl = postgresql://u:hunter2@h/d",
    ],
)
def test_secrets_are_not_repeated(home: Home, text: str) -> None:
    """What may be a secret is refused and does not appear in the error."""
    found = message(home, text)
    assert "hunter2" not in found
    assert found.startswith("fleet.toml:2:")


def test_how_to_do_it_better(home: Home) -> None:
    """Who writes a secret is told what to write instead."""
    assert message(home, '[store]\nurl = "postgresql://u:p@h/d"') == (
        "fleet.toml:2: store.url: holds a password; use ~/.pgpass, or name a variable in store.password_env"
    )
    assert message(home, '[alerts]\nwebhook_env = "https://x"') == (
        "fleet.toml:2: alerts.webhook_env: give the NAME of an environment variable, not the value"
    )


def test_an_older_home(tmp_path: Path) -> None:
    """Without a fleet.toml a runtime.toml is read; with one it is not."""
    (tmp_path / "runtime.toml").write_text('max_concurrent = 7\ncoder = "agy"\ntelegram_chat_id = ""\n')
    supervisor = load(Home(tmp_path)).supervisor
    assert (supervisor.max_concurrent, supervisor.coder, supervisor.model) == (7, "agy", "sonnet")
    (tmp_path / "fleet.toml").touch()
    assert load(Home(tmp_path)) == Settings()


def test_faults_of_an_older_home(tmp_path: Path) -> None:
    """Faults of a runtime.toml are told with its name and lines."""
    (tmp_path / "runtime.toml").write_text('\nmax_concurrent = "3"\nclaim_poll_interval_sec = 5\n')
    with pytest.raises(ConfigError) as caught:
        load(Home(tmp_path))
    assert str(caught.value).splitlines() == [
        'runtime.toml:2: max_concurrent: expected an integer from 1 to 1000, found "3"',
        (
            "runtime.toml:3: claim_poll_interval_sec: unknown key; "
            "valid keys: max_concurrent, coder, model, context_pressure_threshold_pct"
        ),
    ]
