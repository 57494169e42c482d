"""What is told of worktrees: how they stand, what landing one did, what is left of one that went."""

from __future__ import annotations

from typing import Literal

import msgspec

from fleet.hosts.ignored import Leftover
from fleet.model.states import TaskState

How = Literal["merge", "apply"]


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """What git ignored in a worktree that is gone."""

    kept: tuple[Leftover, ...] = ()
    place: str = ""  # where that was put aside, as HOST:PATH where it is not here
    gone: tuple[Leftover, ...] = ()


class Landed(msgspec.Struct, frozen=True, kw_only=True):
    """Work that was brought home."""

    task: str
    how: How
    host: str  # where the checkout is; empty: on this machine
    into: str  # the checkout
    branch: str  # that is checked out there; empty: none is, and a merge is on none
    commit: str  # what that stands at now
    commits: int  # that were brought
    kept: bool  # whether the worktree is still there
    why: str = ""  # it is, though nobody asked for that
    left: Left = Left()
    remarks: tuple[str, ...] = ()  # what else a person wants to know of the work


class Tree(msgspec.Struct, frozen=True, kw_only=True):
    """A task's worktree as it stands."""

    task: str
    title: str
    state: TaskState | None  # None: no task of this ledger has it
    host: str  # empty: this machine
    path: str
    branch: str = ""
    commits: int = 0
    dirty: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()  # by git: files, and directories that are ignored as a whole
    problem: str = ""  # why no more can be said of it


class Dropped(msgspec.Struct, frozen=True, kw_only=True):
    """A worktree that was dropped, or brought back."""

    task: str
    host: str
    path: str
    branch: str
    left: Left = Left()
