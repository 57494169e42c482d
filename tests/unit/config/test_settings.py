"""What the settings accept."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fleet.config.fields import fields, find, sections, words
from fleet.config.settings import Settings, holds_password

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
    settings = msgspec.convert({"hosts": [{"name": "hammer"}, {"name": "anvil", "kind": "ssh"}]}, Settings)
    assert [(host.name, host.kind, host.api_name) for host in settings.hosts] == [
        ("hammer", "sprite", ""),
        ("anvil", "ssh", ""),
    ]
    with pytest.raises(msgspec.ValidationError, match="also the name of host 1"):
        msgspec.convert({"hosts": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}, Settings)


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
