"""The contract of an outside queue: what Fleet asks of it, and what it tells it.

Every call may take long and may fail: ProgramError says that nothing is known of what it did, so all of them may be
repeated. Calls come from one thread at a time; `stop` may come from another.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec


class Depends(msgspec.Struct, frozen=True):
    """A relation as a list gives it."""

    depends_on_id: str = ""
    type: str = ""


class Issue(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of work as the outside queue has it; what else it says is left to it."""

    id: str
    title: str = ""
    description: str = ""
    status: str = "open"
    priority: int = 2
    issue_type: str = "task"
    assignee: str = ""
    notes: str = ""
    design: str = ""
    acceptance_criteria: str = ""
    external_ref: str = ""
    close_reason: str = ""
    created_at: str = ""
    labels: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}
    dependencies: tuple[Depends, ...] = ()

    def is_claimed_by(self, name: str) -> bool:
        """Whether who has this name there works on it."""
        return self.status == "in_progress" and self.assignee == name


class Source(Protocol):
    """An outside queue. `name` is who we are there: a claim under it is ours."""

    name: str

    def ready(self) -> list[Issue]:
        """What could start now, the most urgent and oldest first."""

    def listed(self) -> list[Issue]:
        """Everything that is not closed."""

    def find(self, issue: str) -> Issue | None:
        """One issue as it stands; None where there is none."""

    def claim(self, issue: str) -> Issue | None:
        """Take it for ourselves; None when somebody else has it, or when it may not be taken."""

    def close(self, issue: str, reason: str) -> None:
        """It is done. Conflict: the queue does not let it be closed."""

    def hold(self, issue: str, note: str) -> None:
        """It waits for a person; the note says why. Only while it is ours and in progress."""

    def release(self, issue: str) -> None:
        """Give it back. Only while it is ours and in progress."""

    def resume(self, issue: str) -> Issue | None:
        """Go on with one that waited or was closed; None when it is somebody else's."""

    def remark(self, issue: str, text: str, name: str) -> None:
        """A comment, made once under its name."""

    def touched(self) -> object:
        """Something that differs once the queue may have changed; cheap."""

    def stop(self) -> None:
        """End a call that is under way; it raises ProgramError."""
