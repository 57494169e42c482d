"""The dashboard in a real browser, over a real home that is supervised and served: what a person sees and can do."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fleet.cli.words import printable
from fleet.config.home import Home
from fleet.testing.builders import a_task
from tests.acceptance.test_serve import SECONDS, served
from tests.support.browser import Chromium, Page, chromium
from tests.support.cli import Cli, line_from
from tests.support.session_host import until

MARKUP = "<img src=x onerror=\"document.title='broken in'\"><script>document.title='broken in'</script><b>bold</b>"


class Fleet:
    """A home with a task that runs, one that asks and one that is done, supervised and served by one process."""

    def __init__(self, cli: Cli) -> None:
        self.cli = cli
        used = {"usage": [1200, 90, 800, 250_000]}
        self.running = self.add("Write the manual", {"say": "at work"}, used, {"hang": True})
        self.asking = self.add("Choose the currency", {"ask": "Which currency?"})
        self.done = self.add("Read the code", {"say": "read"})

    def add(self, title: str, *steps: dict[str, Any], priority: int = 2) -> str:
        """A task whose agent does these steps, in a directory of its own: two do not write in one at a time."""
        directory = Path(tempfile.mkdtemp(dir=self.cli.path))
        told = ("--coder", "scripted", "--priority", str(priority), "-d", f"\n@@scripted {json.dumps(steps)}")
        return self.cli.add(title, *told, cwd=directory)

    def state(self, uid: str) -> str:
        """The state of a task."""
        return str(self.cli.json("show", uid)["data"][0]["fleet"]["state"])

    def is_set_up(self) -> bool:
        """Whether each has come to where it stays."""
        counts = self.cli.json("status")["counts"]
        return [counts[each] for each in ("running", "blocked", "completed")] == [1, 1, 1]

    @property
    def token(self) -> str:
        """That of whoever made the home."""
        return self.cli.home.tokens.read_text().split("\n")[1].split()[2]

    def link(self, role: str = "admin") -> str:
        """What leads to the page, with a code for a token of a role."""
        return str(self.cli.json("dashboard", "--role", role)["link"])


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    """One browser for all: each test has a window of its own."""
    with chromium() as found:
        yield found


@pytest.fixture
def page(browser: Chromium) -> Iterator[Page]:
    """A window."""
    with browser.page() as found:
        yield found


@pytest.fixture(scope="module")
def fleet(new_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """It, while its supervisor serves it too."""
    cli = Cli(tmp_path_factory.mktemp("fleet"))
    shutil.copytree(new_home.path, cli.home.path)
    cli.ok("config", "set", "api.port=0")
    cli.ok("serve", "token", "wall", "--role", "read")
    found = Fleet(cli)
    with cli.started("run", "--serve", "--stop-agents") as process:
        try:
            until(found.is_set_up, "the work", seconds=60)
            yield found
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=SECONDS)


def of(uid: str, section: str = "") -> str:
    """How a task is found in the page."""
    return f'{f"[data-section={section}] " if section else ""}[data-task="{uid}"]'


def test_it_opens_with_what_there_is(fleet: Fleet, page: Page) -> None:
    """By the file that `fleet dashboard` gives a browser: what runs, asks and is done is there; nothing is amiss."""
    origin, token = fleet.link().partition("/#")[0], fleet.token
    fleet.cli.ok("dashboard", env={"BROWSER": "true"})
    page.visit(fleet.cli.home.dashboard.as_uri())
    page.see("#connection[data-state=live]")
    page.see(of(fleet.running, "running"), "Write the manual")
    page.see(of(fleet.asking, "needs-you"), "Which currency?")
    page.see(of(fleet.done, "recent"), "Read the code")
    page.see("[data-section=machines]")
    page.see(of(fleet.running, "running"), "at work")  # its last words
    page.see("#spent", "today unknown, running $0.25")
    assert page.get("location.href").startswith(f"{origin}/")
    assert token not in page.get("location.href")
    assert token not in page.get("document.documentElement.outerHTML")
    assert page.get("document.cookie") == ""
    asked = [each["url"].partition("#")[0] for each in page.requests]
    assert [url for url in asked if not url.startswith(f"{origin}/")] == [fleet.cli.home.dashboard.as_uri()]
    assert [url for url in asked if token in url] == []
    known = page.ask("Page.getNavigationHistory")
    assert (token in json.dumps(known), page.get("sessionStorage['fleet.token']")) == (False, token)
    assert page.complaints == []


def test_what_happens_shows_without_a_reload(fleet: Fleet, page: Page) -> None:
    """A task that is added elsewhere appears by itself, its title as the text that it is, whatever stands in it."""
    page.visit(fleet.link())
    page.see("#connection[data-state=live]")
    uid = fleet.add(MARKUP, {"say": "done"})
    page.see(of(uid), MARKUP)
    assert page.get(f"document.querySelector({json.dumps(of(uid))}).querySelectorAll('img, script, b').length") == 0
    assert "broken in" not in page.get("document.title")
    page.see(of(uid, "recent"), MARKUP)
    assert len([each for each in page.requests if re.fullmatch(r"https?://[^/]+/(#.*)?", each["url"])]) == 1
    assert page.complaints == []


def test_a_text_fools_nobody(fleet: Fleet, page: Page) -> None:
    """What reorders or hides is shown as on the command line; scripts and emoji stay, and so does what is stored."""
    page.visit(fleet.link())
    page.see("#connection[data-state=live]")
    hidden = ["a\u202eb", "a\u200bb", "a\u200d", "x\u200f", "\x9b2J", "\U000e0041", "\u2066y\u2069", "\ufeffz"]
    kept = ["\U0001f468\u200d\U0001f469", "\u05e9!\u200f", "\u0646\u0645\u06cc\u200c\u062e", "caf\u00e9\tx"]
    shown = page.get(f"import('/page/harmless.js').then((it) => {json.dumps(hidden + kept)}.map(it.harmless))")
    assert shown == [printable(text) for text in hidden + kept]
    uid = fleet.add("Harbour \u202egnirb", {"say": "done"})
    page.see(of(uid, "recent"), "Harbour \N{REPLACEMENT CHARACTER}gnirb")
    assert fleet.cli.json("show", uid)["data"][0]["title"] == "Harbour \u202egnirb"


def test_what_was_spent_has_a_page(fleet: Fleet, page: Page) -> None:
    """By day and by whatever is chosen, which stands in the address; a cost that was not told is not called nothing."""
    page.visit(fleet.link())
    page.see("#connection[data-state=live]")
    page.click("#spent")
    page.see("[data-section=parts] [data-cost=scripted]", "unknown")
    page.see("[data-section=days] [data-cost=total]", "unknown")
    assert page.get("document.querySelectorAll('[data-section=days] [data-cost]').length") == 8
    page.click("nav[aria-label='Divided by'] a:nth-child(3)")
    page.see("[data-section=parts] [data-cost^='local@']")
    assert page.get("location.hash") == "#/cost?by=host"
    page.see("[data-page=cost]", "Running now, in no sum yet: 1 session, $0.25.")
    assert page.complaints == []


def test_a_question_is_answered(fleet: Fleet, page: Page) -> None:
    """What is typed there reaches the agent, and stands in the ledger under the name of the token."""
    uid = fleet.add("Choose the harbour", {"ask": "Which harbour?"})
    page.visit(fleet.link())
    page.see(of(uid, "needs-you"), "Which harbour?")
    page.type(f"{of(uid, 'needs-you')} form[data-confirm=answer] [name=text]", "Hamburg, <b>please</b>")
    page.click(f"{of(uid, 'needs-you')} form[data-confirm=answer] [data-confirm-yes]")
    until(lambda: "Hamburg, <b>please</b>" in fleet.cli.ok("task", uid, "qa").out, "the answer")
    assert re.search(r"task\.answered.*\(ana\)", fleet.cli.ok("ledger", "tail", "-n", "100").out)
    assert page.complaints == []


def test_what_is_being_written_stays(fleet: Fleet, page: Page) -> None:
    """A question that is more urgent comes below the one that is being answered, which keeps the focus and its place;
    and who looks at the task meanwhile finds the words again."""
    uid = fleet.add("Choose the colour", {"ask": "Which colour?"})
    box = f"{of(uid, 'needs-you')} form[data-confirm=answer] [name=text]"
    top = "Math.round(document.activeElement.getBoundingClientRect().top)"
    page.visit(fleet.link())
    page.type(box, "half an ans")
    before = page.get(top)
    urgent = fleet.add("Choose at once", {"ask": "Now?"}, priority=0)
    page.see(of(urgent, "needs-you"), "Now?")
    assert page.get(f"document.activeElement.matches({json.dumps(box)})")
    assert page.get(top) == before
    page.click(f"{of(uid, 'needs-you')} a")
    page.click("[data-page=task] [data-action=answer]")
    page.until("document.querySelector('form[data-confirm=answer] [name=text]').value === 'half an ans'")
    for each in (uid, urgent):
        fleet.cli.ok("stop", each)
    assert page.complaints == []


def test_a_task_is_stopped_after_a_second_word(fleet: Fleet, page: Page) -> None:
    """A press asks first, and does nothing when it is taken back; the second one stops it, with the reason given."""
    uid = fleet.add("Dig a hole", {"hang": True})
    page.visit(fleet.link())
    row = of(uid, "running")
    page.click(f"{row} [data-action=stop]")
    page.click("form[data-confirm=stop] [data-confirm-no]")
    page.click(f"{row} [data-action=stop]")
    assert fleet.state(uid) == "running"
    page.type("form[data-confirm=stop] [name=reason]", "deep enough")
    page.click("form[data-confirm=stop] [data-confirm-yes]")
    page.until(f"!document.querySelector({json.dumps(row)})")
    assert fleet.state(uid) == "cancelled"
    assert "deep enough" in fleet.cli.ok("task", uid, "events").out
    assert page.complaints == []


def test_a_task_has_a_page_with_all_that_is_known_of_it(fleet: Fleet, page: Page) -> None:
    """By its address: its log, what the ledger says, its receipt and why it is where it is, with no complaint."""
    page.visit(fleet.link())
    page.see("#connection[data-state=live]")
    page.get(f"location.hash = '#/task/{fleet.done}/log'")
    page.see("[data-panel=log]", "read")
    told = {"overview": f"{fleet.done}.1", "events": "task.settled", "receipts": "unverified", "why": "nothing to do"}
    none = {"plan": "None yet", "knowledge": "None yet", "qa": "None yet", "stderr": "", "artifacts": "left nothing"}
    for tab, text in {**told, **none}.items():
        page.click(f"[data-tab={tab}]")
        page.see(f"[data-panel={tab}]", text)
        assert page.get("location.hash") == f"#/task/{fleet.done}/{tab}"
    assert page.complaints == []
    page.click("[data-tab=diff]")
    page.see("[data-panel=diff]", f"task {fleet.done} has no worktree")  # of a refusal the browser itself complains


def test_what_is_too_large_to_be_kept_or_shown_is_told_and_can_be_had(fleet: Fleet, page: Page, tmp_path: Path) -> None:
    """A file that is no evidence is not called nothing: its size, its beginning and all of it are there."""
    uid = fleet.add("Write much", {"say": "done"})
    until(lambda: fleet.state(uid) == "completed", "the end of it")
    own = fleet.cli.home.task_dir(uid)
    (own / "artifacts" / "big.log").write_text("the first line\n" * 100_000)
    (own / "stderr.log").write_text("complaint\n" * 100_000)
    page.visit(fleet.link())
    page.see("#connection[data-state=live]")
    page.get(f"location.hash = '#/task/{uid}/artifacts'")
    page.see("[data-panel=artifacts]", "nothing that was kept")
    page.see("[data-panel=artifacts]", "1.4 MiB")
    page.click("[data-panel=artifacts] summary")
    page.see("[data-panel=artifacts] pre", "the first line")
    page.ask("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.click("[data-panel=artifacts] [data-action=download]")
    until((tmp_path / "big.log").exists, "the download")
    assert (tmp_path / "big.log").read_bytes() == (own / "artifacts" / "big.log").read_bytes()
    page.click("[data-tab=stderr]")
    page.see("[data-panel=stderr]", "Too long to be shown whole")
    assert page.complaints == []


def test_what_a_task_changed_is_seen(fleet: Fleet, page: Page) -> None:
    """The lines that it added in its worktree, on the tab for it. Where its machine is out of reach that is said there,
    and all else stays live."""
    directory = Path(tempfile.mkdtemp(dir=fleet.cli.path))
    who = ("-c", "user.name=ana", "-c", "user.email=ana@x")
    for words in (("init", "-q"), (*who, "commit", "-q", "--allow-empty", "-m", "first")):
        subprocess.run(["git", *words], cwd=directory, check=True, timeout=30)
    steps = json.dumps([{"write": ["notes.txt", "<b>one</b>\\n"]}])
    told = ("--coder", "scripted", "--isolation", "worktree", "-d", f"\n@@scripted {steps}")
    uid = fleet.cli.add("Write notes", *told, cwd=directory)
    until(lambda: fleet.state(uid) == "completed", "the end of it")
    page.visit(fleet.link())
    page.see("#connection[data-state=live]")
    page.get(f"location.hash = '#/task/{uid}/diff'")
    page.see("[data-panel=diff] [data-line=added]", "+<b>one</b>")
    assert page.complaints == []
    away = """new Response('{"detail": "cannot reach host gpu"}', {status: 503})"""
    page.get(f"(real => (fetch = async (url, how) => url.endsWith('/diff') ? {away} : real(url, how)))(fetch), 1")
    page.click("[data-tab=events]")
    page.click("[data-tab=diff]")
    page.see("[data-panel=diff]", "cannot reach host gpu")
    page.see("#connection[data-state=live]")
    assert page.get("document.body.dataset.stale") == "false"
    assert page.complaints == []


def test_a_task_is_added_and_found_with_the_keyboard(fleet: Fleet, page: Page) -> None:
    """`a` adds one and shows it, `Esc` leads back, to where one stood, `/` finds it, `j` and Enter open it; the address
    has the filter."""

    def press(key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            page.ask("Input.dispatchKeyEvent", type=kind, key=key, text="\r" if key == "Enter" else "")

    page.visit(fleet.link())
    page.see("[data-section=recent] [data-task]")
    press("a")
    page.type("#add-form [name=title]", "Paint the <i>fence</i>")
    page.type("#add-form [name=coder]", "scripted")
    page.click("#add-form [type=submit]")
    page.see("[data-page=task] h1", "Paint the <i>fence</i>")
    (uid,) = [
        each["id"] for each in fleet.cli.json("tasks", "--status", "all") if each["title"] == "Paint the <i>fence</i>"
    ]
    press("Escape")
    page.see("[data-page=board]")
    press("/")
    page.ask("Input.insertText", text="paint fence")
    page.until("location.hash === '#/?text=paint+fence'")
    page.until("[...document.querySelectorAll('main .row')].filter((row) => row.checkVisibility()).length === 1")
    press("Escape")
    press("j")
    press("Enter")
    page.see(f"[data-page=task]{of(uid)} h1", "Paint the <i>fence</i>")
    page.get("document.querySelector('[data-tab=events]').focus()")
    press("Enter")
    page.see("[data-panel=events]", "task.submitted")
    assert page.get("document.activeElement.dataset.tab") == "events"
    press("Escape")
    page.until(f"document.activeElement.matches({json.dumps('main .row' + of(uid))})")
    assert page.get("location.hash") == "#/?text=paint+fence"
    assert page.complaints == []


def test_with_a_read_token_nothing_can_be_changed(fleet: Fleet, page: Page) -> None:
    """The same is seen, and nothing is there to press."""
    page.visit(fleet.link("read"))
    page.see("#connection[data-state=live]")
    page.see("body[data-role=read]")
    page.see(of(fleet.asking, "needs-you"), "Which currency?")
    page.see(of(fleet.running, "running"))
    seen = (
        "[...document.querySelectorAll('[data-action], [data-confirm], #add')].filter((one) => one.checkVisibility())"
    )
    assert page.get(f"{seen}.length") == 0
    assert page.complaints == []


def test_without_a_good_token_it_asks_for_one(fleet: Fleet, page: Page) -> None:
    """No token: it asks, and shows nothing else. A wrong one, a used link: it says so. A good one: it shows all."""
    url, token = fleet.link().partition("#")[0], fleet.token
    page.visit(url)
    page.see("#token-form")
    assert "Write the manual" not in page.text()
    assert page.complaints == []
    page.type("#token", "flt_" + "x" * 43)
    page.click("#token-form button")
    page.see("#token-problem", "no good token")
    page.visit(f"{url}#code=made-up")
    page.see("#token-problem", "fleet dashboard")
    page.type("#token", token)
    page.click("#token-form button")
    page.see(of(fleet.running, "running"), "Write the manual")
    assert not page.get("document.querySelector('#token-form').checkVisibility()")
    assert token not in page.get("location.href")
    page.ask("Page.reload")
    page.see(of(fleet.running, "running"), "Write the manual")  # the tab remembers it
    page.visit(fleet.link("read"))
    page.see("body[data-role=read]")  # and takes another one from a link


def test_a_supervisor_that_stands_still(cli: Cli, page: Page) -> None:
    """It is not shown as one that works."""
    with served(cli), cli.store() as store:
        store.join("sup", machine="here", pid=1, seconds=60).result()
        page.visit(str(cli.json("dashboard")["link"]))
        page.see("#supervisor[data-state=up]", "1 supervisor")
        (cli.home.leases / "sup").write_bytes(b"%020d" % (time.monotonic_ns() - 45 * 10**9))
        store.submit([a_task("one")], by="ana").result()
        page.see("#supervisor[data-state=none]", "sup (no sign of life): fleet doctor")
        page.see("[data-section=queued] [data-task]", "a supervisor: none is at work")


def test_the_server_goes_away_and_comes_back(cli: Cli, page: Page) -> None:
    """It says that what is shown is old, and goes on by itself with what happened meanwhile."""
    cli.add("one")
    with served(cli) as (client, process):
        page.visit(str(cli.json("dashboard")["link"]))
        page.see("[data-section=queued] [data-task]", "one")
        page.see("[data-section=queued] [data-task]", "a supervisor: none is at work")
        page.see("#connection[data-state=live]")
        process.send_signal(signal.SIGKILL)
        process.wait(SECONDS)
        page.see("#connection[data-state=lost]")
        page.see("[data-section=queued] [data-task]", "one")
    cli.add("two")
    with cli.started("serve", "--port", str(client.base_url.port)) as process:
        assert line_from(process.stderr, seconds=SECONDS).startswith("Serving ")
        page.see("#connection[data-state=live]")
        page.see("[data-section=queued] [data-task]", "two")
