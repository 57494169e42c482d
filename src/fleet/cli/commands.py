"""The table of commands: name, group, module, one line of help. `fleet --help` is drawn from it."""

from __future__ import annotations

HERE_ALONE = {  # all others work on a fleet that is served elsewhere, too
    *("alert", "alert-dry-run", "bd", "demo", "dispatch", "doctor", "exec", "init", "land", "mcp", "serve", "service"),
    *("skill", "update"),
}


class Command:
    """One word that may follow `fleet`."""

    __slots__ = ("group", "help", "module", "name", "remote")

    def __init__(self, name: str, group: str, module: str, help: str) -> None:
        self.name = name
        self.group = group
        self.module = module  # below fleet.cli; has configure(parser) and run(args, context)
        self.help = help
        self.remote = name not in HERE_ALONE


GROUPS = {
    "start": "Start",
    "queue": "Queue",
    "run": "Run",
    "look": "Look",
    "steer": "Steer",
    "machines": "Machines",
    "pools": "Pools",
    "alerts": "Alerts",
    "open": "Open",
}

COMMANDS = (
    Command("init", "start", "init", "make the home, or repair it"),
    Command("demo", "start", "demo", "a small real run, without any key"),
    Command("doctor", "start", "doctor", "what is missing on this machine, and what mends it"),
    Command("config", "start", "config", "show, get, set, unset, import or describe the settings"),
    Command("completion", "start", "completion", "let bash, zsh or fish complete commands, options and ids"),
    Command("add", "queue", "add", "put a task in the queue"),
    Command("ready", "queue", "ready", "tasks that could start now"),
    Command("show", "queue", "show", "one task, with its effective coder and model"),
    Command("tasks", "queue", "tasks", "tasks in progress, or in any state"),
    Command("task", "queue", "task", "a task's log, plan, knowledge, questions, events, diff; set its fields"),
    Command("log", "queue", "log", "the supervisor's own log"),
    Command("bd", "queue", "bd", "the beads verbs, on Fleet's queue or on the real bd"),
    Command("run", "run", "run", "run a spec, or supervise the queue: tasks with their coders"),
    Command("runs", "run", "runs", "the runs, the newest first: how each stands, or what came of it"),
    Command("wait", "run", "wait", "wait until a run or a task is over; the exit code tells what came of it"),
    Command("watch", "look", "watch", "what happens, as it happens: a line in words for each event"),
    Command("top", "look", "top", "a screen to steer from: needs you, running, queued, hosts"),
    Command("logs", "look", "logs", "the tail of one task's log"),
    Command("status", "look", "status", "what is queued, running, done, and what needs a person"),
    Command("inspect", "look", "inspect", "one worker at its task: state, evidence, artifacts, receipt, alert"),
    Command("receipts", "look", "receipts", "the verdicts, with their evidence; check them again"),
    Command("artifacts", "look", "artifacts", "what a task left, kept by its checksum"),
    Command("cost", "look", "cost", "what was spent: by day, coder, model, host, label or run"),
    Command("why", "look", "why", "why a task is where it is, and what you may do"),
    Command("land", "steer", "land", "bring what a task did in its worktree into the checkout"),
    Command("worktrees", "steer", "worktrees", "the worktrees of tasks: list, drop, restore"),
    Command("questions", "steer", "questions", "what agents ask of a person"),
    Command("answer", "steer", "answer", "answer a question; its task goes back to the queue"),
    Command("verify", "steer", "verify", "run a verifier again, or settle a result yourself"),
    Command("interrupt", "steer", "interrupt", "end a session; its task waits for you"),
    Command("restart", "steer", "restart", "run a task again, from a live session or after its end"),
    Command("stop", "steer", "stop", "cancel a task, or all that has not ended"),
    Command("hosts", "machines", "hosts", "the machines that sessions run on: list, add, probe, drain"),
    Command("exec", "machines", "exec", "run a command on the hosts"),
    Command("dispatch", "pools", "dispatch", "give a task to an idle worker of a pool, in an interactive session"),
    Command("pool", "pools", "pool", "the workers of pools: status, check, set up, send, attach, release"),
    Command("alert", "alerts", "alert", "test the channels, show a payload, draft an escalation"),
    Command("alert-dry-run", "alerts", "alert_dry_run", "show a payload without its secrets; sends nothing"),
    Command("serve", "open", "serve", "the dashboard, and the API: HTTP and events, for other programs"),
    Command("dashboard", "open", "dashboard", "the dashboard of a fleet that is served, in a browser"),
    Command("mcp", "open", "mcp", "the same verbs for manager agents, by MCP"),
    Command("skill", "open", "skill", "the bundled skills for agents: list, install"),
    Command("update", "machines", "update", "update a package on the hosts"),
    Command("health", "machines", "health", "whether all hosts are well; for cron"),
    Command("report", "machines", "report", "the hosts as a report: JSON, Markdown, CSV, HTML"),
    Command("service", "machines", "service", "have systemd or cron check the hosts, and keep a supervisor up"),
    Command("ledger", "open", "ledger", "the record of everything: tail, export, verify"),
)

ELSEWHERE = {  # what other programs call it; else the word that merely looks alike would be proposed
    **dict.fromkeys(("ps", "ls", "list", "queue", "agents", "workers", "sessions"), "tasks --status all"),
    **dict.fromkeys(("create", "new", "submit", "enqueue"), 'add "TITLE"'),
    **dict.fromkeys(("kill", "cancel", "delete", "remove", "rm"), "stop ID"),
    **dict.fromkeys(("retry", "rerun", "reopen", "unblock"), "restart ID"),
    **dict.fromkeys(("start", "up", "resume", "supervise", "daemon"), "run"),
    **dict.fromkeys(("down", "shutdown"), "run stop"),
    **dict.fromkeys(("get", "info", "describe", "view"), "show ID"),
    **dict.fromkeys(("events", "history", "feed"), "watch"),
    **dict.fromkeys(("tail", "attach", "follow"), "logs ID -f"),
    **dict.fromkeys(("send", "message", "steer"), "pool send WORKER WINDOW TEXT"),
    **dict.fromkeys(("open", "ui", "web"), "dashboard"),
    **dict.fromkeys(("gc", "prune", "clean", "cleanup"), "worktrees drop ID"),
    **dict.fromkeys(("approve", "accept", "reject"), "verify ID --pass (or --fail)"),
    "ask": "questions",
    "close": "bd close ID",
    "diff": "task ID diff",
    "import": "config import FILE",
    "merge": "land ID",
    "pause": "interrupt ID",
    "set": "config set KEY=VALUE",
    "unset": "config unset KEY",
    "settings": "config show",
    "version": "--version",
}
