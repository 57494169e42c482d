# shellcheck shell=sh disable=SC2154
# What was done in a worktree: committed, brought into a checkout, dropped, brought back. A part of workspace.sh.

person() {
    git var GIT_COMMITTER_IDENT 2>/dev/null | sed 's/ [0-9]* [-+][0-9]*$//'
}

by() { # DIRECTORY NAME ADDRESS: who commits there
    if [ -z "$2" ] || git_in "$1" var GIT_COMMITTER_IDENT >/dev/null 2>&1; then return; fi
    GIT_AUTHOR_NAME=$2 GIT_AUTHOR_EMAIL=$3 GIT_COMMITTER_NAME=$2 GIT_COMMITTER_EMAIL=$3
    export GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL
}

commit() { # PATH MESSAGE NAME ADDRESS
    by "$1" "$3" "$4"
    present "$1"
    refuse_unfinished "$1"
    refuse_nested "$1"
    if [ -n "$(in_tree "$1" status --porcelain --untracked-files=all | head -n 1)" ]; then
        patiently in_tree "$1" add -A || fail "it cannot be committed: $said"
        patiently git_in "$1" commit --quiet -m "$2" || fail "it cannot be committed: $said"
    fi
    refuse_astray "$1"
    if [ "$(git_in "$1" symbolic-ref --quiet HEAD)" != "$ref" ]; then
        patiently git_in "$1" branch --quiet -f "$branch" HEAD || fail "$said"
    fi
    printf '%s\n%s\n' "$ref" "$began"
}

# The files of a repository within this one are in no commit of it, and would be gone with the worktree.
refuse_nested() { # PATH
    nested=$(
        in_tree "$1" ls-files --others --exclude-standard | grep '/$'
        git_in "$1" ls-files --stage | sed -n 's/^160000[^	]*	//p' | while IFS= read -r inner; do
            if [ -e "$1/$inner/.git" ] && ! is_submodule "$1" "$inner"; then printf '%s/\n' "$inner"; fi
        done
    )
    [ -z "$nested" ] || fail "these are repositories of their own, whose files would be lost: $(printf '%s' "$nested" |
        tr '\n' ' '); take them out of $1, or remove the .git in them"
}

is_submodule() { # PATH INNER
    git config --file "$1/.gitmodules" --get-regexp '^submodule\..*\.path$' 2>/dev/null | sed 's/^[^ ]* //' | grep -qxF -e "$2"
}

# An agent may have worked on a branch of its own, or on none: its work is what it left checked out.
refuse_astray() { # PATH
    if git_in "$1" rev-parse --verify --quiet "$ref" >/dev/null; then
        git_in "$1" merge-base --is-ancestor "$ref" HEAD ||
            fail "$branch has commits that what is checked out in $1 has not: merge them there first"
    fi
}

merge() { # SOURCE REF MESSAGE NAME ADDRESS
    by "$1" "$4" "$5"
    if git_in "$1" merge-base --is-ancestor "$2" HEAD; then
        git_in "$1" rev-parse HEAD
        return
    fi
    refuse_unfinished "$1"
    forecast "$1" "$2"
    if ! patiently git_in "$1" merge --no-edit -m "$3" "$2"; then
        conflicts=$(git_in "$1" diff --name-only --diff-filter=U)
        if git_in "$1" rev-parse --verify --quiet MERGE_HEAD >/dev/null; then git_in "$1" merge --abort; fi
        [ -z "$conflicts" ] || fail "conflicts in: $(printf '%s' "$conflicts" | tr '\n' ' ')"
        fail "$said"
    fi
    git_in "$1" rev-parse HEAD
}

refuse_unfinished() { # SOURCE: what a person has begun there is theirs to end
    its=$(own "$1")
    for begun in MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD rebase-merge rebase-apply; do
        [ ! -e "$its/$begun" ] || fail "$1 is in the middle of something else (git status tells what): end that first"
    done
}

forecast() { # SOURCE REF: conflicts are found without touching a file; a git that cannot (before 2.38) finds them on the way
    found=$(git_in "$1" merge-tree --write-tree --name-only --no-messages HEAD "$2" 2>/dev/null)
    [ $? -ne 1 ] || fail "conflicts in: $(printf '%s' "$found" | sed 1d | tr '\n' ' ')"
}

apply() { # SOURCE REF BASE
    top=$(git_in "$1" rev-parse --show-toplevel)
    refuse_unfinished "$1"
    patch=$(mktemp) || fail "no temporary file can be made"
    git_in "$top" diff-tree -p --binary --full-index --no-ext-diff "$3" "$2" >"$patch"
    if [ -s "$patch" ] && ! said=$(git_in "$top" apply --whitespace=nowarn "$patch" 2>&1); then
        rm -f "$patch"
        fail "it does not fit: $said"
    fi
    rm -f "$patch"
    git_in "$top" rev-parse HEAD
}

bundle() { # PATH REF BASE
    git_in "$1" bundle create - "$2" "^$3" 2>/dev/null
}

take() { # SOURCE BUNDLE REF NAME BASE
    git_in "$1" rev-parse --show-toplevel >/dev/null 2>&1 || fail "$1 is in no git repository"
    git_in "$1" rev-parse --verify --quiet "$5^{commit}" >/dev/null ||
        fail "$1 does not have commit $5, which the work began at: fetch it first, or name another checkout"
    arrived=refs/fleet/arrived/$$
    patiently git_in "$1" fetch --quiet "$2" "+$3:$arrived" || fail "$said"
    taken=refs/fleet/landing/$4 count=1
    while git_in "$1" rev-parse --verify --quiet "$taken" >/dev/null && ! git_in "$1" merge-base --is-ancestor "$taken" "$arrived"; do
        count=$((count + 1)) # that one is another's, or another work
        taken=refs/fleet/landing/$4.$count
    done
    git_in "$1" update-ref "$taken" "$arrived" || fail "the commits cannot be kept in $1"
    git_in "$1" update-ref -d "$arrived"
    printf '%s\n' "$taken"
}

let_go() { # SOURCE REF
    git_in "$1" update-ref -d "$2"
}

drop() { # SOURCE PATH
    present "$2"
    dirty=$(in_tree "$2" status --porcelain --untracked-files=all | head -n 5)
    [ -z "$dirty" ] || fail "it has uncommitted work: $(printf '%s' "$dirty" | cut -c4- | tr '\n' ' ')"
    refuse_unfinished "$2"
    refuse_nested "$2"
    refuse_astray "$2"
    bury "$2"
    put_aside "$2" "$(git_in "$1" rev-parse --show-toplevel 2>/dev/null || echo /nowhere)"
    if ! patiently git --git-dir="$common" worktree remove --force "$2"; then
        why=$said
        [ -z "$place" ] || bring_back "$2" "$place"
        fail "$why"
    fi
    if git --git-dir="$common" rev-parse --verify --quiet "$ref" >/dev/null; then
        patiently git --git-dir="$common" branch --quiet -D "$branch" || fail "$said"
    fi
    printf '%s\n' "$place"
}

bury() { # PATH: its commits stay; and so do those of an earlier one of its name that these do not have
    if old=$(git_in "$1" rev-parse --verify --quiet "$grave") && ! git_in "$1" merge-base --is-ancestor "$old" HEAD; then
        git_in "$1" update-ref "$grave.$old" "$old" || fail "the commits of an earlier one cannot be kept"
    fi
    git_in "$1" update-ref "$grave" HEAD || fail "the branch cannot be kept"
}

restore() { # SOURCE PATH
    [ ! -e "$2/.git" ] || fail "it is there: $2"
    known "$1" "$2"
    head=$(git_in "$1" rev-parse --verify --quiet "$grave") || fail "nothing is kept of $branch"
    now=$(git_in "$1" rev-parse --verify --quiet "$ref") || now=$head
    [ "$now" = "$head" ] || fail "there is a branch $branch already, and it is not what was dropped"
    claim "$1" "$2"
    forget "$1" "$2"
    add_tree "$1" "$2" "$branch" "$head"
    bring_back "$2" "${2%/worktrees/*}/dropped/${2##*/}/$head"
    git_in "$1" update-ref -d "$grave"
    printf '%s\n' "$branch"
}
