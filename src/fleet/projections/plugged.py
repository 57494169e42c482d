"""What is plugged in: whether a stranger's coder keeps to its contract, and what of them failed lately."""

from __future__ import annotations

from collections.abc import Iterable

from fleet import plugins
from fleet.coders import BUILT_IN
from fleet.coders.coder import Exit
from fleet.coders.contained import ContainedCoder
from fleet.config.settings import Settings
from fleet.errors import FleetError
from fleet.model.outcome import OutcomeKind
from fleet.model.states import TaskState
from fleet.store.reads import Reads

LOOKED_AT = 20  # of the tasks that failed last
FAILED = frozenset({TaskState.FAILED})


def tried(settings: Settings, wanted: Iterable[str]) -> dict[str, str]:
    """The coders of others among these, each tried with a line that says nothing: what is wrong with it, or nothing."""
    found = {}
    for name in dict.fromkeys((*plugins.names("coders"), *wanted)):
        options = settings.coders.get(name)
        if name in BUILT_IN or (options is not None and options.argv):
            continue
        try:
            made = plugins.load_file(options.python) if options and options.python else plugins.load("coders", name)
            coder = ContainedCoder(name, made)
            state, _ = coder.parse(coder.begin(), b"")
            coder.unpacked(coder.packed(state))
            coder.outcome(state, Exit(code=1), "")
            coder.context_limit(None)
            found[name] = ""
        except FleetError as exc:
            found[name] = str(exc)
    return found


def failed_lately(reads: Reads) -> dict[str, str]:
    """Of the tasks that failed last, those that did for the sake of a plugin: why."""
    found = {}
    for task in reads.tasks(FAILED, limit=LOOKED_AT, newest_first=True):
        known = reads.sessions(task=task.uid)
        if known and known[-1].outcome == OutcomeKind.PLUGIN.value:
            found[task.uid] = task.reason
    return found
