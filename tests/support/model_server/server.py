"""The server itself: on loopback, in threads of the test's process, with a record of what it was asked."""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType
from typing import Any

from tests.support.model_server import anthropic, chat, gemini, openai
from tests.support.model_server.faults import Counts, Faults, Reply, split, striking
from tests.support.model_server.steps import tokens

STREAMING = ":streamGenerateContent"  # Gemini's requests do not say it in their bodies
APIS: dict[str, ModuleType] = {
    "/messages": anthropic,
    "/responses": openai,
    "/chat/completions": chat,
    ":generateContent": gemini,
    STREAMING: gemini,
}
KEYS = ("x-api-key", "x-goog-api-key", "authorization")


@dataclass(frozen=True)
class Asked:
    """A request."""

    path: str
    key: str  # what it authorised itself with
    body: dict[str, Any]

    @property
    def works(self) -> bool:
        """Whether it offers tools; else it is for a title or the like, which some programs ask for beside the work."""
        return bool(self.body.get("tools")) or "additional_tools" in self.text

    @property
    def text(self) -> str:
        """All of it, to look for words in."""
        return json.dumps(self.body, ensure_ascii=False)


class ModelServer:
    """A context: it serves inside, and nothing of it is left after."""

    def __init__(self) -> None:
        self.closing = threading.Event()
        self.counts = Counts()
        self.asked: list[Asked] = []
        self._numbers = itertools.count(1)
        server = self

        class Handler(_Handler):
            model = server

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True  # a client that does not go must not hold the test
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)

    def url(self, faults: str = "") -> str:
        """An address of its own for a test, with these faults."""
        number = f"n:{next(self._numbers)}"
        return f"http://127.0.0.1:{self._http.server_port}/f/{faults + '+' if faults else ''}{number}"

    def to(self, url: str) -> list[Asked]:
        """The requests to a model that came to this address, in order."""
        path = url.partition("/f/")[2]
        return [each for each in list(self.asked) if each.path.startswith(f"/f/{path}/")]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: ModelServer

    def do_HEAD(self) -> None:
        self._send(Reply(body={}))

    def do_GET(self) -> None:
        self._send(Reply(body={"object": "list", "data": [], "models": [], "has_more": False}))

    def do_POST(self) -> None:
        body = self._body()
        written, path = split(self.path.partition("?")[0])
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            if path.endswith(("/count_tokens", ":countTokens")):
                self._send(Reply(body={"input_tokens": tokens(body), "totalTokens": tokens(body)}))
                return
            api = next((api for end, api in APIS.items() if path.endswith(end)), None)
            if api is None:
                self._send(Reply(status=404, body={"error": {"message": f"no such path: {path}"}}))
                return
            key = next((value for name in KEYS if (value := self.headers.get(name))), "")
            self.model.asked.append(Asked(self.path, key, body))
            body = {**body, "stream": True} if path.endswith(STREAMING) else body
            self._serve(api, body, striking(written, self.model.counts))

    def _serve(self, api: ModuleType, body: dict[str, Any], faults: Faults) -> None:
        if "hang" in faults:
            self.model.closing.wait()
            self.close_connection = True
            return
        reply: Reply = api.reply(body, faults)
        if reply.status == 200:
            self.model.closing.wait(api.step_of(body).sleep)
        if reply.events:
            self._stream(reply, faults)
        else:
            self._send(reply)

    def _stream(self, reply: Reply, faults: Faults) -> None:
        self.close_connection = True
        self._head(reply, [("content-type", "text/event-stream"), ("connection", "close")])
        events = reply.events[: len(reply.events) // 2] if "cut" in faults else reply.events
        for name, data in events:
            named = f"event: {name}\n" if name else ""
            said = data if isinstance(data, str) else json.dumps(data)
            self.wfile.write(f"{named}data: {said}\n\n".encode())
            self.wfile.flush()
            if "slow" in faults:
                self.model.closing.wait(float(faults["slow"]))

    def _send(self, reply: Reply) -> None:
        data = json.dumps(reply.body).encode()
        self._head(reply, [("content-type", "application/json"), ("content-length", str(len(data)))])
        if self.command != "HEAD":
            self.wfile.write(data)

    def _head(self, reply: Reply, headers: list[tuple[str, str]]) -> None:
        self.send_response(reply.status)
        for name, value in (*headers, *reply.headers, ("request-id", f"req_{time.time_ns()}")):
            self.send_header(name, value)
        self.end_headers()

    def _body(self) -> dict[str, Any]:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        with contextlib.suppress(ValueError):
            found = json.loads(raw)
            if isinstance(found, dict):
                return found
        return {}

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: what was asked is in the record."""
