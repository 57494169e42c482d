"""What is wrong with a spec beyond the shape of its fields: ids, needs, clashes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from fleet.config.fields import KeyPath
from fleet.config.problems import Problem
from fleet.config.specs.paths import scorers
from fleet.errors import UsageError
from fleet.model import scorer as sc
from fleet.model.alert_spec import Alerts, variables
from fleet.model.circles import circles
from fleet.model.ids import some_of
from fleet.model.nearest import did_you_mean
from fleet.model.permission import Hold, Permission
from fleet.model.reach import Reach
from fleet.model.spec import RunSpec, TaskSpec
from fleet.model.task import check_title
from fleet.policy.redaction import is_secret_name, looks_like_a_key

Placed = tuple[KeyPath, TaskSpec]
OF_SETTINGS = ("working_directory", "agent_binary", "env_allowlist")  # of this machine: the operator's to say
MOST_LOOKED_AT = 2000  # ids, for the one that was probably meant
LONGEST_CIRCLE = 12  # names of it that are shown


def run_problems(run: RunSpec) -> Iterator[Problem]:
    """What is wrong with a run, its tasks left out."""
    yield from _line(("name",), run.name)
    seen: dict[str, int] = {}
    for place, worker in enumerate(run.workers):
        first = seen.setdefault(worker.id, place)
        if first != place:
            yield Problem(("workers", place, "id"), f"`{worker.id}` is also the id of workers[{first}]")
        yield from _of_settings(("workers", place, "host"), worker.host)
    if run.alerts is not None:
        yield from alert_problems(run.alerts, ("alerts",))


def _of_settings(path: KeyPath, host: str | Reach) -> Iterator[Problem]:
    for name in OF_SETTINGS if isinstance(host, Reach) and host.kind == "local" else ():
        if getattr(host, name):
            text = "means nothing for a worker on this machine: name a host of kind local in fleet.toml, which says it"
            yield Problem((*path, name), text)


def alert_problems(alerts: Alerts, path: KeyPath) -> Iterator[Problem]:
    """What is wrong with alerts, beyond the shape of their fields."""
    for place, route in enumerate(alerts.routes):
        if route.adapter not in alerts.adapters:
            yield Problem((*path, "routes", place, "adapter"), f"no adapter is named `{route.adapter}`")
    for name, adapter in alerts.adapters.items():
        for field, value in variables(adapter).items():
            if looks_like_a_key(value):
                yield Problem((*path, "adapters", name, field), "give the NAME of a variable, not its value")


def host_problems(run: RunSpec, hosts: Mapping[str, Reach]) -> Iterator[Problem]:
    """Workers on hosts that are not there; `hosts` has those of the settings."""
    for place, worker in enumerate(run.workers):
        name = worker.host
        if isinstance(name, str) and name != "local" and name not in hosts:
            known = some_of(hosts)
            yield Problem(("workers", place, "host"), f"no host of fleet.toml is named `{name}`; there are: {known}")


def task_problems(tasks: Sequence[Placed], ids: Sequence[str], run: RunSpec | None) -> Iterator[Problem]:
    """What is wrong with each task, and with all of them together."""
    known = frozenset(ids)
    seen: dict[str, KeyPath] = {}
    for path, task in tasks:
        first = seen.setdefault(task.id, path)
        if first != path:
            yield Problem((*path, "id"), f"`{task.id}` is also the id of {Problem(first, '').key}")
        yield from _alone(path, task)
        yield from _needs(path, task, known)
        if run is not None and run.workers:
            yield from _capabilities(path, task, run)
    yield from _circles(tasks)


def _alone(path: KeyPath, task: TaskSpec) -> Iterator[Problem]:
    yield from _line((*path, "name"), task.name)
    told = (task.name or "", task.description, task.objective, task.instructions)
    if not task.command and not any(text.strip() for text in told):
        yield Problem((*path, "instructions"), "nothing says what is to be done; give instructions or a command")
    if task.command and task.coder not in (None, "command"):
        yield Problem((*path, "command"), f"coder `{task.coder}` is given too; a task has one of them")
    if task.command and task.model:
        yield Problem((*path, "model"), "is given too; a command has none")
    if task.coder == "command" and not task.command:
        yield Problem((*path, "command"), "is missing: coder `command` runs a command")
    for name in ("setup", "copy_files"):
        if getattr(task, name) and task.isolation != "worktree":
            yield Problem((*path, name), 'belongs to isolation = "worktree", which is not asked for')
    if task.workspace.branch and not task.workspace.repository:
        yield Problem((*path, "workspace", "branch"), "belongs to a repository, which is not given")
    for place, tag in enumerate(task.tags):
        if tag in task.tags[:place]:
            yield Problem((*path, "tags", place), f"`{tag}` is given twice")
    for place, name in enumerate(task.workspace.environment.allowlist):
        if is_secret_name(name):
            yield Problem(
                (*path, "workspace", "environment", "allowlist", place),
                f"{name} looks like a secret; name it in [coders.NAME] secrets of fleet.toml",
            )
    if task.scorer is not None:
        for scorer, where in scorers(task.scorer, (*path, "scorer")):
            yield from _scorer(where, scorer)


def _line(path: KeyPath, text: str | None) -> Iterator[Problem]:
    try:
        if text is not None:
            check_title(text)
    except UsageError:
        yield Problem(path, "expected one printable line that is not empty")


def _scorer(path: KeyPath, scorer: sc.AnyScorer) -> Iterator[Problem]:
    if isinstance(scorer, sc.JsonPath):
        yield from _expression(path, scorer)
    if not isinstance(scorer, sc.RegexMatch):
        return
    if (scorer.path is None) == (scorer.source is None):
        yield Problem(path, "expected one of path and source: where to search")
    try:
        re.compile(scorer.pattern)
    except (re.error, OverflowError, RecursionError) as exc:
        yield Problem((*path, "pattern"), f"is no regular expression: {exc}")


def _expression(path: KeyPath, scorer: sc.JsonPath) -> Iterator[Problem]:
    import jsonpath

    try:
        jsonpath.compile(scorer.expression)
    except (jsonpath.JSONPathError, RecursionError) as exc:
        said = " ".join(str(exc).split()) or "it is nested too deeply"
        yield Problem((*path, "expression"), f"is no JSONPath: {said[:200]}")


def _needs(path: KeyPath, task: TaskSpec, known: Collection[str]) -> Iterator[Problem]:
    for place, need in enumerate(task.needs):
        if need == task.id:
            yield Problem((*path, "needs", place), f"`{need}` cannot need itself")
        elif need not in known:
            meant = did_you_mean(need, sorted(known)[:MOST_LOOKED_AT])
            yield Problem((*path, "needs", place), f"no task has the id `{need}`{meant}")


def _capabilities(path: KeyPath, task: TaskSpec, run: RunSpec) -> Iterator[Problem]:
    wanted = set(task.worker.capabilities)
    if not any(wanted.issubset(worker.capabilities) for worker in run.workers):
        offered = sorted({name for worker in run.workers for name in worker.capabilities})
        yield Problem(
            (*path, "worker", "capabilities"),
            f"no worker has all of {', '.join(sorted(wanted))}; the workers have {', '.join(offered) or 'none'}",
        )


def _circles(tasks: Sequence[Placed]) -> Iterator[Problem]:
    """One problem for each circle of needs, at the task whose need closes it."""
    needs = {task.id: [need for need in task.needs if need != task.id] for _, task in tasks}
    places = {task.id: path for path, task in tasks}
    for circle in circles(needs):
        shown = circle if len(circle) <= LONGEST_CIRCLE else [*circle[:LONGEST_CIRCLE], "...", circle[0]]
        yield Problem((*places[circle[-2]], "needs"), f"a circle of needs: {' -> '.join(shown)}")


def plugin_problems(tasks: Sequence[Placed], registered: Callable[[], Collection[str]]) -> Iterator[Problem]:
    """Scorers that nobody has registered."""
    for path, task in tasks:
        for scorer, place in scorers(task.scorer, (*path, "scorer")) if task.scorer is not None else ():
            if isinstance(scorer, sc.Plugin) and scorer.name not in (known := registered()):
                meant = did_you_mean(scorer.name, known)
                yield Problem((*place, "name"), f"no scorer `{scorer.name}` is registered{meant}")


def coder_problems(
    tasks: Sequence[Placed],
    *,
    default: str,
    check: Callable[[str], str],
    permissions: Callable[[str, TaskSpec], Sequence[Permission]],
) -> Iterator[Problem]:
    """Coders that are not there, and tools for coders that cannot keep to them. `check` raises UsageError."""
    said: dict[str, str] = {}

    def wrong(name: str) -> str:
        if name not in said:
            said[name] = ""
            try:
                check(name)
            except UsageError as exc:
                said[name] = f"{exc}; {exc.hint}" if exc.hint else str(exc)
        return said[name]

    for path, task in tasks:
        if task.coder and wrong(task.coder):
            yield Problem((*path, "coder"), wrong(task.coder))
            continue
        if task.scorer is not None:
            for scorer, place in scorers(task.scorer, (*path, "scorer")):
                if isinstance(scorer, sc.VerifierPrompt) and scorer.coder and wrong(scorer.coder):
                    yield Problem((*place, "coder"), wrong(scorer.coder))
        coder = task.coder or ("command" if task.command else default)
        if (task.worker.tools or task.worker.tool_profile) and not wrong(coder):
            for each in permissions(coder, task):
                if each.hold is Hold.REFUSED:
                    yield Problem((*path, "worker", each.field), f"coder `{coder}` refuses it: {each.why}")
