# shellcheck shell=sh
# Workspaces on a host: sh -c PROGRAM workspace VERB ..., where the program is this file, its parts (repository.sh,
# worktree.sh, landing.sh, ignored.sh), and at last `say "$@"`.
#
#   mark ROOT KEPT MOST FILE            write down what is in ROOT; what is below KEPT does not count
#   changes ROOT KEPT MOST FILE         what differs from that, one path a line, and write nothing
#   obtain URL BRANCH PATH TEMPORARY HOW   a clone at PATH; of one that is there HOW is fetch or keep
#   forward URL BRANCH PATH             bring the checkout of a clone forward to what was fetched; not to be cut off
#   discard TEMPORARY                   what is left of a clone that was cut off
#   sweep STATE                         what crashes left of clones more than a day ago; their names
#   make SOURCE PATH BEGIN [FILE...]    a worktree of SOURCE's repository at PATH, with some untracked files
#   unmake SOURCE PATH [FILE...]        what is left of a worktree whose making was cut off
#   list STATE                          the worktrees that are there, by name
#   state PATH                          what became of it: branch, base, head, commits, files that are dirty or ignored
#   diff PATH                           all that differs from its base, files that git does not know yet included
#   person                              who git takes us for, `Name <address>`
#   commit PATH MESSAGE NAME ADDRESS    what is not committed yet; by that person where git knows nobody; then its
#                                       branch is what is checked out, also where the agent has left it; ref, base, number of
#                                       commits, and sentences that a person wants to read
#   merge SOURCE REF MESSAGE NAME ADDRESS   into what SOURCE has checked out; not at all where there is a conflict;
#                                       the commit that it stands at, and its branch
#   apply SOURCE REF BASE               the difference, into SOURCE's files; not at all where it does not fit
#   bundle PATH REF BASE                the commits since BASE, in one stream
#   take SOURCE BUNDLE REF NAME BASE    those of a bundle, as a ref of its own, which is told; BASE is where they began
#   let_go SOURCE REF                   a ref that `take` made
#   ignored SOURCE PATH                 what of it is in no commit and is no uncommitted work
#   drop SOURCE PATH                    remove a worktree without uncommitted work; its commits are kept apart, and so is
#                                       what stdin names, NUL after each, of what git ignores; where that is
#   restore SOURCE PATH                 bring it back
#   aside STATE DAYS                    the worktrees, by name, of which something was put aside so many days ago
#   clear_aside STATE NAME DAYS         remove that, of one of them
#
# Codes: 0 done, 3 it cannot be done and why is on stderr, 4 there is no worktree, 5 too many files, 6 the repository was
# not reached. A verb that was cut off may be said again.
set -u
LC_ALL=C
export LC_ALL GIT_TERMINAL_PROMPT=0 GIT_OPTIONAL_LOCKS=0
unset CDPATH GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE

fail() {
    printf '%s\n' "$*" >&2
    exit 3
}

# One line per file or link: number, size, times, mode, name. A change of the content changes the time of the inode.
manifest() { # ROOT KEPT MOST
    cd -P -- "$1" 2>/dev/null || fail "there is no directory $1"
    here=$(pwd -P)
    kept=$(cd -P -- "$2" 2>/dev/null && pwd -P) || kept=
    case $kept in "$here"/*) kept=.${kept#"$here"} ;; *) kept=./.git ;; esac
    if stat -c %i . >/dev/null 2>&1; then flag=-c format='%i %s %z %f //%n'; else flag=-f format='%i %z %Fc %p //%N'; fi
    find . \( -name .git -o -path "$kept" \) -prune -o \( -type f -o -type l \) -exec stat "$flag" "$format" -- {} + 2>/dev/null |
        head -n "$(($3 + 1))" | sort
}

bounded() { # MOST FILE
    if [ "$(wc -l <"$2")" -gt "$1" ]; then
        rm -f "$2"
        printf 'more than %s files\n' "$1" >&2
        exit 5
    fi
}

mark() { # ROOT KEPT MOST FILE
    (manifest "$1" "$2" "$3") >"$4.new" || { rm -f "$4.new"; exit 3; }
    bounded "$3" "$4.new"
    mv "$4.new" "$4"
}

changes() { # ROOT KEPT MOST FILE
    [ -f "$4" ] || fail "nothing was written down before"
    (manifest "$1" "$2" "$3") >"$4.now" || { rm -f "$4.now"; exit 3; }
    bounded "$3" "$4.now"
    comm -3 "$4" "$4.now" | sed 's/^	//; s/^[^/]*\/\/\.\///' | sort -u | head -c 262144
    rm -f "$4.now"
}

git_in() { # DIRECTORY WORD...
    directory=$1
    shift
    git -C "$directory" "$@"
}

# Nobody is alone in a repository: what another git holds, or took away, at this moment is had a moment later.
patiently() { # COMMAND WORD...: what it says is in $said
    tries=0
    until said=$("$@" 2>&1); do
        case $said in
            *"cannot lock ref"* | *".lock': File exists"*) ;;
            *"/worktrees/"*"No such file or directory"* | *"failed to read "*"/worktrees/"*) ;; # one that is half made
            *) return 1 ;;
        esac
        tries=$((tries + 1))
        [ $tries -lt 30 ] || return 1
        sleep 0.1
    done
}

# One at a time changes a checkout, for whichever home: else two merges would undo each other. The kernel lets go of it
# for whoever was killed; what git leaves running in the background does not get it.
in_turn() { # CHECKOUT VERB WORD...
    [ -d "$1" ] || fail "there is no directory $1: name a checkout with --into"
    mine=$(own "$1" 2>/dev/null) || fail "$1 is in no git repository"
    command -v flock >/dev/null || command -v perl >/dev/null || fail "$1 cannot be locked: there is neither flock nor perl"
    shift
    exec 9>>"$mine/fleet-landing.lock"
    tries=0
    until is_our_turn; do
        tries=$((tries + 1))
        [ $tries -lt 1200 ] || fail "another has been changing the checkout for too long: say it again in a moment"
        sleep 0.1
    done
    "$@" 9>&-
}

is_our_turn() {
    if command -v flock >/dev/null; then
        flock -n 9
    else
        perl -e 'use Fcntl ":flock"; open(my $turn, ">&=", 9) or exit 2; flock($turn, LOCK_EX | LOCK_NB) or exit 1'
    fi
}

say() { # VERB WORD...
    case $1 in
        merge | apply | take) in_turn "$2" "$@" ;;
        forward) in_turn "$4" "$@" ;;
        *) "$@" ;;
    esac
}

own() { # PATH: where git keeps what belongs to this worktree alone
    git_in "$1" rev-parse --path-format=absolute --git-dir
}

# What was cut off may need a moment to die, and writes until then.
discard() { # TEMPORARY
    tries=0
    rm -rf "$1" 2>/dev/null
    while [ -e "$1" ] && [ $tries -lt 50 ]; do
        tries=$((tries + 1))
        sleep 0.1
        rm -rf "$1" 2>/dev/null
    done
    [ ! -e "$1" ] || fail "$1 cannot be removed"
}
