"""What happens in `fleet demo`: the tasks, and what their agents do."""

from __future__ import annotations

from typing import Any

ASKS, WRITES = 2, 3  # the places of the task that asks, and of the one that takes longest
QUESTION = "Which currency does the shop use?"
ANSWER = "Euro."
QA = '"$FLEET_ARTIFACT_DIR/Q&A.md"'

# Titles, what they need, and the steps of their agents. A run step really happens, in the demo's project directory.
TASKS: tuple[tuple[str, tuple[int, ...], list[dict[str, Any]]], ...] = (
    (
        "Read the code",
        (),
        [
            {"say": "I look at what is there."},
            {"tool": "Read"},
            {"usage": [1800, 120, 0, 4200]},
            {"context": 24000},
            {"sleep": 0.5},
            {"write": ["NOTES.md", "total() forgets the tax.\n"]},
            {"close": "total() forgets the tax"},
        ],
    ),
    (
        "Fix the total",
        (0,),
        [
            {"say": "I add the tax to total()."},
            {"context": 112000},
            {"usage": [5200, 640, 2000, 16100]},
            {"sleep": 0.4},
            {"run": "test -e .tried || { touch .tried; kill -KILL $$; }"},
            {"write": ["shop.py", "def total(net, tax=0.19):\n    return round(net * (1 + tax), 2)\n"]},
            {"run": "grep -q tax shop.py"},
            {"close": "total() adds the tax; checked with grep"},
        ],
    ),
    (
        "Choose the currency",
        (),
        [
            {"context": 9000},
            {"usage": [900, 80, 0, 2100]},
            {"sleep": 0.3},
            {"run": f"grep -qs '^## A:' {QA} || fleet ask '{QUESTION}'"},
            {"run": f"! grep -qs '^## A:' {QA} || {{ tail -n 1 {QA} > CURRENCY; fleet close 'the answer is kept'; }}"},
        ],
    ),
    (
        "Write the manual",
        (0,),
        [
            {"say": "I write the manual, page by page."},
            {"context": 61000},
            {"sleep": 1},
            {"usage": [3100, 1900, 1500, 21800]},
            {"context": 168000},
            {"sleep": 1.5},
            {"write": ["MANUAL.md", "# The shop\n\nPrices include tax.\n"]},
            {"close": "the manual is written"},
        ],
    ),
    (
        "Release",
        (1, 2, 3),
        [
            {"run": "cat NOTES.md shop.py CURRENCY MANUAL.md > RELEASE"},
            {"usage": [700, 60, 400, 1500]},
            {"context": 12000},
            {"sleep": 0.3},
            {"close": "released"},
        ],
    ),
)
