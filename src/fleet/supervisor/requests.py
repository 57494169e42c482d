"""What an agent asks for from within its session: applied once each, then answered."""

from __future__ import annotations

from msgspec.structs import replace

from fleet.coders.shortening import short
from fleet.errors import FleetError
from fleet.hosts.follower import Followed
from fleet.hosts.outbox import Request
from fleet.hosts.session import HostedSession
from fleet.model.session import Progress, Session
from fleet.model.task import ASKED, Task
from fleet.supervisor.house import House

QUESTION = "QUESTION:"
MOST_REMARKS = 1000  # of one session, other requests counted too: each is kept in the ledger for good
LONGEST_TEXT = 1 << 16


def bounded(request: Request) -> Request:
    """The request with its texts in short. FleetError: a remark after so many requests of one session."""
    if request.verb == "comment" and request.number > MOST_REMARKS:
        raise FleetError(f"this session has made {MOST_REMARKS:,} requests: no further remark is kept")
    fields = {name: short(value, LONGEST_TEXT) for name, value in request.fields.items()}
    return replace(request, fields=fields, text=short(request.text, LONGEST_TEXT))


class Requests:
    """The outbox of one session.

    A request is applied and answered, then its number is committed with what it changed. After a crash in between it
    is applied and answered again, which changes nothing: comments carry the request's number and are made once. The
    other order would leave an agent without its answer.
    """

    def __init__(self, house: House, task: Task, session: Session, hosted: HostedSession) -> None:
        self._house = house
        self._task = task
        self._session = session
        self._hosted = hosted

    async def run_once(self, followed: Followed, progress: Progress, *, ended: bool = False) -> Progress:
        """Deal with what has come."""
        for request in await followed.requests(progress.requests, ended=ended):
            try:
                progress, said = await self._apply(bounded(request), progress)
                code = 0
            except FleetError as exc:
                said, code = str(exc), 1
            progress = replace(progress, requests=request.number)
            self._house.at("applied")
            await self._hosted.answer(request.number, said, code=code)
            self._house.at("answered")
            await self._house.store.record(self._session.fence, progress)
            self._house.log("agent_request", session=self._session.id, verb=request.verb, code=code)
        return progress

    async def _apply(self, request: Request, progress: Progress) -> tuple[Progress, str]:
        match request.verb:
            case "ask":
                return self._asked(progress, request.fields.get("kind", "question"), request.text)
            case "update" if request.fields.get("status") == "blocked":
                text = request.text or request.fields.get("notes", "")
                return self._asked(progress, "question", text.removeprefix(QUESTION).strip())
            case "close":
                said = request.text or request.fields.get("reason", "") or "closed by its agent"
                return replace(progress, closed=said), "closed: end the session now; the result will be checked"
            case "comment":
                name = f"{self._session.id}.{request.number}"
                await self._house.store.comment(self._task.uid, request.text, by=self._session.coder, name=name)
                return progress, "noted"
            case "show":
                return progress, self._shown()
            case _:
                raise FleetError(f"`{request.verb}` is not available in a session")

    def _asked(self, progress: Progress, kind: str, text: str) -> tuple[Progress, str]:
        """One answer serves all that a session asks, so a further question joins the first; the graver kind stays."""
        new, before = text.strip(), progress.asked_text
        if not new:
            raise FleetError("the question is empty")
        if progress.asked_kind not in (None, "question"):
            kind = progress.asked_kind
        elif kind not in ASKED:
            kind = "question"
        if before and len(before) + len(new) > LONGEST_TEXT:
            raise FleetError("this session has asked as much as is kept: end it now")
        again = f"\n{new}\n" in f"\n{before}\n"
        asked = replace(progress, asked_kind=kind, asked_text=before if again else f"{before}\n{new}".strip())
        return asked, "recorded: end the session now; another will go on when a person has answered"

    def _shown(self) -> str:
        task = self._house.store.task(self._task.uid)
        lines = [f"id: {task.uid}", f"title: {task.title}", f"status: {task.state.value}", "", task.description]
        return "\n".join(lines).rstrip()
