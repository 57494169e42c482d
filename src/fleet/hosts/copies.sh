# shellcheck shell=sh
# The copies of tasks' files on a host: sh -c "$(cat copies.sh)" copies VERB STATE ...
#
#   list STATE          the tasks whose copies nobody uses there, one a line
#   sums STATE TASK     the sha256 of every file of one of them, as sha256sum prints it
#   take STATE TASK     remove the files that stdin names, one a line; and the directories, where nothing is left
#
# A copy is used where a session or a worktree of its task is there, or where it was made ready within a day: each
# session touches the directory before it relies on what is in it. A home of Fleet has no copies: its files are kept.
#
# Codes: 0 done, 3 it stays and why is on stderr.
set -u
LC_ALL=C
export LC_ALL
unset CDPATH
LARGEST=131072 # blocks of 512 bytes: no larger file is kept elsewhere

fail() {
    printf '%s\n' "$*" >&2
    exit 3
}

is_used() { # TASK: its id, or that with @ and the letters that its sessions have after their number
    if [ -e "../worktrees/$1" ]; then return; fi
    for session in "../sessions/$1".* "../sessions/${1%@*}".*_"${1##*@}"; do
        if [ -e "$session" ]; then return; fi
    done
    return 1
}

list() {
    find . ! -name . -prune -type d -mtime +0 | while IFS= read -r task; do
        task=${task#./}
        is_used "$task" || printf '%s\n' "$task"
    done
}

enter() { # TASK
    if is_used "$1" || [ -z "$(find "$1" -prune -type d -mtime +0 2>/dev/null)" ]; then fail "it is in use"; fi
    cd "$1" || fail "it cannot be entered"
}

sums() { # TASK
    enter "$1"
    large=$(find . -type f -size "+$LARGEST" | head -n 1)
    [ -z "$large" ] || fail "${large#./} is too large to be kept elsewhere"
    if command -v sha256sum >/dev/null; then set -- sha256sum; else set -- shasum -a 256; fi
    find . -type f -exec "$@" {} + || fail "not all of it can be read"
}

take() { # TASK
    enter "$1"
    while IFS= read -r file; do rm -f -- "$file"; done
    find . ! -type f ! -type d -exec rm -f -- {} + # a link has nothing of its own
    cd .. || exit 1
    find "$1" -depth -type d -exec rmdir -- {} + 2>/dev/null
    [ ! -e "$1" ] || fail "files that are nowhere else are in it"
}

verb=$1 state=$2
shift 2
cd "$state/tasks" 2>/dev/null || exit 0
if [ -e ../fleet.db ] || [ -e ../fleet.toml ]; then exit 0; fi
"$verb" "$@"
