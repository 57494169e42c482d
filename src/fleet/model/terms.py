"""Terms: what a spec asks of a task beyond the work itself. Each field is enforced, or the spec is refused."""

from __future__ import annotations

from typing import Literal

import msgspec


class Budget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What one task may consume, over all its attempts; None is no bound."""

    max_tokens: int | None = None  # output plus uncached input
    max_tool_calls: int | None = None
    max_seconds: int | None = None  # of running, questions not counted
    max_microusd: int | None = None
    idle_seconds: int | None = None  # of one silence
    pause: bool = False  # what exceeds it waits for a person; else it fails


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """How often and how soon it is tried again."""

    max_attempts: int = 3
    initial_backoff_seconds: int = 5
    max_backoff_seconds: int = 300
    backoff_multiplier: int = 2


class Terms(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The terms of one task. What is left out is inherited from the settings, or not asked for."""

    objective: str = ""
    instructions: str = ""
    role: str | None = None
    tool_profile: str | None = None
    tools: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    input_files: tuple[str, ...] = ()
    required_files: tuple[str, ...] = ()
    writable_paths: tuple[str, ...] | None = None  # None: anywhere; (): nowhere but the artifact directory
    required_environment: tuple[str, ...] = ()
    environment_allowlist: tuple[str, ...] = ()
    repository: str | None = None  # cloned into the directory that it works in, or fetched there
    branch: str | None = None  # of the repository; None: its default
    command: str | None = None  # the worker is this command, not a coder
    budget: Budget = Budget()
    timeout_seconds: int | None = None  # of one session
    max_output_mb: int | None = None  # that one session may print
    retry: RetryPolicy | None = None
    retry_safe: bool = True
    expected_artifacts: tuple[str, ...] = ()
    scorer: dict[str, object] | None = None  # as model/scorer.py types it; typed where it is used: reads start faster
    isolation: Literal["none", "worktree"] | None = None
    setup: str | None = None  # run in a fresh worktree before the worker
    copy_files: tuple[str, ...] = ()  # untracked files that a fresh worktree gets
    tags: tuple[str, ...] = ()
    metadata: dict[str, object] = {}
    base: str | None = None  # where it was submitted from: input files come from there, and it works there when here


NO_TERMS = Terms()  # one for all, as with NO_USAGE
