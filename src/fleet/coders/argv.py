"""What the launches of all coders share: how long an argument may be."""

from __future__ import annotations

LONGEST_ARGUMENT = 100 * 1024  # bytes; Linux takes 128 KiB in one argument, less where the environment is large


def fits(prompt: str) -> bool:
    """Whether a prompt can be an argument; else it goes to stdin. A NUL ends an argument, so it goes there too."""
    return (
        len(prompt) <= LONGEST_ARGUMENT
        and len(prompt.encode("utf-8", "replace")) <= LONGEST_ARGUMENT
        and ("\0" not in prompt)
    )
