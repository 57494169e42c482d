"""Workers as a spec declares them: a name, a host, what they can do and how much at once."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

END = r"$(?!\n)"
PLAIN = rf"^[^\s\x00-\x1f-][^\s\x00-\x1f]*{END}"
A_NAME = {"x-expected": "a word without spaces that does not begin with `-`"}
Token = Annotated[
    str,
    Meta(
        pattern=rf"^[A-Za-z0-9][A-Za-z0-9._-]{{0,127}}{END}",
        extra_json_schema={"x-expected": "letters, digits, `.`, `-` or `_`, at most 128 of them"},
    ),
]
Address = Annotated[str, Meta(pattern=PLAIN, max_length=255, extra_json_schema=A_NAME)]


class LocalHost(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="kind",
    tag="local",
):
    """This machine."""


class SshHost(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="kind",
    tag="ssh",
):
    """A machine that is reached by ssh."""

    host: Annotated[Address, Meta(description="Its name or address.")]
    user: Annotated[Address | None, Meta(description="As whom.")] = None
    port: Annotated[Annotated[int, Meta(ge=1, le=65_535)] | None, Meta(description="On which port.")] = None
    identity: Annotated[str | None, Meta(description="The file of the key to use.")] = None
    known_hosts: Annotated[str | None, Meta(description="The file of host keys to trust.")] = None
    host_key_fingerprint: Annotated[str | None, Meta(description="The one host key to trust.")] = None
    working_directory: Annotated[str | None, Meta(description="Where its sessions and workspaces are.")] = None
    env_allowlist: Annotated[tuple[str, ...], Meta(description="Variables that are sent to it.")] = ()
    agent_binary: Annotated[str | None, Meta(description="The program of the coder on that machine.")] = None
    codewhale_binary: Annotated[str | None, Meta(description="An older name of agent_binary.")] = None


class WorkerSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A worker of a run: a named place on a host."""

    id: Annotated[Token, Meta(description="Names the worker within its run.")]
    name: Annotated[str, Meta(max_length=256, description="What people call it.")] = ""
    host: Annotated[LocalHost | SshHost, Meta(description="Where it is.")] = LocalHost()
    capabilities: Annotated[
        tuple[Token, ...], Meta(description="What it can do; a task that asks for more goes elsewhere.")
    ] = ()
    max_concurrent_tasks: Annotated[int, Meta(ge=1, le=1000, description="How many tasks it runs at once.")] = 1
