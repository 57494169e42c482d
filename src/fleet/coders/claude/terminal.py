"""Claude Code on a terminal, as of 2.1.325: its screens, its questions, and the hooks that tell what it does."""

from __future__ import annotations

import re

import msgspec

from fleet.coders import hooks
from fleet.coders.claude.launch import ENV, SECRETS, permissions
from fleet.coders.coder import Work
from fleet.coders.reading import table, tables, words
from fleet.coders.terminal import Login, Screen, choose
from fleet.model.launch import Launch

HOOKS = "claude-hooks.json"
EVENTS = ("UserPromptSubmit", "PostToolUse", "Notification", "Stop", "StopFailure")
RULE = "────"
BUSY = re.compile(r"^\S \S+…(?: |$)|esc to interrupt")
LOGIN = ("Select login method", "Paste code here if prompted", "Not logged in", "Please run /login", "Invalid API key")
# What it asks before the first task: some words of the question, the answer that lets it go on, and what kind it is.
QUESTIONS = (
    ("trust this folder", "Yes, I trust", "trust"),
    ("trust the files in this folder", "Yes, proceed", "trust"),
    ("Do you want to use this API key?", "Yes", "question"),
    ("Bypass Permissions mode", "Yes, I accept", "question"),
    ("Choose the text style", "❯", "question"),
)


def on_terminal(work: Work, directory: str) -> Launch:
    """Its interactive program. The name of the conversation is ours, so that its record can be found."""
    argv = [work.program or "claude", "--settings", f"{directory}/{HOOKS}"]
    if work.new_uuid:
        argv += ["--session-id", work.new_uuid]
    if work.model:
        argv += ["--model", work.model]
    argv += permissions(work)
    return Launch(
        argv=tuple(argv),
        cwd=work.cwd,
        env={**ENV, "IS_SANDBOX": "1"} if work.as_root else dict(ENV),
        secrets=SECRETS,
        coder_session=work.new_uuid or None,
    )


def terminal_files(directory: str) -> dict[str, bytes]:
    """The settings that make it tell the worker what it does."""
    told = {
        event: [{"hooks": [{"type": "command", "command": hooks.command(directory, event), "timeout": hooks.SECONDS}]}]
        for event in EVENTS
    }
    return {HOOKS: msgspec.json.encode({"hooks": told})}


def login(secret: str, directory: str, home: str) -> Login:
    """Its credentials, and that the first questions were answered. On a machine of its own they are where it looks."""
    config = f"{home}/.claude" if home else f"{directory}/claude"
    settings = f"{home or config}/.claude.json"
    return Login(
        files={f"{config}/.credentials.json": secret.encode()},
        kept={settings: b'{"hasCompletedOnboarding": true}'},
        env={} if home else {"CLAUDE_CONFIG_DIR": config},
    )


def screen(text: str) -> Screen:
    """What it shows. Its input stands between two lines; a question has a mark before one of its answers."""
    lines = text.splitlines()
    for asked, answer, kind in QUESTIONS:
        if asked in text and any(line.strip().startswith("❯") for line in lines):
            keys = choose(lines, answer) or ("Enter",)
            return Screen(kind="trust" if kind == "trust" else "question", evidence=f"it asks: {asked}", keys=keys)
    login = next((each for each in LOGIN if each in text), "")
    if login:
        return Screen(kind="login", evidence=f"it says: {login}")
    typed = _typed(lines)
    busy = next((line.strip() for line in lines if BUSY.search(line)), "")
    if busy:
        return Screen(kind="busy", evidence=busy[:100], typed=typed or "")
    if typed is None:
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return Screen(kind="starting", evidence=last[:100])
    return Screen(kind="ready", evidence="its input is open", typed=typed)


def asked(data: bytes) -> list[str]:
    """The texts of its user's turns; what tools answered is another kind of block."""
    found = []
    for line in data.split(b"\n"):
        told = hooks.fields(line)
        content = table(told.get("message")).get("content") if told.get("type") == "user" else None
        blocks = [content] if isinstance(content, str) else [words(each.get("text")) for each in tables(content)]
        found += [text for text in blocks if text]
    return found


def _typed(lines: list[str]) -> str | None:
    """What is in its input; None: there is none."""
    for n, line in enumerate(lines[:-1]):
        if line.startswith(RULE) and lines[n + 1].startswith("❯"):
            return lines[n + 1][1:].strip()
    return None
