"""The parsers: how many lines a second each coder reads, on a recorded session repeated."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import msgspec

from bench.report import Figure
from fleet import plugins
from fleet.coders.coder import Coder

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "golden"
PROMISED = 100_000  # lines a second
LINES = 30_000
ROUNDS = 7
VOCABULARY = b'{"kind":"text","text":"line 1"}\n{"kind":"tool_started","id":"1","name":"shell","input":"ls"}'


def sample(name: str) -> list[bytes]:
    """The lines of a session that went well."""
    recorded = GOLDEN / name / "ok.jsonl"
    return (recorded.read_bytes() if recorded.exists() else VOCABULARY).strip().split(b"\n")


def long_session(lines: list[bytes]) -> list[bytes]:
    """The lines again and again, with new ids each time: what was said once is passed over."""
    times = range(LINES // len(lines))
    return [line.replace(b'"msg_', b'"msg_%d_' % time) for time in times for line in lines]


def lines_per_second(coder: Coder, lines: list[bytes]) -> float:
    """The median rate over some rounds."""
    repeated = long_session(lines)
    rates = []
    for _ in range(ROUNDS):
        state = coder.begin()
        began = time.perf_counter()
        for line in repeated:
            state, _ = coder.parse(state, line)
        rates.append(len(repeated) / (time.perf_counter() - began))
    return statistics.median(rates)


def bare(lines: list[bytes]) -> float:
    """The rate at which the same lines are merely decoded as JSON into dicts: what a plain parser begins with."""
    repeated = long_session(lines)
    began = time.perf_counter()
    for line in repeated:
        msgspec.json.decode(line)
    return len(repeated) / (time.perf_counter() - began)


def run() -> list[Figure]:
    """One figure for each coder."""
    figures = []
    for name in plugins.names("coders"):
        lines = sample(name)
        rate, plain = lines_per_second(plugins.load("coders", name), lines), bare(lines)
        size = sum(map(len, lines)) // len(lines)
        figures.append(
            Figure(
                f"lines a second, {name}",
                f"{rate:,.0f}",
                f"at least {PROMISED:,}",
                rate >= PROMISED,
                f"{size} bytes a line; {rate / plain:.1f} × of decoding them into dicts",
            )
        )
    return figures


if __name__ == "__main__":
    for figure in run():
        verdict = "kept" if figure.kept else "NOT kept"
        print(f"{figure.what}: {figure.measured} ({figure.promised}: {verdict}), {figure.note}")
