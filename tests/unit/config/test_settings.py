"""What the settings accept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from fleet.config.fields import fields, find, sections, words
from fleet.config.load import parse
from fleet.config.settings import Settings, holds_password
from fleet.errors import ConfigError

GOOD: dict[str, list[dict[str, Any]]] = {
    "supervisor": [
        {"max_concurrent": 1},
        {"max_concurrent": 1000},
        {"coder": "my-coder.2"},
        {"model": "GPT-OSS 120B"},
        {"model": "provider/gpt-oss:20b"},
        {"context_pressure_threshold_pct": 100},
    ],
    "queue": [{"source": "beads"}, {"prefix": "a"}, {"prefix": "a" * 32}],
    "store": [
        {"url": "postgresql://user@db.example:5432/fleet?sslmode=require"},
        {"url": "postgres:///fleet"},
        {"schema": "_x9"},
        {"password_env": "PGPASSWORD"},
        {"mirror": "off"},
    ],
    "timeouts": [{"api_status": 0.5}, {"command_exec": 86400}],
    "alerts": [{"webhook_env": "_HOOK_1"}],
}
BAD: dict[str, list[dict[str, Any]]] = {
    "supervisor": [
        {"max_concurrent": 0},
        {"max_concurrent": 1001},
        {"max_concurrent": True},
        {"max_concurrent": 3.0},
        {"max_concurrent": "3"},
        {"coder": ""},
        {"coder": "-x"},
        {"coder": "a b"},
        {"coder": "a\n"},
        {"model": ""},
        {"model": "--help"},
        {"model": "a\nb"},
        {"context_pressure_threshold_pct": 0},
        {"context_pressure_threshold_pct": 101},
    ],
    "queue": [{"source": "bead"}, {"prefix": ""}, {"prefix": "A"}, {"prefix": "9"}, {"prefix": "a" * 33}],
    "store": [
        {"url": "mysql://h/d"},
        {"url": "postgresql://u:p@h/d"},
        {"schema": ""},
        {"schema": "a;drop"},
        {"schema": "pg_mine"},
        {"schema": "x" * 64},
        {"password_env": "s3cret"},
        {"mirror": True},
    ],
    "timeouts": [{"api_status": 0}, {"api_status": -1}, {"api_status": float("inf")}, {"api_status": float("nan")}],
    "alerts": [{"webhook_env": "https://hooks.example/x"}],
}


def cases(table: dict[str, list[dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    return [(section, values) for section, each in table.items() for values in each]


@pytest.mark.parametrize(("section", "values"), cases(GOOD))
def test_accepted(section: str, values: dict[str, Any]) -> None:
    """These values are taken."""
    settings = msgspec.convert({section: values}, Settings)
    for name, value in values.items():
        assert getattr(getattr(settings, section), name) == value


@pytest.mark.parametrize(("section", "values"), cases(BAD))
def test_refused(section: str, values: dict[str, Any]) -> None:
    """These values are not."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({section: values}, Settings)


@pytest.mark.parametrize("name", ["-oProxyCommand=x", "", "a b", "a/b", ".hidden", "x" * 129])
def test_names_of_hosts(name: str) -> None:
    """A host's name can be neither an option nor a path."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"hosts": [{"name": name}]}, Settings)
    if name:
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({"hosts": [{"name": "a", "api_name": name}]}, Settings)


def test_hosts_are_sprites_by_default_and_unique() -> None:
    """A host needs only its name, and the name only once."""
    settings = msgspec.convert({"hosts": [{"name": "hammer"}, {"name": "anvil", "kind": "local"}]}, Settings)
    assert [(host.name, host.kind, host.api_name) for host in settings.hosts] == [
        ("hammer", "sprite", ""),
        ("anvil", "local", ""),
    ]
    with pytest.raises(msgspec.ValidationError, match="also the name of host 1"):
        msgspec.convert({"hosts": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}, Settings)


AN_SSH_HOST = {"kind": "ssh", "host": "builder.example.com", "working_directory": "/srv/w", "agent_binary": "claude"}


@pytest.mark.parametrize(
    "fields",
    [
        {"user": "codewhale", "port": 22, "identity": "~/.ssh/codewhale_fleet"},
        {"host": "fe80::1%eth0"},
        {"host": "my-alias", "user": "ci@example.com"},
        {"host_key_fingerprint": "SHA256:" + "a/+9" * 10 + "abc"},
        {"proxy_jump": "ops@gate.example.com:2222,[2001:db8::1]:22"},
        {"env_allowlist": ["CODEWHALE_PROFILE", "LANG"], "capabilities": ["linux", "tests"]},
        {"stale_after_seconds": 5, "dead_man_seconds": 3600, "max_concurrent_tasks": 8},
        {"known_hosts": "~/.ssh/known_hosts", "ssh_config": "/etc/fleet/ssh_config"},
    ],
)
def test_an_ssh_host(fields: dict[str, Any]) -> None:
    """These words describe a machine that is reached over ssh."""
    (host,) = msgspec.convert({"hosts": [{"name": "b", **AN_SSH_HOST, **fields}]}, Settings).hosts
    for name, value in fields.items():
        assert getattr(host, name) == (tuple(value) if isinstance(value, list) else value)


@pytest.mark.parametrize(
    "fields",
    [
        {"host": "-oProxyCommand=touch x"},
        {"host": ""},
        {"host": "a b"},
        {"user": "-x"},
        {"user": "a`id`"},
        {"port": 65536},
        {"identity": "-oProxyCommand=x"},
        {"identity": 'a"b'},
        {"proxy_jump": "a,-b"},
        {"proxy_jump": "a;b"},
        {"working_directory": ""},
        {"working_directory": "relative"},
        {"working_directory": "~/work"},
        {"agent_binary": ""},
        {"agent_binary": "-x"},
        {"codewhale_binary": "another"},
        {"host_key_fingerprint": "MD5:aa:bb"},
        {"host_key_fingerprint": "SHA256:" + "a" * 43, "known_hosts": "/k"},
        {"env_allowlist": ["MY_TOKEN"]},
        {"env_allowlist": ["db_password"]},
        {"env_allowlist": ["A=1"]},
        {"stale_after_seconds": 0},
        {"dead_man_seconds": -1},
        {"max_concurrent_tasks": 0},
        {"kind": "sprite", "user": "ci"},
        {"kind": "local"},
        {"kind": "docker"},
    ],
)
def test_what_is_no_ssh_host(fields: dict[str, Any]) -> None:
    """These do not: options, shells' words, secrets, what is missing, and what means nothing for its kind."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"hosts": [{"name": "b", **AN_SSH_HOST, **fields}]}, Settings)


@pytest.mark.parametrize(
    "table",
    [
        {"hosts": [{"name": "here", "kind": "local", "dead_man_seconds": 60}]},
        {"hosts": [{"name": "here", "kind": "local", "stale_after_seconds": 60}]},
        {"hosts": [{"name": "here", "kind": "local", "host": "h"}]},
        {"workers": [{"id": "a", "host": {"kind": "local", "port": 22}}]},
    ],
)
def test_what_means_nothing_on_this_machine(table: dict[str, Any]) -> None:
    """What sessions here would not heed is refused, not left aside: what is accepted is enforced."""
    with pytest.raises(msgspec.ValidationError, match="means nothing"):
        msgspec.convert(table, Settings)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[[hosts]]\nname = 'b'\nkind = 'local'\nmax_concurrent_tasks = 3\n[[workers]]\nid = 'w'\nhost = 'b'\n",
            "fleet.toml:4: hosts[0].max_concurrent_tasks: worker w is on it: a worker says itself",
        ),
        (
            "[[workers]]\nid = 'w'\nhost.kind = 'local'\nhost.max_concurrent_tasks = 3\n",
            "fleet.toml:4: workers[0].host.max_concurrent_tasks: is the worker's to say: give it beside `host`",
        ),
        (
            "[[hosts]]\nname = 'b'\nkind = 'local'\n[pools.p]\nrepo = '/r'\nhosts = ['b']\n",
            'fleet.toml:6: pools.p.hosts: "b" is this machine, where workers are if no hosts are named',
        ),
        (
            "[pools.p]\nrepo = '/r'\ndirectory = '/srv'\n",
            'fleet.toml:3: pools.p.directory: means nothing unless host = "sprite"',
        ),
        (
            "[coders.claude]\nprogram = 'c'\noutput = 'jsonl'\n",
            "fleet.toml:3: coders.claude.output: belongs to a coder from a template, which argv makes",
        ),
    ],
)
def test_what_is_said_in_vain_is_told_with_its_line(text: str, said: str) -> None:
    """A number that nobody would count by, and a pool on this very machine, are refused as read."""
    with pytest.raises(ConfigError) as caught:
        parse(text, Path("/x/fleet.toml"))
    assert str(caught.value).startswith(said)


def test_a_worker_as_others_write_it() -> None:
    """A worker with its host in a table, the agent's program under its older name, is taken as it is."""
    given = {
        "id": "builder-1",
        "name": "Builder 1",
        "host": {
            "kind": "ssh",
            "host": "builder.example.com",
            "user": "codewhale",
            "port": 22,
            "identity": "~/.ssh/codewhale_fleet",
            "working_directory": "/srv/codewhale/work",
            "env_allowlist": ["CODEWHALE_PROFILE"],
            "codewhale_binary": "/usr/local/bin/codewhale",
        },
        "capabilities": ["local", "linux", "tests"],
        "max_concurrent_tasks": 1,
    }
    (worker,) = msgspec.convert({"workers": [given]}, Settings).workers
    assert not isinstance(worker.host, str)
    assert (worker.host.agent_binary, worker.host.codewhale_binary) == ("/usr/local/bin/codewhale", "")
    assert worker.capabilities == ("local", "linux", "tests")


def test_workers_are_unique_and_on_hosts_that_are_there() -> None:
    """A worker's id is given once, and a host that it names is declared."""
    host = {"name": "b", **AN_SSH_HOST}
    two = [{"id": "w", "host": "b"}, {"id": "w", "host": "b"}]
    with pytest.raises(msgspec.ValidationError, match="also the id of worker 1"):
        msgspec.convert({"hosts": [host], "workers": two}, Settings)
    with pytest.raises(msgspec.ValidationError, match='no host "c"; there are: b'):
        msgspec.convert({"hosts": [host], "workers": [{"id": "w", "host": "c"}]}, Settings)
    assert msgspec.convert({"hosts": [host], "workers": two[:1]}, Settings).workers[0].host == "b"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:p@h/d",
        "postgres://u:p%40q@h:1/d",
        "postgresql://u:p/q@h/d",
        "postgresql://u:p?q@h/d",
        "postgresql://u:p@q@h/d",
        "postgresql:///d?user=u&password=p",
        "postgresql:///d?pass%77ord=p",
        "postgresql:///d?sslpassword=p",
        "postgresql://:p@h/d",
    ],
)
def test_addresses_with_a_password(url: str) -> None:
    """A password is seen wherever an address may hold one."""
    assert holds_password(url)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://h:5432/d",
        "postgresql://u@h:5432/d",
        "postgresql://u:@h/d",
        "postgresql://h1:1,h2:2/d?target_session_attrs=any",
        "postgresql://h/d?passfile=/x&application_name=a@b",
        "postgresql://h:1/d?application_name=a@b",
        "postgresql:///d?host=/run/postgresql",
    ],
)
def test_addresses_without_a_password(url: str) -> None:
    """A port, a user or a parameter is not taken for a password."""
    assert not holds_password(url)


def test_every_setting_is_described() -> None:
    """Each setting has a description that is a sentence, and words for what it expects."""
    every = [field for section in sections() for field in section.fields]
    assert len(every) > 15
    for field in every:
        assert field.description.endswith("."), field.key
        assert words(field.type), field.key
    assert all(section.description.endswith(".") for section in sections())


def test_names_without_their_section() -> None:
    """The four short names mean settings of [supervisor]; no other name may be shortened."""
    shortened = {field.name for field in fields() if find(field.name)}
    assert shortened == {"max_concurrent", "coder", "model", "context_pressure_threshold_pct"}
    found = find("model")
    assert found
    assert found.key == "supervisor.model"
