"""Refusing: a session that nobody here can drive is ended, and its task waits for a person."""

from __future__ import annotations

import os
import traceback

from fleet.model.notice import short
from fleet.model.session import Ending, Session
from fleet.model.states import SessionState
from fleet.policy.redaction import redact
from fleet.supervisor.house import House
from fleet.supervisor.sweeper import end_what_is_left


async def refuse(house: House, session: Session, why: str) -> None:
    """Its task waits for a person, and its agent, if it has one, is ended."""
    await end_what_is_left(house, session)
    end = Ending(outcome="interrupted", state=SessionState.LOST)
    await house.store.pause(session.fence, end, "needs_human", why, by=house.name)
    house.log("session_refused", session=session.id, reason=why)


async def refuse_after(house: House, session: str, exc: Exception) -> None:
    """It met a fault of ours, which is not silent: left as it is, it would end each supervisor that takes it over."""
    where = traceback.extract_tb(exc.__traceback__)[-1]
    told = f"{type(exc).__name__}: {exc} ({os.path.basename(where.filename)}, line {where.lineno})"
    house.log_fault("session_failed", exc, session=session)
    why = f"Fleet met a fault of its own: {told}. Its agent was ended; what it left is kept"
    await refuse(house, house.store.session(session), short(redact(why)))
