"""How Claude Code is started so that it asks nobody, retries little and sends nothing home."""

from __future__ import annotations

from pathlib import PurePath

from fleet.coders.argv import fits
from fleet.coders.coder import Work
from fleet.coders.permissions import READ_ONLY, limited, named
from fleet.model.launch import Launch

SECRETS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_BASE_URL")
ENV = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "2",  # of 10: whether to wait is for the supervisor to decide
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
}

READING = ("Read", "Glob", "Grep", "Task", "TodoWrite")
KINDS = {
    "read": (),
    "edit": ("Edit", "Write", "NotebookEdit"),
    "shell": ("Bash",),
    "web": ("WebFetch", "WebSearch"),
}
WRITING = ("Bash", "Edit", "MultiEdit", "NotebookEdit", "Write")
RULES = "its permission rules"


def launch(work: Work) -> Launch:
    """The launch of one session. The conversation's name is ours, so that it can be resumed after any crash."""
    session = work.resume or work.new_uuid or None
    argv = [work.program or "claude", "-p", "--output-format", "stream-json", "--verbose"]
    if work.resume:
        argv += ["--resume", work.resume]
    elif work.new_uuid:
        argv += ["--session-id", work.new_uuid]
    if work.model:
        argv += ["--model", work.model]
    argv += permissions(work)
    on_stdin = not fits(work.prompt)
    if not on_stdin:
        argv += ["--", work.prompt]
    return Launch(
        argv=tuple(argv),
        cwd=work.cwd,
        env={**ENV, "IS_SANDBOX": "1"} if work.as_root else dict(ENV),
        secrets=SECRETS,
        prompt=work.prompt,
        prompt_on_stdin=on_stdin,
        coder_session=session,
    )


def permissions(work: Work) -> list[str]:
    """Everything; or reading, what is named, and a denial for the rest.

    A repository cannot widen that: of the settings only the operator's own are read. Their rules hold too, but in the
    directory of a task that may only read no rule lets anything be written.
    """
    if not limited(work):
        return ["--dangerously-skip-permissions"]
    wanted = named(work.tools)
    allowed = [*READING, *(tool for kind in wanted.kinds for tool in KINDS[kind])]
    allowed += [f"Edit(/{path}/**)" for path in work.writable]  # two slashes: from the root of the file system
    allowed += [f"Bash({program} *)" for program in wanted.programs]
    argv = ["--permission-mode", "dontAsk", "--setting-sources", "user", "--allowedTools", *allowed, *wanted.own]
    around = any(PurePath(path).is_relative_to(work.cwd) for path in work.writable)  # a denial would hold there too
    if work.tool_profile == READ_ONLY and not around:
        argv += ["--disallowedTools", f"Edit(/{work.cwd}/**)"]
    return argv
