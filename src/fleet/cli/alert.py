"""Alerts: test the channels, see what would be sent, draft an escalation.

`test` sends a test to one channel or to all; `dry-run` prints a payload without its secrets and sends nothing; `draft`
prints an escalation about a worker's task, and sends it with --send where the settings allow that.

Examples:
  fleet alert test --channel ops-slack
  fleet alert draft fleet-abc
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.cli.parsing import add_verb
from fleet.model.alert import AlertKind

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.control.alerting import Alerting, Told
    from fleet.model.alert_spec import Adapter

KINDS = tuple(kind.value for kind in AlertKind)
EXAMPLES = {
    "test": ("fleet alert test", "fleet alert test --channel ops-slack"),
    "dry-run": (
        "fleet alert dry-run --event stale --run-id nightly --task-id fleet-abc --adapter slack",
        "fleet alert dry-run --event needs_human --run-id nightly --channel ops-slack --json",
    ),
    "draft": ("fleet alert draft fleet-abc", "fleet alert draft fleet-abc --send"),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """The verbs of `fleet alert`."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    test = add_verb(verbs, "test", "send a test to the channels of fleet.toml", *EXAMPLES["test"])
    test.add_argument("--channel", metavar="C", help="only to this one")
    add_dry_run(add_verb(verbs, "dry-run", "print a payload without its secrets; sends nothing", *EXAMPLES["dry-run"]))
    draft = add_verb(verbs, "draft", "draft an escalation about a worker's task", *EXAMPLES["draft"])
    draft.add_argument("id", metavar="W", help="a worker, a task, or a session")
    draft.add_argument("--send", action="store_true", help="send it to whoever hears of needs_human")


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet alert dry-run`, which is `fleet alert-dry-run` too."""
    parser.add_argument("--event", metavar="CLASS", type=_kind, required=True, help=", ".join(KINDS))
    parser.add_argument("--run-id", metavar="R", required=True, help="the run that it tells of")
    parser.add_argument("--worker-id", metavar="W", help="the worker")
    parser.add_argument("--task-id", metavar="T", help="the task")
    parser.add_argument("--reason", metavar="TEXT", default="manual fleet alert dry-run", help="one sentence")
    parser.add_argument("--status", metavar="S", help="else what fits the class")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--adapter",
        metavar="KIND",
        choices=("slack", "webhook", "pager-duty", "discord", "console"),
        default="slack",
        help="slack, webhook, pager-duty, discord or console (default: slack)",
    )
    where.add_argument("--channel", metavar="C", help="a channel of fleet.toml in the place of an adapter")
    parser.add_argument("--slack-webhook-env", metavar="NAME", default="FLEET_SLACK_WEBHOOK", help="of slack")
    parser.add_argument("--discord-webhook-env", metavar="NAME", default="FLEET_DISCORD_WEBHOOK", help="of discord")
    parser.add_argument("--webhook-url-env", metavar="NAME", default="FLEET_WEBHOOK_URL", help="of webhook")
    parser.add_argument("--webhook-secret-env", metavar="NAME", help="of webhook: the key that signs")
    parser.add_argument(
        "--pagerduty-routing-key-env", metavar="NAME", default="FLEET_PAGERDUTY_ROUTING_KEY", help="of pager-duty"
    )
    parser.add_argument(
        "--pagerduty-severity",
        metavar="S",
        choices=("critical", "error", "warning", "info"),
        default="error",
        help="of pager-duty: critical, error, warning or info",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Do what the verb says."""
    return {"test": _test, "dry-run": show_payload, "draft": _draft}[args.verb](args, context)


def show_payload(args: argparse.Namespace, context: Context) -> int:
    """The payload of an alert, with marks in the place of its secrets."""
    from fleet.config.clock import utc_ms
    from fleet.model.alert_spec import channel_kind
    from fleet.projections.alerts import dry_run
    from fleet.wiring.named import load_channel

    adapter = _adapter(args, context)
    found = dry_run(
        args.channel or args.adapter,
        adapter,
        load_channel(channel_kind(adapter)),
        alert=AlertKind(args.event),
        reason=args.reason,
        run_id=args.run_id,
        worker_id=args.worker_id,
        task_id=args.task_id,
        status=args.status,
        now=utc_ms(),
    )
    context.print_json(found)
    return 0


def _adapter(args: argparse.Namespace, context: Context) -> Adapter:
    import msgspec

    from fleet.errors import NotFound, UsageError
    from fleet.model import alert_spec as spec
    from fleet.policy.redaction import looks_like_a_key
    from fleet.policy.routing import of_settings

    if args.channel:
        adapters = of_settings(context.settings, lambda _: None).adapters
        if args.channel not in adapters:
            raise NotFound(f"no channel `{args.channel}`", hint=f"there are: {', '.join(sorted(adapters)) or 'none'}")
        return adapters[args.channel]
    given: dict[str, dict[str, str | None]] = {
        "slack": {"kind": "slack", "webhook_env": args.slack_webhook_env},
        "discord": {"kind": "discord", "webhook_env": args.discord_webhook_env},
        "webhook": {"kind": "webhook", "url_env": args.webhook_url_env, "secret_env": args.webhook_secret_env},
        "pager-duty": {
            "kind": "pager_duty",
            "routing_key_env": args.pagerduty_routing_key_env,
            "severity": args.pagerduty_severity,
        },
        "console": {"kind": "console"},
    }
    try:
        adapter: Adapter = msgspec.convert(given[args.adapter], spec.Adapter)
    except msgspec.ValidationError:
        adapter = spec.Console()
        wrong = True
    else:
        wrong = any(looks_like_a_key(value) for value in spec.variables(adapter).values())
    if wrong:
        raise UsageError("give the NAME of an environment variable, not its value")
    return adapter


def _test(args: argparse.Namespace, context: Context) -> int:
    from contextlib import closing

    with closing(_alerting(context)) as alerting:
        return _told(alerting.test(args.channel), context)


def _draft(args: argparse.Namespace, context: Context) -> int:
    from contextlib import closing

    from fleet.cli.logs import last_lines
    from fleet.config.clock import utc_ms
    from fleet.projections.alerts import delivery_of, draft
    from fleet.projections.inspect import inspect

    task = inspect(context.reads, args.id)
    log = last_lines(context.home.task_dir(task.task) / "log.jsonl", 20)
    found = draft(context.reads, context.settings, args.id, log=log, now=utc_ms())
    if not args.send:
        if context.json:
            context.print_json({"draft": found, "text": found.text, "sent": []})
        else:
            context.print(found.text)
        return 0
    context.close()
    with closing(_alerting(context)) as alerting:
        return _told(alerting.send(delivery_of(found, status=task.task_state), found.text), context)


def _alerting(context: Context) -> Alerting:
    from fleet import wiring

    return wiring.open_alerting(context.home, context.settings, context.note)


def _told(told: list[Told], context: Context) -> int:
    if context.json:
        context.print_json({"sent": told})
    else:
        for each in told:
            why = f": {each.detail}" if each.detail else ""
            context.print(f"{each.channel} ({each.kind}): {each.outcome.replace('_', ' ')}{why}")
    return 1 if any(each.outcome == "failed" for each in told) else 0


def _kind(word: str) -> str:
    """A class of alerts, with dashes or underscores."""
    name = word.replace("-", "_")
    if name not in KINDS:
        raise argparse.ArgumentTypeError(f"no class `{word}`; there are: {', '.join(KINDS)}")
    return name
