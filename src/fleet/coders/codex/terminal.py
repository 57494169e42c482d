"""codex on a terminal, as of 0.166: its screens, its questions, and the hooks that tell what it does."""

from __future__ import annotations

import json
import re

from fleet.coders import hooks
from fleet.coders.coder import Work
from fleet.coders.codex.launch import SECRETS, SETTINGS, model, sandbox
from fleet.coders.permissions import limited
from fleet.coders.terminal import Login, Screen, choose
from fleet.errors import UsageError
from fleet.model.launch import Launch

EVENTS = ("UserPromptSubmit", "PostToolUse", "Stop")
MARK = "›"
EMPTY = "Ask Codex to do anything"  # is shown where nothing was typed
BELOW = " · "  # between its model and its directory
BUSY = re.compile(r"^[•◦] .*esc to interrupt")
LOGIN = ("Sign in with ChatGPT", "Sign in with Device Code", "Not logged in")
# What it asks before the first task: some words of the question, the answer that lets it go on, and what kind it is.
QUESTIONS = (
    ("Trust this folder?", "Trust and continue", "trust"),
    ("Try new model", "Use existing model", "question"),
)


def on_terminal(work: Work, directory: str) -> Launch:
    """Its interactive program. Only together can all hooks be trusted, ours and those that a repository brings."""
    if limited(work):
        raise UsageError(
            "`codex` on a terminal cannot be kept from writing: the hooks of a repository run outside its sandbox",
            hint="leave out tool_profile, or use claude",
        )
    argv = [work.program or "codex", *SETTINGS, *sandbox(work), *model(work), "--dangerously-bypass-hook-trust"]
    for event in EVENTS:
        command = json.dumps(hooks.command(directory, event), ensure_ascii=False)
        hook = f'[{{hooks=[{{type="command",command={command},timeout={hooks.SECONDS}}}]}}]'
        argv += ["-c", f"hooks.{event}={hook}"]
    return Launch(argv=tuple(argv), cwd=work.cwd, secrets=SECRETS)


def login(secret: str, directory: str, home: str) -> Login:
    """Its credentials. On a machine of its own they are where it looks."""
    config = f"{home}/.codex" if home else f"{directory}/codex"
    return Login(files={f"{config}/auth.json": secret.encode()}, env={} if home else {"CODEX_HOME": config})


def screen(text: str) -> Screen:
    """What it shows. Its input is the last line with the mark; a question has the mark before one of its answers."""
    lines = text.splitlines()
    for asked, answer, kind in QUESTIONS:
        if asked in text and any(line.strip().startswith(f"{MARK} 1.") or answer in line for line in lines):
            keys = choose(lines, answer, MARK) or ("Enter",)
            return Screen(kind="trust" if kind == "trust" else "question", evidence=f"it asks: {asked}", keys=keys)
    found = next((each for each in LOGIN if each in text), "")
    if found:
        return Screen(kind="login", evidence=f"it says: {found}")
    typed = _typed(lines)
    busy = next((line.strip() for line in lines if BUSY.search(line.strip())), "")
    if busy:
        return Screen(kind="busy", evidence=busy[:100], typed=typed or "")
    if typed is None:
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return Screen(kind="starting", evidence=last[:100])
    return Screen(kind="ready", evidence="its input is open", typed=typed)


def _typed(lines: list[str]) -> str | None:
    """What is in its input; None: there is none. Until its model and directory stand below, it may still ask first."""
    n = next((n for n in reversed(range(len(lines))) if lines[n].startswith(MARK)), None)
    if n is None or not any(BELOW in line for line in lines[n + 1 :]):
        return None
    typed = lines[n].removeprefix(MARK).strip()
    return "" if typed == EMPTY else typed
