"""regex_match: a regular expression is found in a file, in stdout or in the final message; or is not."""

from __future__ import annotations

from fleet.model.receipt import Score
from fleet.model.scorer import RegexMatch as Declared
from fleet.scorers.bounded import SECONDS, Exploded, answer_of
from fleet.scorers.scorer import Evidence, Read, Wants, broken, content, failed, passed, shown

KIND = "regex_match"
PROGRAM = """
import json, re, sys
asked = json.loads(sys.stdin.buffer.readline())
text = sys.stdin.buffer.read().decode("utf-8", "replace")
try:
    found = re.compile(asked["pattern"], re.MULTILINE).search(text)
except (re.error, OverflowError, RecursionError) as exc:
    print(json.dumps({"bad": str(exc)}))
else:
    line = text.count("\\n", 0, found.start()) + 1 if found else 0
    print(json.dumps({"line": line, "found": found[0][:400] if found else None}))
"""


class RegexMatch:
    """By Python's `re`, with ^ and $ at every line, in a process that is killed when it takes too long."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds

    def wants(self, declared: Declared) -> Wants:
        """The file, or what was said; with neither named, stdout."""
        return Wants(path=declared.path) if declared.path else Wants(text=declared.source or "stdout")

    def score(self, declared: Declared, evidence: Evidence, read: Read) -> Score:
        """Found is a pass, unless it must be absent. What is not UTF-8 is searched all the same."""
        where = declared.path or (declared.source or "stdout").replace("_", " ")
        if declared.path:
            data = content(KIND, declared.path, evidence, read)
            if isinstance(data, Score):
                return data
        else:
            seen = evidence.texts.get(declared.source or "stdout")
            data = read(seen.sha256) if seen else b""
            where += "" if seen is None or seen.whole else f" (the last {seen.size} bytes)"
        try:
            answer = answer_of(PROGRAM, {"pattern": declared.pattern}, data, seconds=self._seconds)
        except Exploded as exc:
            return broken(KIND, f"the pattern `{shown(declared.pattern, 80)}` cannot be searched for: {exc}")
        if "bad" in answer:
            return broken(KIND, f"`{shown(declared.pattern, 80)}` is no regular expression: {answer['bad']}")
        if answer["found"] is None:
            said = f"`{shown(declared.pattern, 80)}` is not in {where}"
            return passed(KIND, said) if declared.absent else failed(KIND, said)
        said = f"{where}, line {answer['line']}: {answer['found']}"
        return failed(KIND, f"it must not be there: {said}") if declared.absent else passed(KIND, said)
