"""How a machine is reached, and what it may be used for: the same words in the settings and in a spec.

The words end up in the arguments of ssh, and by way of its configuration in shells: none may be an option, or more
than a word. Their patterns are looked at only where a machine is declared: most homes have none, and start faster.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from fleet.model.clash import ClashError

SECRET_LIKE = ("SECRET", "TOKEN", "PASSWORD", "PASSWD", "API_KEY", "CREDENTIAL", "PRIVATE_KEY")
A_FILE = "the path of a file, without quotes"
WORDS = {  # of each field: what it must look like, and that in words
    "host": (r"[A-Za-z0-9_][A-Za-z0-9_.%:-]{0,252}", "a name or address that does not begin with -"),
    "user": (r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,127}\$?", "a name of letters, digits and . _ @ + -"),
    "identity": (r"[^\s\x00-\x1f\x7f\"'\\-][^\x00-\x1f\x7f\"'\\]*", A_FILE),
    "known_hosts": (r"[^\s\x00-\x1f\x7f\"'\\-][^\x00-\x1f\x7f\"'\\]*", A_FILE),
    "ssh_config": (r"[^\s\x00-\x1f\x7f\"'\\-][^\x00-\x1f\x7f\"'\\]*", A_FILE),
    "host_key_fingerprint": (r"SHA256:[A-Za-z0-9+/]{43}", "SHA256: and 43 letters, as `ssh-keygen -lf` prints it"),
    "working_directory": (r"/[^\x00-\x1f\x7f]*", "a path that begins with /"),
    "agent_binary": (r"[^\s\x00-\x1f\x7f-][^\x00-\x1f\x7f]*", "a program's name or path"),
}
HOP = r"(?:[A-Za-z0-9_][A-Za-z0-9_.@+-]*@)?(?:[A-Za-z0-9_][A-Za-z0-9_.-]*|\[[0-9A-Fa-f:.%]+\])(?::[0-9]{1,5})?"
VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
SSH_ONLY = ("user", "port", "identity", "known_hosts", "host_key_fingerprint", "proxy_jump", "ssh_config")
NEEDED = ("host", "working_directory", "agent_binary")
STALE_AFTER_SECONDS = 300


class Reach(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A machine: how it is reached."""

    kind: Annotated[Literal["local", "ssh", "sprite"], Meta(description="How it is reached.")] = "sprite"
    host: Annotated[
        str, Meta(description="Its name or address, or a Host of your own ssh configuration; of a sprite, its name.")
    ] = ""
    user: Annotated[str, Meta(description="Who logs in over ssh; else as your ssh configuration says.")] = ""
    port: Annotated[int, Meta(ge=0, le=65535, description="The port of sshd; 0 means as ssh is configured.")] = 0
    identity: Annotated[str, Meta(description="A file with the private key to log in with; only it is offered.")] = ""
    known_hosts: Annotated[str, Meta(description="A file of host keys; no other key is believed.")] = ""
    host_key_fingerprint: Annotated[
        str, Meta(description="The fingerprint of the host's key, SHA256:...; no other key is believed.")
    ] = ""
    proxy_jump: Annotated[str, Meta(description="The hosts on the way there, as for ssh -J.")] = ""
    ssh_config: Annotated[str, Meta(description="A file in place of your own ssh configuration.")] = ""
    working_directory: Annotated[
        str,
        Meta(description="The directory that work happens in there. On other machines Fleet's own files are below it."),
    ] = ""
    agent_binary: Annotated[
        str, Meta(description="The agent's program there, in the place of the coder's usual one.")
    ] = ""
    codewhale_binary: Annotated[str, Meta(description="The same as agent_binary.")] = ""
    env_allowlist: Annotated[
        tuple[str, ...], Meta(description="NAMES of variables, not secret, that are passed on to what runs there.")
    ] = ()
    stale_after_seconds: Annotated[
        int, Meta(ge=5, le=86400, description="After how long without a sign of life it is called stale.")
    ] = STALE_AFTER_SECONDS
    dead_man_seconds: Annotated[
        int,
        Meta(ge=0, le=604800, description="Its agents end by themselves when unattended for so long; 0 means never."),
    ] = 0
    max_concurrent_tasks: Annotated[
        int, Meta(ge=1, le=1000, description="How many tasks it may run at once, where no worker names it and says so.")
    ] = 1
    capabilities: Annotated[tuple[str, ...], Meta(description="What it can do, for tasks that ask for it.")] = ()

    def __post_init__(self) -> None:
        if self.codewhale_binary:
            if self.agent_binary:
                raise ClashError(("codewhale_binary",), "agent_binary is given too; they are the same")
            msgspec.structs.force_setattr(self, "agent_binary", self.codewhale_binary)
            msgspec.structs.force_setattr(self, "codewhale_binary", "")
        for name in WORDS:
            if word := getattr(self, name):
                check_word(name, word)
        check_hops(self.proxy_jump)
        for place, name in enumerate(self.env_allowlist):
            check_variable(name, place)
        self._check_kind()

    def _check_kind(self) -> None:
        if self.kind == "ssh":
            for name in NEEDED:
                if not getattr(self, name):
                    raise ClashError((name,), f"is missing; an ssh host needs {WORDS[name][1]}")
            if self.known_hosts and self.host_key_fingerprint:
                raise ClashError(("known_hosts",), "host_key_fingerprint is given too; the key is known by one of them")
            return
        for name in SSH_ONLY if self.kind == "sprite" else ("host", "dead_man_seconds", *SSH_ONLY):
            if getattr(self, name):
                raise ClashError((name,), f'means nothing for a host of kind "{self.kind}"')
        if self.kind == "local" and self.stale_after_seconds != STALE_AFTER_SECONDS:
            raise ClashError(("stale_after_seconds",), 'means nothing for a host of kind "local"')


def check_word(name: str, word: str) -> None:
    """Refuse a word that is not what its field takes."""
    pattern, expected = WORDS[name]
    if not re.fullmatch(pattern, word):
        raise ClashError((name,), f"expected {expected}, found {_shown(word)}")


def check_hops(proxy_jump: str) -> None:
    """Refuse a way that is not `[user@]host[:port]`, several with commas."""
    for hop in proxy_jump.split(",") if proxy_jump else ():
        if not re.fullmatch(HOP, hop):
            raise ClashError(("proxy_jump",), f"expected [user@]host[:port], with commas, found {_shown(proxy_jump)}")


def check_variable(name: str, place: int = 0) -> None:
    """Refuse what is no name of a variable, and one that looks like a secret: it would be in many environments."""
    if not re.fullmatch(VARIABLE, name):
        raise ClashError(("env_allowlist", place), "give NAMES of variables, not values")
    if any(word in name.upper() for word in SECRET_LIKE):
        raise ClashError(
            ("env_allowlist", place),
            f"{name} looks like a secret; name it in secrets of the coder that needs it: only that gets it then",
        )


def _shown(word: Any) -> str:
    return msgspec.json.encode(str(word)[:60]).decode("utf-8", "replace")
