"""A served fleet, looked at and steered from elsewhere: the same words, objects and exit codes as at its home."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.cli import main
from fleet.cli.commands import COMMANDS
from fleet.config import tokens
from fleet.config.tokens import Role
from tests.support.cli import Cli, Done, line_from

SECONDS = 60
AGO = re.compile(r"\d+ ?(?:s|m|min|h)\b(?: \d+ ?s)?(?: ago)?|just now")
SPEC = {
    "name": "night",
    "labels": {"team": "web"},
    "tasks": [
        {"id": "good", "command": ["sh", "-c", "echo hello; echo done > report.md"], "expected_artifacts": ["log"]},
        {"id": "bad", "command": ["sh", "-c", "echo oops; exit 3"], "retry_policy": {"max_attempts": 1}},
        {"id": "after", "command": ["true"], "needs": ["bad"]},
    ],
}


class Pair:
    """The same person at the machine of a home, and elsewhere with a token."""

    def __init__(self, cli: Cli, url: str, capfd: pytest.CaptureFixture[str], env: pytest.MonkeyPatch) -> None:
        self.cli = cli
        self.url = url
        self._capfd = capfd
        self._env = env
        self.secret = tokens.add(cli.home, "bob", Role.OPERATE).secret
        env.chdir(cli.cwd)

    def here(self, *argv: str) -> Done:
        """A command where the home is."""
        self._env.setenv("FLEET_HOME", str(self.cli.home.path))
        self._env.setenv("USER", "bob")
        return self._run(*argv)

    def away(self, *argv: str, token: str | None = None) -> Done:
        """A command elsewhere, where there is no home."""
        self._env.setenv("FLEET_HOME", str(self.cli.path / "nowhere"))
        self._env.setenv("MY_TOKEN", self.secret if token is None else token)
        return self._run("--url", self.url, "--token-env", "MY_TOKEN", *argv)

    def same(self, *argv: str) -> Done:
        """What a command says, which must be the same here and elsewhere."""
        local, remote = self.here(*argv), self.away(*argv)
        assert _timeless(remote) == _timeless(local)
        return remote

    def _run(self, *argv: str) -> Done:
        self._capfd.readouterr()
        code = main(list(argv))
        out, err = self._capfd.readouterr()
        assert self.secret not in out + err
        return Done(code, out, err)


def _timeless(done: Done) -> Done:
    return Done(done.code, AGO.sub("AGO", done.out), AGO.sub("AGO", done.err))


@pytest.fixture
def pair(cli: Cli, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    """A home with a run that is over, a task that waits and one that asks; served on a free port."""
    (cli.cwd / "night.json").write_text(json.dumps(SPEC))
    assert cli.run("run", "night.json", "--quiet").code == 1
    for name in ("FLEET_URL", "FLEET_TOKEN", "FLEET_TASK_ID"):
        monkeypatch.delenv(name, raising=False)
    with cli.started("serve", "--port", "0") as process:
        found = re.search(r"http://\S+(?=/v1/fleet;)", line_from(process.stderr, seconds=SECONDS))
        assert found
        yield Pair(cli, found[0], capfd, monkeypatch)


def test_looks_are_the_same_elsewhere(pair: Pair) -> None:
    """Every command that looks prints the same and ends the same, in words and with --json, also when it fails."""
    waits, asks = pair.cli.add("Wait", "--label", "team=web"), pair.cli.add("Ask")
    with pair.cli.control() as control:
        control.block(asks, "question", "Which one?")
    lines = {line["title"]: line["id"] for line in json.loads(pair.here("tasks", "--status", "all", "--json").out)}
    good, bad = lines["good"], lines["bad"]
    (run,) = {receipt["run"] for receipt in json.loads(pair.here("receipts", good, "--json").out)}
    looks = [
        ["status"],
        ["status", "--run", run],
        ["ready"],
        ["ready", "--limit", "1"],
        ["tasks", "--status", "all"],
        ["tasks", "--run", run],
        ["tasks", "--label", "team=web", "--status", "queued"],
        ["tasks"],
        ["show", waits],
        ["show", bad],
        ["inspect", good],
        ["receipts", good],
        ["receipts", "--run", run],
        ["receipts"],
        ["receipts", "check"],
        ["artifacts", good],
        ["artifacts", waits],
        ["logs", good],
        ["logs", bad, "-n", "1"],
        ["logs", f"{good}.1"],
        ["logs", waits],
        ["task", good, "log"],
        ["task", good, "events"],
        ["task", waits, "plan"],
        ["task", waits, "knowledge"],
        ["task", waits, "stderr"],
        ["task", "nope", "events"],
        ["ledger", "tail"],
        ["ledger", "tail", "-n", "3"],
        ["ledger", "tail", "--task", bad],
        ["ledger", "tail", "--task", "nope"],
        ["log"],
        ["log", "2"],
        ["questions"],
        ["why", bad],
        ["why", asks],
        ["wait", run],
        ["run", "status"],
        ["hosts"],
        ["inspect", "nope"],
        ["show", "nope"],
        ["why", "nope"],
        ["wait", "nope"],
        ["tasks", "--status", "odd"],
        ["artifacts", good, "--open", "nope"],
    ]
    pair.cli.task_file(waits, "artifacts/PLAN_AND_STATUS.md").write_text("1. wait\n")
    for argv in looks:
        for form in ([], ["--json"]):
            pair.same(*argv, *form)
    assert pair.same("logs", good, "--raw").out.count("\n") >= 1
    assert "hello" in pair.same("logs", good, "-f").out
    assert "hello" in pair.same("artifacts", good, "--open", "log").out
    assert pair.same("wait", run).code == 1


def test_what_a_task_changed_is_seen_elsewhere(pair: Pair) -> None:
    """Its worktree and diff, for whoever may look; what looks like a secret does not leave, what is no text does."""
    repo = pair.cli.cwd / "repo"
    for words in (["init", "-q", str(repo)], ["-C", str(repo), "commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", "-c", "user.name=ana", "-c", "user.email=ana@example.com", *words], check=True)
    how = ["--coder", "command", "--isolation", "worktree", "--cwd", str(repo)]
    plain = pair.cli.add("Plain", "-d", r"echo two >a.txt; printf 'caf\351\n' >b.txt", *how)
    secret = pair.cli.add("Secret", "-d", r"printf 'key=sk-%s\n' abcdefghijklmnop1234 >c.txt", *how)
    none = pair.cli.add("None")
    pair.cli.run("stop", none)
    pair.cli.ok("run", "--drain")
    for words in (["task", plain, "diff"], ["task", none, "diff"], ["task", "nope", "diff"], ["worktrees"]):
        for form in ([], ["--json"]):
            pair.same(*words, *form)
    assert plain in pair.away("worktrees").out
    pair.same("worktrees", "--host", "nope")
    reader = tokens.add(pair.cli.home, "eve", Role.READ).secret
    shown = pair.away("task", plain, "diff", token=reader)
    assert (shown.code, "+two\n" in shown.out, "+caf\\xe9\n" in shown.out) == (0, True, True)
    assert "+key=sk-abcdefghijklmnop1234\n" in pair.here("task", secret, "diff").out
    assert "+key=<redacted>\n" in pair.away("task", secret, "diff").out


def test_the_health_of_machines_elsewhere(pair: Pair) -> None:
    """No machine is no health; one that was never probed is told once, as unknown, and is exit code 1."""
    done = pair.away("health")
    assert (done.code, done.out) == (4, "")
    assert done.err.startswith("error: there are no hosts\n")
    with pair.cli.home.toml.open("a") as file:
        file.write('\n[[hosts]]\nname = "here"\nkind = "local"\n')
    done = pair.away("health")
    assert (done.code, done.out) == (1, "UNHEALTHY hosts:\n  here: unknown\n")


def test_a_report_of_machines_elsewhere(pair: Pair) -> None:
    """By the last probes there, in every format and into a file here; who would wake or choose is told that."""
    assert pair.away("report").code == 4
    with pair.cli.home.toml.open("a") as file:
        file.write('\n[[hosts]]\nname = "team-a-01"\nkind = "local"\n')
    pair.cli.ok("report")
    stamp = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00|\b\d{13}\b")
    for form in ("json", "md", "csv", "html"):
        words = ["--format", form, "--since", "24h"]
        here, away = pair.here("report", "--no-probe", *words), pair.away("report", *words)
        assert (away.code, away.err, stamp.sub("T", away.out)) == (0, "", stamp.sub("T", here.out))
        assert "team-a-01" in away.out
    assert pair.away("report", "-o", "there.json") == (0, "", "")
    assert json.loads((pair.cli.cwd / "there.json").read_text())["availability"]["team-a-01"]["up"] == 1
    for words in (["--wake"], ["--team", "team"]):
        done = pair.away("report", *words)
        assert (done.code, "works on a home here" in done.err) == (2, True)


def test_a_ledger_is_exported_elsewhere(pair: Pair) -> None:
    """The same bytes and the same ends of chains as at home, on stdout and into a file, which can be verified there."""
    pair.same("ledger", "export")
    assert pair.same("ledger", "export", "--heads").code == 0
    done = pair.away("ledger", "export", "-o", "there.jsonl")
    assert (done.code, done.out, "events written to there.jsonl" in done.err) == (0, "", True)
    assert (pair.cli.cwd / "there.jsonl").read_text() == pair.here("ledger", "export").out
    assert pair.away("ledger", "verify", "there.jsonl").out.startswith("OK: ")


def test_what_was_spent_is_told_elsewhere(pair: Pair) -> None:
    """As at home, by days that begin here and by all else, in words and as JSON."""
    now = re.compile(r'"until": \d+')
    for words in (
        [],
        ["--by", "coder"],
        ["--by", "label"],
        ["--since", "today", "--by", "host"],
        ["--since", "2020-01-01"],
    ):
        for form in ([], ["--json"]):
            here, away = pair.here("cost", *words, *form), pair.away("cost", *words, *form)
            assert (away.code, away.err, now.sub("", away.out)) == (here.code, here.err, now.sub("", here.out))
    told = json.loads(pair.away("cost", "--by", "label", "--json").out)
    assert [(line["name"], line["sessions"], line["cost_microusd"]) for line in told["lines"]] == [("team=web", 2, 0)]


def test_settings_are_shown_elsewhere_to_an_admin(pair: Pair) -> None:
    """As at home, in words and as JSON, to nobody else, and without what looks like a secret; nothing can be set."""
    pair.cli.ok("config", "set", "supervisor.max_concurrent=7")
    with pair.cli.home.toml.open("a") as file:
        file.write('\n[[hosts]]\nname = "team-a-01"\nkind = "local"\n')
    admin = tokens.add(pair.cli.home, "root", Role.ADMIN).secret
    for form in ([], ["--json"]):
        here, away = pair.here("config", "show", *form), pair.away("config", "show", *form, token=admin)
        assert away == here
        assert "team-a-01" in away.out
    done = pair.away("config", "show")
    assert (done.code, "this needs the role admin, and bob has operate" in done.err) == (1, True)
    with pair.cli.home.toml.open("a") as file:
        file.write('[pools.kite]\nrepo = "https://ana:hunter2@example.com/kite.git"\n')
    assert "hunter2" in pair.here("config", "show").out
    shown = pair.away("config", "show", token=admin)
    assert (shown.code, "https://ana:<redacted>@example.com" in shown.out, "hunter2" in shown.out) == (0, True, False)
    for words in (["show", "--raw"], ["set", "supervisor.max_concurrent=1"], ["schema"]):
        done = pair.away("config", *words, token=admin)
        assert (done.code, "works on a home here" in done.err) == (2, True)


def test_verbs_are_the_same_elsewhere(pair: Pair) -> None:
    """What is said to a twin here and to a twin elsewhere comes to the same, and the ledger knows who said it."""
    said: list[list[str]] = []
    for run in (pair.here, pair.away):
        heard: list[str] = []

        def do(*argv: str, run: object = run, heard: list[str] = heard) -> Done:
            done = run(*argv)  # type: ignore[operator]
            heard.append(re.sub(r"fleet-\w+", "ID", f"{done.code} {done.out}{done.err}"))
            return Done(*done)

        uid = do("add", "Twin", "-d", "Both.", "--cwd", str(pair.cli.cwd), "--quiet").out.strip()
        after = do("add", "After", "--needs", uid, "--cwd", str(pair.cli.cwd), "-q").out.strip()
        do("interrupt", uid)
        with pair.cli.control() as control:
            control.block(uid, "question", "Which one?")
        do("answer", uid, "The first.")
        do("verify", uid)
        do("stop", uid, "--reason", "no longer wanted")
        do("restart", uid, "--force")
        do("stop", after)
        do("stop", uid)
        do("stop")
        do("answer", uid, "Too late.")
        said.append(heard)
    assert said[0] == said[1]
    assert "(bob)" in pair.cli.ok("ledger", "tail", "-n", "1").out
    made = json.loads(pair.away("add", "Nowhere", "--json").out)
    assert (made["cwd"], made["created_by"]) == (None, "bob")
    assert json.loads(pair.away("stop", "--all", "--json").out)[0]["id"] == made["id"]


def test_a_spec_is_run_elsewhere(pair: Pair) -> None:
    """The spec is read here and run there: the same table and exit code; what is wrong with one is told at once."""
    spec = Path("two.toml")
    spec.write_text('[[tasks]]\nid = "a"\ncommand = ["true"]\n')
    detached = pair.away("run", "two.toml", "--detach")
    assert (detached.code, detached.out.startswith("two-")) == (0, True)
    with pair.cli.started("run", "--drain"):
        done = pair.away("run", "two.toml", "--json")
        assert (done.code, json.loads(done.out)["run"]["name"]) == (0, "two")
        assert pair.away("wait", detached.out.strip()).code == 0
    spec.write_text('[[tasks]]\nid = "a"\nwrong = 1\n')
    local, remote = pair.here("run", "two.toml"), pair.away("run", "two.toml")
    assert (local.code, remote.code) == (2, 2)
    assert "tasks[0].wrong" in local.err
    assert "tasks[0].wrong" in remote.err


@pytest.mark.parametrize("name", [command.name for command in COMMANDS if not command.remote])
def test_what_works_on_a_home_here_alone_says_so(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A command that cannot be told to a served fleet ends with 2 before it does anything."""
    assert main(["--url", "http://127.0.0.1:9", name]) == 2
    assert "works on a home here" in capfd.readouterr().err


def test_what_can_go_wrong_on_the_way(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each way of failing is told in its own words, with what helps; the token is in none of them."""
    reader = tokens.add(pair.cli.home, "eve", Role.READ).secret
    cases = [
        (pair.away("status", token="flt_wrong"), 1, "does not take the token"),
        (pair.away("status", token=""), 2, "$MY_TOKEN holds no token"),
        (pair.away("status", token="a b"), 2, "characters that no token has"),
        (pair.away("stop", "--all", token=reader), 1, "this needs the role operate, and eve has read"),
        (pair.away("run", "night.json", "--dry-run"), 2, "--dry-run works on a home here"),
        (pair.away("task", "x", "set", "priority=1"), 2, "`fleet task set` works on a home here"),
        (pair.away("ledger", "verify"), 2, "`fleet ledger verify` works on a home here"),
        (pair.away("worktrees", "drop", "x"), 2, "`fleet worktrees drop` works on a home here"),
        (pair.away("run"), 2, "supervising works on a home here"),
        (pair.away("hosts", "drain", "x"), 2, "`fleet hosts drain` works on a home here"),
    ]
    monkeypatch.setenv("FLEET_TOKEN", pair.secret)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    for url, code, words in (
        (f"http://127.0.0.1:{port}", 1, "Connection refused\nhint: nobody listens on that port"),
        (pair.url.replace("http:", "https:"), 1, f"certificate, its address is {pair.url}\n"),
        (pair.url.replace("http:", "https:"), 1, "cannot be trusted: it does not speak TLS"),
        (pair.url.removeprefix("http://"), 2, f"did you mean {pair.url}?"),
        ("fleet.example:7878", 2, "did you mean https://fleet.example:7878?"),
        ("http://127.0.0.1:78789", 2, "Port out of range"),
        ("http://fleet.example:7878", 2, "in the clear"),
        ("http://bob:secret@127.0.0.1", 2, "a host and a port alone"),
        ("nonsense", 2, "takes an address"),
    ):
        pair.url = url
        cases.append((pair.away("status"), code, words))
    for done, code, words in cases:
        assert words in done.err
        assert (done.code, done.out) == (code, "")


def test_an_address_is_looked_at_before_the_token(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has neither is told of the address."""
    monkeypatch.delenv("FLEET_TOKEN", raising=False)
    assert main(["--url", "nonsense", "status"]) == 2
    said = "error: --url takes an address such as http://127.0.0.1:7878, not `nonsense`\n"
    assert capfd.readouterr().err == said


def test_another_server_is_not_taken_for_a_fleet(pair: Pair) -> None:
    """What answers but is no Fleet, or one of another version, is told as that."""
    answers = [
        b"HTTP/1.1 302 Found\r\nlocation: /login\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nnull",
        b'HTTP/1.1 200 OK\r\ncontent-length: 34\r\n\r\n{"status": "ok", "version": "9.9"}\n',
    ]
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(SECONDS)

        def serve() -> None:
            for data in answers:
                connection, _ = server.accept()
                with connection:
                    connection.recv(1 << 16)
                    connection.sendall(data)

        thread = threading.Thread(target=serve)
        thread.start()
        pair.url = f"http://127.0.0.1:{server.getsockname()[1]}"
        other, older = pair.away("status"), pair.away("status")
        thread.join(SECONDS)
    assert (other.code, "is no server of Fleet: it answered 302" in other.err) == (1, True)
    assert (older.code, "the server is Fleet 9.9, and this is" in older.err) == (1, True)


def message(connection: socket.socket) -> bytes:
    """A whole request or answer: its head, and the body that the head announces."""
    connection.settimeout(SECONDS)
    data = b""
    while True:
        head, end, body = data.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        if end and len(body) >= int(length[1] if length else 0):
            return data
        more = connection.recv(1 << 16)
        assert more, data
        data += more


def test_a_connection_that_breaks_does_nothing_twice(pair: Pair) -> None:
    """Where the answer is lost on its way, the command asks again with the same key, and one task is there."""
    host, port = pair.url.removeprefix("http://").split(":")
    seen: list[bytes] = []

    def carry(server: socket.socket) -> None:
        for lost in (True, False):
            client, _ = server.accept()
            with client, socket.create_connection((host, int(port)), SECONDS) as there:
                seen.append(message(client))
                there.sendall(seen[-1])
                answer = message(there)
                client.sendall(b"" if lost else answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(SECONDS)
        thread = threading.Thread(target=carry, args=[server])
        thread.start()
        pair.url = f"http://127.0.0.1:{server.getsockname()[1]}"
        done = pair.away("add", "Once", "--quiet")
        thread.join(SECONDS)
    assert done.code == 0
    first, second = (re.search(rb"idempotency-key: (\w+)", each) for each in seen)
    assert first
    assert second
    assert first[1] == second[1]
    listed = json.loads(pair.here("tasks", "--status", "queued", "--json").out)
    assert [line["id"] for line in listed] == [done.out.strip()]


def test_the_address_can_stand_in_the_environment(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """$FLEET_URL and $FLEET_TOKEN are enough; a home that is named goes before them."""
    monkeypatch.setenv("FLEET_URL", pair.url)
    monkeypatch.setenv("FLEET_TOKEN", pair.secret)
    found = json.loads(pair.here("status", "--json").out)
    assert found["home"] == str(pair.cli.home.path)
    assert pair.here("ledger", "verify").code == 2
    assert pair.here("--home", str(pair.cli.home.path), "ledger", "verify").code == 0
    assert pair.here("--home", "x", "--url", pair.url, "status").code == 2
