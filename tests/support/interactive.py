"""A program that looks and behaves like Claude Code on a terminal, and does what the prompt says. Run as `claude`.

`~/knobs.json` says what it is like: `trust` (asks once for each directory), `login` (nobody is logged in), `hooks`
(false: it tells nobody what it does), `slow` (seconds until it is ready), `deaf` (it ignores the first Enter).
In a prompt, `@@sh COMMAND` is run, `@@wait FILE` waits for a file, `@@ask` notifies, `@@die` ends it at once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import termios
import time
import tty
from pathlib import Path
from typing import Any

RULE = "─" * 60
HOME = Path(os.environ["HOME"])
OPTIONS = {name: sys.argv[n + 1] for n, name in enumerate(sys.argv[:-1]) if name in ("--settings", "--session-id")}


def knobs() -> dict[str, Any]:
    """How it behaves."""
    path = HOME / "knobs.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def show(*lines: str) -> None:
    """Draw the screen anew."""
    sys.stdout.write("\x1b[2J\x1b[H" + "\r\n".join(lines))
    sys.stdout.flush()


def key() -> str:
    """One key, or a pasted text."""
    got = os.read(0, 1)
    if got != b"\x1b":
        return got.decode("utf-8", "replace")
    while len(got) < 3 or (got[-1:].isdigit() and len(got) < 6):
        got += os.read(0, 1)
    if got != b"\x1b[200~":
        return got.decode()
    while not got.endswith(b"\x1b[201~"):
        got += os.read(0, 4096)
    return "paste:" + got[6:-6].decode().replace("\r", "\n")


def hook(event: str, **fields: object) -> None:
    """Tell the hook of an event, where there is one."""
    if not knobs().get("hooks", True):
        return
    settings = json.loads(Path(OPTIONS["--settings"]).read_text())
    told = {"hook_event_name": event, "session_id": OPTIONS["--session-id"], "transcript_path": str(record()), **fields}
    for one in settings["hooks"].get(event, []):
        for each in one["hooks"]:
            subprocess.run(["sh", "-c", each["command"]], input=json.dumps(told).encode(), check=False)


def record() -> Path:
    """Its own record of the conversation."""
    settings = Path(os.environ.get("CLAUDE_CONFIG_DIR") or HOME / ".claude")
    return settings / "projects" / "here" / f"{OPTIONS['--session-id']}.jsonl"


def write(kind: str, content: Any) -> None:
    """A line of the record."""
    record().parent.mkdir(parents=True, exist_ok=True)
    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {"role": kind, "id": f"m{time.time_ns()}", "content": content, "usage": usage}
    with record().open("a") as file:
        file.write(json.dumps({"type": kind, "message": message}) + "\n")


def trust() -> None:
    """Ask whether the directory is trusted; the first answer is no."""
    known = HOME / "trusted"
    if not knobs().get("trust") or (known.exists() and os.getcwd() in known.read_text().splitlines()):
        return
    at = 0
    while True:
        marks = ["❯" if n == at else " " for n in range(2)]
        show(RULE, " Quick safety check: Is this a project you trust?", "", f" {marks[0]} No, exit")
        sys.stdout.write(f"\r\n {marks[1]} Yes, I trust this folder\r\n\r\n Enter to confirm")
        sys.stdout.flush()
        pressed = key()
        if pressed == "\x1b[B":
            at = 1
        elif pressed == "\r":
            break
    if at == 0:
        sys.exit(1)
    with known.open("a") as file:
        file.write(os.getcwd() + "\n")


def work(prompt: str) -> None:
    """A turn: what the prompt says."""
    show(*prompt.splitlines()[-5:], "", "* Working… (1s)", RULE, "❯ ", RULE)
    hook("UserPromptSubmit", prompt=prompt)
    write("user", prompt)
    for line in prompt.splitlines():
        verb, _, rest = line.strip().partition(" ")
        if verb == "@@sh":
            subprocess.run(["sh", "-c", rest], check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        elif verb == "@@wait":
            while not Path(rest).exists():
                time.sleep(0.02)
        elif verb == "@@ask":
            hook("Notification", message="Claude needs your permission to use Bash")
        elif verb == "@@die":
            os._exit(7)
    write("assistant", [{"type": "text", "text": "All done."}])
    hook("Stop", last_assistant_message="All done.")


def main() -> None:
    """Start, then one turn after another."""
    before = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        trust()
        time.sleep(knobs().get("slow", 0))
        sys.stdout.write("\x1b[?2004h")
        typed, deaf = "", int(knobs().get("deaf", 0))
        note = "Not logged in · Run /login" if knobs().get("login") else ""
        while True:
            lines = typed.count("\n")
            shown = f"[Pasted text #1 +{lines} lines]" if lines else typed
            show(" Claude Code v0", note, RULE, f"❯ {shown}", RULE, "  ready")
            pressed = key()
            if pressed == "\x03":
                return
            if pressed.startswith("paste:"):
                typed += pressed[6:]
            elif pressed == "\r":
                deaf, heard = deaf - 1, deaf <= 0
                if heard and typed.strip():
                    prompt, typed = typed, ""
                    work(prompt)
            elif pressed.isprintable():
                typed += pressed
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


if __name__ == "__main__":
    main()
