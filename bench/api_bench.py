"""The API: looks at runs against a bare route of the same server, and how long an event takes to a client."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import httpx

from bench.report import Figure
from fleet import wiring
from fleet.config import tokens
from fleet.config.home import Home
from fleet.config.settings import Settings
from fleet.config.tokens import Role
from fleet.control.home import prepare
from fleet.model.run import NewRun
from fleet.store.store import Store
from fleet.testing.builders import a_task

TASKS, RUNS = 10_000, 20
REQUESTS, CLIENTS, EVENTS = 2000, 50, 40
CROWD, A_SECOND, CROWD_SECONDS, EACH = 1000, 100, 10, 5
# Many clients in a process of their own, which only count: what each was sent, and whether ids went up one by one.
FOLLOW = """
import asyncio, re, sys
host, port, token, clients, last = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
ASK = f"GET /v1/fleet/events HTTP/1.1\\r\\nhost: 127.0.0.1\\r\\nauthorization: Bearer {token}\\r\\n\\r\\n".encode()
ID = re.compile(rb"^id: (\\d+)$", re.M)
begun, ended, wrong = 0, 0, 0
class Client(asyncio.Protocol):
    at = 0
    rest = b""
    def connection_made(self, transport):
        self.transport = transport
        transport.write(ASK)
    def data_received(self, data):
        global begun, ended, wrong
        if not self.rest and not self.at and b"retry:" in data:
            begun += 1
            if begun == clients:
                print("ready", flush=True)
        data = self.rest + data
        whole = data.rfind(b"\\n") + 1
        self.rest = data[whole:]
        for found in ID.findall(data[:whole]):
            wrong += bool(self.at) and int(found) != self.at + 1
            self.at = int(found)
        if self.at >= last:
            self.transport.close()
    def connection_lost(self, exc):
        global ended
        ended += 1
        if ended == clients:
            done.set()
async def main():
    global done
    done = asyncio.Event()
    loop = asyncio.get_running_loop()
    made = [(await loop.create_connection(Client, host, port))[1] for _ in range(clients)]
    await done.wait()
    print(sum(one.at == last for one in made), wrong, flush=True)
asyncio.run(main())
"""
BARE = """
import sys, uvicorn
from litestar import Litestar, Response, get
@get("/v1/fleet/runs")
async def runs() -> Response[bytes]:
    return Response(b"x" * int(sys.argv[1]), media_type="application/json")
print("http://127.0.0.1:" + sys.argv[2], file=sys.stderr, flush=True)
uvicorn.run(Litestar([runs], openapi_config=None), port=int(sys.argv[2]), lifespan="off", log_config=None,
            access_log=False)
"""


def run() -> list[Figure]:
    """All figures of the API."""
    with tempfile.TemporaryDirectory() as directory:
        home = Home(Path(directory) / "home")
        prepare(home, open_store=lambda force: wiring.prepare_store(home, Settings(), force=force))
        home.toml.write_text("[api]\nport = 0\nrequests_per_second = 1000000\n")
        token = tokens.add(home, "bench", Role.ADMIN).secret
        with contextlib.closing(wiring.make_store(home, Settings())) as store:
            for n in range(RUNS):
                new = [a_task(f"task {k}", task_id=f"t{k}") for k in range(TASKS // RUNS)]
                store.submit(new, by="bench", run=NewRun(name=f"run {n}")).result()
            argv = [sys.executable, "-m", "fleet", "--home", str(home.path), "serve"]
            with _process(argv) as (url, pid):
                size = len(httpx.get(f"{url}/v1/fleet/runs", headers=_shown(token)).content)
                ours = _looks(url, pid, token)
                delays = asyncio.run(_delays(url, token, store))
                crowd = _crowd(url, pid, token, store)
            with _process([sys.executable, "-c", BARE, str(size), "17879"]) as (url, pid):
                bare = _looks(url, pid, token)
    p50 = median(delays) * 1000
    return [
        Figure("GET /v1/fleet/runs at 10,000 tasks, a second of a core", f"{ours:,.0f}", "≥ 1,500", ours >= 1500),
        Figure("its share of a bare Litestar route", f"{ours / bare:.0%} of {bare:,.0f}", "recorded", True),
        Figure(f"event to SSE client, {CLIENTS} clients, p50", f"{p50:.1f} ms", "≤ 20 ms", p50 <= 20),
        *crowd,
    ]


def _shown(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@contextlib.contextmanager
def _process(argv: list[str]) -> Iterator[tuple[str, int]]:
    """A server, and where it can be asked."""
    with subprocess.Popen(argv, stderr=subprocess.PIPE) as process:
        try:
            assert process.stderr
            found = re.search(rb"http://127\.0\.0\.1:\d+", process.stderr.readline())
            assert found
            url = found[0].decode()
            for _ in range(200):
                with contextlib.suppress(httpx.TransportError):
                    httpx.get(url)
                    break
                time.sleep(0.05)
            yield url, process.pid
        finally:
            process.terminate()


def _looks(url: str, pid: int, token: str) -> float:
    """Requests for each second that the server's process had a core: the client shares the machine with it."""
    import http.client

    connection = http.client.HTTPConnection(url.removeprefix("http://"))
    for n in range(REQUESTS + 100):
        if n == 100:
            before = _cpu(pid)
        connection.request("GET", "/v1/fleet/runs", headers=_shown(token))
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200
    connection.close()
    return REQUESTS / (_cpu(pid) - before)


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def _submit(store: Store, title: str) -> None:
    store.submit([a_task(title)], by="bench").result()


async def _delays(url: str, token: str, store: Store) -> list[float]:
    """For each event and client, from the call that commits it to the moment the client has it."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    begun: dict[str, float] = {}
    delays: list[float] = []
    ready = asyncio.Semaphore(0)

    async def follow(client: httpx.AsyncClient) -> None:
        async with client.stream("GET", f"{url}/v1/fleet/events", headers=_shown(token)) as stream:
            got = 0
            async for line in stream.aiter_lines():
                if line.startswith("retry"):
                    ready.release()
                elif line.startswith("data: "):
                    delays.append(time.perf_counter() - begun[json.loads(line[6:])["event"]["task"]["title"]])
                    got += 1
                    if got == EVENTS:
                        return

    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=60) as client, asyncio.TaskGroup() as group:
        for _ in range(CLIENTS):
            group.create_task(follow(client))
        for _ in range(CLIENTS):
            await ready.acquire()
        await asyncio.sleep(0.5)
        for n in range(EVENTS):
            begun[f"event {n}"] = time.perf_counter()
            await asyncio.to_thread(_submit, store, f"event {n}")
            await asyncio.sleep(0.1)
    return delays


def _crowd(url: str, pid: int, token: str, store: Store) -> list[Figure]:
    """A thousand clients while a hundred events a second happen: who got all of them, and what the server needed."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    last = store.last(1)[0].seq + A_SECOND * CROWD_SECONDS
    host, _, port = url.removeprefix("http://").partition(":")
    words = [sys.executable, "-c", FOLLOW, host, port, token, str(CROWD), str(last)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as clients:
        assert clients.stdout
        assert clients.stdout.readline() == "ready\n"
        used, began = _cpu(pid), time.monotonic()
        for n in range(A_SECOND * CROWD_SECONDS // EACH):
            store.submit([a_task("x") for _ in range(EACH)], by="bench").result()
            time.sleep(max(0.0, began + (n + 1) * EACH / A_SECOND - time.monotonic()))
        complete, wrong = map(int, clients.stdout.readline().split())
        took = time.monotonic() - began
        cores = (_cpu(pid) - used) / took
    what = f"{CROWD:,} SSE clients, {A_SECOND} events a second"
    note = f"{A_SECOND * CROWD_SECONDS:,} events in {took:.1f} s, until the last client had the last"
    got = f"{complete:,} of {CROWD:,} have all, {wrong} gaps"
    return [
        Figure(f"{what}: lost", got, "none", complete == CROWD and not wrong, note),
        Figure(f"{what}: the server", f"{cores:.2f} cores", "<= 1 core", cores <= 1, note),
    ]
