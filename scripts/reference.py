"""Write the reference pages from the code, so that they cannot say anything else than it does.

python scripts/reference.py           write docs/reference, and the generated parts of other pages
python scripts/reference.py --check   write nothing; name what differs, and exit 1 if anything does
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # started by its name, a script has only its own directory there

from scripts.pages import commands, errors, events, http, mcp, settings, specs, states  # noqa: E402

DOCS = ROOT / "docs"


def main(argv: Sequence[str] | None = None) -> int:
    """Write, or check."""
    parser = argparse.ArgumentParser(description="Write the reference pages from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 and name what differs")
    check = parser.parse_args(argv).check
    stale = [path for path, text in pages().items() if path.read_text("utf-8") != text]
    for path in stale:
        print(f"{'differs' if check else 'written'}: {path.relative_to(DOCS.parent)}")
        if not check:
            path.write_text(pages()[path], "utf-8")
    if check and stale:
        print("run `make docs`", file=sys.stderr)
    return int(check and bool(stale))


@cache
def pages() -> dict[Path, str]:
    """Every page with generated parts, as it should be."""
    return {DOCS / name: _renewed(DOCS / name, parts) for name, parts in PARTS.items()}


def _renewed(path: Path, parts: dict[str, Callable[[], str]]) -> str:
    """A page with its generated parts written anew: what stands between their two marks. The rest is by hand."""
    text = path.read_text("utf-8")
    for name, write in parts.items():
        begin, end = f"<!-- begin {name}: written by scripts/reference.py -->\n", f"<!-- end {name} -->\n"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise SystemExit(f"{path} has no place for `{name}`: {begin!r} ... {end!r}")
        text = f"{before}{begin}\n{write()}\n{end}{after}"
    return text


PARTS: dict[str, dict[str, Callable[[], str]]] = {
    "concepts/states.md": {"task moves": states.task_moves},
    "reference/commands.md": {"commands": commands.commands},
    "reference/errors.md": {"errors": errors.errors_page},
    "reference/events.md": {"events": events.events},
    "reference/http.md": {"http": http.http_page},
    "reference/mcp.md": {"mcp": mcp.mcp_page},
    "reference/settings.md": {"settings": settings.settings_page},
    "reference/spec.md": {"specs": specs.spec_page},
    "reference/states.md": {"states": states.states_page},
}

if __name__ == "__main__":
    sys.exit(main())
