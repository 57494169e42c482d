"""The launch file: a launch and its rules as a piece of sh that the runner reads, safe for any bytes in a word."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping

import msgspec

from fleet.errors import UsageError
from fleet.model.ids import check_token
from fleet.model.launch import Launch

PROTO = 1  # of the session directory; the runner refuses another
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SHELL_WORD = re.compile(r"[A-Za-z0-9/._+-]+")
OURS = ("FLEET_SESSION", "FLEET_SESSION_DIR")  # the marker of a session, which every process of its agent carries
# What an agent finds of the environment of whoever starts it, on every host: harmless words.
BASE_ENVIRONMENT = ("PATH", "HOME", "USER", "SHELL", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
READ_ONLY = frozenset({"UID", "EUID", "PPID", "BASHOPTS", "SHELLOPTS", "BASH_VERSINFO"})  # in one shell or another
LONGEST_WORD = 131_071  # what Linux takes as one argument, its end included
END = "#end\n"


class Rules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the runner sees to by itself while nobody looks."""

    most_output_bytes: int = 1 << 30  # of stdout and of stderr, each; past it the session ends as over budget
    look_seconds: int = 2  # how often the sizes are looked at; the first session of those beside each other says it
    grace_ms: int = 2000  # between one signal and the next, when the runner itself ends something
    keep_processes: bool = False  # leave alone what the agent left behind
    use_cgroup: bool = True  # where the host lets us make one
    awake_seconds: int = 86_400  # for how long at most the host is kept awake, where it would sleep
    dead_man_seconds: int = 0  # end the agent when nobody attends it for so long; 0: never


DEFAULT_RULES = Rules()


def render(
    session: str, launch: Launch, rules: Rules = DEFAULT_RULES, shell: tuple[str, ...] = ("sh",), *, epoch: int = 0
) -> bytes:
    """The launch file. Reading it only sets words and defines one function, which becomes the agent."""
    _check(launch, shell)
    settings: dict[str, object] = {
        "proto": PROTO,
        "session": check_token(session, "session"),
        "shell": " ".join(shell),
        "first_epoch": epoch,
        "cap": rules.most_output_bytes,
        "tick": rules.look_seconds,
        "grace_ms": rules.grace_ms,
        "keep": int(rules.keep_processes),
        "use_cgroup": int(rules.use_cgroup),
        "dead_man": rules.dead_man_seconds,
        "cwd": launch.cwd,
        "stdin": "prompt" if launch.prompt_on_stdin else "null",
        "secrets": " ".join(launch.secrets),
        "tty": int(bool(launch.terminal)),
    }
    lines = [f"{name}={shlex.quote(str(value))}" for name, value in settings.items()]
    lines.append("launch_agent() {")
    lines += [f"export {name}={shlex.quote(value)}" for name, value in launch.env.items()]
    lines.append('unset OLDPWD; export PATH="$FLEET_SESSION_DIR/bin:$PATH"')
    lines.append("become " + " ".join(shlex.quote(word) for word in launch.argv))
    lines.append("}\n")
    if launch.terminal:
        words = " ".join(shlex.quote(word) for word in launch.terminal)
        lines.append(f'on_terminal() {{\n{words} "$@"\n}}\n')
    return os.fsencode("\n".join(lines))


def render_secrets(secrets: Mapping[str, str]) -> bytes:
    """What the launcher gets on stdin: NAME=value, quoted for sh, and an end, so that half of it is never taken."""
    for name, value in secrets.items():
        _check_variable(name, "secret", value)
    return os.fsencode("".join(f"{name}={shlex.quote(value)}\n" for name, value in secrets.items()) + END)


def _check(launch: Launch, shell: tuple[str, ...]) -> None:
    if not launch.argv or not launch.argv[0] or launch.argv[0].startswith("-"):
        raise UsageError("a launch needs a program, whose name does not begin with `-`")
    for word in (*launch.argv, launch.cwd):
        if "\0" in word:
            raise UsageError(f"`{launch.argv[0]}` cannot be given a word with a NUL in it")
        if len(os.fsencode(word)) > LONGEST_WORD:
            raise UsageError(
                f"`{launch.argv[0]}` cannot be given a word of more than {LONGEST_WORD} bytes",
                hint="give the prompt on stdin",
            )
    for name, value in launch.env.items():
        _check_variable(name, "variable", value)
    for name in launch.secrets:
        _check_variable(name, "secret")
    if not shell or not all(SHELL_WORD.fullmatch(word) for word in shell):
        raise UsageError(f"`{' '.join(shell)}` is no shell")


def _check_variable(name: str, what: str, value: str = "") -> None:
    if not NAME.fullmatch(name) or name in READ_ONLY.union(OURS):
        raise UsageError(f"{what} `{name}` cannot be set for an agent")
    if "\0" in value:
        raise UsageError(f"the value of {what} `{name}` has a NUL in it")
