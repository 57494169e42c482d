"""The page of errors: exit codes, the tree, and what each means."""

from __future__ import annotations

from collections.abc import Iterator

from fleet import errors
from scripts.pages.words import doc, fenced, joined, table

EXIT_CODES = {
    0: "fine",
    1: "something failed; or the thing is not in a state that allows this",
    2: "wrong usage, a value that cannot be taken, or settings or a spec that cannot be used",
    3: "not finished: results wait for a verifier or a person, or a supervisor did not start",
    4: "not found: a task, a file, a home",
    130: "interrupted with Ctrl-C",
    143: "ended by SIGTERM",
}


def errors_page() -> str:
    """The tree of errors, and what each means."""
    return joined(
        [
            "## Exit codes",
            table(("code", "meaning"), [(str(code), meaning) for code, meaning in EXIT_CODES.items()]),
            "## The tree",
            fenced("text", "\n".join(_tree(errors.FleetError))),
            "## Each error",
            "`retry` says that the same command may succeed a moment later.",
            table(
                ("error", "exit", "retry", "what happened", "hint"),
                [
                    (f"`{kind.__name__}`", str(kind.exit_code), "yes" if kind.retryable else "", doc(kind), kind.hint)
                    for kind in error_classes()
                ],
            ),
        ]
    )


def error_classes() -> list[type[errors.FleetError]]:
    """Every error, in the order of the code."""
    found = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, errors.FleetError)]
    unknown = {each.exit_code for each in found} - EXIT_CODES.keys()
    if unknown:
        raise SystemExit(f"scripts/pages/errors.py does not say what these exit codes mean: {sorted(unknown)}")
    return found


def _tree(kind: type[errors.FleetError], depth: int = 0) -> Iterator[str]:
    yield "  " * depth + kind.__name__
    for below in error_classes():
        if kind in below.__bases__:
            yield from _tree(below, depth + 1)
