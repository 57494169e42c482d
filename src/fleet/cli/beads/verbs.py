"""The table of verbs: their flags, what they do, and where that is written. The help is drawn from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fleet.cli.beads import about, changing, creating, looking, relations, remarks
from fleet.cli.beads.call import Call
from fleet.cli.beads.flags import GLOBAL, REAL_BD, Flag


class Verb(NamedTuple):
    """One word that may follow `fleet bd`."""

    name: str
    usage: str
    run: Callable[[Call], int]
    flags: tuple[Flag, ...] = ()
    aliases: tuple[str, ...] = ()


VERBS = (
    Verb("create", '"TITLE"', creating.create, creating.FLAGS, ("new",)),
    Verb("q", '"TITLE"', creating.quick, (*creating.QUICK_FLAGS, *creating.OWN_FLAGS)),
    Verb("list", "", looking.listed, looking.LIST_FLAGS),
    Verb("ready", "", looking.ready, looking.READY_FLAGS),
    Verb("show", "ID...", looking.show, looking.SHOW_FLAGS, ("view",)),
    Verb("search", '"TEXT"', looking.search, looking.SEARCH_FLAGS),
    Verb("children", "ID", looking.children),
    Verb("blocked", "", looking.blocked, looking.BLOCKED_FLAGS),
    Verb("count", "", looking.count, looking.COUNT_FLAGS),
    Verb("stats", "", looking.stats, (), ("status",)),
    Verb("update", "ID...", changing.update, changing.UPDATE_FLAGS),
    Verb("close", "ID...", changing.close_issues, changing.CLOSE_FLAGS, ("done",)),
    Verb("reopen", "ID...", changing.reopen_issues, changing.REOPEN_FLAGS),
    Verb("unclaim", "ID...", changing.unclaim, changing.UNCLAIM_FLAGS),
    Verb("defer", "ID...", changing.defer, changing.DEFER_FLAGS),
    Verb("undefer", "ID...", changing.undefer),
    Verb("note", 'ID "TEXT"', changing.note),
    Verb("assign", "ID NAME", changing.assign, changing.ASSIGN_FLAGS),
    Verb("priority", "ID 0-4", changing.set_priority),
    Verb("tag", "ID LABEL", changing.tag),
    Verb("label", "add|remove|list|list-all ...", remarks.label),
    Verb("dep", "add|remove|list|tree ...", relations.dep, relations.FLAGS),
    Verb("link", "ID OTHER", relations.link_two, relations.LINK_FLAGS),
    Verb("comment", 'ID "TEXT"', remarks.comment, remarks.COMMENT_FLAGS),
    Verb("comments", "ID | add ID TEXT", remarks.comments, remarks.COMMENT_FLAGS),
    Verb("prime", "", about.prime),
    Verb("where", "", about.where),
    Verb("version", "", about.version),
    Verb("context", "", about.context),
    Verb("statuses", "", about.statuses),
    Verb("types", "", about.types),
)


def find(word: str) -> Verb | None:
    """The verb of this name."""
    return next((verb for verb in VERBS if word == verb.name or word in verb.aliases), None)


def overview() -> str:
    """What `fleet bd --help` prints on Fleet's own queue."""
    lines = ["usage: fleet bd VERB ...", "", "The verbs of beads on Fleet's own queue.", ""]
    lines += [f"  {verb.name + ' ' + verb.usage:<36}{_summary(verb)}" for verb in VERBS]
    lines += ["", "Flags of every verb:", *(_flag(flag) for flag in GLOBAL), "", REAL_BD + ".", ""]
    lines += ["examples:", "  fleet bd ready", '  fleet bd create "Fix the login" --priority 1', ""]
    return "\n".join(lines)


def help_of(verb: Verb) -> str:
    """What `fleet bd VERB --help` prints."""
    lines = [f"usage: fleet bd {verb.name} {verb.usage}".rstrip() + " [flags]", "", _summary(verb)]
    if verb.aliases:
        lines += ["", f"Also: {', '.join(verb.aliases)}"]
    if verb.flags:
        lines += ["", "Flags:", *(_flag(flag) for flag in verb.flags)]
    return "\n".join([*lines, "", "Flags of every verb:", *(_flag(flag) for flag in GLOBAL), ""])


def _summary(verb: Verb) -> str:
    return (verb.run.__doc__ or "").split("\n", 1)[0]


def _flag(flag: Flag) -> str:
    short = f"-{flag.short}, " if flag.short else "    "
    return f"  {short}--{flag.name + ' ' + flag.takes.value:<28}{flag.help}"
