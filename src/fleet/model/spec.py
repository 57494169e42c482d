"""Specs: what a person writes in a file. Every field here is honoured, or refused with its path.

The JSON Schema, the errors and the reference are made from these classes; `policy/spec_rules.py` has the rules that
one field alone cannot tell.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from fleet.model.alert_spec import Alerts
from fleet.model.run import NewRun, RunWorker
from fleet.model.scorer import AnyScorer
from fleet.model.task import DEFAULT_PRIORITY, NewTask
from fleet.model.terms import Budget, RetryPolicy, Terms
from fleet.model.worker import Worker

A_TOKEN = {"x-expected": "letters, digits, `.`, `-` or `_`, at most 128 of them, the first a letter or digit"}
END = r"$(?!\n)"  # `$` alone would let a line break follow
Token = Annotated[str, Meta(pattern=rf"^[A-Za-z0-9][A-Za-z0-9._-]{{0,127}}{END}", extra_json_schema=A_TOKEN)]
Word = Annotated[str, Meta(min_length=1, max_length=256)]
Path = Annotated[str, Meta(min_length=1, max_length=4096)]
Variable = Annotated[
    str,
    Meta(pattern=rf"^[A-Za-z_][A-Za-z0-9_]*{END}", extra_json_schema={"x-expected": "the name of a variable"}),
]
Seconds = Annotated[int, Meta(ge=1, le=2_592_000)]
# What git may be given: no option, no program to run, and no password, which would be written down.
REPOSITORY = (
    r"^(?:(?:https?|git)://(?![^/]*@)[A-Za-z0-9\[]\S*|ssh://(?![^/]*:[^/]*@)(?:[A-Za-z0-9_.+]+@)?[A-Za-z0-9\[]\S*|file:///\S+|/\S+"
    rf"|(?:[A-Za-z0-9_.+]+@)?[A-Za-z0-9][A-Za-z0-9.-]*:(?!//)[^:\s-]\S*){END}"
)
BRANCH = rf"^[A-Za-z0-9_](?:[A-Za-z0-9_+#@=-]|[./](?![./]))*(?<![./])(?<!\.lock){END}"
A_REPOSITORY = {"x-expected": "a URL that git clones, without a password, or an absolute path"}
Repository = Annotated[str, Meta(pattern=REPOSITORY, max_length=2048, extra_json_schema=A_REPOSITORY)]
Branch = Annotated[str, Meta(pattern=BRANCH, max_length=200, extra_json_schema={"x-expected": "the name of a branch"})]
DEFAULT_WORKERS = 4


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """An object of a spec."""


class WorkerTerms(Part, frozen=True, kw_only=True):
    """Who is to do it, and with what."""

    role: Annotated[Word | None, Meta(description="Whose part the agent plays; it is told so.")] = None
    tool_profile: Annotated[Word | None, Meta(description="A named set of tools, such as `read-only`.")] = None
    tools: Annotated[tuple[Word, ...], Meta(description="The tools that the agent may use; none named: all.")] = ()
    capabilities: Annotated[tuple[Token, ...], Meta(description="What the worker must be able to do.")] = ()


class Environment(Part, frozen=True, kw_only=True):
    """Variables, by name: values are never written down."""

    required: Annotated[tuple[Variable, ...], Meta(description="Must be set, or the task is skipped.")] = ()
    allowlist: Annotated[
        tuple[Variable, ...], Meta(description="Are passed on to the agent. Names that look secret are refused.")
    ] = ()


class Workspace(Part, frozen=True, kw_only=True):
    """Where it is done, and what is needed there."""

    root: Annotated[
        Path | None, Meta(description="The directory to work in; relative to where `fleet run` is called.")
    ] = None
    repository: Annotated[
        Repository | None,
        Meta(
            description="What git clones into `root` where it is absent, and fetches where it is there, with the keys"
            " of the worker's machine. Without a `root`, the directory has the repository's own name."
        ),
    ] = None
    branch: Annotated[Branch | None, Meta(description="The branch of the repository; else its default branch.")] = None
    required_files: Annotated[tuple[Path, ...], Meta(description="Must be there, or the task is skipped.")] = ()
    writable_paths: Annotated[
        tuple[Path, ...] | UnsetType,
        Meta(description="Where it may write; a change elsewhere fails it. Left out: anywhere. []: nowhere."),
    ] = UNSET
    environment: Annotated[Environment, Meta(description="The variables that the agent sees.")] = Environment()


class BudgetSpec(Part, frozen=True, kw_only=True):
    """What the task may consume, over all its attempts."""

    max_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="Output plus uncached input, in tokens.")
    ] = None
    max_tool_calls: Annotated[Annotated[int, Meta(ge=1)] | None, Meta(description="Calls of tools.")] = None
    max_seconds: Annotated[Seconds | None, Meta(description="Of running; waiting for a person is not counted.")] = None
    max_usd: Annotated[
        Annotated[float, Meta(gt=0, le=1_000_000)] | None, Meta(description="Money, as the coder reports it.")
    ] = None
    idle_seconds: Annotated[Seconds | None, Meta(description="Of one silence while no tool runs.")] = None
    on_exceeded: Annotated[
        Literal["fail", "pause"], Meta(description="Whether it then fails, or waits for a person.")
    ] = "fail"

    def budget(self) -> Budget:
        """As the task keeps it."""
        return Budget(
            max_tokens=self.max_tokens,
            max_tool_calls=self.max_tool_calls,
            max_seconds=self.max_seconds,
            max_microusd=None if self.max_usd is None else max(1, round(self.max_usd * 1_000_000)),
            idle_seconds=self.idle_seconds,
            pause=self.on_exceeded == "pause",
        )


class RetrySpec(Part, frozen=True, kw_only=True):
    """How often and how soon it is tried again."""

    max_attempts: Annotated[int, Meta(ge=1, le=100, description="How often it is tried in all.")] = 3
    initial_backoff_seconds: Annotated[int, Meta(ge=0, le=86_400, description="Before the second attempt.")] = 5
    max_backoff_seconds: Annotated[int, Meta(ge=0, le=86_400, description="The longest wait.")] = 300
    backoff_multiplier: Annotated[
        int, Meta(ge=1, le=100, description="By how much each wait is longer than the one before.")
    ] = 2

    def policy(self) -> RetryPolicy:
        """As the task keeps it."""
        return RetryPolicy(**msgspec.structs.asdict(self))


class TaskSpec(Part, frozen=True, kw_only=True):
    """A task in a file."""

    id: Annotated[Token, Meta(description="Names the task within its run; other tasks need it by this.")]
    name: Annotated[
        Annotated[str, Meta(min_length=1, max_length=256)] | None,
        Meta(description="One line that says what is to be done; else the id."),
    ] = None
    description: Annotated[str, Meta(description="The details.")] = ""
    objective: Annotated[str, Meta(description="What shall be true when it is done.")] = ""
    instructions: Annotated[str, Meta(description="What the agent is told to do.")] = ""
    needs: Annotated[tuple[Token, ...], Meta(description="Ids of tasks that must be completed first.")] = ()
    coder: Annotated[Token | None, Meta(description="Who does it; else the configured coder.")] = None
    model: Annotated[Word | None, Meta(description="With which model; else the coder's configured or own default.")] = (
        None
    )
    command: Annotated[
        Annotated[str, Meta(min_length=1)] | Annotated[tuple[str, ...], Meta(min_length=1)] | None,
        Meta(description="A command in the place of an agent: a line for sh, or a list of words. It needs no coder."),
    ] = None
    cwd: Annotated[Path | None, Meta(description="The same as workspace.root; where both are given they agree.")] = None
    priority: Annotated[int, Meta(ge=0, le=4, description="0 is the most urgent.")] = DEFAULT_PRIORITY
    worker: Annotated[WorkerTerms, Meta(description="Who is to do it, and with what.")] = WorkerTerms()
    workspace: Annotated[Workspace, Meta(description="Where it is done, and what is needed there.")] = Workspace()
    input_files: Annotated[
        tuple[Path, ...], Meta(description="Files of the workspace that the agent is given to read.")
    ] = ()
    context: Annotated[tuple[str, ...], Meta(description="Further things that the agent should know.")] = ()
    budget: Annotated[BudgetSpec, Meta(description="What the task may consume, over all its attempts.")] = BudgetSpec()
    timeout_seconds: Annotated[
        Seconds | None, Meta(description="How long one session may run; then a timeout receipt.")
    ] = None
    max_output_mb: Annotated[
        Annotated[int, Meta(ge=1, le=1_000_000)] | None,
        Meta(
            description="Megabytes that one session may print, to stdout and to stderr each; then it is ended, and the"
            " budget's `on_exceeded` says what follows. Else as the settings say."
        ),
    ] = None
    retry_policy: Annotated[RetrySpec | None, Meta(description="How often it is tried; else as the settings say.")] = (
        None
    )
    retry_safe: Annotated[bool, Meta(description="Whether it may be run again after it has done something.")] = True
    expected_artifacts: Annotated[
        tuple[Path, ...],
        Meta(
            description="What must be there at the end: `log` and `receipt` Fleet makes itself, another word is a file"
            " of that name in the artifact directory, a path is a file of the workspace."
        ),
    ] = ()
    scorer: Annotated[AnyScorer | None, Meta(description="What must be so for the result to count.")] = None
    isolation: Annotated[
        Literal["none", "worktree"] | None, Meta(description="In place, or in a git worktree of its own.")
    ] = None
    setup: Annotated[
        Annotated[str, Meta(min_length=1)] | None, Meta(description="Run in a fresh worktree before the worker.")
    ] = None
    copy_files: Annotated[tuple[Path, ...], Meta(description="Untracked files that a fresh worktree gets.")] = ()
    tags: Annotated[tuple[Word, ...], Meta(description="Words to find it by.")] = ()
    labels: Annotated[dict[str, str], Meta(description="Named words to find it by; those of the run are added.")] = {}
    metadata: Annotated[dict[str, Any], Meta(description="Anything; it is kept and can be filtered by.")] = {}

    @property
    def title(self) -> str:
        """One line that says what is to be done."""
        return self.name or self.id

    @property
    def root(self) -> str | None:
        """The directory, as written; a repository that names none is cloned into one of its own name."""
        if self.cwd is not None:
            return self.cwd
        return self.workspace.root or repository_name(self.workspace.repository)

    def new(self) -> NewTask:
        """The task that this asks for."""
        return NewTask(
            title=self.title,
            description=self.description,
            task_id=self.id,
            priority=self.priority,
            coder=self.coder or ("command" if self.command else None),
            model=self.model,
            cwd=self.root,
            capabilities=self.worker.capabilities,
            labels=self.labels,
            needs=self.needs,
            terms=self.terms(),
        )

    def terms(self) -> Terms:
        """What this asks for beyond the work itself."""
        space, writable = self.workspace, self.workspace.writable_paths
        return Terms(
            objective=self.objective,
            instructions=self.instructions,
            role=self.worker.role,
            tool_profile=self.worker.tool_profile,
            tools=self.worker.tools,
            context=self.context,
            input_files=self.input_files,
            required_files=space.required_files,
            writable_paths=None if isinstance(writable, UnsetType) else writable,
            required_environment=space.environment.required,
            environment_allowlist=space.environment.allowlist,
            repository=space.repository,
            branch=space.branch,
            command=command_line(self.command),
            budget=self.budget.budget(),
            timeout_seconds=self.timeout_seconds,
            max_output_mb=self.max_output_mb,
            retry=self.retry_policy.policy() if self.retry_policy else None,
            retry_safe=self.retry_safe,
            expected_artifacts=self.expected_artifacts,
            scorer=msgspec.json.decode(msgspec.json.encode(self.scorer)) if self.scorer else None,
            isolation=self.isolation,
            setup=self.setup,
            copy_files=self.copy_files,
            tags=self.tags,
            metadata=self.metadata,
        )


class RunSpec(Part, frozen=True, kw_only=True):
    """A run in a file: tasks that are submitted together. A single task, or a list of tasks, is a run too."""

    name: Annotated[
        Annotated[str, Meta(min_length=1, max_length=256)] | None,
        Meta(description="What the run is called; else the name of the file."),
    ] = None
    labels: Annotated[dict[str, str], Meta(description="Named words to find the run and its tasks by.")] = {}
    workers: Annotated[
        tuple[Worker, ...],
        Meta(description="Who may take the tasks; none named: local slots that can do everything."),
    ] = ()
    alerts: Annotated[Alerts | None, Meta(description="Who is told what of the run.")] = None
    tasks: Annotated[tuple[TaskSpec, ...], Meta(min_length=1, max_length=100_000, description="What is to be done.")]

    @property
    def elsewhere(self) -> bool:
        """Whether some of its workers are on other machines."""
        return not all(_worker(each).is_here for each in self.workers)

    @property
    def away(self) -> bool:
        """Whether all of its workers are: then directories are theirs, not of this machine."""
        return bool(self.workers) and not any(_worker(each).is_here for each in self.workers)

    def new(self, *, max_workers: int | None = None) -> NewRun:
        """The run that this asks for."""
        workers = tuple(map(_worker, self.workers))
        return NewRun(
            name=self.name or "run",
            labels=self.labels,
            workers=workers,
            max_workers=max_workers,
            alerts=msgspec.to_builtins(self.alerts) if self.alerts else None,
        )


def _worker(worker: Worker) -> RunWorker:
    """A worker, as its run keeps it. What its host can do, it can do too."""
    host = worker.host
    named = host if isinstance(host, str) and host != "local" else ""
    reach = host if not isinstance(host, str) and host.kind != "local" else None
    more = host.capabilities if not isinstance(host, str) else ()
    return RunWorker(
        name=worker.id,
        capabilities=tuple(dict.fromkeys((*worker.capabilities, *more))),
        max_tasks=worker.max_concurrent_tasks,
        host=named,
        reach=reach,
    )


def repository_name(repository: str | None) -> str | None:
    """The directory that git itself would clone it into."""
    if repository is None:
        return None
    name = repository.rstrip("/").rpartition("/")[2].rpartition(":")[2].removesuffix(".git")
    return name if name.strip(".") else "repository"


def command_line(command: str | tuple[str, ...] | None) -> str | None:
    """A command as one line for sh."""
    if command is None or isinstance(command, str):
        return command
    from shlex import join

    return join(command)
