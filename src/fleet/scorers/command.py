"""command: a command, run where the files are, ends with code 0. It is judged by the session that ran it."""

from __future__ import annotations

from fleet.model.receipt import Score
from fleet.model.scorer import Command as Declared
from fleet.scorers.scorer import Evidence, Read, Wants, broken, failed, passed

KIND = "command"
NOT_RUN = {126: "it cannot be executed", 127: "it was not found"}
TAIL = 4000


class Command:
    """By the exit code; what it printed is evidence."""

    def wants(self, declared: Declared) -> Wants:  # noqa: ARG002 (the contract gives it)
        """What it printed."""
        return Wants(text="stdout")

    def score(self, declared: Declared, evidence: Evidence, read: Read) -> Score:
        """Code 0 passes. A command that could not run, was killed or took too long has judged nothing."""
        said = _tail(evidence, read)
        code = evidence.exit_code
        if evidence.timed_out:
            return broken(KIND, f"the command was not done within {declared.timeout_seconds} s", said)
        if code is None or code > 128:
            how = "left no exit code" if code is None else f"was ended by signal {code - 128}"
            return broken(KIND, f"the command {how}", said)
        if code in NOT_RUN:
            return broken(KIND, f"the command ended with code {code}: {NOT_RUN[code]}", said)
        return passed(KIND, "exit code 0", said) if code == 0 else failed(KIND, f"exit code {code}", said)


def _tail(evidence: Evidence, read: Read) -> str:
    parts = []
    for name in ("stdout", "stderr"):
        seen = evidence.texts.get(name)
        if seen is not None:
            parts.append(read(seen.sha256)[-TAIL:].decode("utf-8", "replace"))
    return "\n".join(parts)
