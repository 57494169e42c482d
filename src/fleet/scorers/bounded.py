"""Work that may explode (a regular expression, a JSONPath), in a process of its own that is killed in time.

`re` cannot be interrupted, and holds up every thread of its process: only another process can be given a deadline.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

SECONDS = 10.0
MOST_MEMORY = 1 << 30
BEGIN = """
import contextlib, resource, sys
sys.path[:] = {path!r}
with contextlib.suppress(ValueError, OSError):  # not every system knows this bound
    resource.setrlimit(resource.RLIMIT_AS, ({memory}, {memory}))
"""


class Exploded(Exception):
    """It was not done in time, or took too much memory."""


def answer_of(program: str, question: dict[str, Any], data: bytes, *, seconds: float = SECONDS) -> Any:
    """What a program of Python says, as JSON, about a question (one line of JSON on stdin) and the data after it."""
    begin = BEGIN.format(path=sys.path, memory=MOST_MEMORY)
    argv = [sys.executable, "-I", "-S", "-c", begin + program]
    given = json.dumps(question).encode() + b"\n" + data
    with subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={},
    ) as process:
        try:
            said, _ = process.communicate(given, timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise Exploded(f"it was not done within {seconds:g} s") from None
    if process.returncode:
        raise Exploded("it took too much memory, or broke the program that looked")
    return json.loads(said)
