"""How Claude Code is started so that it asks nobody, retries little and sends nothing home."""

from __future__ import annotations

from fleet.coders.argv import fits
from fleet.coders.coder import Work
from fleet.model.launch import Launch

SECRETS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_BASE_URL")
ENV = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "2",  # of 10: whether to wait is for the supervisor to decide
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
}


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
    argv += _permissions(work.tools)
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


def _permissions(tools: tuple[str, ...] | None) -> list[str]:
    """Everything, or only these tools and a denial for the rest."""
    if tools is None:
        return ["--dangerously-skip-permissions"]
    allowed = ["--allowedTools", *tools] if tools else []
    return ["--permission-mode", "dontAsk", *allowed]
