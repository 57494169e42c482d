"""file_exists: a file is there; if so declared, with something in it, or written by this session."""

from __future__ import annotations

from fleet.model.receipt import Score
from fleet.model.scorer import FileExists as Declared
from fleet.scorers.scorer import Evidence, Read, Wants, broken, failed, passed

KIND = "file_exists"


class FileExists:
    """By what was seen of the file when the session ended."""

    def wants(self, declared: Declared) -> Wants:
        """The file, not what is in it."""
        return Wants(path=declared.path, content=False)

    def score(self, declared: Declared, evidence: Evidence, read: Read) -> Score:  # noqa: ARG002 (the contract)
        """A regular file passes; a directory, a link that leads out and nothing at all do not."""
        path, seen = declared.path, evidence.files.get(declared.path)
        if seen is None:
            return broken(KIND, f"{path} was not looked for")
        if seen.found == "outside":
            return failed(KIND, f"{path} leads out of the workspace")
        if seen.found != "file":
            return failed(KIND, f"{path} is {'missing' if seen.found == 'absent' else 'no file'}")
        if declared.non_empty and not seen.size:
            return failed(KIND, f"{path} is empty")
        if declared.newer and not seen.fresh:
            return failed(KIND, f"{path} is older than this session")
        return passed(KIND, f"{path} is there ({seen.size} bytes)")
