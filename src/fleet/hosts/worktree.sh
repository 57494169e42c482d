# shellcheck shell=sh disable=SC2034,SC2154
# The worktrees of tasks, on a host: made, known by their names, looked at. A part of workspace.sh, which says what each verb is.

real() { # PATH, with every link above it followed
    above=$(cd -P -- "$(dirname -- "$1")" 2>/dev/null && pwd -P) || above=$(dirname -- "$1")
    printf '%s/%s\n' "${above%/}" "${1##*/}"
}

# Tasks of two homes may have the same id. So a worktree has a name of its own in its repository: that of its directory up
# to an @, or with a number, where one in another place has it. `fleet/names` there says which place has which name.
known() { # REPOSITORY PATH
    common=$(git_in "$1" rev-parse --path-format=absolute --git-common-dir 2>/dev/null) || fail "$1 is in no git repository"
    at=$(real "$2") names=$common/fleet/names word=${2##*/} is_claimed=
    word=${word%%@*}
    name=$word
    for held in "$names/$word" "$names/$word".*; do
        if [ "$(holder "$held")" = "$at" ]; then name=${held##*/} is_claimed=1; fi
    done
    [ -n "$is_claimed" ] || next_free
    called
}

called() { # what belongs to the name
    branch=fleet/$name ref=refs/heads/fleet/$name base=refs/fleet/base/$name grave=refs/fleet/dropped/$name
}

holder() { # FILE: its line
    line=
    if [ -f "$1" ]; then IFS= read -r line <"$1"; fi
    printf '%s' "$line"
}

next_free() {
    count=1
    while [ -e "$names/$name" ] || is_elsewhere "$name"; do
        count=$((count + 1))
        name=$word.$count
    done
}

is_elsewhere() { # NAME: whether its branch is checked out in another place, which has no name yet
    for record in "$common"/worktrees/*; do
        if [ "$(holder "$record/HEAD")" = "ref: refs/heads/fleet/$1" ] && [ "$(place_of "$record")" != "$at" ]; then return; fi
    done
    return 1
}

claim() { # REPOSITORY PATH: as `known`, and the name is this worktree's from now on
    known "$1" "$2"
    [ -z "$is_claimed" ] || return 0
    mkdir -p "$names" || fail "$names cannot be made"
    printf '%s\n' "$at" >"$names/.$word.$$"
    until ln "$names/.$word.$$" "$names/$name" 2>/dev/null; do # another was quicker
        [ -e "$names/$name" ] || fail "$names/$name cannot be written"
        next_free
    done
    rm -f "$names/.$word.$$"
    called
}

place_of() { # RECORD of git: the worktree that it is about; nothing where it was not written down yet
    link=$(holder "$1/gitdir")
    case $link in
        '') return ;;
        /*) ;;
        *) link=$1/$link ;;
    esac
    real "${link%/.git}"
}

find_record() { # PATH: git's own of that worktree, in $record; empty where it has none
    for record in "$common"/worktrees/*; do
        if [ "$(place_of "$record")" = "$at" ]; then return; fi
    done
    record=
}

make() { # SOURCE PATH BEGIN [FILE...]
    source=$1 path=$2 begin=$3
    shift 3
    command -v git >/dev/null || fail "git is not installed"
    top=$(git_in "$source" rev-parse --show-toplevel 2>/dev/null) || fail "$source is in no git repository"
    prefix=$(git_in "$source" rev-parse --show-prefix)
    git_in "$top" rev-parse --verify --quiet HEAD >/dev/null || fail "$top has no commit yet"
    claim "$top" "$path"
    await_maker "$path"
    if is_half_made; then clear_half_made "$top" "$path"; fi
    if [ -e "$path/.git" ]; then
        theirs=$(git_in "$path" rev-parse --path-format=absolute --git-common-dir 2>/dev/null) || theirs=
        [ "$theirs" = "$common" ] || fail "$path is there, and is no worktree of $top"
    else
        forget "$top" "$path"
        # Without its branch there is no work that an earlier beginning would be needed for.
        git_in "$top" rev-parse --verify --quiet "$ref" >/dev/null || git_in "$top" update-ref "$base" "$begin"
        add_tree "$top" "$path" "$branch" "$base"
    fi
    for file do
        file=${file%/}
        [ -e "$path/$file" ] && continue
        [ -e "$top/$file" ] || fail "$file is not in $top"
        mkdir -p "$(dirname "$path/$file")" || fail "$file cannot be copied"
        rm -rf "$path/$file.fleet-part" # what was cut off is no copy
        cp -R -p "$top/$file" "$path/$file.fleet-part" || fail "$file cannot be copied"
        mv "$path/$file.fleet-part" "$path/$file" || fail "$file cannot be copied"
        printf '%s\n' "$file" >>"$(own "$path")/fleet-copied"
    done
    printf '%s\n%s\n' "$prefix" "$(own "$path")"
}

add_tree() { # TOP PATH BRANCH BASE
    mkdir -p "$common/fleet/making" || fail "$common/fleet cannot be written"
    making=$common/fleet/making/$name
    echo $$ >"$making"
    patiently checked_out "$@" || { rm -f "$making"; fail "$said"; }
    rm -f "$making"
}

checked_out() { # TOP PATH BRANCH BASE: a worktree on that branch, which begins at BASE unless it is there
    if git_in "$1" rev-parse --verify --quiet "refs/heads/$3" >/dev/null; then
        git_in "$1" worktree add --quiet "$2" "$3"
    else
        git_in "$1" worktree add --quiet -b "$3" "$2" "$4"
    fi
}

# Git's record of a worktree that is gone. Of this one alone: `prune` would also take those that are just being made.
forget() { # TOP PATH
    [ ! -e "$2" ] || return 0
    (umask 077 && mkdir -p "$(dirname "$2")") || fail "$2 cannot be made"
    at=$(real "$2")
    patiently git_in "$1" worktree remove --force "$2"
    for record in "$common/worktrees/${2##*/}" "$common/worktrees/${2##*/}"[0-9]*; do # cut off before it said what it is about
        if [ -d "$record" ] && [ ! -e "$record/gitdir" ] && ! anybody_makes; then rm -rf "$record"; fi
    done
}

anybody_makes() {
    for making in "$common"/fleet/making/*; do
        if [ -f "$making" ] && kill -0 "$(holder "$making")" 2>/dev/null; then return; fi
    done
    return 1
}

is_half_made() { # git locks a worktree until all of its files are there
    find_record
    [ -n "$record" ] && [ "$(holder "$record/locked")" = initializing ]
}

# A maker that outlived whoever asked for it goes on: what it makes will do, and to clear that away under it would not.
await_maker() { # PATH
    maker=$(cat "$common/fleet/making/$name" 2>/dev/null) || return 0
    tries=0
    while [ $tries -lt 3000 ] && is_making "$maker" "$1"; do
        tries=$((tries + 1))
        sleep 0.2
    done
}

is_making() { # PID PATH
    kill -0 "$1" 2>/dev/null || return 1
    [ ! -r "/proc/$1/cmdline" ] || tr '\0' ' ' <"/proc/$1/cmdline" | grep -qF -e "$2 "
}

clear_half_made() { # TOP PATH: no agent has been in it
    discard "$2"
    rm -f "$record/locked" "$common/fleet/making/$name"
    forget "$1" "$2"
}

unmake() { # SOURCE PATH [FILE...]
    source=$1 path=$2
    shift 2
    top=$(git_in "$source" rev-parse --show-toplevel 2>/dev/null) || return 0
    known "$top" "$path"
    if is_half_made; then clear_half_made "$top" "$path"; fi
    for file do discard "$path/${file%/}.fleet-part"; done
    rm -f "$common/fleet/making/$name"
    [ ! -e "$path" ] || return 0
    began=$(git_in "$top" rev-parse --verify --quiet "$base") || return 0
    head=$(git_in "$top" rev-parse --verify --quiet "$ref") || head=$began
    [ "$head" = "$began" ] || return 0 # the branch has commits
    git_in "$top" update-ref -d "$ref"
    git_in "$top" update-ref -d "$base"
}

list() { # STATE
    ls -A "$1/worktrees" 2>/dev/null
    return 0
}

in_tree() { # PATH WORD...: git on all of a worktree but the files that were copied into it
    copied=$(own "$1")/fleet-copied
    directory=$(git_in "$1" rev-parse --show-toplevel)
    shift
    set -- "$@" -- .
    if [ -f "$copied" ]; then
        while IFS= read -r file; do set -- "$@" ":(exclude,top)$file"; done <"$copied"
    fi
    git -C "$directory" -c core.quotePath=false "$@"
}

present() { # PATH: it is there, and stands somewhere
    if [ ! -e "$1/.git" ]; then
        [ ! -e "$1" ] || fail "$1 has lost its .git: \`git worktree repair\` in the repository gives it another"
        printf 'there is no worktree at %s\n' "$1" >&2
        exit 4
    fi
    git_in "$1" rev-parse --git-dir >/dev/null 2>&1 ||
        fail "the repository of $1 is not where it was: if it was moved, \`git worktree repair $1\` in it"
    known "$1" "$1"
    git_in "$1" rev-parse --verify --quiet HEAD >/dev/null ||
        fail "nothing is checked out in $1: its branch is gone or has no commit; git -C $1 reflog tells where it was"
    began=$(git_in "$1" rev-parse --verify --quiet "$base^{commit}") || fail "it is not known where $1 began: $base is gone"
}

state() { # PATH
    present "$1"
    printf '%s\n' "$branch" "$began"
    git_in "$1" rev-parse HEAD
    git_in "$1" rev-list --count "$began..HEAD"
    in_tree "$1" status --porcelain --untracked-files=all --ignored=matching | head -n 1000
}

# The difference as a commit would have it, without touching the index that people work with.
diff() { # PATH
    present "$1"
    top=$(git_in "$1" rev-parse --show-toplevel)
    index=$(mktemp) || fail "no temporary file can be made"
    GIT_INDEX_FILE=$index
    export GIT_INDEX_FILE
    if ! said=$({ git_in "$top" read-tree HEAD && in_tree "$1" add -A; } 2>&1); then
        rm -f "$index"
        fail "it cannot be shown: $said"
    fi
    git_in "$top" diff-index --cached -p -M --no-ext-diff "$began"
    code=$?
    rm -f "$index"
    exit $code
}
