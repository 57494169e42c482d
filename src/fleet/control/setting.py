"""Setting the fields of a task: `coder=codex budget_tokens=20000` as an edit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from fleet.config.settings import Supervisor
from fleet.errors import UsageError
from fleet.model.nearest import nearest
from fleet.model.task import TaskEdit
from fleet.model.terms import Budget, RetryPolicy, Terms

MICRO = 1_000_000
TEXTS = ("coder", "model", "cwd")
BUDGET = {
    "budget_tokens": "max_tokens",
    "budget_tool_calls": "max_tool_calls",
    "budget_seconds": "max_seconds",
    "budget_usd": "max_microusd",
    "budget_idle_seconds": "idle_seconds",
    "budget_pause": "pause",
}
TERMS = ("timeout_seconds", "max_output_mb", "max_attempts", "retry_safe")
KEYS = (*TEXTS, "priority", *BUDGET, *TERMS)


def parse_settings(pairs: Iterable[str], terms: Terms, configured: Supervisor) -> TaskEdit:
    """The edit that pairs ask for, on the terms as they stand. An empty value goes back to the default."""
    fields: dict[str, Any] = {}
    changed = terms
    for pair in pairs:
        name, eq, value = pair.partition("=")
        if not eq or name not in KEYS:
            near = nearest(name, KEYS)
            hint = f"did you mean `{near}={value}`?" if near else ""
            raise UsageError(f"`{pair}` is none of " + ", ".join(f"{key}=" for key in KEYS), hint=hint)
        if name in TEXTS:
            fields[name] = value or None
        elif name == "priority":
            if not value.isdecimal():
                raise UsageError(f"priority must be 0 (most urgent) to 4, not `{value}`")
            fields[name] = int(value)
        else:
            changed = _with_term(changed, name, value, configured)
    return TaskEdit(**fields) if changed == terms else TaskEdit(**fields, terms=changed)


def _with_term(terms: Terms, name: str, value: str, configured: Supervisor) -> Terms:
    read = _flag if name in ("budget_pause", "retry_safe") else _money if name == "budget_usd" else _amount
    given = read(name, value) if value else None
    if name in BUDGET:
        bound = _default(Budget, BUDGET[name]) if given is None else given
        return replace(terms, budget=replace(terms.budget, **{BUDGET[name]: bound}))
    if name == "max_attempts":
        policy = terms.retry or _inherited(configured)
        return replace(terms, retry=None if given is None else replace(policy, max_attempts=given))
    return replace(terms, **{name: _default(Terms, name) if given is None else given})


def _inherited(configured: Supervisor) -> RetryPolicy:
    return RetryPolicy(
        max_attempts=configured.max_attempts,
        initial_backoff_seconds=configured.backoff_seconds,
        max_backoff_seconds=configured.max_backoff_seconds,
        backoff_multiplier=configured.backoff_multiplier,
    )


def _default(kind: type[msgspec.Struct], name: str) -> Any:
    return next(field.default for field in msgspec.structs.fields(kind) if field.name == name)


def _amount(name: str, value: str) -> int:
    if not (value.isascii() and value.isdecimal()) or not int(value):
        raise UsageError(f"{name} must be a whole number above 0, or nothing, not `{value}`")
    return int(value)


def _money(name: str, value: str) -> int:
    try:
        dollars = float(value)
    except ValueError:
        dollars = -1.0
    if not 0 < dollars <= MICRO:
        raise UsageError(f"{name} must be an amount of dollars above 0, or nothing, not `{value}`")
    return round(dollars * MICRO)


def _flag(name: str, value: str) -> bool:
    if value not in ("true", "false"):
        raise UsageError(f"{name} must be true or false, not `{value}`")
    return value == "true"
