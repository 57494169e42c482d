"""A ledger with something of everything in it, and all that can be read of a store, for comparing before and after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fleet.model import event as ev
from fleet.model.alert import AlertKind
from fleet.model.delivery import Delivery
from fleet.model.host import Host
from fleet.model.receipt import Awaits, Usage
from fleet.model.run import NewRun
from fleet.model.session import Progress
from fleet.model.states import Source
from fleet.model.task import NewTask, TaskEdit
from fleet.store.mirror import encode_line
from fleet.store.reads import Reads
from fleet.store.store import Store
from fleet.testing.builders import CRASHED, DEFAULTS, EXITED, a_fail, a_partial, a_pass, a_task, slots

BY_A_PERSON = Awaits(kind="manual")
KINDS = {ev.kind_of(kind) for kind in ev.EVENTS}


def populate(store: Store) -> None:
    """Every kind of event, at least once. Leaves a supervisor that is gone, one that is there, and open sessions."""
    for name in ("sup-1", "sup-2"):
        store.join(name, machine="here", pid=1, seconds=60).result()
    one, two, three, four = store.submit(
        [
            a_task("one"),
            a_task("two", coder="codex", cwd="/srv"),
            a_task("日本", labels={"area": "web"}),
            a_task("four"),
        ],
        by="ana",
    ).result()
    (five,) = store.submit([a_task("five", needs=(one.uid, two.uid))], by="ana").result()
    pair = [NewTask(title="a", task_id="a"), NewTask(title="b", task_id="b", needs=("a",))]
    a, _ = store.submit(pair, run=NewRun(name="pair"), by="ana").result()
    store.edit(one.uid, TaskEdit(priority=0, description="x" * 3000), by="ana").result()
    store.link(four.uid, three.uid, kind="related", by="ana").result()
    store.link(four.uid, two.uid, by="ana").result()
    store.unlink(four.uid, two.uid, by="ana").result()
    for n in range(5):
        store.comment(one.uid, f"remark {n} " + "y" * 500, by="bob").result()
    first, second, third = store.claim("sup-1", slots(3), DEFAULTS).result()
    store.started(first.session.fence, 42, by="sup-1").result()
    store.record(first.session.fence, Progress(cursor=7, usage=Usage(output_tokens=3))).result()
    store.finish(first.session.fence, EXITED, a_pass(), by="sup-1").result()
    store.retry(second.session.fence, CRASHED, verdict=a_fail(), reason="again", by="sup-1").result()
    store.stopping(third.session.fence, "enough", by="sup-1").result()
    store.pause(third.session.fence, EXITED, "question", "Which one?", by="sup-1").result()
    store.answer(third.task.uid, "that one", by="ana").result()
    store.block(four.uid, "needs_human", "look", by="ana").result()
    (again,) = store.claim("sup-1", slots(1), DEFAULTS).result()
    store.intend("stop", again.task.uid, by="ana").result()
    settled = store.intend("interrupt", again.task.uid, by="ana").result()
    store.fulfil(settled.id, "done", by="sup-1").result()
    sent, waits = (
        Delivery(id=name, channel="ops", about=four.uid, alert=AlertKind.NEEDS_HUMAN, reason="look", raised_at=1, by=by)
        for name, by in (("1.ops", "sup-1"), ("2.ops", "sup-2"))
    )
    store.announce([sent, waits]).result()
    store.delivered(sent.id, "sent", by="sup-1").result()
    store.leave("sup-1", reason="stopped").result()
    store.adopt(again.session.id, "sup-2").result()
    store.probed(Host(name="builder-1", kind="ssh", state="up", since=0), by="sup-2").result()
    store.stop_run(str(a.run), "enough", by="ana").result()
    store.cancel(a.uid, "not wanted", by="ana").result()  # skips b, and so ends the run
    store.requeue(a.uid, "wanted after all", by="ana").result()  # revives b, and so the run
    for claimed, verdict in zip(
        store.claim("sup-2", slots(2), DEFAULTS).result(),
        (a_fail(source=Source.TRANSPORT), a_partial(awaits=BY_A_PERSON)),
        strict=True,
    ):
        judged = store.finish(claimed.session.fence, EXITED, verdict, by="sup-2").result()
    store.unsettle(judged.uid, BY_A_PERSON, "look again", by="ana").result()
    store.comment(five.uid, "the last word", by="ana").result()
    store.advance("alerts", "3").result()


def contents(reads: Reads) -> dict[str, Any]:
    """All that can be read of a store, save for what is not in the ledger."""
    tasks = reads.tasks()
    return {
        "events": list(entries(reads)),
        "tasks": tasks,
        "ready": reads.ready(),
        "waiting": reads.waiting(),
        "unmet": {task.uid: reads.unmet(task.uid) for task in tasks},
        "dependents": {task.uid: reads.dependents(task.uid) for task in tasks},
        "chains": {task.uid: [entry.seq for entry in reads.chain(task.uid)] for task in tasks},
        "comments": {task.uid: reads.comments(task.uid) for task in tasks},
        "intents": {task.uid: reads.intents(target=task.uid) for task in tasks},
        "pending": reads.intents(),
        "sessions": reads.sessions(),
        "live": reads.sessions(live=True),
        "receipts": reads.receipts(),
        "runs": reads.runs(),
        "counts": {run: reads.counts(run) for run in (None, *(run.id for run in reads.runs()))},
        "supervisors": reads.supervisors(present=False),
        "hosts": reads.hosts(),
    }


def entries(reads: Reads) -> list[ev.Entry]:
    """The whole ledger."""
    found, position = [], ""
    while (batch := reads.feed(position, limit=100)).entries:
        found += batch.entries
        position = batch.position
    return found


def exported(reads: Reads) -> bytes:
    """The ledger as text: what a mirror must be."""
    return b"".join(encode_line(entry) for entry in entries(reads))


def read_or_none(path: Path) -> bytes | None:
    """A file's content, if it is there."""
    return path.read_bytes() if path.exists() else None
