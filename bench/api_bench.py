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
            with _process([sys.executable, "-c", BARE, str(size), "17879"]) as (url, pid):
                bare = _looks(url, pid, token)
    p50 = median(delays) * 1000
    return [
        Figure("GET /v1/fleet/runs at 10,000 tasks, a second of a core", f"{ours:,.0f}", "≥ 1,500", ours >= 1500),
        Figure("its share of a bare Litestar route", f"{ours / bare:.0%} of {bare:,.0f}", "recorded", True),
        Figure(f"event to SSE client, {CLIENTS} clients, p50", f"{p50:.1f} ms", "≤ 20 ms", p50 <= 20),
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
