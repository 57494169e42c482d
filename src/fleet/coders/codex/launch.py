"""How codex is started so that it asks nobody, and without its sandbox, save where the task may only read."""

from __future__ import annotations

import json

from fleet.coders.argv import fits
from fleet.coders.coder import Work
from fleet.coders.following import launched
from fleet.coders.permissions import limited
from fleet.model.launch import Launch

SETTINGS = (
    "--disable",
    "plugins",  # else it waits seconds for the network at its end
    "-c",
    "check_for_update_on_startup=false",
    "-c",
    "analytics.enabled=false",
    "-c",
    "allow_login_shell=false",  # a login shell sets PATH anew, and the `fleet` of the session is on it no more
)
SECRETS = ("OPENAI_API_KEY", "CODEX_API_KEY", "OPENAI_BASE_URL")


def launch(work: Work) -> Launch:
    """`codex exec`, or `codex exec resume`, which takes its directory from the process."""
    on_stdin = not fits(work.prompt)
    argv = [work.program or "codex", "exec", *(("resume",) if work.resume else ()), "--json", "--skip-git-repo-check"]
    argv += [*SETTINGS, *sandbox(work), *model(work)]
    argv += ["--", *((work.resume,) if work.resume else ()), "-" if on_stdin else work.prompt]
    return launched(work, argv, on_stdin=on_stdin, secrets=SECRETS)


def model(work: Work) -> tuple[str, ...]:
    """The model that is asked for, if one is."""
    return ("-m", work.model) if work.model else ()


def sandbox(work: Work) -> tuple[str, ...]:
    """None; or one that lets it read everything and write only where it must. `exec resume` knows no `--sandbox`."""
    if not limited(work):
        return ("--dangerously-bypass-approvals-and-sandbox",)
    files = {":root": "read", **dict.fromkeys(work.writable, "write")}
    table = ", ".join(f"{json.dumps(path)} = {json.dumps(right)}" for path, right in files.items())
    settings = {
        "approval_policy": '"never"',
        "default_permissions": '"fleet"',
        "permissions.fleet.filesystem": f"{{{table}}}",
        "permissions.fleet.network.enabled": "true",
    }
    return tuple(word for name, value in settings.items() for word in ("-c", f"{name}={value}"))
