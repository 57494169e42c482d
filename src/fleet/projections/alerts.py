"""What would be told: a payload without its secrets, and the draft of an escalation about one task."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fleet.channels.channel import Channel
from fleet.channels.sending import render
from fleet.config.settings import Settings
from fleet.model.alert import AlertKind
from fleet.model.alert_spec import Adapter, channel_kind
from fleet.model.delivery import Delivery
from fleet.model.notice import Notice, safe_commands, short
from fleet.policy.redaction import redact
from fleet.policy.triage import NEEDS_HUMAN, TASK, TRANSIENT, VERIFIER
from fleet.projections.inspect import inspect
from fleet.projections.why import why
from fleet.store.reads import Reads

STATUS = {
    AlertKind.STALE: "stale",
    AlertKind.RESTART_EXHAUSTED: "failed",
    AlertKind.RUN_COMPLETED: "completed",
    AlertKind.HOST_UNHEALTHY: "down",
    AlertKind.HOST_RECOVERED: "up",
}  # what an alert of a class tells of a status where nobody says; else the class
DECISIONS = {
    TRANSIENT: "restart approval",
    TASK: "task owner review",
    VERIFIER: "verifier review",
    NEEDS_HUMAN: "permission decision",
}
CLASSES = {
    TRANSIENT: "transient failure",
    TASK: "task failure",
    VERIFIER: "verifier failure",
    NEEDS_HUMAN: "needs-human",
}
EXCERPT_LINES, EXCERPT_WIDTH = 3, 200


class DryRun(msgspec.Struct, frozen=True, kw_only=True):
    """What would be sent, and where to; no secret is in it."""

    adapter: str
    kind: str
    dry_run: bool = True
    target: str
    event: dict[str, object]
    headers: dict[str, str]
    body: object


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """An escalation to read, to change and to send by hand."""

    run: str | None
    worker: str
    task: str
    classification: str
    reason: str
    evidence: tuple[str, ...]
    excerpt: tuple[str, ...]
    decision: str

    @property
    def text(self) -> str:
        """As it is pasted."""
        lines = [
            "Fleet needs attention",
            f"Run: {self.run or '-'}",
            f"Worker: {self.worker}",
            f"Task: {self.task}",
            f"Classification: {self.classification}",
            f"Reason: {self.reason}",
            f"Latest typed evidence: {'; '.join(self.evidence)}",
        ]
        if self.excerpt:
            lines += ["Safe log excerpt:", *(f"  {line}" for line in self.excerpt)]
        else:
            lines.append(f'Safe log excerpt: "see fleet artifacts {self.task}"')
        return "\n".join([*lines, f"Requested decision: {self.decision}"])


def dry_run(
    name: str,
    adapter: Adapter,
    channel: Channel,
    *,
    alert: AlertKind,
    reason: str,
    run_id: str | None,
    worker_id: str | None,
    task_id: str | None,
    status: str | None,
    now: int,
) -> DryRun:
    """The payload that an alert would have."""
    notice = Notice(
        alert=alert.value,
        run_id=run_id,
        worker_id=worker_id,
        task_id=task_id,
        status=status or STATUS.get(alert, alert.value),
        reason=short(redact(reason)),
        commands=safe_commands(task=task_id, worker=worker_id, run=run_id),
        at=now,
        key=f"fleet/{alert.value}/{task_id or run_id or 'dry-run'}",
    )
    rendered = render(channel, adapter, notice)
    return DryRun(
        adapter=name,
        kind=channel_kind(adapter),
        target=rendered.target,
        event=notice.event(),
        headers=rendered.headers,
        body=rendered.body,
    )


def draft(reads: Reads, settings: Settings, word: str, *, log: Sequence[str], now: int) -> Draft:
    """The escalation about a worker's task; `log` is the end of what its agent said."""
    found = inspect(reads, word)
    answer = why(reads, settings, reads.task(found.task), now=now)
    kind = answer.classification or NEEDS_HUMAN
    lines = [short(redact(line))[:EXCERPT_WIDTH] for line in log if line.strip()]
    return Draft(
        run=found.run,
        worker=found.worker or "-",
        task=found.task,
        classification=CLASSES[kind],
        reason=short(redact(answer.summary)),
        evidence=(f"fleet inspect {found.task}", f"fleet artifacts {found.task}"),
        excerpt=tuple(lines[-EXCERPT_LINES:]),
        decision=DECISIONS[kind],
    )


def delivery_of(found: Draft, *, status: str) -> Delivery:
    """A draft as something to send; who sends it, and where to, is said by the sender."""
    return Delivery(
        id="",
        channel="",
        about=found.task,
        alert=AlertKind.NEEDS_HUMAN,
        reason=found.reason,
        run=found.run,
        task=found.task,
        worker=found.worker if found.worker != "-" else None,
        status=status,
        raised_at=0,
        by="",
    )
