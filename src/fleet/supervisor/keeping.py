"""Keeping what an agent says in the log of its task, within bounds. What is left out is said in the log itself.

A line that is too long to be read as one is known by its beginning. Once the log of a session is full, what it says is
read and counted as before, and only its last words are added, when it has ended.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from fleet.config.clock import utc_ms
from fleet.hosts.lines import LONGEST_LINE, Line, tail_start
from fleet.model import stream as st
from fleet.model.session import Progress
from fleet.supervisor.attempt import Attempt
from fleet.supervisor.counting import counted

MOST_LAST = 1000  # things said last that are kept of a session whose log is full
Place = tuple[int, st.AnySaid]


class Keeper:
    """Reads the lines of one session, and writes down what they say."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt

    def take(self, lines: Iterable[Line], cursor: int) -> None:
        """The next lines, counted and logged. The progress, with the new cursor, is to be committed after it."""
        attempt = self._attempt
        said = [place for line in lines for place in self._said(line)]
        attempt.progress = replace(attempt.progress, cursor=cursor, last_output_at=utc_ms())
        self.keep(said)
        attempt.keep_state(attempt.state)

    def keep(self, said: Sequence[Place]) -> None:
        """Count what was said, and log it while there is room. The batch that fills the log is the last."""
        attempt, limits = self._attempt, self._attempt.limits
        attempt.progress = counted(attempt.progress, (each for _, each in said))
        if attempt.progress.full_from is not None:
            return
        logged = attempt.progress.logged + attempt.record.add(said, utc_ms())
        attempt.progress = replace(attempt.progress, logged=logged)
        if limits.log_mb and logged >= limits.log_bytes and not attempt.progress.long_line:
            cursor = attempt.progress.cursor
            words = f"its log is full ({limits.log_mb:,} MB): of what it says from here on only the end is kept"
            attempt.record.add([(cursor - 1, st.Notice(text=words))], utc_ms())  # a successor keeps it
            attempt.progress = replace(attempt.progress, full_from=cursor)

    async def skip(self, end: int) -> None:
        """Pass over what was printed beyond the bound, to the last lines of it."""
        attempt, progress = self._attempt, self._attempt.progress
        to = await tail_start(attempt.site.transport, self._stdout, progress.cursor, end)
        if to <= progress.cursor:
            return
        full_from = progress.full_from
        if full_from is None:
            full_from = progress.cursor - max(0, progress.long_line - LONGEST_LINE)
        attempt.progress = replace(progress, cursor=to, full_from=full_from, long_line=0)

    async def finish(self) -> None:
        """All was read: what is still to be said of what was left out, and the last words behind it.

        Done again by whoever comes next: all of it lies at or beyond the place that it will rewind to.
        """
        attempt, progress = self._attempt, self._attempt.progress
        attempt.left_out = self._without_long_line(progress).left_out
        if progress.full_from is None:
            attempt.record.add([(progress.cursor, each) for each in _too_long(progress.long_line)], utc_ms())
            return
        last = await attempt.insist(self._last)
        gap = (last[0][0] if last else progress.cursor) - progress.full_from
        notice = st.Notice(text=f"{gap:,} bytes of its output are left out here")
        attempt.record.add([*([(progress.full_from, notice)] if gap else []), *last], utc_ms())
        attempt.left_out += gap

    # smaller steps

    @property
    def _stdout(self) -> str:
        return f"{self._attempt.hosted.directory}/stdout"

    def _said(self, line: Line) -> list[Place]:
        attempt = self._attempt
        before = attempt.progress.long_line
        cut = not line.whole and len(line.data) >= LONGEST_LINE
        if not before:
            if cut:
                attempt.progress = replace(attempt.progress, long_line=len(line.data))
            attempt.state, said = attempt.coder.parse(attempt.state, line.data)
            return [(line.offset, each) for each in said]
        length = before + len(line.data)
        attempt.progress = replace(attempt.progress, long_line=length)
        if not line.whole:
            return []
        attempt.progress = self._without_long_line(attempt.progress)
        return [(line.offset, each) for each in _too_long(length)]

    def _without_long_line(self, progress: Progress) -> Progress:
        """It is over. Where nothing is logged, what is left out of the log is known by its places."""
        more = max(0, progress.long_line - LONGEST_LINE) if progress.full_from is None else 0
        return replace(progress, long_line=0, left_out=progress.left_out + more)

    async def _last(self) -> list[Place]:
        """What it said last, read once more; without what only counts, which was counted."""
        attempt = self._attempt
        floor, end = attempt.progress.full_from or 0, attempt.progress.cursor
        at = await tail_start(attempt.site.transport, self._stdout, floor, end)
        state, last = attempt.coder.begin(), deque[Place](maxlen=MOST_LAST)
        while at < end:
            got = await attempt.hosted.read(at, ended=True)
            if got.cursor == at:
                break
            for line in got.lines:
                state, said = attempt.coder.parse(state, line.data)
                last += [(line.offset, each) for each in said if not isinstance(each, st.Used | st.Context)]
            at = got.cursor
            await asyncio.sleep(0)  # others have their turn
        return list(last)


def _too_long(length: int) -> list[st.AnySaid]:
    """That a line of this length is not all there, if it is not."""
    if length <= LONGEST_LINE:
        return []
    text = f"a line of {length:,} bytes was too long: the last {length - LONGEST_LINE:,} of them are left out"
    return [st.Notice(text=text)]
