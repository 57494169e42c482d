"""Every kind of event, in words for people: what `fleet ledger tail` and `fleet run` say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fleet.cli.transcript import printable
from fleet.cli.words import span, when
from fleet.model import event as ev

if TYPE_CHECKING:
    from fleet.model.receipt import Usage


def gist(event: ev.AnyEvent) -> str:
    """What happened, on one line; never nothing. Of a text of several lines, the first."""
    first, *more = _gist(event).split("\n")
    return printable(first) + (" ..." if more else "")


def used(usage: Usage, duration_ms: int = 0) -> str:
    """What it took: how long, how many tokens, how much money; as far as it is known."""
    tokens = usage.input_tokens + usage.output_tokens
    parts = [span(duration_ms)] if duration_ms else []
    parts += [f"{tokens:,} tokens"] if tokens else []
    parts += [f"${usage.cost_microusd / 1e6:.2f}"] if usage.cost_microusd >= 5000 else []
    parts += [f"${usage.cost_microusd / 1e6:.4f}"] if 0 < usage.cost_microusd < 5000 else []
    return ", ".join(parts)


def _gist(event: ev.AnyEvent) -> str:
    if isinstance(event, _OF_TASKS):
        return _of_task(event)
    match event:
        case ev.SessionStarted(session=session, pid=pid):
            return f"{session} runs" + (f" as process {pid}" if pid else "")
        case ev.SessionStopping(session=session, reason=reason):
            return f"{session} is told to end: {reason}"
        case ev.SessionAdopted(session=session, supervisor=supervisor):
            return f"{session} is taken over by {supervisor}"
        case ev.SessionEnded(session=session, outcome=outcome, usage=usage):
            took = used(usage)
            return f"{session} ended: {outcome}" + (f" ({took})" if took else "")
        case ev.AlertRaised(alert=alert, reason=reason):
            return f"{alert.value}: {reason}"
        case ev.AlertSending(delivery=delivery):
            repeat = ", perhaps for the second time" if delivery.repeat else ""
            return f"{delivery.action} {delivery.alert.value} of {delivery.about}{repeat}"
        case ev.AlertSent(delivery=delivery, outcome=outcome, attempts=attempts, detail=detail):
            tries = f" after {attempts} tries" if attempts > 1 else ""
            return f"{delivery} {outcome.replace('_', ' ')}{tries}" + (f": {detail}" if detail else "")
        case ev.IntentRecorded(intent=intent):
            reason = intent.args.get("reason", "")
            return f"{intent.verb} is asked for" + (f": {reason}" if reason else "")
        case ev.IntentSettled(outcome=outcome, detail=detail):
            return f"what was asked for is {outcome}" + (f": {detail}" if detail else "")
        case ev.RunCreated(run=run):
            return run.name
        case ev.RunStopping(reason=reason):
            return f"is stopped: {reason}"
        case ev.RunEnded(state=state):
            return f"is {state.value}"
        case ev.RunResumed():
            return "goes on: one of its tasks was restarted"
        case ev.HostChanged(host=host):
            return f"{host.state} {host.evidence}".strip()
        case ev.SupervisorJoined(supervisor=supervisor):
            return f"began as process {supervisor.pid} at {supervisor.machine}"
        case ev.SupervisorLeft(reason=reason):
            return f"left: {reason}"
    raise TypeError(f"no words for {type(event).__name__}")


_OF_TASKS = (
    *(ev.TaskSubmitted, ev.TaskEdited, ev.TaskLinked, ev.TaskUnlinked, ev.TaskCommented, ev.TaskClaimed),
    *(ev.TaskSettled, ev.TaskUnsettled, ev.TaskRequeued, ev.TaskBlocked, ev.TaskAnswered),
)


def _of_task(event: ev.AnyEvent) -> str:
    match event:
        case ev.TaskSubmitted(task=task):
            return task.title
        case ev.TaskEdited(edit=edit):
            return ", ".join(f"{name}={_value(value)}" for name, value in edit.changes().items()) or "nothing changed"
        case ev.TaskLinked(link=link):
            return f"{link.kind} {link.other}"
        case ev.TaskUnlinked(other=other):
            return f"no relation to {other} any more"
        case ev.TaskCommented(comment=comment):
            return comment.text
        case ev.TaskClaimed(session=session):
            model = f"/{session.model}" if session.model else ""
            return f"session {session.id} on {session.worker} with {session.coder}{model}"
        case ev.TaskSettled(state=state, receipt=receipt):
            took = used(receipt.usage, receipt.duration_ms)
            return f"{state.value}: {receipt.reason}" + (f" ({took})" if took else "")
        case ev.TaskUnsettled(reason=reason):
            return f"its verdict is open: {reason}"
        case ev.TaskRequeued(reason=reason, not_before=not_before):
            return reason + (f"; not before {when(not_before)}" if not_before else "")
        case ev.TaskBlocked(block=block):
            return f"{block.kind}: {block.text}"
        case ev.TaskAnswered(text=text):
            return f"answered: {text}"
    raise TypeError(f"no words for {type(event).__name__}")


def _value(value: object) -> str:
    return msgspec.json.encode(value).decode() if isinstance(value, msgspec.Struct) else str(value)
