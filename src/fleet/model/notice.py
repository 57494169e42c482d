"""A notice: what a channel tells a person. Short, without secrets, with commands that are safe to paste."""

from __future__ import annotations

import msgspec

from fleet.model.delivery import Action

LONGEST_REASON = 240


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """One alert, as it is told."""

    alert: str  # its class
    run_id: str | None = None
    worker_id: str | None = None
    task_id: str | None = None
    host: str | None = None
    status: str
    reason: str
    commands: tuple[str, ...] = ()
    at: int  # UTC milliseconds
    id: str = ""  # the same for every try
    key: str = ""  # the same for one trouble, from its trigger to its resolve
    action: Action = "trigger"
    repeat: bool = False  # it may have been told before
    text: str = ""  # in the place of the summary, where somebody wrote one

    def event(self) -> dict[str, object]:
        """As receivers read it."""
        return {
            "class": self.alert,
            "run_id": self.run_id,
            "worker_id": self.worker_id,
            "task_id": self.task_id,
            "host": self.host,
            "status": self.status,
            "reason": self.reason,
            "commands": list(self.commands),
            "at": self.at,
            "id": self.id,
            "action": self.action,
            "repeat": self.repeat,
        }

    @property
    def summary(self) -> str:
        """On one line; or what somebody wrote."""
        if self.text:
            return self.text
        about = [("run", self.run_id), ("worker", self.worker_id), ("task", self.task_id), ("host", self.host)]
        words = " ".join(f"{name}={value}" for name, value in about if value)
        mark = " (may be a repeat)" if self.repeat else ""
        return f"Fleet {self.alert}: {words} reason={self.reason}{mark}".replace(":  reason", ": reason")


def safe_commands(*, task: str | None, worker: str | None, run: str | None, host: str | None = None) -> tuple[str, ...]:
    """Commands that only look, for whoever reads the notice; each word is safe in a shell."""
    from shlex import quote

    found = ["fleet status"]
    if task or worker:
        found.append(f"fleet inspect {quote(worker or task or '')}")
    if task:
        found.append(f"fleet why {quote(task)}")
    elif run and not worker:
        found.append(f"fleet status --run {quote(run)}")
    elif host:
        found.append("fleet hosts")
    return tuple(found)


def short(text: str) -> str:
    """A reason on one line, of at most 240 characters."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_REASON else line[: LONGEST_REASON - 3] + "..."
