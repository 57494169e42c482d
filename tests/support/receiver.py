"""A receiver of alerts on loopback: a real HTTP server that answers as it is told, and remembers what it got."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

SECONDS = 20.0


class Got(NamedTuple):
    """One request."""

    path: str
    headers: dict[str, str]
    raw: bytes
    at: float

    @property
    def body(self) -> Any:
        """What it says."""
        return json.loads(self.raw)


class Answer(NamedTuple):
    """What the receiver says, and after how long; one that hangs waits until the test is over."""

    status: int = 200
    headers: dict[str, str] | None = None
    hangs: bool = False


class Receiver:
    """Answers `answers` in their order, then 200."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.answers: list[Answer] = []
        self.got: list[Got] = []
        self.over = threading.Event()
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        self._some = threading.Condition()

    def take(self, got: Got) -> Answer:
        """Remember a request; what to answer."""
        with self._some:
            self.got.append(got)
            self._some.notify_all()
            return self.answers.pop(0) if self.answers else Answer()

    def wait(self, n: int = 1) -> list[Got]:
        """Wait until so many requests came."""
        with self._some:
            assert self._some.wait_for(lambda: len(self.got) >= n, SECONDS), f"{len(self.got)} of {n} came"
            return list(self.got)


@contextlib.contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver that is up."""
    holder: list[Receiver] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            receiver = holder[0]
            answer = receiver.take(Got(self.path, dict(self.headers.items()), raw, time.monotonic()))
            if answer.hangs:
                receiver.over.wait(SECONDS)
                return
            self.send_response(answer.status)
            for name, value in (answer.headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver = Receiver(server)
    holder.append(receiver)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.over.set()
        server.shutdown()
        server.server_close()
        thread.join(SECONDS)
