"""Receipts as people look at them, the artifacts behind them, and the check that both still hold."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from fleet import plugins
from fleet.errors import NotFound
from fleet.hosts.collect import Shelf
from fleet.model.receipt import ArtifactRef, Receipt
from fleet.model.scorer import scorer_of
from fleet.model.task import Task
from fleet.policy.verdict import settled_now
from fleet.scorers.judging import scored
from fleet.scorers.scorer import Evidence, Scorer
from fleet.store.reads import Reads

CHUNK = 1 << 20


class ReceiptView(Receipt, frozen=True, kw_only=True):
    """A receipt, with the names that a spec gave; `final` is the one that counts."""

    task_id: str
    run_id: str | None
    title: str
    verdict_by: str  # who stands behind it: a scorer, a person, or nobody
    final: bool


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What a check of one receipt found; nothing in `problems`: all is as it was."""

    receipt: str
    task: str
    artifacts: int
    scores: int
    problems: tuple[str, ...]


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """An artifact and where its content is kept; None: it is gone."""

    kind: str
    path: str
    place: str
    size: int
    mime_type: str
    sha256: str
    receipt: str
    kept_at: str | None


def receipts(reads: Reads, *, task: Task | None = None, run: str | None = None) -> list[ReceiptView]:
    """The receipts of a task, of a run, or of all, oldest first."""
    found = reads.receipts(task=task.uid if task else None, run=run)
    tasks = reads.tasks_by_uid({one.task for one in found})
    return [_view(one, tasks[one.task]) for one in found]


def artifacts(reads: Reads, task: Task, root: Path) -> list[Kept]:
    """What a task left, by its receipt in force; by its last one while it has none."""
    found = reads.receipts(task=task.uid)
    last = next((one for one in found if one.id == task.receipt), found[-1] if found else None)
    if last is None:
        return []
    shelf = Shelf(root)
    return [_kept(ref, last, shelf) for ref in last.artifacts]


def find_receipts(reads: Reads, words: Iterable[str]) -> list[Receipt]:
    """The receipts that ids stand for, of receipts or of tasks; all where none is given."""
    names = list(words)
    if not names:
        return reads.receipts()
    found: dict[str, Receipt] = {}
    for word in names:
        of_task = word.rpartition(".r")[0]
        known = reads.receipts(task=reads.find(of_task).uid) if of_task else reads.receipts(task=reads.find(word).uid)
        wanted = [one for one in known if not of_task or one.id.endswith(word)]
        if not wanted:
            raise NotFound(f"no receipt `{word}`")
        found |= {one.id: one for one in wanted}
    return list(found.values())


def check(reads: Reads, found: Sequence[Receipt], root: Path) -> list[Checked]:
    """Every checksum recomputed, and every scorer that needs no session run again over the evidence that was kept."""
    tasks, shelf = reads.tasks_by_uid({one.task for one in found}), Shelf(root)
    return [_checked(one, tasks[one.task], shelf) for one in found]


def _checked(receipt: Receipt, task: Task, shelf: Shelf) -> Checked:
    problems = [problem for ref in receipt.artifacts if (problem := _content(ref, shelf))]
    again, differing = (0, []) if problems else _scores(receipt, task, shelf)
    return Checked(
        receipt=receipt.id,
        task=receipt.task,
        artifacts=len(receipt.artifacts),
        scores=again,
        problems=(*problems, *differing),
    )


def _content(ref: ArtifactRef, shelf: Shelf) -> str | None:
    """What is wrong with a kept content."""
    digest, size = hashlib.sha256(), 0
    try:
        with shelf.path(ref.sha256).open("rb") as file:
            while data := file.read(CHUNK):
                digest.update(data)
                size += len(data)
    except OSError as exc:
        return f"artifact {ref.kind} ({ref.path}) cannot be read: {exc.strerror}"
    if digest.hexdigest() != ref.sha256 or size != ref.size:
        return f"artifact {ref.kind} ({ref.path}) has changed: its sha256 is not {ref.sha256[:12]}..."
    return None


def _scores(receipt: Receipt, task: Task, shelf: Shelf) -> tuple[int, list[str]]:
    """How many scores were made again, and those that differ."""
    kept = next((ref for ref in receipt.artifacts if (ref.place, ref.kind) == ("fleet", "evidence")), None)
    if kept is None or task.terms.scorer is None:
        return 0, []
    evidence = msgspec.json.decode(shelf.read(kept.sha256), type=Evidence)
    # A person's word may stand above that of a scorer, at the same place; the scorer's own is what is made again.
    before = {score.at: score for score in receipt.scores if score.kind != "manual"}
    parts = [part for part in settled_now(scorer_of(task.terms.scorer)) if part[0] in before]
    again = scored(parts, evidence, shelf.read, _load)
    return len(again), [
        f"scorer {score.kind} says {'pass' if score.passed else 'fail'} now: {'; '.join(score.evidence)}"
        for score in again
        if (score.passed, score.value) != (before[score.at].passed, before[score.at].value)
    ]


def _load(name: str) -> Scorer:
    found: Scorer = plugins.load("scorers", name)
    return found


def _view(receipt: Receipt, task: Task) -> ReceiptView:
    fields = {name: getattr(receipt, name) for name in Receipt.__struct_fields__}
    return ReceiptView(
        **fields,
        task_id=task.task_id,
        run_id=receipt.run,
        title=task.title,
        verdict_by=receipt.scorer or ("nobody" if receipt.session else "a person"),
        final=receipt.id == task.receipt,
    )


def _kept(ref: ArtifactRef, receipt: Receipt, shelf: Shelf) -> Kept:
    path = shelf.path(ref.sha256)
    return Kept(
        kind=ref.kind,
        path=ref.path,
        place=ref.place,
        size=ref.size,
        mime_type=ref.mime_type,
        sha256=ref.sha256,
        receipt=receipt.id,
        kept_at=str(path) if path.exists() else None,
    )
