"""Settings of pools: numbered workers of one repository, each an interactive coder in tmux."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from msgspec import Meta

from fleet.config.section import A_VARIABLE, END, Section
from fleet.model.clash import ClashError

NAMED = rf"[A-Za-z0-9][A-Za-z0-9_-]{{0,62}}{END}"
SPRITE_HOME = "/home/sprite"  # as the provider makes them
A_POOL = "letters, digits, _ and -, a letter or digit first, at most 63"
A_URL = "an address that git clones from, or a path that begins with /"


class Pool(Section, frozen=True, kw_only=True):
    """A pool of numbered workers, which `fleet dispatch --repo NAME` gives work to; repeat the table for each."""

    repo: Annotated[
        str,
        Meta(
            pattern=rf"^[^\s\x00-\x1f\x7f-][^\s\x00-\x1f\x7f]*{END}",
            description="Where its workers clone from.",
            extra={"expected": A_URL},
        ),
    ]
    branch: Annotated[
        str,
        Meta(
            pattern=rf"^(?:[A-Za-z0-9_][A-Za-z0-9_./-]*)?{END}",
            description="The branch that is checked out; empty: the repository's own choice.",
            extra={"expected": "the name of a branch"},
        ),
    ] = ""
    host: Annotated[
        Literal["local", "sprite"],
        Meta(description="Where workers are, if no hosts are named: on this machine, or each is a sprite of its own."),
    ] = "local"
    hosts: Annotated[
        tuple[str, ...], Meta(description="Names of hosts that its workers are spread over, in the place of `host`.")
    ] = ()
    directory: Annotated[
        str,
        Meta(
            pattern=rf"^/[^\x00-\x1f\x7f'\"\\$`]*{END}",
            description="On a sprite: the directory that the clone is made in.",
            extra={"expected": "a path that begins with /"},
        ),
    ] = SPRITE_HOME
    prefix: Annotated[
        str,
        Meta(
            pattern=rf"^(?:{NAMED})?{END}",
            description="What the names of its workers begin with; empty: the pool's name.",
            extra={"expected": f"nothing, or {A_POOL}"},
        ),
    ] = ""
    max_size: Annotated[int, Meta(ge=1, le=200, description="How many workers it may have.")] = 5
    setup: Annotated[
        str, Meta(description="What is run once in a fresh clone, below its root; skipped where it is not there.")
    ] = "scripts/dev-setup.sh"
    coder: Annotated[str, Meta(description="Who works there; empty: the coder of the supervisor.")] = ""
    model: Annotated[str, Meta(description="With which model; empty: as its coder chooses.")] = ""
    env: Annotated[
        tuple[Annotated[str, Meta(pattern=rf"^[A-Z_][A-Z0-9_]*{END}", extra=A_VARIABLE)], ...],
        Meta(description="NAMES of variables or secrets that its agents and its setup are given."),
    ] = ()
    ssh_key: Annotated[
        str, Meta(description="A file with the private key for the repository; its workers get a copy, mode 0600.")
    ] = ""
    login: Annotated[
        str,
        Meta(
            pattern=rf"^(?:[A-Z_][A-Z0-9_]*)?{END}",
            description="The NAME of a secret with the coder's login, which its workers get as a file, mode 0600.",
            extra=A_VARIABLE,
        ),
    ] = ""
    trust: Annotated[
        bool,
        Meta(description="Whether the coder's question if it may trust the clone is answered with yes; else you are."),
    ] = True
    commit_minutes: Annotated[
        int, Meta(ge=1, le=1440, description="After how long at work without a commit a worker is reported.")
    ] = 30
    status_log: Annotated[str, Meta(description="Where `fleet pool check` writes its lines.")] = (
        "/var/log/orchestrator-status.log"
    )

    def __post_init__(self) -> None:
        if self.hosts and self.host != "local":
            raise ClashError(("hosts",), "host is given too; its workers are at one of them")
        if self.directory != SPRITE_HOME and self.host != "sprite":
            raise ClashError(
                ("directory",), 'means nothing unless host = "sprite": elsewhere Fleet says where clones are'
            )
        if self.setup.startswith(("/", "-")) or ".." in self.setup.split("/"):
            raise ClashError(("setup",), "expected a path below the root of the repository")


def check_name(name: str) -> None:
    """A pool's name is part of those of its workers, and of what they are called elsewhere."""
    if not re.fullmatch(NAMED, name):
        raise ClashError(("pools", name), f"expected {A_POOL}")
