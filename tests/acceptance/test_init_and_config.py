"""`fleet init` and `fleet config`, as a user runs them."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "seeds"


class Done(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


class User:
    """Somebody with a directory, a configuration and a shell of their own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cwd = path
        self.env = {"HOME": str(path), "XDG_CONFIG_HOME": str(path / "config"), "PATH": os.environ.get("PATH", "")}

    def fleet(self, *words: str) -> Done:
        """Run the command."""
        done = subprocess.run(
            [sys.executable, "-m", "fleet", *words],
            cwd=self.cwd,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def user(tmp_path: Path) -> User:
    path = tmp_path / "user"
    path.mkdir()
    return User(path)


def test_init(user: User) -> None:
    """The home is made once, closed to others, and the same line is printed again the second time."""
    home = user.path / ".fleet"
    expected = Done(0, f"Fleet home initialized at {home}\n", "")
    assert user.fleet("init") == expected
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert (home / "fleet.toml").is_file()
    assert (home / "fleet.db").is_file()
    text = (home / "fleet.toml").read_text()
    assert user.fleet("init") == expected
    assert (home / "fleet.toml").read_text() == text


def test_init_as_json(user: User) -> None:
    """With --json, before the command or after it, the result is an object."""
    home = str(user.path / ".fleet")
    assert json.loads(user.fleet("init", "--json").out) == {"home": home, "created": True, "notes": []}
    assert json.loads(user.fleet("--json", "init").out) == {"home": home, "created": False, "notes": []}


def test_which_home(user: User) -> None:
    """--home goes before $FLEET_HOME, which goes before ~/.fleet."""
    user.env["FLEET_HOME"] = "from-variable"
    assert user.fleet("init").out.endswith(f"{user.path / 'from-variable'}\n")
    assert user.fleet("init", "--home", "from-flag").out.endswith(f"{user.path / 'from-flag'}\n")
    assert user.fleet("--home", "~/first", "init").out.endswith(f"{user.path / 'first'}\n")
    assert not (user.path / ".fleet").exists()
    assert user.fleet("--home=", "init").code == 2


def test_a_home_here(user: User) -> None:
    """--here makes a home that git ignores, and from then on it is used from anywhere below."""
    project = user.path / "project"
    (project / "src").mkdir(parents=True)
    user.cwd = project
    assert user.fleet("init", "--here").out == f"Fleet home initialized at {project / '.fleet'}\n"
    assert (project / ".fleet" / ".gitignore").read_text() == "*\n"
    listed = user.path / "config" / "fleet" / "trusted"
    assert listed.read_text() == f"{project / '.fleet'}\n"
    assert stat.S_IMODE(listed.stat().st_mode) == 0o600
    user.cwd = project / "src"
    assert user.fleet("config", "show").out.startswith(f"# {project / '.fleet' / 'fleet.toml'}\n")
    assert user.fleet("init", "--here", "--home", "x").code == 2


def test_a_repository_cannot_bring_a_home(user: User) -> None:
    """A .fleet that the user has not trusted is not used, and the commands that matter say so."""
    clone = user.path / "clone"
    (clone / ".fleet").mkdir(parents=True)
    (clone / ".fleet" / "fleet.toml").write_text('model = "evil"\n')
    user.cwd = clone
    note = "./.fleet is not on your trusted list and was not used; run `fleet init --here` to trust it"
    shown = user.fleet("config", "show")
    assert (shown.code, shown.out) == (4, "")
    assert note in shown.err
    assert f"note: {note}\n" in user.fleet("init").err
    shown = user.fleet("config", "show")
    assert "evil" not in shown.out
    assert shown.err == f"note: {note}\n"
    assert user.fleet("config", "set", "model=mine").err == ""
    trusted = user.fleet("init", "--here")
    assert trusted.code == 0
    assert "was there already and is trusted from now on" in trusted.err
    assert 'model = "evil"\n' in user.fleet("config", "show").out


def test_no_home(user: User) -> None:
    """Commands of `config` never make a home."""
    for words in (
        ["show"],
        ["show", "--raw"],
        ["get", "model"],
        ["set", "model=x"],
        ["unset", "model"],
        ["import", str(EXAMPLES / "000-config.yaml")],
    ):
        done = user.fleet("config", *words)
        assert (done.code, done.out) == (4, "")
        assert done.err == (
            f"error: there is no Fleet home at {user.path / '.fleet'} yet\n"
            "hint: run `fleet init` (or `fleet init --here` for a home in this directory)\n"
        )
    assert os.listdir(user.path) == []


def test_set_and_show(user: User) -> None:
    """What is set is shown without a mark, the rest as defaults, and --raw prints the very bytes."""
    user.fleet("init")
    done = user.fleet("config", "set", "max_concurrent=5", "store.mirror=off", "model=GPT-OSS 120B")
    assert done == Done(
        0,
        'supervisor.max_concurrent = 5  (was 3)\nstore.mirror = "off"  (was "auto")\n'
        'supervisor.model = "GPT-OSS 120B"  (was "sonnet")\n',
        "",
    )
    shown = user.fleet("config", "show").out
    assert "\nmax_concurrent = 5\n" in shown
    assert '\nmodel = "GPT-OSS 120B"\n' in shown
    assert '\ncoder = "claude"  # default\n' in shown
    raw = user.fleet("config", "show", "--raw").out
    assert raw == (user.path / ".fleet" / "fleet.toml").read_text()
    assert "# max_concurrent = 3\nmax_concurrent = 5\n" in raw
    shown_json = json.loads(user.fleet("config", "show", "--json").out)
    assert shown_json["settings"]["supervisor"]["max_concurrent"] == 5
    assert "supervisor.coder" in shown_json["defaults"]
    assert "supervisor.model" not in shown_json["defaults"]
    changes = json.loads(user.fleet("config", "set", "--json", "max_concurrent=6").out)
    assert changes == {"changes": [{"key": "supervisor.max_concurrent", "old": 5, "new": 6}]}


def test_get_and_unset(user: User) -> None:
    """One setting is printed as it is in force; taken out, its default is, and what was not set is said to be so."""
    user.fleet("init")
    file = user.path / ".fleet" / "fleet.toml"
    before = file.read_bytes()
    assert user.fleet("config", "get", "supervisor.max_concurrent") == Done(0, "3\n", "")
    user.fleet("config", "set", "max_concurrent=5", "model=GPT-OSS 120B")
    assert user.fleet("config", "get", "model") == Done(0, "GPT-OSS 120B\n", "")
    assert json.loads(user.fleet("config", "get", "max_concurrent", "--json").out) == {
        "key": "supervisor.max_concurrent",
        "value": 5,
        "default": False,
    }
    done = user.fleet("config", "unset", "max_concurrent", "model", "coder")
    assert done == Done(
        0,
        'supervisor.max_concurrent = 3  (default, was 5)\nsupervisor.model = "sonnet"  (default, was "GPT-OSS 120B")\n',
        "supervisor.coder is not set in fleet.toml: its default is in force\n",
    )
    assert file.read_bytes() == before
    assert json.loads(user.fleet("config", "unset", "model", "--json").out) == {"changes": []}
    for verb in ("get", "unset"):
        done = user.fleet("config", verb, "max_concurent")
        assert (done.code, done.err) == (
            2,
            "error: max_concurent: unknown key; did you mean supervisor.max_concurrent?\n",
        )
    assert user.fleet("config", "get", "coders.acme.program").code == 4


def test_what_is_shown_can_be_loaded(user: User, tmp_path: Path) -> None:
    """The output of `config show` is a fleet.toml that says the same."""
    user.fleet("init")
    user.fleet("config", "set", "max_concurrent=5")
    user.fleet("config", "import", str(EXAMPLES / "000-config.yaml"))
    shown = user.fleet("config", "show")
    other = tmp_path / "other"
    other.mkdir()
    (other / "fleet.toml").write_text(shown.out)
    again = json.loads(user.fleet("config", "show", "--json", "--home", str(other)).out)
    assert again["settings"] == json.loads(user.fleet("config", "show", "--json").out)["settings"]


def test_wrong_words(user: User) -> None:
    """A wrong key, value or coder has exit code 2, a sentence and a hint, and changes nothing."""
    user.fleet("init")
    file = user.path / ".fleet" / "fleet.toml"
    before = file.read_bytes()
    for words, expected in (
        (["max_concurent=3"], "error: max_concurent: unknown key; did you mean supervisor.max_concurrent?\n"),
        (
            ["model=x", "max_concurrent=three"],
            'error: supervisor.max_concurrent: expected an integer from 1 to 1000, found "three"\n',
        ),
        (["coder=cladue"], 'error: supervisor.coder: there is no coder "cladue"\n'),
        (
            ["alerts.webhook_env=https://h/x"],
            "error: alerts.webhook_env: give the NAME of an environment variable, not the value\n",
        ),
    ):
        done = user.fleet("config", "set", *words)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith(expected)
    assert file.read_bytes() == before
    for words in ([], ["nothing"], ["set"]):
        assert user.fleet("config", *words).code == 2
    assert user.fleet("config", "set", "coder=codex").code == 0


def test_a_broken_file(user: User) -> None:
    """Every fault is printed with its line; --force keeps the file aside and the home works again."""
    user.fleet("init")
    home = user.path / ".fleet"
    (home / "fleet.toml").write_text('[supervisor]\nmax_concurent = 3\nmodel = ""\n')
    done = user.fleet("config", "show")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "error: fleet.toml:2: supervisor.max_concurent: unknown key; did you mean max_concurrent?\n"
        'fleet.toml:3: supervisor.model: expected the name of a model, found ""\n'
        f"hint: the file is {home / 'fleet.toml'}\n"
    )
    assert user.fleet("config", "show", "--raw").out == (home / "fleet.toml").read_text()
    assert user.fleet("init").code == 2
    repaired = user.fleet("init", "--force")
    assert repaired.code == 0
    assert "note: fleet.toml was broken" in repaired.err
    assert len(list(home.glob("fleet.toml.broken-*"))) == 1
    assert user.fleet("config", "show").code == 0


def test_taking_over_a_fleet_manager(user: User) -> None:
    """Its sprites, timeouts and webhook arrive; the webhook's address is printed nowhere; twice is once."""
    user.fleet("init")
    file = user.path / "config.yaml"
    text = (EXAMPLES / "000-config.yaml").read_text()
    file.write_text(text.replace('webhook_url: ""', 'webhook_url: "https://h.example/hunter2"'))
    done = user.fleet("config", "import", "config.yaml")
    assert done.code == 0
    assert done.out.count("hosts.") == 8
    assert 'alerts.webhook_env = "FLEET_WEBHOOK_URL"' in done.out
    assert "hunter2" not in done.out + done.err
    secrets = user.path / ".fleet" / "secrets.env"
    assert secrets.read_text() == "FLEET_WEBHOOK_URL=https://h.example/hunter2\n"
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o600
    again = user.fleet("config", "import", "config.yaml")
    assert again == Done(0, "", "note: fleet.toml already says all that config.yaml says\n")
    assert json.loads(user.fleet("config", "import", "config.yaml", "--json").out) == {"changes": [], "notes": []}


def test_taking_over_a_supervisors_home(user: User) -> None:
    """`fleet init` in the home of an older supervisor keeps its settings, logs and tasks, and says so."""
    home = user.path / ".fleet"
    (home / "logging").mkdir(parents=True)
    (home / "tasks" / "fleet-abc").mkdir(parents=True)
    home.chmod(0o700)
    (home / "runtime.toml").write_bytes((EXAMPLES / "003-runtime.toml").read_bytes() + b'telegram_chat_id = ""\n')
    assert "\nmax_concurrent = 3\n" in user.fleet("config", "show").out
    done = user.fleet("init")
    assert done.out == f"Fleet home initialized at {home}\n"
    assert "note: adopted runtime.toml: max_concurrent, coder, model, context_pressure_threshold_pct" in done.err
    assert "note: runtime.toml: telegram_chat_id was not taken over\n" in done.err
    assert "note: adopted logging/" in done.err
    assert "note: adopted tasks/: 1 task directory" in done.err
    assert user.fleet("init").err == ""


def test_schema(user: User) -> None:
    """The schema is JSON, needs no home, and an unknown name has exit code 4."""
    done = user.fleet("config", "schema")
    assert json.loads(done.out)["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert user.fleet("config", "schema", "settings").out == done.out
    assert user.fleet("config", "schema", "nothing").code == 4


def test_a_file_in_the_way(user: User) -> None:
    """Where a file stands in the way of the home it stays, and the error says so."""
    (user.path / ".fleet").write_text("precious")
    done = user.fleet("init")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error: cannot make {user.path / '.fleet'}: ")
    assert (user.path / ".fleet").read_text() == "precious"


@pytest.mark.parametrize("words", [["init"], ["config"], ["config", "set"], ["config", "import"], ["config", "show"]])
def test_help_has_examples(user: User, words: list[str]) -> None:
    """Every --help ends with two examples to paste."""
    done = user.fleet(*words, "--help")
    assert done.code == 0
    assert done.out.partition("examples:\n")[2].count("  fleet ") == 2
