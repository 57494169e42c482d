"""Print what the agent of a task said: the tail of it, in words. -f goes on until the task has ended.

`>` is a tool that was called, `!` something that went wrong. The last line sums up what the session used. A session's
id, such as fleet-abc.2, gives that session alone. --raw prints the lines of log.jsonl as they are.

Examples:
  fleet logs fleet-abc -f
  fleet logs fleet-abc -n 500 --raw
"""

from __future__ import annotations

import argparse
import os
import time
from typing import TYPE_CHECKING, BinaryIO

from fleet.cli.parsing import positive
from fleet.errors import FleetError, ServerUnreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from fleet.cli.context import Context
    from fleet.cli.transcript import Transcript
    from fleet.front.views import LogView
    from fleet.model.receipt import Usage
    from fleet.projections.queue import TaskDetail

POLL_SECONDS = 1.0  # the safety net; the bell wakes us at once
REST_SECONDS = 0.05  # many commits make one look
PIECE = 1 << 20


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet logs`."""
    parser.add_argument("id", metavar="ID", help="a task, or one of its sessions")
    parser.add_argument(
        "-n", "--lines", metavar="N", type=positive, default=50, help="how many lines (50 if not given)"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the task has ended")
    parser.add_argument("--raw", action="store_true", help="the lines of log.jsonl, as they are")


def run(args: argparse.Namespace, context: Context) -> int:
    """The last lines of log.jsonl, and what comes after them."""
    log = context.front.log_view(args.id)
    if args.follow:
        return _follow(log, args, context)
    try:
        with context.front.open_log(log) as opened:
            tail = _tail(opened, log.session, args.lines, raw=args.raw or context.json)
    except FileNotFoundError:
        if context.json:
            context.print_json({"task": log.task, "file": log.file, "records": []})
        context.note(f"{log.task} has no log yet ({log.file})")
        return 0
    except OSError as exc:
        raise FleetError(f"{log.file} cannot be read: {exc.strerror}") from exc
    if context.json:
        from fleet.projections.logs import decoded

        context.print_json({"task": log.task, "file": log.file, "records": [decoded(line) for line in tail.shown]})
        return 0
    context.print_lines(iter(tail.shown))
    if not args.raw:
        _sum_up(log, context)
    return 0


class Tail:
    """The lines to show, where in the file the next record begins, and what to go on rendering with."""

    def __init__(self, shown: list[str], at: int, transcript: Transcript) -> None:
        self.shown = shown
        self.at = at
        self.transcript = transcript


def last_lines(file: Path, most: int) -> list[str]:
    """The last lines of a log in words; none where there is no log."""
    try:
        with file.open("rb") as opened:
            return _tail(opened, None, most, raw=False).shown
    except OSError:
        return []


def _tail(opened: BinaryIO, only: str | None, most: int, *, raw: bool) -> Tail:
    """The last lines of a file that may be long."""
    from fleet.cli.transcript import Transcript
    from fleet.projections.logs import as_they_are, of_session, tail

    last: list[Transcript] = []

    def in_words(records: Sequence[bytes]) -> list[str]:
        last[:] = [Transcript()]
        return [line for record in records for line in last[0].lines(record)]

    lines, at = tail(opened, most, as_they_are if raw else in_words, of_session(only))
    return Tail(lines, at, last[0] if last else Transcript())


def _follow(log: LogView, args: argparse.Namespace, context: Context) -> int:
    from fleet.cli.contact import Contact

    raw = args.raw or context.json
    front, uid, only = context.front, log.task, log.session
    bell = front.listen()  # before looking, so that nothing falls between
    noted, contact = "", Contact(context)
    try:
        shown, follower = following(lambda: front.open_log(log), args.lines, only=only, raw=raw)
        context.print_lines(iter(shown or []))
        if shown is None:
            context.note(f"{uid} has said nothing yet")
        while True:
            try:
                task = _task(uid, context)  # before reading: what it said before its end is in the file
                contact.heard("")
                context.print_lines(follower.more())
                context.out.flush()
                if task is not None and _is_over(task, only):
                    break
                noted = _note_wait(task, noted, context)
            except ServerUnreachable as exc:
                contact.heard(str(exc))
            bell.wait(POLL_SECONDS)
            time.sleep(REST_SECONDS)
    finally:
        bell.close()
    if not raw:
        _sum_up(log, context)
        context.note(f"{uid} is {task.state.value}: {task.reason}")
    return 0


def following(
    open_log: Callable[[], BinaryIO], most: int, *, only: str | None = None, raw: bool = False
) -> tuple[list[str] | None, Follower]:
    """The last lines of a log that may grow (None: there is no log yet), and what reads on after them."""
    follower = Follower(open_log, only, raw=raw)
    try:
        with open_log() as opened:
            tail = _tail(opened, only, most, raw=raw)
    except FileNotFoundError:
        return None, follower
    follower.at, follower.transcript = tail.at, tail.transcript
    return tail.shown, follower


class Follower:
    """Reads on in a file that grows. What a supervisor cuts off after a crash and writes again is shown once."""

    def __init__(self, open_log: Callable[[], BinaryIO], only: str | None, *, raw: bool) -> None:
        from fleet.cli.transcript import Transcript

        self.at = 0
        self._open_log = open_log
        self._only = only
        self._raw = raw
        self.transcript = Transcript()
        self._reached: dict[str, int] = {}  # by session, the place of the last thing shown
        self._again = False  # after a cut: pass over what was shown before

    def more(self) -> Iterator[str]:
        """The lines that came since."""
        from fleet.cli.transcript import read

        for line in self._new():
            record = read(line)
            if record is not None and record.offset >= 0:
                if self._again and record.offset <= self._reached.get(record.session, -1):
                    continue
                self._reached[record.session] = record.offset
            if self._only is not None and (record is None or record.session != self._only):
                continue
            yield from [line.decode("utf-8", "replace").rstrip("\n")] if self._raw else self.transcript.lines(line)

    def _new(self) -> Iterator[bytes]:
        """The records that came since, up to the size that the file has now; read a piece at a time."""
        try:
            with self._open_log() as opened:
                size, rest = opened.seek(0, os.SEEK_END), b""
                if size < self.at:
                    self.at, self._again = size, True
                opened.seek(self.at)
                while data := opened.read(min(PIECE, size - self.at - len(rest))):
                    data = rest + data
                    whole, rest = data[: (cut := data.rfind(b"\n") + 1)], data[cut:]
                    self.at += len(whole)
                    yield from whole.splitlines(keepends=True)
        except FileNotFoundError:
            return


def _task(uid: str, context: Context) -> TaskDetail | None:
    """The task as it stands; None where bd keeps the queue and nobody has taken it."""
    if context.bd_keeps_the_queue and not context.reads.tasks_by_uid([uid]):
        return None
    return context.front.task(uid)


def _is_over(task: TaskDetail, only: str | None) -> bool:
    from fleet.model.states import ENDED

    return task.state in ENDED or (only is not None and task.session != only)


def _note_wait(task: TaskDetail | None, before: str, context: Context) -> str:
    """Say once why nothing comes: it waits for a person, or for its time."""
    from fleet.cli.words import when
    from fleet.model.states import TaskState

    text = ""
    if task is not None and task.state is TaskState.BLOCKED and task.question_kind:
        text = f"{task.id} waits for you ({task.question_kind}): {task.question}"
    elif task is not None and task.state is TaskState.QUEUED:
        after = f", not before {when(task.not_before)}" if task.not_before else ""
        text = f"{task.id} is queued{after}" + (f": {task.reason}" if task.reason else "")
    if text and text != before:
        context.note(text)
    return text


def _sum_up(log: LogView, context: Context) -> None:
    """What the last session, or the one that was named, has used; counted as it was read."""
    found = context.front.used(log.task, log.session)
    if found is not None:
        context.print(f"--- {found.session}: {used(found.usage, found.peak_context_tokens)}")


def used(usage: Usage, peak_context_tokens: int) -> str:
    """What a session consumed, in words."""
    from fleet.cli.words import count

    parts = [count(usage.tool_calls, "tool call"), f"{usage.input_tokens:,} tokens in"]
    parts += [f"{usage.cached_tokens:,} cached"] if usage.cached_tokens else []
    parts += [f"{usage.output_tokens:,} out"]
    parts += [f"${usage.cost_microusd / 1_000_000:.4f}"] if usage.cost_microusd else []
    parts += [f"context at most {peak_context_tokens:,}"] if peak_context_tokens else []
    return ", ".join(parts)
