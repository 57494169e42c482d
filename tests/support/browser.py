"""A real Chromium, headless, with a profile of its own, steered over a pipe by its DevTools protocol.

It talks to this machine alone: every other name leads nowhere, and what was asked for is kept for the tests to see. It
ends with the pipe, so none is left behind, however a test ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.programs import need

SECONDS = 30.0
FLAGS = (
    *("--headless", "--remote-debugging-pipe", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--disable-sync"),
    *("--disable-breakpad", "--disable-extensions", "--no-default-browser-check", "--metrics-recording-only"),
    *("--no-proxy-server", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--password-store=basic"),
    *("--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider", "--window-size=1280,900"),
)
LOOK_SECONDS = 0.03


class Chromium:
    """One for a module of tests; each test has a page of its own."""

    def __init__(self, program: str, profile: Path) -> None:
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        self._out, self._in = ours_out, ours_in
        self._numbers = itertools.count(1)
        self._pages: dict[str, Page] = {}
        self._rest = b""
        root = ("--no-sandbox",) if os.geteuid() == 0 else ()  # its sandbox refuses root
        high = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 10) for each in (theirs_in, theirs_out)]  # not 3, not 4
        null = os.open(os.devnull, os.O_RDWR)
        actions = [(os.POSIX_SPAWN_DUP2, old, new) for old, new in ((high[0], 3), (high[1], 4))]
        actions += [(os.POSIX_SPAWN_DUP2, null, each) for each in (0, 1, 2)]
        env = {"PATH": os.environ["PATH"], "HOME": str(profile), "XDG_RUNTIME_DIR": str(profile), "LC_ALL": "C.UTF-8"}
        argv = [program, *FLAGS, *root, f"--user-data-dir={profile}", "about:blank"]
        self.pid = os.posix_spawn(program, argv, env, file_actions=actions, setpgroup=0)
        for each in (theirs_in, theirs_out, *high, null):
            os.close(each)

    def ask(self, method: str, session: str = "", **params: Any) -> dict[str, Any]:
        """One command, and its answer; what happens meanwhile is told to the page that it concerns."""
        number = next(self._numbers)
        asked = {"id": number, "method": method, "params": params, **({"sessionId": session} if session else {})}
        os.write(self._out, json.dumps(asked).encode() + b"\0")
        deadline = time.monotonic() + SECONDS
        while True:
            told = self._next(deadline)
            if told.get("id") == number:
                assert "error" not in told, (method, told)
                answer: dict[str, Any] = told["result"]
                return answer
            page = self._pages.get(told.get("sessionId", ""))
            if page is not None and "method" in told:
                page.heard(told["method"], told["params"])

    def _next(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the browser did not answer in time"
            piece = os.read(self._in, 1 << 16)
            assert piece, "the browser is gone"
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\0")
        told: dict[str, Any] = json.loads(line)
        return told

    @contextlib.contextmanager
    def page(self) -> Iterator[Page]:
        """A window of its own: no storage, cache or history of another one."""
        context = self.ask("Target.createBrowserContext")["browserContextId"]
        target = self.ask("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self._pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.ask(f"{domain}.enable")
        try:
            yield page
        finally:
            del self._pages[session]
            self.ask("Target.disposeBrowserContext", browserContextId=context)

    def close(self) -> None:
        """End it: by asking, by its pipe, and by force where that is not enough."""
        with contextlib.suppress(OSError, AssertionError):  # gone already
            self.ask("Browser.close")
        os.close(self._out)
        os.close(self._in)
        deadline = time.monotonic() + SECONDS
        while os.waitpid(self.pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > deadline:
                os.killpg(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                break
            time.sleep(LOOK_SECONDS)  # waitpid has no deadline
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)  # its own children, where one outlived it


class Page:
    """A tab, as a person has it before them, and what it has asked for and complained about."""

    def __init__(self, browser: Chromium, session: str) -> None:
        self._browser = browser
        self._session = session
        self.requests: list[dict[str, Any]] = []  # url, method, headers
        self.complaints: list[str] = []  # what stands in its console, as a warning or worse

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """One command for this tab."""
        return self._browser.ask(method, self._session, **params)

    def heard(self, method: str, params: dict[str, Any]) -> None:
        """What happened in it."""
        match method:
            case "Network.requestWillBeSent":
                self.requests.append(params["request"])
            case "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(params["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                self.complaints.append(json.dumps(params["args"]))
            case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                self.complaints.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")

    def visit(self, url: str) -> None:
        """Go there, as by typing the address."""
        told = self.ask("Page.navigate", url=url)
        assert not told.get("errorText"), told

    def get(self, expression: str) -> Any:
        """The value of an expression in the page."""
        told = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def until(self, expression: str, seconds: float = SECONDS) -> None:
        """Wait until something is true in the page. It is asked anew after a navigation."""
        deadline = time.monotonic() + seconds
        while not self.get(f"(() => {{ try {{ return Boolean({expression}); }} catch {{ return false; }} }})()"):
            assert time.monotonic() < deadline, f"never so: {expression}\n{self.text()}\n{self.complaints}"
            time.sleep(LOOK_SECONDS)  # a promise in the page would be lost with each navigation

    def see(self, selector: str, text: str = "") -> None:
        """Wait until there is such an element that can be seen, with this text in it."""
        self.until(
            f"[...document.querySelectorAll({json.dumps(selector)})].some((each) => each.checkVisibility() "
            f"&& (each.innerText + (each.value ?? '')).includes({json.dumps(text)}))"
        )

    def text(self) -> str:
        """All that can be read on it."""
        return str(self.get("document.body.innerText"))

    def click(self, selector: str) -> None:
        """Click in the middle of the first that can be seen, as the mouse does."""
        self.see(selector)
        chosen = f"[...document.querySelectorAll({json.dumps(selector)})].find((each) => each.checkVisibility())"
        box = self.get(
            f"(() => {{ const one = {chosen}; one.scrollIntoView({{block: 'center', behavior: 'instant'}});"
            f" const at = one.getBoundingClientRect(); return [at.x + at.width / 2, at.y + at.height / 2]; }})()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def type(self, selector: str, text: str) -> None:
        """Click into a field, and type."""
        self.click(selector)
        self.ask("Input.insertText", text=text)

    def picture(self) -> bytes:
        """What it looks like, as a PNG."""
        import base64

        return base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])


@contextlib.contextmanager
def chromium() -> Iterator[Chromium]:
    """A browser, as long as it is needed."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    program = need("Chromium", found, "run `sh scripts/tools`")
    with tempfile.TemporaryDirectory(prefix="fleet-browser-", ignore_cleanup_errors=True) as profile:
        browser = Chromium(program, Path(profile))
        try:
            yield browser
        finally:
            browser.close()
