"""json_path: a JSONPath (RFC 9535) finds something in a JSON file; all that it finds satisfies the comparison."""

from __future__ import annotations

import json
import operator
from typing import Any

from fleet.model.receipt import Score
from fleet.model.scorer import JsonPath as Declared
from fleet.scorers.bounded import SECONDS, Exploded, answer_of
from fleet.scorers.scorer import Evidence, Read, Wants, broken, content, failed, passed, shown

KIND = "json_path"
MOST_VALUES = 1000
PROGRAM = """
import json, sys
import jsonpath
asked = json.loads(sys.stdin.buffer.readline())
try:
    path = jsonpath.compile(asked["expression"])
except (jsonpath.JSONPathError, RecursionError) as exc:
    print(json.dumps({"bad": str(exc).splitlines()[0]}))
    sys.exit()
try:
    document = json.loads(sys.stdin.buffer.read().decode("utf-8-sig"))
except (ValueError, RecursionError) as exc:
    print(json.dumps({"not_json": str(exc) or "it is nested too deeply"}))
    sys.exit()
try:
    values = []
    for found in path.finditer(document):
        values.append(found.obj)
        if len(values) >= asked["most"]:
            break
    print(json.dumps({"values": values}))
except (jsonpath.JSONPathError, RecursionError) as exc:
    print(json.dumps({"bad": (str(exc) or "the document is nested too deeply").splitlines()[0]}))
"""
ORDERED = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class JsonPath:
    """By python-jsonpath, in a process that is killed when it takes too long."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds

    def wants(self, declared: Declared) -> Wants:
        """The file."""
        return Wants(path=declared.path)

    def score(self, declared: Declared, evidence: Evidence, read: Read) -> Score:
        """Without a comparison, anything but null and false passes; with one, at least one value, and each of them."""
        data = content(KIND, declared.path, evidence, read)
        if isinstance(data, Score):
            return data
        expression = declared.expression if not declared.expression.startswith(".") else f"${declared.expression}"
        asked = {"expression": expression, "most": MOST_VALUES}
        try:
            answer = answer_of(PROGRAM, asked, data, seconds=self._seconds)
        except Exploded as exc:
            return broken(KIND, f"{shown(expression, 80)} cannot be looked for: {exc}")
        if "bad" in answer:
            return broken(KIND, f"{shown(expression, 80)} is no JSONPath: {answer['bad']}")
        if "not_json" in answer:
            return failed(KIND, f"{declared.path} is not JSON: {answer['not_json']}")
        return _judge(declared, expression, answer["values"])


def _judge(declared: Declared, expression: str, values: list[Any]) -> Score:
    what = f"{shown(expression, 80)} in {declared.path}"
    found = shown(", ".join(json.dumps(value, ensure_ascii=False) for value in values[:5]), 160)
    if not values:
        return failed(KIND, f"{what} finds nothing")
    if declared.operator == "exists":
        there = any(value is not None and value is not False for value in values)
        return passed(KIND, f"{what}: {found}") if there else failed(KIND, f"{what} finds only {found}")
    wanted = f"{declared.operator} {json.dumps(declared.value, ensure_ascii=False)}"
    if all(holds(value, declared.operator, declared.value) for value in values):
        return passed(KIND, f"{what}: {found} ({wanted})")
    return failed(KIND, f"{what}: {found}, and not {wanted}")


def holds(value: Any, sign: str, wanted: Any) -> bool:
    """A comparison as JSON understands it: true is not 1, and only numbers or texts have an order."""
    if sign in ("==", "!="):
        return _same(value, wanted) is (sign == "==")
    both = (value, wanted)
    numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in both)
    if not numbers and not all(isinstance(each, str) for each in both):
        return False
    return bool(ORDERED[sign](value, wanted))


def _same(value: Any, wanted: Any) -> bool:
    return isinstance(value, bool) is isinstance(wanted, bool) and bool(value == wanted)
