"""How `fleet hosts history` draws a machine over time: its uptime and its latency as a row of bars each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleet.projections.availability import Availability, History

BARS = "▁▂▃▄▅▆▇█"
NOTHING = " "  # nobody asked


def drawn(found: History, called: str) -> list[str]:
    """The lines."""
    from fleet.cli.transcript import one_line
    from fleet.cli.words import ago, lasting, printable, when

    names = f"{found.name} ({called})" if called != found.name else found.name
    lines = [f"{names}: {found.state}" + (f" {lasting(found.state_since)}" if found.state_since else "")]
    if found.evidence:
        lines.append(f"  {printable(one_line(found.evidence))}")
    answered = f"answered {ago(found.answered_at)}" if found.answered_at else "it has never answered"
    lines += [f"  {answered}", ""]
    lines.append(f"  uptime   {uptime(found.pieces)}  {_uptime_words(found.total)}")
    lines.append(f"  latency  {latency(found.pieces)}  {_latency_words(found.total)}")
    lines.append(f"           from {when(found.total.since)} to now")
    if found.changes:
        lines += ["", "Changes:"]
        lines += [f"  {when(each.at)}  {each.state:<8} {printable(one_line(each.evidence))}" for each in found.changes]
    return lines


def uptime(pieces: Sequence[Availability]) -> str:
    """A bar for each piece: full where it was always up; a question mark where probes learned nothing."""
    return "".join(
        NOTHING if not each.probes else "?" if each.uptime_pct is None else _bar(each.uptime_pct / 100)
        for each in pieces
    )


def latency(pieces: Sequence[Availability]) -> str:
    """A bar for each piece: the slowest one is full."""
    most = max((each.ms_mean or 0 for each in pieces), default=0)
    return "".join(NOTHING if each.ms_mean is None else _bar(each.ms_mean / most if most else 0) for each in pieces)


def _bar(share: float) -> str:
    return BARS[min(len(BARS) - 1, int(share * (len(BARS) - 1) + 0.5))]


def _uptime_words(total: Availability) -> str:
    from fleet.cli.words import count

    if total.uptime_pct is None:
        return (
            f"not known: {count(total.unknown, 'probe')} learned nothing" if total.unknown else "not known: no probes"
        )
    unknown = f", {total.unknown} learned nothing" if total.unknown else ""
    return f"{total.uptime_pct:g} % ({total.up} of {count(total.up + total.down, 'probe')}{unknown})"


def _latency_words(total: Availability) -> str:
    return "not known" if total.ms_mean is None else f"{total.ms_mean} ms on average, {total.ms_most} ms at most"
