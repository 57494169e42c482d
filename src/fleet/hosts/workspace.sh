# shellcheck shell=sh
# Workspaces on a host: sh -c "$(cat workspace.sh)" workspace VERB ...
#
#   mark ROOT KEPT MOST FILE            write down what is in ROOT; what is below KEPT does not count
#   changes ROOT KEPT MOST FILE         what differs from that, one path a line, and write nothing
#   make SOURCE PATH BRANCH BASE [FILE...]   a worktree of SOURCE's repository at PATH, with some untracked files
#   state PATH BASE                     what became of it: head, commits, dirty files
#   diff PATH BASE                      all that differs from BASE, files that git does not know yet included
#   commit PATH MESSAGE                 what is not committed yet
#   merge SOURCE BRANCH MESSAGE         into what SOURCE has checked out; not at all where there is a conflict
#   apply SOURCE BRANCH BASE            the difference, into SOURCE's files; not at all where it does not fit
#   drop PATH BRANCH GRAVE              remove a worktree without uncommitted work; its branch is kept as GRAVE
#   restore SOURCE PATH BRANCH GRAVE    bring it back
#
# Codes: 0 done, 3 it cannot be done and why is on stderr, 5 too many files. A verb that was cut off may be said again.
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

own() { # PATH: where git keeps what belongs to this worktree alone
    git_in "$1" rev-parse --path-format=absolute --git-dir
}

in_tree() { # PATH WORD...: git on all of a worktree but the files that were copied into it
    copied=$(own "$1")/fleet-copied
    directory=$(git_in "$1" rev-parse --show-toplevel)
    shift
    set -- "$@" -- .
    if [ -f "$copied" ]; then
        while IFS= read -r file; do set -- "$@" ":(exclude,top)$file"; done <"$copied"
    fi
    git -C "$directory" "$@"
}

make() { # SOURCE PATH BRANCH BASE [FILE...]
    source=$1 path=$2 branch=$3 base=$4
    shift 4
    command -v git >/dev/null || fail "git is not installed"
    top=$(git_in "$source" rev-parse --show-toplevel 2>/dev/null) || fail "$source is in no git repository"
    prefix=$(git_in "$source" rev-parse --show-prefix)
    if [ ! -e "$path/.git" ]; then
        git_in "$top" rev-parse --verify --quiet HEAD >/dev/null || fail "$top has no commit yet"
        git_in "$top" worktree prune
        git_in "$top" rev-parse --verify --quiet "$base" >/dev/null || git_in "$top" update-ref "$base" HEAD
        if git_in "$top" rev-parse --verify --quiet "refs/heads/$branch" >/dev/null; then
            said=$(git_in "$top" worktree add --quiet "$path" "$branch" 2>&1) || fail "$said"
        else
            said=$(git_in "$top" worktree add --quiet -b "$branch" "$path" "$base" 2>&1) || fail "$said"
        fi
    fi
    for file do
        [ -e "$path/$file" ] && continue
        [ -e "$top/$file" ] || fail "$file is not in $top"
        mkdir -p "$(dirname "$path/$file")" || fail "$file cannot be copied"
        cp -R -p "$top/$file" "$path/$file" || fail "$file cannot be copied"
        printf '%s\n' "$file" >>"$(own "$path")/fleet-copied"
    done
    printf '%s\n%s\n' "$prefix" "$(own "$path")"
}

state() { # PATH BASE
    [ -e "$1/.git" ] || fail "there is no worktree at $1"
    printf '%s\n%s\n' "$(git_in "$1" rev-parse HEAD)" "$(git_in "$1" rev-list --count "$2..HEAD")"
    in_tree "$1" status --porcelain --untracked-files=all | head -n 1000
}

# The difference as a commit would have it, without touching the index that people work with.
diff() { # PATH BASE
    [ -e "$1/.git" ] || fail "there is no worktree at $1"
    top=$(git_in "$1" rev-parse --show-toplevel)
    index=$(mktemp) || fail "no temporary file can be made"
    GIT_INDEX_FILE=$index
    export GIT_INDEX_FILE
    git_in "$top" read-tree HEAD && in_tree "$1" add -A && git_in "$top" diff --cached "$2"
    code=$?
    rm -f "$index"
    exit $code
}

commit() { # PATH MESSAGE
    [ -n "$(in_tree "$1" status --porcelain --untracked-files=all | head -n 1)" ] || return 0
    said=$(in_tree "$1" add -A 2>&1 && git_in "$1" commit --quiet -m "$2" 2>&1) || fail "it cannot be committed: $said"
}

merge() { # SOURCE BRANCH MESSAGE
    if git_in "$1" merge-base --is-ancestor "refs/heads/$2" HEAD; then
        git_in "$1" rev-parse HEAD
        return
    fi
    if ! said=$(git_in "$1" merge --no-edit -m "$3" "refs/heads/$2" 2>&1); then
        conflicts=$(git_in "$1" diff --name-only --diff-filter=U)
        if git_in "$1" rev-parse --verify --quiet MERGE_HEAD >/dev/null; then git_in "$1" merge --abort; fi
        [ -z "$conflicts" ] || fail "conflicts in: $(printf '%s' "$conflicts" | tr '\n' ' ')"
        fail "$said"
    fi
    git_in "$1" rev-parse HEAD
}

apply() { # SOURCE BRANCH BASE
    top=$(git_in "$1" rev-parse --show-toplevel)
    patch=$(mktemp) || fail "no temporary file can be made"
    git_in "$top" diff --binary "$3" "refs/heads/$2" >"$patch"
    if [ -s "$patch" ] && ! said=$(git_in "$top" apply --check "$patch" 2>&1 && git_in "$top" apply "$patch" 2>&1); then
        rm -f "$patch"
        fail "it does not fit: $said"
    fi
    rm -f "$patch"
    git_in "$top" rev-parse HEAD
}

drop() { # PATH BRANCH GRAVE
    top=$(git_in "$1" rev-parse --path-format=absolute --git-common-dir 2>/dev/null) || fail "there is no worktree at $1"
    dirty=$(in_tree "$1" status --porcelain --untracked-files=all | head -n 5)
    [ -z "$dirty" ] || fail "it has uncommitted work: $(printf '%s' "$dirty" | cut -c4- | tr '\n' ' ')"
    git_in "$1" update-ref "$3" HEAD || fail "the branch cannot be kept"
    said=$(git --git-dir="$top" worktree remove --force "$1" 2>&1) || fail "$said"
    said=$(git --git-dir="$top" branch --quiet -D "$2" 2>&1) || fail "$said"
}

restore() { # SOURCE PATH BRANCH GRAVE
    head=$(git_in "$1" rev-parse --verify --quiet "$4") || fail "nothing is kept of $3"
    git_in "$1" worktree prune
    said=$(git_in "$1" worktree add --quiet -b "$3" "$2" "$head" 2>&1) || fail "$said"
    git_in "$1" update-ref -d "$4"
}

verb=$1
shift
"$verb" "$@"
