"""Read a spec: the file, the shape, the rules, the paths, the coders. Everything that is wrong is told at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import msgspec
from msgspec.structs import replace

from fleet import plugins
from fleet.config.fields import KeyPath
from fleet.config.problems import Problem
from fleet.config.specs.document import Document, read
from fleet.config.specs.draft import Draft, draft
from fleet.config.specs.paths import path_problems, placed
from fleet.config.specs.problems import shape_problems
from fleet.errors import SpecError
from fleet.model.alert_spec import Alerts
from fleet.model.permission import Permission
from fleet.model.reach import Reach
from fleet.model.spec import RunSpec, TaskSpec
from fleet.model.worker import Worker
from fleet.policy import spec_rules
from fleet.policy.redaction import redact, redacted

NO_HOSTS: Mapping[str, Reach] = MappingProxyType({})
HINT = "`fleet config schema run` prints what a spec may say"


class Coders(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be known of coders: who works where nobody is named, who is there, what each makes of tools."""

    default: str
    check: Callable[[str], str]
    permissions: Callable[[str, TaskSpec], Sequence[Permission]]


class ReadSpec(msgspec.Struct, frozen=True):
    """A spec that can be run, its directories made absolute; and what a person should be warned of."""

    spec: RunSpec
    warnings: list[str]


def read_spec(word: str, *, base: str, coders: Coders, hosts: Mapping[str, Reach] = NO_HOSTS) -> ReadSpec:
    """The spec in a file. Raises SpecError with every problem that it has. `hosts`: those of the settings."""
    return take_spec(read(word), base=base, coders=coders, hosts=hosts)


def take_spec(document: Document, *, base: str, coders: Coders, hosts: Mapping[str, Reach] = NO_HOSTS) -> ReadSpec:
    """The spec in a document. Raises SpecError with every problem that it has."""
    found = draft(document.value)
    if found.run is not None:
        found = replace(found, run=_able(found.run, hosts))
    problems = [*found.problems, *_problems(found, base, coders, hosts)]
    if problems:
        raise SpecError(document.source, [_line(problem) for problem in sorted(problems, key=_place)], hint=HINT)
    assert found.run is not None
    tasks = tuple(replace(task, cwd=_directory(task, found.run, base)) for _, task in found.tasks)
    name = found.run.name or _printable(document.stem)
    return ReadSpec(replace(found.run, name=name, tasks=tasks), _warnings(found.tasks))


def _able(run: RunSpec, hosts: Mapping[str, Reach]) -> RunSpec:
    """The run, whose workers can do what their hosts can, too."""

    def able(worker: Worker) -> Worker:
        host = hosts.get(worker.host) if isinstance(worker.host, str) else worker.host
        more = host.capabilities if host is not None else ()
        return replace(worker, capabilities=tuple(dict.fromkeys((*worker.capabilities, *more))))

    return replace(run, workers=tuple(map(able, run.workers)))


def with_defaults(spec: RunSpec, coder: str | None, model: str | None, default: str) -> RunSpec:
    """What was said beside a spec goes into those tasks that say nothing: another process may run them."""
    return replace(spec, tasks=tuple(_with_defaults(task, coder, model, default) for task in spec.tasks))


def _with_defaults(task: TaskSpec, coder: str | None, model: str | None, default: str) -> TaskSpec:
    if task.command:
        return task
    mine = task.coder or coder
    fits = model if task.model is None and (mine or default) == default else task.model
    return replace(task, coder=mine, model=fits)


def _directory(task: TaskSpec, run: RunSpec, base: str) -> str | None:
    """Where a task works: on this machine, unless its workers are elsewhere; then as it is written, if at all."""
    if run.away or (run.elsewhere and task.root is None):
        return task.root
    return placed(task, base)


def read_alerts(word: str) -> Alerts:
    """The alerts in a file of their own. Raises SpecError with every problem that they have."""
    document = read(word)
    problems = shape_problems(document.value, Alerts, ())
    if not problems:
        alerts: Alerts = msgspec.convert(document.value, Alerts)
        problems = list(spec_rules.alert_problems(alerts, ()))
        if not problems:
            return alerts
    raise SpecError(document.source, [_line(problem) for problem in sorted(problems, key=_place)], hint=HINT)


def _problems(found: Draft, base: str, coders: Coders, hosts: Mapping[str, Reach]) -> list[Problem]:
    problems: list[Problem] = []
    if found.run is not None:
        problems += spec_rules.run_problems(found.run)
        problems += spec_rules.host_problems(found.run, hosts)
    problems += spec_rules.task_problems(found.tasks, found.ids, found.run)
    problems += spec_rules.plugin_problems(found.tasks, lambda: plugins.names("scorers"))
    for path, task in found.tasks:
        problems += path_problems(task, path, base, here=found.run is None or not found.run.away)
    problems += spec_rules.coder_problems(
        found.tasks, default=coders.default, check=coders.check, permissions=coders.permissions
    )
    return [problem for problem in problems if found.stands(problem)]


def _place(problem: Problem) -> tuple[tuple[int, int | str], ...]:
    """The order of the file, as far as paths tell it."""
    return tuple((0, part) if isinstance(part, int) else (1, part) for part in problem.path)


def _line(problem: Problem) -> str:
    key, text = redact(problem.key), redact(problem.text)
    return f"{key}: {text}" if key else text


def _printable(stem: str) -> str:
    """A file's name, as the name of a run."""
    words = "".join(char if char.isprintable() else " " for char in stem)
    return " ".join(words.split())[:256] or "run"


def _warnings(tasks: Sequence[tuple[KeyPath, TaskSpec]]) -> list[str]:
    """Secrets that were pasted into a spec: they are not kept, so whoever needs them will not find them."""
    warned: list[str] = []
    for path, task in tasks:
        places: list[str] = []
        redacted(task, places.append)
        prefix = Problem(path, "").key
        warned += [
            f"{prefix}.{place}".lstrip(".") + ": looks like a secret; it is not kept and the agent will not see it."
            " Put it in a variable that [coders.NAME] secrets names"
            for place in places
        ]
    return warned
