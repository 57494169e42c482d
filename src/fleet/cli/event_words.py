"""Every kind of event, in words for people: what `fleet ledger tail`, `fleet watch` and `fleet run` say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from fleet.cli.transcript import one_line
from fleet.cli.words import printable, span, when
from fleet.model import event as ev
from fleet.model.states import RunState, TaskState

if TYPE_CHECKING:
    from fleet.model.receipt import Usage
    from fleet.model.session import Session

REASON = 160  # characters of a text that somebody gave


class Told(NamedTuple):
    """An event for somebody who looks on: a word for what happened, and what there is to say of it."""

    what: str
    text: str


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


def told(event: ev.AnyEvent) -> Told:
    """What happened, for a line that begins with the word for it; where nothing is shorter, in the gist's words."""
    match event:
        case ev.TaskClaimed(session=session):
            again = f", session {session.epoch}" if session.epoch > 1 else ""
            return Told("verifying" if session.kind == "verify" else "started", placed(session) + again)
        case ev.SessionAdopted():
            return Told("taken over", "its agent ran on, and is followed from where it stands")
        case ev.SessionStopping(reason=reason):
            return Told("stopping", short(reason))
        case ev.TaskSettled(state=state, receipt=receipt):
            unverified = ["unverified"] if state is TaskState.COMPLETED and not receipt.scorer else []
            details = ", ".join(filter(None, [used(receipt.usage, receipt.duration_ms), *unverified]))
            return Told(state.value, short(receipt.reason) + (f" ({details})" if details else ""))
        case ev.TaskRequeued(reason=reason, not_before=not_before, restart=restart):
            wait = not_before - event.at if not_before else 0
            later = f"; again in {span(wait)}" if wait >= 1000 else ""
            return Told("restarted" if restart else "retry", short(reason) + later)
        case ev.TaskBlocked(block=block) if block.kind == "question":
            return Told("asks", f'{short(block.text)}; fleet answer {event.subject} "..."')
        case ev.TaskBlocked(block=block):
            return Told("blocked", f"{block.kind}: {short(block.text)}; fleet show {event.subject}")
        case ev.TaskAnswered(text=text):
            return Told("answered", f"by {event.by}: {short(text)}")
        case ev.AlertRaised():
            return Told("alert", short(_gist(event)))
        case ev.TaskUnsettled(reason=reason):
            return Told("verifying", short(reason))
        case ev.SessionStarted(session=name, pid=pid):
            return Told("runs", name + (f", process {pid}" if pid else ""))
        case ev.SessionEnded(session=name, outcome=outcome, usage=usage):
            took = used(usage)
            return Told("ended", f"{name}: {outcome}" + (f" ({took})" if took else ""))
        case ev.SupervisorLeft(reason=reason):
            return Told("left", short(reason))
        case ev.RunEnded(state=RunState.COMPLETED):
            return Told("run over", "all of its tasks have ended")
        case ev.HostChanged(host=host):
            return Told(host.state, short(host.evidence) + (", takes no new work" if host.draining else ""))
    return Told(WORDS[ev.kind_of(event)], short(_gist(event)))


WORDS = {  # of the kinds that are told by their gist
    "task.submitted": "added",
    "task.edited": "edited",
    "task.linked": "linked",
    "task.unlinked": "unlinked",
    "task.commented": "remark",
    "alert.sending": "alerting",
    "alert.sent": "alerted",
    "intent.recorded": "asked",
    "intent.settled": "settled",
    "run.created": "run",
    "run.stopping": "stopping",
    "run.ended": "stopped",
    "run.resumed": "resumed",
    "supervisor.joined": "joined",
}
GOOD, BAD, LOOK = 32, 31, 33  # green, red, yellow
COLOURS = {
    **dict.fromkeys(("completed", "run over", "up"), GOOD),
    **dict.fromkeys(("failed", "warning", "down"), BAD),
    **dict.fromkeys(("asks", "blocked", "retry", "alert", "partial"), LOOK),
}


def placed(session: Session) -> str:
    """Who is at it, and where."""
    model = f"/{session.model}" if session.model else ""
    return f"{session.coder}{model} on {session.worker}"


def worded(what: str, *, colour: bool) -> str:
    """The word at the head of a line, in the colour of its meaning where a person looks at a terminal."""
    word = f"{what:<10}"
    return f"\x1b[{COLOURS[what]}m{word}\x1b[0m" if colour and what in COLOURS else word


def short(text: str) -> str:
    """A text that somebody gave, on one line that does not steer a terminal."""
    return printable(one_line(text, REASON))


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
            return f"{alert.value}: {reason.removeprefix(f'{alert.value}: ')}"  # a block may be of the same name
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
            return f"session {session.id}: {placed(session)}"
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
