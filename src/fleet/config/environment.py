"""The environment of this process; everything else asks here."""

from __future__ import annotations

import os
from collections.abc import Mapping


def environ() -> Mapping[str, str]:
    """The variables of this process, as they are now."""
    return os.environ


def user_home(env: Mapping[str, str]) -> str:
    """The user's own directory: $HOME, else what the system's list of users says."""
    if env.get("HOME"):
        return env["HOME"]
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return "/"


def expand(path: str, env: Mapping[str, str]) -> str:
    """A path with its leading `~` replaced, by $HOME of the environment given."""
    if path == "~" or path.startswith("~/"):
        return user_home(env) + path[1:]
    return os.path.expanduser(path)  # `~name`: the list of users knows
