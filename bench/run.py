"""Run every measurement and write bench/RESULTS.md.

python bench/run.py [store] [command]      only these; prints, and writes nothing
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench import command_bench, report, store_bench  # noqa: E402  # the path must be set first

PARTS = {"store": store_bench.run, "command": command_bench.run}


def main(names: list[str]) -> int:
    """Print each figure; exit 1 when a promise is not kept."""
    figures = [figure for name in names or PARTS for figure in PARTS[name]()]
    for figure in figures:
        print(f"{'ok ' if figure.kept else 'NO '} {figure.what}: {figure.measured} (promised {figure.promised})")
    if not names:
        report.write(ROOT / "bench" / "RESULTS.md", figures)
    return 0 if all(figure.kept for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
