"""`create` (or `new`) and `q`: a task enters the queue."""

from __future__ import annotations

from msgspec.structs import replace

from fleet.cli.beads import vocabulary
from fleet.cli.beads.call import Call, Refused, read_file
from fleet.cli.beads.flags import Flag, Given, Takes
from fleet.cli.beads.relations import link, refuse_new_need
from fleet.model.task import BLOCKS, Bead, NewTask, Task, check_title
from fleet.projections import beads

QUICK_FLAGS = (
    Flag("labels", "l", Takes.LIST, "labels, with commas between"),
    Flag("label", "", Takes.LIST, "the same"),
    Flag("parent", "", Takes.TEXT, "the issue that this one is a child of"),
    Flag("priority", "p", Takes.TEXT, "0-4 or P0-P4, 0 is the most urgent (2 if not given)"),
    Flag("type", "t", Takes.TEXT, f"{', '.join(vocabulary.TYPES)} (task if not given)"),
)
OWN_FLAGS = (
    Flag("coder", "", Takes.TEXT, "Fleet's own: who does it (else supervisor.coder)"),
    Flag("model", "", Takes.TEXT, "Fleet's own: with which model"),
    Flag("cwd", "", Takes.TEXT, "Fleet's own: where the agent works (else the current directory)"),
)
FLAGS = (
    Flag("title", "", Takes.TEXT, "the title, instead of the first word"),
    Flag("description", "d", Takes.TEXT, "the details; - reads stdin"),
    Flag("body-file", "", Takes.TEXT, "read the details from a file; - reads stdin"),
    Flag("stdin", "", Takes.NOTHING, "read the details from stdin"),
    *QUICK_FLAGS,
    Flag("acceptance", "", Takes.TEXT, "how to tell that it is done"),
    Flag("design", "", Takes.TEXT, "design notes"),
    Flag("notes", "", Takes.TEXT, "further notes"),
    Flag("assignee", "a", Takes.TEXT, "whom it is meant for"),
    Flag("estimate", "e", Takes.NUMBER, "minutes"),
    Flag("external-ref", "", Takes.TEXT, "what it is called elsewhere, such as gh-9"),
    Flag("metadata", "", Takes.TEXT, "a JSON object, or @FILE"),
    Flag("deps", "", Takes.LIST, "ID or KIND:ID; a bare ID must be done first, blocks:ID makes ID wait for this one"),
    Flag("defer", "", Takes.TEXT, "not before: +6h, +1d, tomorrow, 2027-01-15"),
    Flag("status", "s", Takes.TEXT, "open is the only one to begin with"),
    Flag("no-inherit-labels", "", Takes.NOTHING, "do not take the parent's labels"),
    Flag("silent", "", Takes.NOTHING, "print only the id"),
    Flag("dry-run", "", Takes.NOTHING, "say what would be created, and create nothing"),
    *OWN_FLAGS,
)


def create(call: Call) -> int:
    """Put a task in the queue."""
    new, links = _asked(call)
    if call.given.on("dry-run"):
        return _preview(call, new)
    task = _add(call, new, links)
    if call.given.on("silent") and not call.json:
        call.context.print(task.uid)
        return 0
    from fleet.cli.add import created

    line = created(task.uid, task.title, cwd=task.cwd, coder=task.coder, model=task.model)
    return call.answer(call.issue(task), line)


def quick(call: Call) -> int:
    """Put a task in the queue and print its id, nothing else."""
    new, links = _asked(call)
    call.context.print(_add(call, new, links).uid)
    return 0


def title(given: Given) -> str:
    """The title, from the first word or the flag."""
    said = given.text("title")
    if len(given.words) > 1:
        raise Refused(f"accepts at most 1 arg(s), received {len(given.words)}", hint="put the title in quotes")
    if said is not None and given.words and given.words[0] != said:
        raise Refused("cannot specify different titles as both positional argument and --title flag")
    if said is None and not given.words:
        raise Refused("title required", hint='fleet bd create "Fix the login page"')
    found = given.words[0] if said is None else said
    if said is None and found.startswith("-"):
        raise Refused(f"title \"{found}\" looks like a flag (starts with '-')", hint=f'--title="{found}"')
    if not found.strip():
        raise Refused("title cannot be empty or whitespace-only")
    return check_title(found)


def _asked(call: Call) -> tuple[NewTask, list[tuple[str, str, str]]]:
    """The task as it was asked for, and the relations to make once it is there: whose (empty: its own), other, kind."""
    from fleet.cli.add import directory
    from fleet.plugins import check_coder

    given = call.given
    new = NewTask(
        title=title(given),
        description=_description(given),
        priority=vocabulary.priority(given.text("priority") or "2"),
        coder=check_coder(coder, call.context.settings.own_coders) if (coder := given.text("coder")) else None,
        model=given.text("model") or None,
        cwd=directory(given.text("cwd")),
        labels=beads.labels_from([*given.list("labels"), *given.list("label")]),
        not_before=vocabulary.later(later, call.now, "--defer") if (later := given.text("defer")) else None,
        bead=_bead(given),
    )
    if vocabulary.new_status(given.text("status") or "open") != "open":
        raise Refused("Fleet creates issues open", hint="create it, then say `fleet bd update ID --status ...`")
    needs, links = _relations(call)
    if parent := given.text("parent"):
        above = _parent(call, parent)
        links.append(("", above.uid, beads.PARENT))
        if not given.on("no-inherit-labels"):
            new = replace(new, labels=above.labels | new.labels)
    return replace(new, needs=tuple(needs)), links


def _bead(given: Given) -> Bead:
    invalid = "validation failed: validation failed for issue : invalid issue type: {}"
    return Bead(
        issue_type=vocabulary.issue_type(given.text("type") or "task", invalid),
        assignee=given.text("assignee") or "",
        notes=given.text("notes") or "",
        design=given.text("design") or "",
        acceptance_criteria=given.text("acceptance") or "",
        external_ref=given.text("external-ref") or "",
        metadata=vocabulary.metadata(text) if (text := given.text("metadata")) else {},
        estimated_minutes=given.number("estimate"),
    )


def _description(given: Given) -> str:
    if given.on("stdin"):
        return vocabulary.text_of("-")
    if file := given.text("body-file"):
        return read_file(file, "file")
    return vocabulary.text_of(given.text("description") or "")


def _relations(call: Call) -> tuple[list[str], list[tuple[str, str, str]]]:
    """What the new task needs, and its other relations. All that can be refused is refused before it is created."""
    needs: list[str] = []
    links: list[tuple[str, str, str]] = []
    for word in call.given.list("deps"):
        kind, colon, other = word.rpartition(":")
        stored = vocabulary.link_kind(kind) if colon else BLOCKS
        found = call.find(other, before=f'resolving --deps target "{other}": ')
        if kind == BLOCKS:  # said of the new task: it blocks the other one
            refuse_new_need(found)
            links.append((found.uid, "", BLOCKS))
        elif stored == BLOCKS:
            needs.append(found.uid)
        else:
            links.append(("", found.uid, stored))
    return needs, links


def _parent(call: Call, word: str) -> Task:
    try:
        return call.find(word)
    except Refused as exc:
        raise Refused(f"parent issue {word} not found") from exc


def _add(call: Call, new: NewTask, links: list[tuple[str, str, str]]) -> Task:
    task = call.control.add(new)
    for whose, other, kind in links:
        link(call, whose or task.uid, other or task.uid, kind)
    return call.reads.task(task.uid)


def _preview(call: Call, new: NewTask) -> int:
    """What `create` would make, as bd shows it: without an id, and with the first date there is."""
    task = Task(
        uid="",
        task_id="",
        title=new.title,
        description=new.description,
        priority=new.priority,
        labels=new.labels,
        bead=new.bead,
        created_at=0,
        created_by=call.actor,
        updated_at=0,
        not_before=new.not_before,
    )
    never = "0001-01-01T00:00:00Z"
    shown = call.issue(task) | {"created_at": never, "updated_at": never}
    lines = [f"Title: {new.title}", f"Type: {new.bead.issue_type}", f"Priority: P{new.priority}", f"cwd: {new.cwd}"]
    return call.answer(shown, "[DRY RUN] Would create issue:", *(f"  {line}" for line in lines))
