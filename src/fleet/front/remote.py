"""A fleet that is served elsewhere: each question and verb is a request to its API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from fleet.errors import REFUSED, Conflict, FleetError
from fleet.front.remote_looks import RemoteLooks
from fleet.front.views import Add, Created, Decided
from fleet.model.intent import Intent
from fleet.projections.queue import TaskDetail

if TYPE_CHECKING:
    from fleet.config.specs.document import Document

T = TypeVar("T")


class RemoteFront(RemoteLooks):
    """The verbs, beside the looks."""

    def add(self, new: Add) -> TaskDetail:
        """Put a task in the queue."""
        return self._task("tasks", body=new)

    def submit(
        self, document: Document, max_workers: int, *, coder: str | None = None, model: str | None = None
    ) -> Created:
        """Put the tasks of a spec in the queue, as one run; `coder` and `model` are for tasks that name none."""
        body = {"tasks": document.value} if isinstance(document.value, list) else document.value
        name = document.stem[:256] or None
        said = self._client.post("runs", body=body, max_workers=max_workers, name=name, coder=coder, model=model)
        return self._client.read(said, Created)

    def answer(self, word: str, text: str) -> TaskDetail:
        """Answer what a task waits for; it is queued again."""
        return self._task("questions", word, "answer", body={"text": text})

    def answer_each(self, words: Sequence[str], text: str) -> Iterator[TaskDetail | FleetError]:
        """The same answer to many; where one of them is not there, to none."""
        found = [self.task(word).id for word in words]
        return _each(dict.fromkeys(found), lambda uid: self.answer(uid, text))

    def ask(self, word: str, text: str) -> TaskDetail:
        """Hold a task until a person has answered a question about it."""
        return self._task("tasks", word, "ask", body={"text": text})

    def interrupt(self, word: str, reason: str) -> Intent:
        """End the session of a task; it waits for a person then."""
        said = self._client.post("workers", word, "interrupt", body={"reason": reason})
        return self._client.read(said, Intent)

    def interrupt_each(self, words: Sequence[str], reason: str) -> Iterator[Intent | FleetError]:
        """The same of many."""
        return _each(words, lambda word: self.interrupt(word, reason))

    def restart(self, word: str, reason: str, *, force: bool = False, abandon: bool = False) -> Decided:
        """Run a task again."""
        body = {"reason": reason, "force": force, "abandon": abandon}
        said = self._client.post("workers", word, "restart", body=body)
        if said.status_code == HTTPStatus.ACCEPTED:
            return self._client.read(said, Intent)
        return self._client.read(said, TaskDetail)

    def restart_each(
        self, words: Sequence[str], reason: str, *, force: bool = False, abandon: bool = False
    ) -> Iterator[Decided | FleetError]:
        """The same of many."""
        return _each(words, lambda word: self.restart(word, reason, force=force, abandon=abandon))

    def stop(self, word: str, reason: str) -> list[Decided]:
        """Cancel a task; what needs it is skipped."""
        return self._stopped("workers", word, "stop", reason=reason)

    def stop_each(self, words: Sequence[str], reason: str) -> Iterator[list[Decided] | FleetError]:
        """The same of many. One that was skipped for the sake of another of them is not refused."""
        skipped: set[str] = set()
        for word in words:
            try:
                done = self.stop(word, reason)
            except REFUSED as exc:
                yield [] if isinstance(exc, Conflict) and self.task(word).id in skipped else exc
            else:
                skipped.update(one.id for one in done if isinstance(one, TaskDetail) and one.skipped_for)
                yield done

    def stop_run(self, word: str, reason: str) -> Iterator[Decided]:
        """Cancel what has not ended of a run."""
        yield from self._stopped("runs", word, "stop", reason=reason)

    def stop_all(self, reason: str) -> Iterator[Decided]:
        """Cancel everything that has not ended."""
        yield from self._stopped("stop", reason=reason)

    def verify(self, word: str) -> TaskDetail:
        """Have the verifier of a task run, for the first time or again."""
        return self._task("tasks", word, "verify")

    def judge(self, word: str, *, passed: bool, note: str) -> TaskDetail:
        """A person's verdict on a result."""
        return self._task("tasks", word, "verify", body={"passed": passed, "note": note})

    def _task(self, *path: str, body: object = None) -> TaskDetail:
        return self._client.read(self._client.post(*path, body=body), TaskDetail)

    def _stopped(self, *path: str, reason: str) -> list[Decided]:
        said = self._client.read(self._client.post(*path, body={"reason": reason}), dict[str, list[dict[str, Any]]])
        return [
            msgspec.convert(one, Intent) if "verb" in one else msgspec.convert(one, TaskDetail)
            for one in said["stopped"]
        ]


def _each(words: Iterable[str], verb: Callable[[str], T]) -> Iterator[T | FleetError]:
    """One request after the other; what is refused is so for itself."""
    for word in words:
        try:
            yield verb(word)
        except REFUSED as exc:
            yield exc
