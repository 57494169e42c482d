"""How many tokens the models hold, by the beginning of their names. Vendors change this: the newest word is theirs."""

from __future__ import annotations

MILLION = 1_000_000
CODEX_USABLE = 0.95  # codex keeps the rest of a window for itself

CLAUDE = {
    "claude-opus-4-5": 200_000,
    "claude-sonnet-4-5": 200_000,
    "claude-haiku-4-5": 200_000,
    "claude-opus-5": MILLION,
    "claude-sonnet-5": MILLION,
    "claude-haiku-5": MILLION,
    "claude-fable-5": MILLION,
    "opus": MILLION,
    "sonnet": MILLION,
    "haiku": MILLION,
    "fable": MILLION,
}
CODEX = {
    "gpt-6.1-terra": 500_000,
    "gpt-6.1-sol": 272_000,
    "gpt-6-": 272_000,
    "gpt-5.6-": 272_000,
    "gpt-5.5": 272_000,
    "gpt-daybreak-blue-latest": 272_000,
    "gpt-daybreak-red-latest": 372_000,
    "codex-auto-review": 272_000,
}
GEMINI = {
    "gemini-2.5-": 1_048_576,
    "gemini-3": 1_048_576,
}


def claude(model: str | None) -> int | None:
    """A Claude model's window, as Claude Code reports it."""
    return MILLION if model and model.endswith("[1m]") else _by_prefix(CLAUDE, model)


def codex(model: str | None) -> int | None:
    """The part of a model's window that codex fills before it compacts."""
    window = _by_prefix(CODEX, model)
    return round(window * CODEX_USABLE) if window else None


def gemini(model: str | None) -> int | None:
    """A Gemini model's window."""
    return _by_prefix(GEMINI, model)


def any_vendor(model: str | None) -> int | None:
    """The window of a model of whatever vendor, named with or without its provider (`anthropic/claude-…`)."""
    bare = model.rsplit("/", 1)[-1] if model else None
    return claude(bare) or gemini(bare) or _by_prefix(CODEX, bare)


def _by_prefix(windows: dict[str, int], model: str | None) -> int | None:
    fitting = [prefix for prefix in windows if model and model.startswith(prefix)]
    return windows[max(fitting, key=len)] if fitting else None
