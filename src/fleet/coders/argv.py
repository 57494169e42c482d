"""What the launches of all coders share: how long an argument may be, and what a coder cannot honour."""

from __future__ import annotations

from fleet.coders.coder import Work
from fleet.errors import UsageError

LONGEST_ARGUMENT = 100 * 1024  # bytes; Linux takes 128 KiB in one argument, less where the environment is large


def fits(prompt: str) -> bool:
    """Whether a prompt can be an argument; else it goes to stdin. A NUL ends an argument, so it goes there too."""
    return (
        len(prompt) <= LONGEST_ARGUMENT
        and len(prompt.encode("utf-8", "replace")) <= LONGEST_ARGUMENT
        and ("\0" not in prompt)
    )


def refuse_tools(coder: str, work: Work) -> None:
    """Raise when the work allows only some tools, for a coder that cannot be held to that."""
    if work.tools is not None:
        raise UsageError(
            f"`{coder}` cannot be held to a list of tools",
            hint="leave out `tools`, or use a coder that enforces it (claude)",
        )
