"""Run the measurements and write bench/RESULTS.md.

python bench/run.py                        all of them
python bench/run.py store supervisor       only these; the figures of the others stay
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench import (  # noqa: E402  # after it
    api_bench,
    coder_bench,
    command_bench,
    machines_bench,
    report,
    run_bench,
    ssh_bench,
    store_bench,
    supervisor_bench,
    talk_bench,
)

PARTS = {
    "store": store_bench.run,
    "command": command_bench.run,
    "coder": coder_bench.run,
    "supervisor": supervisor_bench.run,
    "talk": talk_bench.run,
    "ssh": ssh_bench.run,
    "run": run_bench.run,
    "api": api_bench.run,
    "machines": machines_bench.run,
}


def main(names: list[str]) -> int:
    """Print each figure; exit 1 when a promise is not kept."""
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        print(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    kept = True
    for name in names or PARTS:
        figures = PARTS[name]()
        for figure in figures:
            print(f"{'ok ' if figure.kept else 'NO '} {figure.what}: {figure.measured} (promised {figure.promised})")
        kept = kept and all(figure.kept for figure in figures)
        report.write(ROOT / "bench", name, figures)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
