"""The way to the real bd: everything is passed on as it is, save `create`, which also records where the agent works."""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import msgspec

from fleet.cli.add import created, directory
from fleet.config.clock import utc_ms
from fleet.config.environment import environ
from fleet.config.home import Home, require
from fleet.errors import HomeError, ProgramError, UsageError
from fleet.model.task import BLOCKS, DEFAULT_PRIORITY, Task
from fleet.plugins import check_coder
from fleet.projections.beads import envelope
from fleet.sources.bd_answers import Answer, Trouble
from fleet.sources.beads import Bd, find_bd, has_queue
from fleet.store import taskfile

if TYPE_CHECKING:
    from fleet.cli.context import Context

CREATES = ("create", "new")
OWN = ("--coder", "--model", "--cwd")
AS_IT_IS = ("-h", "--help", "--dry-run", "--dry-run=true")  # with one of these nothing is created
READS_STDIN = ("-", "--stdin")


class Wish(msgspec.Struct, frozen=True):
    """What Fleet keeps beside an issue."""

    cwd: str
    coder: str | None = None
    model: str | None = None


def run(before: list[str], verb: str | None, after: list[str], context: Context) -> int:
    """Pass a call on to bd; returns bd's exit code."""
    home = require(context.home)
    as_json = ["--json"] if context.json else []
    if verb not in CREATES:
        return _bd(home).forward([*before, *([verb] if verb else []), *after, *(as_json if verb else [])])
    words, wish = strip_own(
        after, context.settings.own_coders
    )  # before bd is looked for: an unknown coder is no business of bd's
    words = [*before, verb, *words]
    context.out.flush()
    if any(flag in words for flag in AS_IT_IS):
        return _bd(home).forward([*words, *as_json])
    return _create(home, words, wish, context)


def _bd(home: Home) -> Bd:
    env = environ()
    return Bd(home, find_bd(env), env)


def strip_own(words: list[str], own_coders: Collection[str] = ()) -> tuple[list[str], Wish]:
    """The words that are bd's, and what was said to Fleet. `--` ends the flags, as in bd."""
    ends = words.index("--") if "--" in words else len(words)
    kept: list[str] = []
    said: dict[str, str] = {}
    rest = list(words[:ends])
    while rest:
        word = rest.pop(0)
        name, eq, value = word.partition("=")
        if name not in OWN:
            kept.append(word)
            continue
        if not eq:
            if not rest:
                raise UsageError(f"{name} needs a value")
            value = rest.pop(0)
        said[name] = value
    coder = said.get("--coder")
    coder = check_coder(coder, own_coders) if coder else None
    wish = Wish(directory(said.get("--cwd")), coder, said.get("--model") or None)
    return [*kept, *words[ends:]], wish


def _create(home: Home, words: list[str], wish: Wish, context: Context) -> int:
    """Let bd create, read what it created back from it, and write task.json."""
    if not has_queue(home):
        raise HomeError(f"there is no queue of bd in {home.path}", hint="run `fleet init`")
    bd = _bd(home)
    bd.version()
    asked = context.json or "--json" in words or "--json=true" in words
    silent = "--silent" in words
    plain = [word for word in words if word not in ("--silent", "--json", "--json=true")]
    ends = plain.index("--") if "--" in plain else len(plain)
    stdin = sys.stdin.buffer.read() if any(_reads_stdin(word) for word in plain) else b""
    answer = bd.call(*plain[:ends], "--json", *plain[ends:], stdin=stdin)
    if answer.trouble:
        return _say_refused(answer, context, as_json=asked)
    if answer.stderr:
        context.note(answer.stderr.rstrip())
    found = [bd.show(uid) for uid in _ids(answer)]
    for issue in found:
        _record(home, issue, wish)
    if asked:
        context.print_json(envelope(answer.data))
        return 0
    for issue in found:
        uid, title = str(issue["id"]), str(issue.get("title", ""))
        context.print(uid if silent else created(uid, title, cwd=wish.cwd, coder=wish.coder, model=wish.model))
    return 0


def _reads_stdin(word: str) -> bool:
    return word in READS_STDIN or word.endswith("=-")


def _say_refused(answer: Answer, context: Context, *, as_json: bool) -> int:
    """What bd said, where it said it."""
    if answer.trouble is Trouble.UNKNOWN:
        raise ProgramError(answer.text, hint="look with `fleet bd list` before you create it again")
    if answer.stderr:
        context.note(answer.stderr.rstrip())
    if as_json and answer.data is not None:
        context.print_json(envelope(answer.data))
    elif answer.data is not None or not answer.stderr:
        context.note(f"Error: {answer.text}")
    return answer.code or 1


def _ids(answer: Answer) -> list[str]:
    """The ids of what was created: one issue, or several from a file."""
    rows = answer.data if isinstance(answer.data, list) else [answer.data]
    ids = [row["id"] for row in rows if isinstance(row, dict) and row.get("id")]
    if not ids:
        raise ProgramError(
            f"bd said that it created an issue, but not which: {answer.text}",
            hint="look with `fleet bd list`; its task.json is not written",
        )
    return ids


def _record(home: Home, issue: dict[str, Any], wish: Wish) -> None:
    """Write task.json, in the one shape that it has."""
    depends = issue.get("dependencies") or []
    task = Task(
        uid=issue["id"],
        task_id=issue["id"],
        title=issue.get("title", ""),
        description=issue.get("description", ""),
        priority=issue.get("priority", DEFAULT_PRIORITY),
        needs=tuple(other["id"] for other in depends if other.get("dependency_type") == BLOCKS),
        cwd=wish.cwd,
        coder=wish.coder,
        model=wish.model,
        created_at=utc_ms(),
        created_by=issue.get("created_by", ""),
        updated_at=utc_ms(),
    )
    try:
        taskfile.save(home, task)
    except OSError as exc:
        raise HomeError(
            f"bd created {task.uid}, but {taskfile.path(home, task.uid)} cannot be written: {exc.strerror}",
            hint="make it writable and write the file by hand, or the agent will not work in " + wish.cwd,
        ) from exc
