"""Let a shell complete what you type: commands, options, choices, and the ids of tasks, runs and hosts.

It prints what the shell is to read, each time it starts. In ~/.bashrc: `eval "$(fleet completion bash)"`; in ~/.zshrc,
after compinit: `eval "$(fleet completion zsh)"`; in ~/.config/fish/config.fish: `fleet completion fish | source`. With
--line it prints what may come next on such a line; that is what the shell asks for.

Examples:
  fleet completion fish | source
  fleet completion bash --line "fleet show fleet-"
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.errors import FleetError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.cli.context import Context
    from fleet.cli.offers import Offer

BASH = """\
_fleet() {
    local IFS=$'\\n'
    COMPREPLY=($(fleet completion bash --line "${COMP_LINE:0:COMP_POINT}" 2>/dev/null))
    if [[ ${COMPREPLY[0]-} == *= ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -o default -o nosort -F _fleet fleet 2>/dev/null || complete -o default -F _fleet fleet
"""
ZSH = """\
#compdef fleet
_fleet() {
    local each
    local -a whole open shown_whole shown_open
    for each in "${(@f)$(fleet completion zsh --line "${(j: :)${(@q)words[1,CURRENT]}}" 2>/dev/null)}"; do
        case ${each%%$'\\t'*} in
            ('') ;;
            (*=) open+=("${each%%$'\\t'*}"); shown_open+=("${each/$'\\t'/  }") ;;
            (*) whole+=("${each%%$'\\t'*}"); shown_whole+=("${each/$'\\t'/  }") ;;
        esac
    done
    (( $#whole + $#open )) || { _files; return }
    (( $#whole )) && compadd -l -V fleet -d shown_whole -a whole
    (( $#open )) && compadd -l -V fleet -d shown_open -S '' -a open
    return 0
}
if [[ ${funcstack[1]-} == _fleet ]]; then _fleet "$@"; else compdef _fleet fleet; fi
"""
FISH = """\
function __fleet_words
    set -l found (fleet completion fish --line (commandline -cp | string collect) 2>/dev/null)
    if set -q found[1]
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c fleet -f -k -a '(__fleet_words)'
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}
LONGEST_HELP = 80
MOST_SECONDS = 3  # that somebody waits who has pressed Tab: for a server, a database


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet completion`."""
    parser.add_argument("shell", metavar="SHELL", choices=[*SCRIPTS], help="bash, zsh or fish")
    parser.add_argument("--line", metavar="TEXT", help="what stands before the cursor, with the name of the program")


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the script, or what may come next."""
    if args.line is None:
        if context.json:
            context.print_json({"shell": args.shell, "script": SCRIPTS[args.shell]})
        else:
            context.print_text(SCRIPTS[args.shell])
        return 0
    words = split(args.line)[1:] or [""]
    _give_up_in_time()
    found = _found(words, context)
    if context.json:
        context.print_json([one._asdict() for one in found])
    else:
        context.print_lines(shown(one, words[-1], args.shell) for one in found)
    return 0


def _give_up_in_time() -> None:
    import os
    import signal

    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, MOST_SECONDS)


def _found(words: Sequence[str], context: Context) -> list[Offer]:
    """Nobody reads a complaint who is still typing: what is wrong will be told when the command is run."""
    from fleet.cli.completing import next_words
    from fleet.cli.context import Context as Other

    typed = Other(home=context.home_flag, json=False, out=context.out, err=context.err)
    try:
        return next_words(words, typed)
    except (FleetError, OSError):
        return []
    finally:
        typed.close()


def shown(offer: Offer, current: str, shell: str) -> str:
    """As a shell takes it: bash the rest of a word that it has taken apart at `=` or `:`, the others with help."""
    if shell == "bash":
        cut = max(current.rfind("="), current.rfind(":")) + 1
        return offer.word[cut:]
    help = " ".join(offer.help.split())
    help = help if len(help) <= LONGEST_HELP else f"{help[: LONGEST_HELP - 1]}…"
    return f"{offer.word}\t{help}" if help else offer.word


def split(line: str) -> list[str]:
    """The words of a line that is still being typed: a quote may be open. The last is the one at the cursor."""
    words, word, quote, escaped = [], "", "", False
    inside = False  # a word, even an empty one between quotes
    for letter in line:
        if escaped:
            word, escaped, inside = word + letter, False, True
        elif letter == "\\" and quote != "'":
            escaped = True
        elif quote:
            quote, word = ("", word) if letter == quote else (quote, word + letter)
        elif letter in "'\"":
            quote, inside = letter, True
        elif letter.isspace():
            words += [word] if inside else []
            word, inside = "", False
        else:
            word, inside = word + letter, True
    return [*words, word]
