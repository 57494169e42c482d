"""Briefing: what a verifier is told, and where it works: in the place of the work that it judges."""

from __future__ import annotations

from msgspec.structs import replace

from fleet.coders.coder import Work
from fleet.coders.prompts import verifier_prompt
from fleet.config.settings import MODELLESS
from fleet.model.receipt import Receipt
from fleet.model.scorer import Command
from fleet.supervisor.attempt import Attempt
from fleet.supervisor.words import last_words

SCRIPT = "@@scripted"
# What a scripted coder says that is asked to judge and was given no steps: it is a stand-in for one that can.
UNSCRIPTED = f'{SCRIPT} [{{"say": "{{\\"pass\\": true, \\"reason\\": \\"scripted: nothing was looked at\\"}}"}}]'


def answer_file(attempt: Attempt) -> str:
    """Where a verifier may write its answer, on its host."""
    return f"{attempt.hosted.directory}/answer.json"


def make_ready(attempt: Attempt) -> None:
    """It works where the work was done."""
    worker = _worker(attempt)
    if worker:
        attempt.progress = replace(attempt.progress, cwd=attempt.house.store.progress(worker).cwd)


def compose(attempt: Attempt) -> Work:
    """What the verifier is asked to do, and where: in the place of the work that it judges."""
    task, session, leaf = attempt.task, attempt.session, attempt.leaf
    cwd = attempt.cwd
    command: tuple[str, ...] = ()
    prompt = ""
    if isinstance(leaf, Command):
        command = (leaf.command, *leaf.args)
    elif session.coder in MODELLESS:
        prompt = leaf.prompt if session.coder != "scripted" or SCRIPT in leaf.prompt else f"{leaf.prompt}\n{UNSCRIPTED}"
    else:
        prompt = _prompt(attempt, leaf.prompt, cwd)
    return Work(
        task=task.uid,
        session=session.id,
        prompt=prompt,
        cwd=cwd,
        model=session.model,
        program=attempt.program,
        command=command,
        as_root=attempt.as_root,
        writable=(attempt.hosted.directory, f"{attempt.hosted.directory}/outbox"),
        new_uuid=attempt.conversation,
    )


def environment(attempt: Attempt) -> dict[str, str]:
    """What a verifier finds beside what every session does."""
    return {"FLEET_VERIFIES": judged_by(attempt).id, "FLEET_ANSWER_FILE": answer_file(attempt)}


def _prompt(attempt: Attempt, question: str, cwd: str) -> str:
    task, home, judged = attempt.task, attempt.house.home, judged_by(attempt)
    directory = home.task_dir(task.uid)
    words = last_words(directory, _worker(attempt))
    places = {"artifacts": attempt.artifacts, "workspace": cwd}
    listed = [
        f"- {ref.kind}: `{places[ref.place]}/{ref.path}` ({ref.size} bytes)"
        for ref in judged.artifacts
        if ref.place in places
    ]
    return verifier_prompt(
        task=task.uid,
        title=task.title,
        objective=task.terms.objective or task.terms.instructions or task.description,
        question=question,
        cwd=cwd,
        artifacts="\n".join(listed),
        final_message=words.final,
        excerpt=words.excerpt,
        answer_file=answer_file(attempt),
    )


def _worker(attempt: Attempt) -> str:
    """The session whose work is judged: the last that did any."""
    known = attempt.house.store.sessions(task=attempt.task.uid)
    return next((one.id for one in reversed(known) if one.kind == "work"), "")


def judged_by(attempt: Attempt) -> Receipt:
    """The receipt that is to be settled."""
    known = attempt.house.store.receipts(task=attempt.task.uid)
    return next(one for one in known if one.id == attempt.task.receipt)
