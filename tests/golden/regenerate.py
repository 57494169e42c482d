"""Write what is expected of every transcript anew: `python -m tests.golden.regenerate`. Then read the difference."""

from __future__ import annotations

import msgspec

from tests.golden.cases import CASES, Case, play


def rendered(case: Case) -> bytes:
    """The events and the outcome of a transcript, one event on a line."""
    events, outcome = play(case)
    encode = msgspec.json.Encoder(order="deterministic").encode
    said = b",\n".join(b"    " + encode(event) for event in events)
    return b'{\n  "outcome": ' + encode(outcome) + b',\n  "events": [\n' + said + b"\n  ]\n}\n"


def main() -> None:
    """Write them all."""
    for case in CASES:
        case.expected.write_bytes(rendered(case))


if __name__ == "__main__":
    main()
