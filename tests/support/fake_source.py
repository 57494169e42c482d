"""An outside queue in memory, with the rules of bd that matter; a person changes it by `put`."""

from __future__ import annotations

import threading
from typing import Any

from msgspec.structs import replace

from fleet.errors import Conflict, ProgramError
from fleet.sources.source import Depends, Issue


class FakeSource:
    """Implements `fleet.sources.source.Source`."""

    name = "fleet/test"

    def __init__(self) -> None:
        self._issues: dict[str, Issue] = {}
        self._lock = threading.Lock()
        self._touched = 0
        self.remarks: list[tuple[str, str]] = []
        self.calls: list[str] = []  # the writes, in order
        self.broken = ""  # what every call fails with
        self.unclosable = ""  # why nothing can be closed
        self.unclaimable = False  # as where a new blocker forbids it

    # what a person does

    def put(self, issue: str, *, needs: tuple[str, ...] = (), **fields: Any) -> Issue:
        """Make or change an issue."""
        with self._lock:
            known = self._issues.get(issue) or Issue(id=issue, title=issue, created_at=f"{len(self._issues):04}")
            if needs:
                fields["dependencies"] = tuple(Depends(need, "blocks") for need in needs)
            self._issues[issue] = replace(known, **fields)
            self._touched += 1
            return self._issues[issue]

    def get(self, issue: str) -> Issue:
        """An issue as it stands."""
        return self._issues[issue]

    # what Fleet asks

    def ready(self) -> list[Issue]:
        self._check()
        found = [one for one in self.listed() if one.status == "open" and not self._blocked(one)]
        return sorted(found, key=lambda one: (one.priority, one.created_at, one.id))

    def listed(self) -> list[Issue]:
        self._check()
        return [one for one in list(self._issues.values()) if one.status != "closed"]

    def find(self, issue: str) -> Issue | None:
        self._check()
        return self._issues.get(issue)

    def touched(self) -> object:
        return self._touched

    def stop(self) -> None:
        self.broken = "stopped"

    # what Fleet says

    def claim(self, issue: str) -> Issue | None:
        self._check()
        found = self._issues[issue]
        if found.status != "open" or found.assignee not in ("", self.name) or self.unclaimable:
            return None
        self.calls.append(f"claim {issue}")
        return self.put(issue, status="in_progress", assignee=self.name)

    def close(self, issue: str, reason: str) -> None:
        self._check()
        if self.unclosable:
            raise Conflict(self.unclosable)
        self.calls.append(f"close {issue}")
        self.put(issue, status="closed", close_reason=reason)

    def hold(self, issue: str, note: str) -> None:
        self._check()
        if self._mine(issue):
            self.calls.append(f"hold {issue}")
            self.put(issue, status="blocked", notes=f"{self._issues[issue].notes}\n{note}".strip())

    def release(self, issue: str) -> None:
        self._check()
        if self._mine(issue):
            self.calls.append(f"release {issue}")
            self.put(issue, status="open", assignee="")

    def resume(self, issue: str) -> Issue | None:
        self._check()
        found = self._issues[issue]
        if found.assignee not in ("", self.name):
            return None
        self.calls.append(f"resume {issue}")
        return self.put(issue, status="in_progress", assignee=self.name)

    def remark(self, issue: str, text: str, name: str) -> None:
        self._check()
        if (issue, name) not in [(one, known) for one, known in self.remarks]:
            self.remarks.append((issue, name))

    def _mine(self, issue: str) -> bool:
        return (self._issues[issue].status, self._issues[issue].assignee) == ("in_progress", self.name)

    def _blocked(self, issue: Issue) -> bool:
        needed = (self._issues.get(each.depends_on_id) for each in issue.dependencies)
        return any(one is not None and one.status != "closed" for one in needed)

    def _check(self) -> None:
        if self.broken:
            raise ProgramError(self.broken)
