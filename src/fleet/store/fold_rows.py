"""The rows of everything but tasks and sessions, from their events: how a restored database gets them back."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from fleet.model import event as ev
from fleet.model.intent import Intent
from fleet.model.states import RunState
from fleet.model.supervisor import Supervisor
from fleet.store import deliveries, rows
from fleet.store.engine import Tx


def beside(tx: Tx, seq: int, event: ev.AnyEvent) -> None:
    """Comments and intents: events in a task's chain that have rows of their own."""
    match event:
        case ev.TaskCommented(comment=comment):
            tx.run(
                "INSERT INTO comments (id, seq, task, doc) VALUES (?, ?, ?, ?)",
                comment.id,
                seq,
                comment.task,
                rows.encode(comment),
            )
        case ev.IntentRecorded(intent=intent):
            tx.run(
                "INSERT INTO intents (id, seq, target, pending, doc) VALUES (?, ?, ?, 1, ?)",
                intent.id,
                seq,
                intent.target,
                rows.encode(intent),
            )
        case ev.IntentSettled():
            found = tx.rows("SELECT doc FROM intents WHERE id = ?", event.intent)
            if found:
                known = msgspec.json.decode(found[0][0], type=Intent)
                after = replace(known, outcome=event.outcome, detail=event.detail, settled_at=event.at)
                tx.run("UPDATE intents SET pending = 0, doc = ? WHERE id = ?", rows.encode(after), known.id)
        case _:
            return


def around(tx: Tx, seq: int, event: ev.AnyEvent) -> None:
    """Runs, hosts, supervisors and channels."""
    name = event.subject.split("/", 1)[1]
    match event:
        case ev.RunCreated(run=run):
            tx.run(
                "INSERT INTO runs (id, seq, state, doc) VALUES (?, ?, ?, ?)",
                run.id,
                seq,
                run.state.value,
                rows.encode(run),
            )
        case ev.RunStopping():
            rows.save_run(tx, replace(rows.run(tx, name), stopping=True))
        case ev.RunEnded(state=state, at=at):
            rows.save_run(tx, replace(rows.run(tx, name), state=state, ended_at=at))
        case ev.RunResumed():
            rows.save_run(tx, replace(rows.run(tx, name), state=RunState.ACTIVE, stopping=False, ended_at=None))
        case ev.HostChanged(host=host):
            tx.run(
                "INSERT INTO hosts (name, doc) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET doc = excluded.doc",
                host.name,
                rows.encode(host),
            )
        case ev.AlertSending(delivery=delivery):
            deliveries.save(tx, seq, delivery)
        case ev.AlertSent():
            deliveries.end(tx, event)
        case ev.SupervisorJoined(supervisor=supervisor):
            tx.run("INSERT INTO supervisors (id, doc) VALUES (?, ?)", supervisor.id, rows.encode(supervisor))
        case ev.SupervisorLeft():
            found = tx.rows("SELECT doc FROM supervisors WHERE id = ?", name)
            after = replace(msgspec.json.decode(found[0][0], type=Supervisor), left_at=event.at)
            tx.run("UPDATE supervisors SET left_at = ?, doc = ? WHERE id = ?", event.at, rows.encode(after), name)
        case _:
            return
