"""exit_code: the worker ended with the code that was expected."""

from __future__ import annotations

from fleet.model.receipt import Score
from fleet.model.scorer import ExitCode as Declared
from fleet.model.states import Source
from fleet.scorers.scorer import Evidence, Read, Wants, failed, passed

KIND = "exit_code"


class ExitCode:
    """By the record of the worker's end."""

    def wants(self, declared: Declared) -> Wants:  # noqa: ARG002 (the contract gives it)
        """Nothing else."""
        return Wants()

    def score(self, declared: Declared, evidence: Evidence, read: Read) -> Score:  # noqa: ARG002
        """The same code passes. No code at all is nobody's failure but the transport's."""
        code = evidence.exit_code
        if code is None:
            return Score(
                kind=KIND, value=0.0, passed=False, source=Source.TRANSPORT, evidence=("its exit code is not known",)
            )
        if code == declared.expected:
            return passed(KIND, f"exit code {code}")
        return failed(KIND, f"exit code {code}, not {declared.expected}")
