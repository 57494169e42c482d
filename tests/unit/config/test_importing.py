"""Taking over a Fleet Manager's config.yaml or a runtime.toml."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from fleet.config.edit import Change
from fleet.config.home import Home
from fleet.config.importing import import_file
from fleet.config.load import load
from fleet.config.template import template
from fleet.errors import ConfigError, FleetError, NoHome, NotFound

EXAMPLES = Path(__file__).parents[3] / "examples" / "seeds"
HOOK = "https://discord.example/api/webhooks/1/hunter2"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def test_the_example_of_a_config_yaml(home: Home) -> None:
    """Eight sprites and three timeouts arrive, and the second time there is nothing left to do."""
    done = import_file(home, EXAMPLES / "000-config.yaml")
    settings = load(home)
    names = (
        "hammer anvil forge mallet test-sprite sprite-mobile-conductor sprite-mobile-worker-1 sprite-mobile-worker-2"
    )
    assert [(host.name, host.api_name, host.kind) for host in settings.hosts] == [
        (name, name, "sprite") for name in names.split()
    ]
    assert (settings.timeouts.api_status, settings.timeouts.health_probe, settings.timeouts.command_exec) == (
        10,
        15,
        60,
    )
    assert settings.alerts.webhook_env == ""
    assert settings.status.wake
    assert len(done.changes) == 8 + 1 + 3 + 1
    assert not done.notes
    assert not home.secrets.exists()
    before = home.toml.read_bytes()
    again = import_file(home, EXAMPLES / "000-config.yaml")
    assert (again.changes, again.notes, home.toml.read_bytes()) == ([], [], before)


SEMANTIC = {
    "hammer": "agents-review-claude-01",
    "anvil": "agents-review-codex-01",
    "forge": "agents-synth-01",
    "mallet": "dev-workspace-01",
    "test-sprite": "infra-bootstrap-01",
    "sprite-mobile-conductor": "mobile-conductor-01",
    "sprite-mobile-worker-1": "mobile-worker-01",
    "sprite-mobile-worker-2": "mobile-worker-02",
}


@pytest.mark.parametrize("before", [False, True], ids=["new", "named later"])
def test_semantic_names(home: Home, before: bool) -> None:
    """The file of names names the eight sprites, also those that were imported without it; twice is once."""
    if before:
        import_file(home, EXAMPLES / "000-config.yaml")
    import_file(home, EXAMPLES / "000-config.yaml", EXAMPLES / "000-names.txt")
    assert {host.api_name: host.name for host in load(home).hosts} == SEMANTIC
    again = import_file(home, EXAMPLES / "000-config.yaml", EXAMPLES / "000-names.txt")
    assert (again.changes, again.notes) == ([], [])
    assert import_file(home, EXAMPLES / "000-config.yaml").changes == []  # a name that was given stays


def test_a_name_for_nobody(home: Home, tmp_path: Path) -> None:
    """A name for what is none of the sprites is told, and does nothing."""
    names = tmp_path / "names.txt"
    names.write_text("hammer = dev-hammer-01  # ours\n\nanvill = dev-anvil-01\n")
    done = import_file(home, EXAMPLES / "000-config.yaml", names)
    assert done.notes == ["anvill has a name, but is none of the sprites"]
    assert [host.name for host in load(home).hosts][:2] == ["dev-hammer-01", "anvil"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hammer agents-01\n", "names.txt:1: expected API-NAME = SEMANTIC-NAME"),
        ("# a\nhammer = two words\n", "names.txt:2: expected a name of letters"),
        ("a = x\na = y\n", "names.txt:2: a is given twice"),
        ("a = x\nb = x\n", "names.txt:2: x is given twice"),
    ],
)
def test_names_that_cannot_be_taken(home: Home, tmp_path: Path, text: str, words: str) -> None:
    """The line and what is wrong with it are told, and nothing is imported."""
    names = tmp_path / "names.txt"
    names.write_text(text)
    with pytest.raises(ConfigError, match=words):
        import_file(home, EXAMPLES / "000-config.yaml", names)
    assert load(home).hosts == ()


def test_the_example_of_a_runtime_toml(home: Home) -> None:
    """Its four keys arrive in [supervisor], and the second time there is nothing left to do."""
    done = import_file(home, EXAMPLES / "003-runtime.toml")
    assert [change.key for change in done.changes] == [
        "supervisor.max_concurrent",
        "supervisor.coder",
        "supervisor.model",
        "supervisor.context_pressure_threshold_pct",
    ]
    assert "\nmax_concurrent = 3\n" in home.toml.read_text()
    again = import_file(home, EXAMPLES / "003-runtime.toml")
    assert (again.changes, again.notes) == ([], [])


def test_what_differs_is_listed(home: Home, tmp_path: Path) -> None:
    """A value that was there and differs is replaced and listed with both; comments stay."""
    home.toml.write_text('# mine\n[supervisor]\nmax_concurrent = 9  # many\nmodel = "opus"\n')
    file = tmp_path / "runtime.toml"
    file.write_text('max_concurrent = 4\nmodel = "opus"\n')
    assert import_file(home, file).changes == [Change("supervisor.max_concurrent", 9, 4)]
    assert home.toml.read_text() == '# mine\n[supervisor]\nmax_concurrent = 4  # many\nmodel = "opus"\n'


def test_what_is_not_taken_over(home: Home, tmp_path: Path) -> None:
    """The Telegram keys of newer files are named in notes."""
    file = tmp_path / "runtime.toml"
    file.write_text('telegram_chat_id = "1"\nmax_concurrent = 4\ntelegram_allowed_ids = "2"\n')
    done = import_file(home, file)
    assert done.notes == [
        "runtime.toml: telegram_chat_id was not taken over",
        "runtime.toml: telegram_allowed_ids was not taken over",
    ]
    assert load(home).supervisor.max_concurrent == 4


def test_a_webhook_goes_to_the_secrets(home: Home, file: Path) -> None:
    """The address goes to a file that only its owner may read, fleet.toml names it, and nothing repeats it."""
    file.write_text(f'alerts:\n  webhook_url: "{HOOK}"\n')
    done = import_file(home, file)
    assert home.secrets.read_text() == f"FLEET_WEBHOOK_URL={HOOK}\n"
    assert stat.S_IMODE(home.secrets.stat().st_mode) == 0o600
    assert load(home).alerts.webhook_env == "FLEET_WEBHOOK_URL"
    assert done.changes == [
        Change("alerts.webhook_env", "", "FLEET_WEBHOOK_URL"),
        Change("alerts.enabled", False, True),
    ]
    assert "hunter2" not in str(done) + home.toml.read_text()
    again = import_file(home, file)
    assert (again.changes, again.notes) == ([], [])


def test_an_empty_webhook_turns_it_off(home: Home, file: Path) -> None:
    """Where the file says that nobody is told, nobody is told; the secret itself stays."""
    file.write_text(f"alerts: {{webhook_url: '{HOOK}'}}")
    import_file(home, file)
    file.write_text('alerts:\n  webhook_url: ""\n')
    assert import_file(home, file).changes == [Change("alerts.webhook_env", "FLEET_WEBHOOK_URL", "")]
    assert home.secrets.exists()


def test_sprites_that_are_known(home: Home, file: Path) -> None:
    """A sprite that has a better name by now is not added again; one of that name but another kind becomes one."""
    home.toml.write_text(
        '[[hosts]]\nname = "agents-review-claude-01"\napi_name = "hammer"\n\n[[hosts]]\nname = "anvil"\n'
        'kind = "local"\n\n[[hosts]]\nname = "forge"\n'
    )
    file.write_text("sprites: [hammer, anvil, forge, mallet, mallet]\n")
    assert import_file(home, file).changes == [
        Change("hosts.anvil.kind", "local", "sprite"),
        Change("hosts.anvil.api_name", None, "anvil"),
        Change("hosts.mallet", None, {"name": "mallet", "kind": "sprite", "api_name": "mallet"}),
        Change("status.wake", False, True),
    ]
    assert [host.name for host in load(home).hosts] == ["agents-review-claude-01", "anvil", "forge", "mallet"]
    assert import_file(home, file).changes == []


def test_keys_with_nothing_behind_them(home: Home, file: Path) -> None:
    """What YAML leaves empty is as good as left out."""
    file.write_text("sprites:\ntimeouts:\n  api_status:\nalerts:\n  webhook_url:\n")
    assert import_file(home, file).changes == []
    file.write_text("")
    assert import_file(home, file).changes == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sprites: [a]\nspirtes: [b]\n", ["config.yaml:2: spirtes: unknown key; did you mean sprites?"]),
        (
            "timeouts:\n  api_status: ten\n  exec: 5\nsprites:\n  - ok\n  - -rf\n  - 7\n",
            [
                'config.yaml:2: timeouts.api_status: expected a number above 0 and up to 86400, found "ten"',
                "config.yaml:3: timeouts.exec: unknown key; valid keys: api_status, health_probe, command_exec",
                (
                    "config.yaml:6: sprites[1]: expected a name of letters, digits and . _ @ : - "
                    'that does not begin with -, found "-rf"'
                ),
                (
                    "config.yaml:7: sprites[2]: expected a name of letters, digits and . _ @ : - "
                    "that does not begin with -, found 7"
                ),
            ],
        ),
        ("alerts:\n  webhook_url: ftp://hunter2\n", None),
        ("- a\n- b\n", ["config.yaml:1: expected a table, found an array"]),
        ("sprites: hammer\n", ['config.yaml:1: sprites: expected an array of values, found "hammer"']),
        ("a: [1\nb: 2\n", None),
        ("a: 1\n---\nb: 2\n", None),
        ("1: x\n", ["config.yaml:1: 1: unknown key; valid keys: sprites, timeouts, alerts"]),
        ("url: x\n", ["config.yaml:1: url: unknown key; valid keys: sprites, timeouts, alerts"]),
        ("timeouts:\n  api_status: 1\n  api_status: 2\n", ["config.yaml:3: api_status: is given twice"]),
        ("sprites: [a]\nsprites: [b]\n", ["config.yaml:2: sprites: is given twice"]),
        ("? [a]\n: b\n", None),
        ("sprites: &a [*a]\n", None),
        ("x: 2024-02-31\n", None),
        ("x: !!python/object:os.system {}\n", None),
    ],
)
def test_faults_and_nothing_written(home: Home, file: Path, text: str, expected: list[str] | None) -> None:
    """Each fault is told with its file and line, without any secret, and nothing is written."""
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        import_file(home, file)
    lines = str(caught.value).splitlines()
    assert expected in (None, lines)
    assert all(line.startswith("config.yaml:") for line in lines)
    assert "hunter2" not in str(caught.value)
    assert home.toml.read_text() == template()
    assert not home.secrets.exists()


def test_broken_yaml(home: Home, file: Path) -> None:
    """A syntax error is told with its line and column."""
    file.write_text("sprites:\n  - a\n b: c\n")
    with pytest.raises(ConfigError, match=r"config.yaml:3:2: not YAML"):
        import_file(home, file)


def test_broken_toml_and_unknown_keys(home: Home, tmp_path: Path) -> None:
    """A runtime.toml with faults is told with its lines, and nothing is written."""
    file = tmp_path / "runtime.toml"
    file.write_text("max_concurrent = 2\nmax_conc = 3\n")
    with pytest.raises(ConfigError, match=r"runtime.toml:2: max_conc: unknown key; did you mean max_concurrent"):
        import_file(home, file)
    assert home.toml.read_text() == template()


def test_by_what_it_says(home: Home, tmp_path: Path) -> None:
    """Where the name tells nothing the content does."""
    (tmp_path / "one").write_text("max_concurrent = 8\n")
    (tmp_path / "two").write_text("timeouts:\n  api_status: 8\n")
    import_file(home, tmp_path / "one")
    import_file(home, tmp_path / "two")
    assert (load(home).supervisor.max_concurrent, load(home).timeouts.api_status) == (8, 8)


def test_files_that_cannot_be_taken(home: Home, tmp_path: Path, file: Path) -> None:
    """No file, no end of it, no text in it: each is an error in words."""
    with pytest.raises(NotFound):
        import_file(home, tmp_path / "none.yaml")
    with pytest.raises(FleetError, match="directory"):
        import_file(home, tmp_path)
    file.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(ConfigError, match="larger"):
        import_file(home, file)
    file.write_bytes(b"a: 1\n\xff")
    with pytest.raises(ConfigError, match=r"config.yaml:2: not UTF-8"):
        import_file(home, file)


def test_a_home_that_is_not_there(tmp_path: Path, file: Path) -> None:
    """Importing makes no home."""
    file.write_text("sprites: [a]\n")
    with pytest.raises(NoHome):
        import_file(Home(tmp_path / "none"), file)


def test_a_fleet_toml_with_faults(home: Home, file: Path) -> None:
    """Faults of the home's own file are told first, and it is not touched."""
    home.toml.write_text("[queue]\nsource = 1\n")
    file.write_text(f"sprites: [a]\nalerts: {{webhook_url: '{HOOK}'}}\n")
    with pytest.raises(ConfigError, match=r"fleet.toml:2: queue.source"):
        import_file(home, file)
    assert not home.secrets.exists()


def test_hosts_in_one_line_cannot_be_extended(home: Home, file: Path) -> None:
    """Where hosts are written in a way that cannot be added to, nothing at all is written."""
    home.toml.write_text('hosts = [{name = "a"}]\n')
    file.write_text(f"sprites: [b]\nalerts: {{webhook_url: '{HOOK}'}}\n")
    with pytest.raises(ConfigError, match="laid out"):
        import_file(home, file)
    assert home.toml.read_text() == 'hosts = [{name = "a"}]\n'
    assert not home.secrets.exists()


def test_into_an_older_home(tmp_path: Path, file: Path) -> None:
    """Where only a runtime.toml is, what it says is kept beside what is imported."""
    home = Home(tmp_path)
    home.runtime_toml.write_text("max_concurrent = 7\n")
    file.write_text("timeouts: {api_status: 3}\n")
    import_file(home, file)
    assert (load(home).supervisor.max_concurrent, load(home).timeouts.api_status) == (7, 3)


ALERTS = """{
  "enabled": true,
  "dry_run": true,
  "routes": [
    {"events": ["stale", "restart_exhausted", "verifier_failed"], "adapter": "ops-slack"},
    {"events": ["restart_exhausted"], "adapter": "pager"}
  ],
  "adapters": {
    "ops-slack": {"kind": "slack", "webhook_env": "CODEWHALE_FLEET_SLACK_WEBHOOK", "channel": "#codewhale-fleet"},
    "pager": {
      "kind": "pager_duty", "routing_key_env": "CODEWHALE_FLEET_PAGERDUTY_ROUTING_KEY", "severity": "critical"
    }
  }
}"""


def test_alerts_as_others_write_them(home: Home, file: Path) -> None:
    """A file of alerts becomes channels and routes; a second time changes nothing more."""
    file = file.with_name("alerts.json")
    file.write_text(ALERTS)
    done = import_file(home, file)
    settings = load(home)
    assert (settings.alerts.enabled, settings.alerts.dry_run) == (True, True)
    assert settings.channels["ops-slack"].webhook_env == "CODEWHALE_FLEET_SLACK_WEBHOOK"
    assert settings.channels["pager"].severity == "critical"
    assert [(route.channel, len(route.events)) for route in settings.routes] == [("ops-slack", 3), ("pager", 1)]
    assert len(done.changes) == 2 + 3 + 3 + 2
    assert import_file(home, file).changes == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"adapter": "pager"', '"adapter": "pagr"', 'there is no channel "pagr"'),
        ('"kind": "slack"', '"kind": "slak"', "adapters.ops-slack.kind"),
        ("CODEWHALE_FLEET_SLACK_WEBHOOK", "https://hooks.example/hunter2", "the NAME of an environment variable"),
        ('"enabled": true,', '"enabled": true', "not JSON"),
    ],
)
def test_alerts_that_cannot_be_taken(home: Home, file: Path, old: str, new: str, said: str) -> None:
    """The fault is named, a value that may be a secret is not repeated, and nothing is written."""
    file = file.with_name("alerts.json")
    file.write_text(ALERTS.replace(old, new))
    before = home.toml.read_bytes() if home.toml.exists() else b""
    with pytest.raises(ConfigError) as caught:
        import_file(home, file)
    assert said in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert (home.toml.read_bytes() if home.toml.exists() else b"") == before
