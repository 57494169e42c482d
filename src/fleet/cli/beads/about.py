"""The verbs about the verbs: where, version, context, statuses, types, prime."""

from __future__ import annotations

from fleet import __version__
from fleet.cli.beads import text, vocabulary
from fleet.cli.beads.call import Call

SPOKEN = "1.3.0"  # the bd whose verbs and shapes these are
PRIME = """\
# Work with bd

`bd` keeps the list of work of this machine; here it speaks to Fleet's own queue. Add --json to any verb for an object.

Find work
  bd ready                     what could start now, the most urgent first
  bd show ID                   one issue in full; read it before you begin
  bd list --status=open        everything that is open
  bd blocked                   what waits for other issues

Record work
  bd create "Title" -d "Why, and what is to be done" -p 2 -t bug --deps discovered-from:ID
                               priorities are 0 (most urgent) to 4, not words; the current directory is kept with it
  bd dep add A B               A must wait for B
  bd comment ID "what I found"
  bd update ID --append-notes "..."     notes are kept; --notes would replace them

Do work by hand
  bd update ID --claim         it is yours, and no supervisor will run it
  bd close ID --reason "what was done"
  bd update ID --status open --assignee ""     put it back

When you cannot go on without a person
  1. Append a `## Q:` block with the whole question to Q&A.md in the task's artifacts.
  2. bd update ID --status blocked --notes "QUESTION: the question in one line"
  3. End your session. Somebody answers below your question, the task is queued again, and you read the answer first.

Rules
  - Give whole ids, one verb at a time, and read what it prints: a message on stderr means that nothing was changed.
  - Do not close an issue that a session works on; its own result closes it.
  - Never use --force, and never initialize, migrate, repair or delete a queue.
"""


def where(call: Call) -> int:
    """Where the queue is."""
    home, settings = call.context.home, call.context.settings
    database = settings.store.url or str(home.db)
    data = {"path": str(home.path), "prefix": settings.queue.prefix, "database_path": database}
    return call.answer(data, str(home.path), f"  prefix: {settings.queue.prefix}", f"  database: {database}")


def version(call: Call) -> int:
    """Which bd's verbs these are, and whose they are."""
    build = f"fleet {__version__}"
    return call.answer({"build": build, "version": SPOKEN}, f"bd version {SPOKEN} ({build}, its own queue)")


def context(call: Call) -> int:
    """What stands behind the verbs."""
    settings = call.context.settings
    data = {
        "backend": "fleet",
        "bd_version": SPOKEN,
        "database": "postgresql" if settings.store.url else "sqlite",
        "beads_dir": str(call.context.home.path),
        "repo_root": str(call.context.home.path),
        "role": "maintainer",
    }
    return call.answer(data, *(f"{name}: {value}" for name, value in data.items()))


def statuses(call: Call) -> int:
    """The statuses, and what each means on this queue."""
    meanings = {
        "open": "queued: the supervisor may run it",
        "in_progress": "it runs, or a person has taken it",
        "blocked": "it waits for a person, or its last attempt failed",
        "deferred": "not now",
        "closed": "done, or cancelled",
    }
    rows = [{"name": name, "icon": text.MARKS[name], "description": said} for name, said in meanings.items()]
    return call.answer({"built_in_statuses": rows}, *(f"{r['icon']} {r['name']}: {r['description']}" for r in rows))


def types(call: Call) -> int:
    """The types of issues."""
    rows = [{"name": name, "description": said} for name, said in vocabulary.TYPES.items()]
    return call.answer({"core_types": rows}, *(f"{r['name']}: {r['description']}" for r in rows))


def prime(call: Call) -> int:
    """How to work with these verbs, for an agent."""
    call.context.out.write(PRIME)
    return 0
