"""What looks like a secret is put out of a text; what does not stays as it is."""

from __future__ import annotations

import time

import pytest

from fleet.model.task import NewTask
from fleet.model.terms import Terms
from fleet.policy.redaction import MARK, is_secret_name, redact, redacted

SECRETS = [
    "sk-ant-api03-" + "a1" * 20,
    "ghp_" + "A1b2" * 9,
    "github_pat_" + "A1b2" * 9,
    "xoxb-1234567890-abcdef",
    "AKIA" + "ABCDEFGH12345678",
    "https://hooks.slack.com/services/T000/B000/xyz",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc123def456ghi",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
]
HARMLESS = [
    "Read the token from $API_TOKEN, then go on.",
    "password: see the vault",
    "api_key = ${KEY}",
    "token=<your token here>",
    "count the tokens: 12000 at most",
    "task-list of sk-2 items in ghp_ files",
    "https://example.org:8080/a@b",
    "Basic understanding of 12 things",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_known_keys_go(secret: str) -> None:
    """A key of a known kind is replaced, the words around it stay."""
    assert redact(f"use {secret} here") == f"use {MARK} here"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("password=hunter22", f"password={MARK}"),
        ('{"api_key": "abc123def"}', f'{{"api_key": "{MARK}"}}'),
        ("Authorization: Bearer abcdef0123456789abcdef", f"Authorization: Bearer {MARK}"),
        ("postgres://ana:pa55word@db/x", f"postgres://ana:{MARK}@db/x"),
    ],
)
def test_values_go_their_names_stay(text: str, clean: str) -> None:
    """Of a pair, only the value is replaced."""
    assert redact(text) == clean


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_speaks_of_secrets_stays(text: str) -> None:
    """Names of variables, places to fill and plain words are no secrets."""
    assert redact(text) == text


def test_a_whole_value() -> None:
    """Every text of a task is looked at, and the places are told."""
    places: list[str] = []
    new = NewTask(title="x", terms=Terms(context=("ok", SECRETS[0]), metadata={"a": {"b": [SECRETS[1]]}}))
    clean = redacted(new, places.append)
    assert sorted(places) == ["terms.context[1]", "terms.metadata.a.b[0]"]
    assert clean == NewTask(title="x", terms=Terms(context=("ok", MARK), metadata={"a": {"b": [MARK]}}))


@pytest.mark.parametrize(("name", "secret"), [("GH_TOKEN", True), ("my_api_key", True), ("PATH", False)])
def test_names_of_variables(name: str, secret: bool) -> None:
    """A name that holds one of the words likely holds a secret."""
    assert is_secret_name(name) is secret


@pytest.mark.parametrize(
    "unit", ["password=", "a-", "Bearer ", "sk-", "eyJa.", "://a:", "-----BEGIN A PRIVATE KEY-----"]
)
def test_the_time_has_a_bound(unit: str) -> None:
    """A megabyte of what almost looks like a secret takes little time."""
    began = time.process_time()
    redact(unit * (1_000_000 // len(unit)))
    assert time.process_time() - began < 10
