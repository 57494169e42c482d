"""codex's own file of a thread, as of 0.166: it tells the size of the context and the plan's limits, unlike the stream.

It lies at `$CODEX_HOME/sessions/YEAR/MONTH/DAY/rollout-TIME-THREAD.jsonl`, and goes on when a thread is resumed.
"""

from __future__ import annotations

from typing import Any

from fleet.coders.reading import Line, number, reader, table
from fleet.model.stream import AnySaid, Compacted, Context, Limited

# Prints the path of the thread $1; CODEX_HOME may be set for the supervisor and not for the agent.
FIND = (
    'for home in "${CODEX_HOME:-}" "$HOME/.codex"; do '
    'for file in "$home"/sessions/*/*/*/rollout-*-"$1".jsonl; do '
    'if [ -f "$file" ]; then printf %s "$file"; exit; fi; done; done'
)
FULL = 100  # per cent


class Spoken(Line, frozen=True):
    """The fields of a line that are used."""

    payload: Any = None


read = reader(Spoken)


def parse(line: bytes) -> tuple[AnySaid, ...]:
    """What a line tells; most tell what the stream tells too."""
    if b'"token_count"' not in line and b'"compacted"' not in line:
        return ()
    spoken = read(line)
    if spoken is None:
        return ()
    if spoken.type == "compacted":
        return (Compacted(),)
    told = table(spoken.payload)
    if spoken.type != "event_msg" or told.get("type") != "token_count":
        return ()
    return (*_context(table(told.get("info"))), *_limits(table(told.get("rate_limits"))))


def _context(info: dict[str, Any]) -> tuple[AnySaid, ...]:
    used = number(table(info.get("last_token_usage")).get("total_tokens"))
    return (Context(tokens=used, window=number(info.get("model_context_window"))),) if used else ()


def _limits(limits: dict[str, Any]) -> tuple[AnySaid, ...]:
    windows = ((name, table(limits.get(name))) for name in ("primary", "secondary"))
    return tuple(_limited(name, window) for name, window in windows if window)


def _limited(name: str, window: dict[str, Any]) -> Limited:
    used, resets, minutes = (
        window.get("used_percent"),
        number(window.get("resets_at")),
        number(window.get("window_minutes")),
    )
    share = round(used, 1) if isinstance(used, (int, float)) and abs(used) < 100_000 else None
    return Limited(
        window=f"{minutes // 60} hours" if minutes and minutes >= 60 else name,
        rejected=share is not None and share >= FULL,
        used_pct=share,
        resets_at=resets * 1000 if resets else None,
    )
