"""Show one task: where it stands, what it waits for, and the coder and model that it will get.

A value that comes from fleet.toml is tagged (default). An id may be shortened to any unique beginning or end.

Examples:
  fleet show fleet-abc
  fleet show abc --json
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.model.terms import Terms
    from fleet.projections.queue import TaskDetail


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet show`."""
    parser.add_argument("id", metavar="ID", help="a task")


def run(args: argparse.Namespace, context: Context) -> int:
    """Everything that is known of a task."""
    from fleet.cli import beads_queue

    if beads_queue.keeps_the_queue(context):
        return beads_queue.show(args, context)
    if context.json:
        context.print_json(context.front.issue(args.id))
        return 0
    context.print("\n".join(_lines(context.front.task(args.id))))
    return 0


def _lines(task: TaskDetail) -> list[str]:
    from fleet.cli.words import ago, when

    needs = ", ".join(f"{need.id} ({need.state})" for need in task.needs)
    rows = [
        ("id", task.id),
        ("title", task.title),
        ("status", task.state.value + _why(task)),
        (task.question_kind or "", task.question or ""),
        ("", f'answer with: fleet answer {task.id} "..."' if task.question_kind == "question" else ""),
        ("cwd", task.cwd or "-"),
        ("coder", inherited(task.coder, task.coder_inherited) + _edit(task, "coder")),
        ("model", _model(task) + _edit(task, "model")),
        ("priority", f"{task.priority}"),
        ("needs", needs),
        ("needed by", ", ".join(task.needed_by)),
        ("labels", ", ".join(f"{k}={v}" if v else k for k, v in task.labels.items())),
        ("run", task.run or ""),
        ("not before", when(task.not_before) if task.not_before else ""),
        ("isolation", task.terms.isolation or ""),
        ("terms", ", ".join(terms_in_words(task.terms))),
        ("attempts", _attempts(task)),
        ("used", _used(task)),
        (
            "receipt",
            (task.receipt or "") + ("" if task.verified is not False else "  (unverified: nothing checked it)"),
        ),
        ("created", f"{when(task.created_at)} by {task.created_by} ({ago(task.created_at)})"),
    ]
    lines = [f"{name + ':' if name else '':<11} {value}" for name, value in rows if value]
    if "cwd" in task.edited:
        lines.append(f"{'':<11} cwd is {task.edited['cwd']} in task.json; taken at the next claim")
    if task.edited_error:
        lines.append(f"{'':<11} {task.edited_error}")
    if task.description:
        lines += ["", task.description.rstrip()]
    return lines


def terms_in_words(terms: Terms) -> list[str]:
    """What a task asks beyond its work, as `fleet task ID set` takes it; nothing where all is inherited."""
    budget = terms.budget
    said: dict[str, object] = {
        "budget_tokens": budget.max_tokens,
        "budget_tool_calls": budget.max_tool_calls,
        "budget_seconds": budget.max_seconds,
        "budget_usd": f"{budget.max_microusd / 1_000_000:g}" if budget.max_microusd is not None else None,
        "budget_idle_seconds": budget.idle_seconds,
        "budget_pause": "true" if budget.pause else None,
        "timeout_seconds": terms.timeout_seconds,
        "max_output_mb": terms.max_output_mb,
        "max_attempts": terms.retry.max_attempts if terms.retry else None,
        "retry_safe": None if terms.retry_safe else "false",
    }
    return [f"{name}={value}" for name, value in said.items() if value is not None]


def _attempts(task: TaskDetail) -> str:
    from fleet.cli.words import count

    if not task.attempts:
        return ""
    restarts = f", restarted {count(task.restarts, 'time')}" if task.restarts else ""
    raised = "; raised to a person" if task.escalated else ""
    return f"{task.charged} of {task.max_attempts} spent in {count(task.attempts, 'session')}{restarts}{raised}"


def _used(task: TaskDetail) -> str:
    from fleet.cli.words import count, span

    usage = task.usage
    said = [
        f"{usage.tokens:,} tokens" if usage.tokens else "",
        f"{usage.cached_tokens:,} cached" if usage.cached_tokens else "",
        count(usage.tool_calls, "tool call") if usage.tool_calls else "",
        f"${usage.cost_microusd / 1_000_000:.4f}" if usage.cost_microusd else "",
        span(task.running_ms) if task.attempts else "",
    ]
    return ", ".join(part for part in said if part)


def _model(task: TaskDetail) -> str:
    from fleet.config.settings import MODELLESS

    if task.model is None and task.coder in MODELLESS:
        return "-"
    return inherited(task.model or "the coder's own", task.model_inherited)


def _why(task: TaskDetail) -> str:
    """Why it is in its state, where that is not said elsewhere."""
    waits = [need.id for need in task.needs if need.state != "completed"]
    if task.state.value == "queued" and waits:
        return f": waits for {', '.join(waits)}"
    unattended = "; no supervisor attends it: fleet run" if task.attended is False else ""
    return f": {task.reason}{unattended}" if task.reason and not task.question else unattended


def inherited(value: str, is_default: bool) -> str:
    """A value, tagged when it comes from the settings."""
    return f"{value} (default)" if is_default else value


def _edit(task: TaskDetail, name: str) -> str:
    if name not in task.edited:
        return ""
    return f"; {task.edited[name] or 'the default'} in task.json, taken at the next claim"
