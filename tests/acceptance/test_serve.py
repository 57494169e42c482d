"""`fleet serve` as a process of its own, asked over HTTP as another program asks it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from fleet.config import tokens
from fleet.config.tokens import Role
from fleet.front.address import CERTIFICATES
from tests.support import homes
from tests.support.cli import Cli, line_from
from tests.support.programs import need

SECONDS = 30


@contextlib.contextmanager
def served(
    cli: Cli, *argv: str, verify: ssl.SSLContext | bool = True
) -> Iterator[tuple[httpx.Client, subprocess.Popen[bytes]]]:
    """A server on a free port, and a client with the token that `fleet init` made."""
    token = cli.home.tokens.read_text().split()[-1]
    with cli.started("serve", "--port", "0", *argv) as process:
        said = line_from(process.stderr, seconds=SECONDS)
        found = re.search(r"https?://\S+(?=/v1/fleet;)", said)
        assert found, said
        shown = {"authorization": f"Bearer {token}"}
        with httpx.Client(base_url=found[0], headers=shown, timeout=SECONDS, verify=verify) as client:
            yield client, process


def events(stream: httpx.Response, last: int) -> list[int]:
    """The ids of the events that come, up to one."""
    found: list[int] = []
    for line in stream.iter_lines():
        if line.startswith("id: "):
            found.append(int(line[4:]))
        if line.startswith("data: ") and found[-1] >= last:
            return found
    return found


def test_serve_answers_steers_and_ends(cli: Cli) -> None:
    """The objects are those of --json, what was done stands in the ledger under the token's name, Ctrl-C ends it."""
    uid = cli.add("Write it")
    with served(cli) as (client, process):
        assert client.get("/v1/fleet/health", headers={"authorization": ""}).json()["status"] == "ok"
        assert client.get("/v1/fleet/runs", headers={"authorization": ""}).status_code == 401
        assert client.get("/v1/fleet/status").json() == cli.json("status")
        shown = cli.json("show", uid)["data"][0]["fleet"]
        assert client.get(f"/v1/fleet/tasks/{uid}").json() == shown
        stopped = client.post(f"/v1/fleet/workers/{uid}/stop", json={"reason": "no longer wanted"})
        assert stopped.status_code == 200
        last = cli.ok("ledger", "tail", "-n", "1").out
        assert "no longer wanted" in last
        assert "(ana)" in last
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 0
        rest = process.stderr.read() if process.stderr else b""
        assert b"flt_" not in rest


def test_events_go_on_after_a_restart_of_the_server(cli: Cli) -> None:
    """A client that comes back with its last id gets all that happened while the server was away, once each."""
    with served(cli) as (client, process), client.stream("GET", "/v1/fleet/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        first = stream.iter_lines()
        assert next(first) == "retry: 1000"
        cli.add("one")
        cli.add("two")
        lines: list[str] = []
        while len([line for line in lines if line.startswith("data: ")]) < 2:
            lines.append(next(first))
        seen = [int(line[4:]) for line in lines if line.startswith("id: ")]
        data = json.loads(next(line for line in lines if line.startswith("data: "))[6:])
        assert (data["seq"], data["event"]["kind"]) == (seen[0], "task.submitted")
        process.send_signal(signal.SIGTERM)  # with a client that still follows
        assert process.wait(SECONDS) == 0
    cli.add("three")
    with served(cli) as (client, process):
        cli.add("four")
        with client.stream("GET", "/v1/fleet/events", headers={"last-event-id": str(seen[-1])}) as stream:
            assert events(stream, seen[-1] + 2) == [seen[-1] + 1, seen[-1] + 2]


def test_a_killed_server_has_lost_nothing(cli: Cli) -> None:
    """After kill -9 what was answered stands, and the same key is answered the same by the next server."""
    with served(cli) as (client, process):
        made = client.post("/v1/fleet/tasks", json={"title": "x"}, headers={"idempotency-key": "k"})
        os.kill(process.pid, signal.SIGKILL)
        process.wait(SECONDS)
    with served(cli) as (client, _):
        again = client.post("/v1/fleet/tasks", json={"title": "x"}, headers={"idempotency-key": "k"})
        assert again.json() == made.json()
    assert len(cli.json("tasks", "--status", "all")) == 1


def test_a_slow_client_is_let_go_by_the_server(cli: Cli) -> None:
    """One that reads nothing does not make the server keep everything for it: it is dropped, and others go on."""
    with served(cli) as (client, _):
        with client.stream("GET", "/v1/fleet/events") as slow, cli.store() as store:
            for _ in range(12):
                homes.add(store, *["x"] * 10, description="x" * 100_000)
            metric = "fleet_api_streams_dropped_total 1.0"
            for _ in range(200):
                if metric in client.get("/metrics").text:
                    break
            seen = [line for line in slow.iter_lines() if line.startswith(("id: ", "event: stream"))]
            assert seen[-1] == "event: stream.dropped"
        last = int(next(line for line in reversed(seen) if line.startswith("id: "))[4:])
        assert 0 < last < 120
        with client.stream("GET", f"/v1/fleet/events?after={last}") as again:
            assert events(again, 120) == list(range(last + 1, 121))


def test_over_tls(cli: Cli, tmp_path: Path) -> None:
    """With a certificate it speaks TLS alone, events included; who does not believe the certificate is not answered."""
    openssl = need("openssl", shutil.which("openssl"), "run `sh scripts/tools`")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    words += ["-subj", "/CN=fleet", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)]
    subprocess.run([openssl, *words], check=True, capture_output=True, timeout=SECONDS)
    cli.ok("config", "set", f"api.tls_cert={cert}", f"api.tls_key={key}")
    with served(cli, verify=ssl.create_default_context(cafile=str(cert))) as (client, _):
        assert client.base_url.scheme == "https"
        made = client.post("/v1/fleet/tasks", json={"title": "Write it"})
        assert made.status_code == 201, made.text
        with client.stream("GET", "/v1/fleet/events?after=0") as stream:
            assert events(stream, 1) == [1]
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            httpx.get(f"{client.base_url}/v1/fleet/health")
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://{client.base_url.netloc.decode()}/v1/fleet/health")
        url = f"{client.base_url}".rstrip("/")
        token = {"FLEET_TOKEN": tokens.add(cli.home, "bob", Role.READ).secret, "FLEET_HOME": str(tmp_path / "none")}
        assert cli.ok("--url", url, "status", env={**token, "SSL_CERT_FILE": str(cert)})
        strange = cli.run("--url", url, "status", env=token)
        assert (strange.code, strange.err) == (
            1,
            f"error: {url} cannot be trusted: its certificate: self-signed certificate\nhint: {CERTIFICATES}\n",
        )
        plain = cli.run("--url", url.replace("https:", "http:"), "status", env=token)
        assert plain.code == 1
        assert plain.err.endswith(f"hint: if it is served with a certificate, its address is {url}\n")


@pytest.mark.postgres
def test_on_postgresql(cli: Cli, postgres_url: str) -> None:
    """A store that several machines share is served in the same way; its positions have two parts, and resume."""
    store = f'[store]\nurl = "{postgres_url}"\nschema = "served_{time.time_ns()}"\n'
    cli.home.toml.write_text(store)
    cli.ok("init")
    with served(cli) as (client, _):
        uids = [client.post("/v1/fleet/tasks", json={"title": f"task {n}"}).json()["id"] for n in range(3)]
        assert [line["id"] for line in client.get("/v1/fleet/tasks").json()] == uids
        replayed = client.get("/v1/fleet/events/replay").json()["events"]
        assert [line["event"]["subject"] for line in replayed] == uids
        last_id = {"last-event-id": replayed[1]["position"]}
        with client.stream("GET", "/v1/fleet/events", headers=last_id) as stream:
            lines = stream.iter_lines()
            first = next(line for line in lines if line.startswith("data: "))
            assert json.loads(first[6:]) == replayed[2]
            again = client.post(f"/v1/fleet/workers/{uids[0]}/stop", json={"reason": "no longer wanted"})
            assert again.status_code == 200
            told = next(line for line in lines if line.startswith("data: "))
            assert json.loads(told[6:])["event"]["subject"] == uids[0]
        assert client.get("/v1/fleet/alerts").json() == []


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--host", "0.0.0.0"), "tokens would travel in the clear"),
        (("--port", "70000"), "0 to 65535"),
        (("token",), "token NAME"),
        (("token", "a b"), "letters, digits"),
    ],
)
def test_what_cannot_be_served(cli: Cli, argv: tuple[str, ...], said: str) -> None:
    """An address that others reach needs TLS or a word; odd ports and names are refused."""
    done = cli.run("serve", *argv)
    assert done.code == 2
    assert said in done.err


def test_a_port_that_is_taken(cli: Cli) -> None:
    """A second server on the same port says so."""
    with served(cli) as (client, _):
        done = cli.run("serve", "--port", str(client.base_url.port))
        assert (done.code, "cannot listen on" in done.err) == (1, True)


def test_tokens_are_made(cli: Cli) -> None:
    """Everybody has one token, under a name; the file is closed to others; a second one of a name is refused."""
    assert cli.home.tokens.stat().st_mode & 0o777 == 0o600
    made = cli.json("serve", "token", "ci", "--role", "operate")
    assert (made["role"], made["token"][:4]) == ("operate", "flt_")
    assert cli.run("serve", "token", "ci").code == 1
    cli.ok("init")
    assert cli.home.tokens.read_text().count("flt_") == 2, "init makes one once"
    with served(cli) as (client, _):
        mine = {"authorization": f"Bearer {made['token']}"}
        assert client.get("/v1/fleet/config", headers=mine).status_code == 403
        assert client.post("/v1/fleet/tasks", json={"title": "x"}, headers=mine).json()["created_by"] == "ci"
