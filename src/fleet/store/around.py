"""The verbs around the queue: supervisors and their leases, intents, hosts, cursors."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

import msgspec
from msgspec.structs import replace

from fleet.errors import Conflict, NotFound
from fleet.model import event as ev
from fleet.model.alert import Alert, of_host
from fleet.model.host import Host
from fleet.model.ids import host_subject, supervisor_subject
from fleet.model.intent import Intent
from fleet.model.supervisor import Supervisor
from fleet.model.task import Task
from fleet.store import asks, ledger, probes, rows, sessions
from fleet.store.engine import Tx
from fleet.store.transition import apply


def join(tx: Tx, supervisor: str, machine: str, pid: int, seconds: float) -> Supervisor:
    """A supervisor begins to take tasks, under a lease."""
    if tx.rows("SELECT 1 FROM supervisors WHERE id = ?", supervisor):
        raise Conflict(f"supervisor {supervisor} has joined already")
    made = Supervisor(id=supervisor, machine=machine, pid=pid, joined_at=tx.now)
    subject = supervisor_subject(supervisor)
    ledger.append(tx, ev.SupervisorJoined(subject=subject, at=tx.now, by=supervisor, supervisor=made))
    tx.run("INSERT INTO supervisors (id, doc) VALUES (?, ?)", supervisor, rows.encode(made))
    tx.lease(supervisor, seconds)
    return made


def renew(tx: Tx, supervisor: str, seconds: float) -> None:
    """The lease holds for that long from now. Once somebody has said that it ended, it cannot be had back."""
    sessions.require_lease(tx, supervisor)
    tx.lease(supervisor, seconds)


def leave(tx: Tx, supervisor: str, reason: str) -> None:
    """A supervisor ends in good order; its sessions may be taken over at once. Saying it twice changes nothing."""
    found = tx.rows(f"SELECT doc, left_at FROM supervisors WHERE id = ?{tx.for_update}", supervisor)
    if not found:
        raise NotFound(f"no supervisor `{supervisor}`")
    if found[0][1] is None:
        _left(tx, msgspec.json.decode(found[0][0], type=Supervisor), reason, supervisor)


def expire(tx: Tx, *, by: str, only: Collection[str] | None = None) -> list[Supervisor]:
    """The supervisors whose lease has ended since the last look. Their sessions go on; they may now be adopted."""
    found = tx.rows(f"SELECT doc FROM supervisors WHERE left_at IS NULL ORDER BY id{tx.for_update}")
    known = [msgspec.json.decode(row[0], type=Supervisor) for row in found]
    gone = [one for one in known if (only is None or one.id in only) and tx.lapsed(one.id)]
    return [_left(tx, supervisor, "its lease ended", by) for supervisor in gone]


def _left(tx: Tx, supervisor: Supervisor, reason: str, by: str) -> Supervisor:
    after = replace(supervisor, left_at=tx.now)
    tx.present.discard(supervisor.id)
    ledger.append(tx, ev.SupervisorLeft(subject=supervisor_subject(supervisor.id), at=tx.now, by=by, reason=reason))
    tx.run("UPDATE supervisors SET left_at = ?, doc = ? WHERE id = ?", tx.now, rows.encode(after), supervisor.id)
    return after


def intend(tx: Tx, verb: str, target: str, args: dict[str, str], *, by: str) -> Intent:
    """A person asks for something that only a supervisor can do. The same wish, still pending, is not asked twice."""
    task = rows.task(tx, target)
    for pending in asks.intents_of(tx, target):
        if pending.outcome is None and (pending.verb, pending.args) == (verb, args):
            return pending
    made = Intent(id=f"i-{os.urandom(4).hex()}", verb=verb, target=task.uid, by=by, at=tx.now, args=args)
    apply(tx, task, ev.IntentRecorded(subject=task.uid, at=tx.now, by=by, intent=made))
    tx.run(
        "INSERT INTO intents (id, seq, target, pending, doc) VALUES (?, ?, ?, 1, ?)",
        made.id,
        ledger.head(tx, target)[0],
        made.target,
        rows.encode(made),
    )
    return made


def abandon(tx: Tx, uid: str, reason: str, *, by: str) -> Task:
    """A session is given up by a person's word; whoever reaches its host ends what is left of it."""
    session = rows.task(tx, uid).session
    after = sessions.abandon(tx, uid, reason, by=by)
    intend(tx, "sweep", uid, {"session": str(session)}, by=by)
    return after


def fulfil(tx: Tx, intent: str, outcome: str, detail: str, *, by: str) -> Intent:
    """A supervisor did what was asked, or says why not. Saying it twice changes nothing."""
    target = tx.rows("SELECT target FROM intents WHERE id = ?", intent)
    if not target:
        raise NotFound(f"no intent `{intent}`")
    task = rows.task(tx, target[0][0])
    found = msgspec.json.decode(tx.rows("SELECT doc FROM intents WHERE id = ?", intent)[0][0], type=Intent)
    if found.outcome is not None:
        return found
    after = replace(found, outcome=outcome, detail=detail, settled_at=tx.now)
    event = ev.IntentSettled(subject=task.uid, at=tx.now, by=by, intent=intent, outcome=outcome, detail=detail)
    apply(tx, task, event)
    tx.run("UPDATE intents SET pending = 0, doc = ? WHERE id = ?", rows.encode(after), intent)
    return after


def probed(tx: Tx, host: Host, *, by: str, alert_after: int = 1, keep_days: int = probes.KEEP_DAYS) -> Host:
    """What a probe found. The ledger hears of it when the host's state changes; `since` says when it last did.

    That it drains is a person's word, and stays. What a probe did not ask for is as the last one that did had it.
    """
    known = _known_host(tx, host.name) or Host(name=host.name, kind="", since=tx.now, draining=host.draining)
    same = (known.state, known.kind) == (host.state, host.kind)
    alerted = known.alerted or (known.state == "down" and not known.failures)  # the latter: as an older Fleet left it
    facts = known if host.coder is None else host
    after = replace(
        host,
        since=known.since if same else tx.now,
        draining=known.draining,
        answered_at=host.answered_at or known.answered_at,
        coder=facts.coder,
        warnings=facts.warnings,
        failures=0 if host.state == "up" else known.failures + 1,
    )
    alerts = of_host(after, alerted=alerted, after=alert_after)
    probes.count(tx, after, keep_days)
    return _save_host(tx, replace(after, alerted=alerted != bool(alerts)), told=not same, alerts=alerts, by=by)


def drain(tx: Tx, name: str, kind: str, *, draining: bool, by: str) -> Host:
    """A person says that a host takes no new work, or that it does again. Saying it twice changes nothing."""
    known = _known_host(tx, name) or Host(name=name, kind=kind, since=tx.now)
    if known.draining == draining:
        return known
    return _save_host(tx, replace(known, draining=draining), told=True, by=by)


def _known_host(tx: Tx, name: str) -> Host | None:
    tx.exclusively(host_subject(name))
    found = tx.rows(f"SELECT doc FROM hosts WHERE name = ?{tx.for_update}", name)
    return msgspec.json.decode(found[0][0], type=Host) if found else None


def _save_host(tx: Tx, host: Host, *, told: bool, by: str, alerts: Sequence[Alert] = ()) -> Host:
    subject = host_subject(host.name)
    raised: list[ev.AnyEvent] = [
        ev.AlertRaised(subject=subject, at=tx.now, by=by, alert=alert.kind, reason=alert.reason) for alert in alerts
    ]
    changed = [ev.HostChanged(subject=subject, at=tx.now, by=by, host=host)] if told else []
    if changed or raised:
        ledger.append(tx, *changed, *raised)
    tx.run(
        "INSERT INTO hosts (name, doc) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET doc = excluded.doc",
        host.name,
        rows.encode(host),
    )
    return host


def advance(tx: Tx, name: str, position: str) -> None:
    """A reader of the feed has dealt with everything up to a position."""
    tx.run(
        "INSERT INTO cursors (name, position, updated_at) VALUES (?, ?, ?)"
        " ON CONFLICT (name) DO UPDATE SET position = excluded.position, updated_at = excluded.updated_at",
        name,
        position,
        tx.now,
    )
