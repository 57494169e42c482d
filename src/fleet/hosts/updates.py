"""How a package is updated on a machine: by a recipe, else by the package manager that installed it."""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

from fleet.errors import UsageError

PACKAGE = re.compile(r"[A-Za-z0-9@][A-Za-z0-9@/._+-]{0,127}")


class Known(NamedTuple):
    """What package managers call a package, where that is not its name, and how it updates itself."""

    npm: str = ""
    brew: str = ""
    own: str = ""


KNOWN = {
    "claude": Known(npm="@anthropic-ai/claude-code", brew="claude-code", own="claude update"),
    "cloudflared": Known(own="cloudflared update"),
    "codex": Known(npm="@openai/codex"),
    "gemini": Known(npm="@google/gemini-cli", brew="gemini-cli"),
    "infisical": Known(npm="@infisical/cli"),
    "opencode": Known(npm="opencode-ai", own="opencode upgrade"),
}
DETECT = """
have() { command -v "$1" >/dev/null 2>&1; }
sudo=
if [ "$(id -u)" != 0 ] && have sudo; then sudo='sudo -n'; fi
if have dpkg-query && [ "$(dpkg-query -W -f '${db:Status-Status}' %(name)s 2>/dev/null)" = installed ]; then
    $sudo apt-get update -qq && $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --only-upgrade %(name)s
elif have npm && npm ls -g --depth=0 %(npm)s >/dev/null 2>&1; then
    npm install -g %(npm)s@latest
elif have brew && brew list --versions %(brew)s >/dev/null 2>&1; then
    brew upgrade %(brew)s
elif have python3 && python3 -m pip show -q %(name)s >/dev/null 2>&1; then
    python3 -m pip install --upgrade %(name)s
%(own)selse
    echo %(unknown)s
    exit 1
fi
"""
# The versions go to stdout, what the update says to stderr; its own input is empty, so that nothing asks a question.
SCRIPT = """
version() { { %(version)s
} 2>/dev/null </dev/null | head -n 1; }
before=$(version)
( %(command)s
) >&2 </dev/null
code=$?
printf '%%s\\n%%s\\n' "$before" "$(version)"
exit $code
"""


def update_script(package: str, *, command: str = "", version: str = "") -> str:
    """The piece of sh that updates a package and prints its version before and after, a line each."""
    if not PACKAGE.fullmatch(package):
        raise UsageError(f"`{package}` is no name of a package", hint="letters, digits and @ / . _ + -")
    return SCRIPT % {
        "version": version or f"{shlex.quote(package)} --version",
        "command": command or _detection(package),
    }


def versions(stdout: str) -> tuple[str, str]:
    """The version before and after, empty where it is not known."""
    before, _, after = stdout.partition("\n")
    return before.strip(), after.strip()


def _detection(package: str) -> str:
    known = KNOWN.get(package, Known())
    program = known.own.partition(" ")[0]
    own = f"elif have {program}; then\n    {known.own}\n" if known.own else ""
    unknown = f"{package} was not installed by apt, npm, brew or pip; give it a recipe: [updates.{package}]"
    return DETECT % {
        "name": shlex.quote(package),
        "npm": shlex.quote(known.npm or package),
        "brew": shlex.quote(known.brew or package),
        "own": own,
        "unknown": shlex.quote(unknown),
    }
