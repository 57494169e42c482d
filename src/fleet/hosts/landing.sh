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
    reveal "$1"
    keep_modules "$1"
    if [ -n "$(in_tree "$1" status --porcelain --untracked-files=all | head -n 1)" ]; then
        patiently in_tree "$1" add -A || fail "it cannot be committed: $said"
        patiently git_in "$1" commit --quiet -m "$2" || fail "it cannot be committed: $said"
    fi
    refuse_astray "$1"
    if [ "$(git_in "$1" symbolic-ref --quiet HEAD)" != "$ref" ]; then
        patiently git_in "$1" branch --quiet -f "$branch" HEAD || fail "$said"
    fi
    printf '%s\n' "$ref" "$began" "$(git_in "$1" rev-list --count "$began..HEAD")"
    remarks "$1"
}

remarks() { # PATH: what a person wants to know of it, a sentence each
    git_in "$1" diff-tree -r --name-only -z --diff-filter=AM -G '^(<<<<<<<|>>>>>>>) ' "$began" HEAD | tr '\n\0' ' \n' |
        while IFS= read -r file; do
            if git_in "$1" cat-file -p "HEAD:$file" 2>/dev/null | grep -q '^<<<<<<< '; then
                printf 'the marks of a conflict are in %s\n' "$file"
            fi
        done
    git_in "$1" stash list --format=%gs 2>/dev/null | grep -E -e "^(WIP on|On) $branch:" | while IFS= read -r stash; do
        printf 'it left work in git stash, which was not landed: %s\n' "$stash"
    done
    printf '%s' "$modules"
}

# Changes of files that git was told to take for unchanged.
reveal() { # PATH
    git_in "$1" update-index -q --really-refresh >/dev/null
    # shellcheck disable=SC2016
    git_in "$1" ls-files -v -z | tr '\n\0' '\0\n' | sed -n 's/^[Ss] //p' | tr '\n\0' '\0\n' |
        (cd -- "$1" && xargs -0 sh -c 'for each do if [ -e "$each" ]; then printf "%s\0" "$each"; fi; done' sh) |
        git_in "$1" update-index -z --no-skip-worktree --stdin
}

# What was committed in a submodule is in the worktree's own part of the repository, and would be gone with it. Commits that
# are not known where they came from are brought to the same submodule of the checkout.
keep_modules() { # PATH: what was brought, as sentences, in $modules
    modules=
    [ -e "$1/.gitmodules" ] || return 0
    modules=$(
        OURS=$(own "$1")/modules/ THEIRS=$common/modules/ AS=refs/fleet/modules/$name
        export OURS THEIRS AS
        # shellcheck disable=SC2016
        cd -- "$1" && git submodule --quiet foreach --recursive '
            if [ -n "$(git status --porcelain --untracked-files=no --ignore-submodules=none)" ]; then
                echo "there is uncommitted work in submodule $displaypath"
                exit 3
            fi
            if [ -z "$(git rev-list -n 1 HEAD --branches --not --remotes)" ]; then exit 0; fi
            its=$(git rev-parse --path-format=absolute --git-dir)
            to=$THEIRS${its#"$OURS"}
            if [ "$its" = "${its#"$OURS"}" ] || [ ! -d "$to" ]; then
                echo "submodule $displaypath has commits that are nowhere else: push them, or have it in the checkout too"
                exit 3
            fi
            GIT_PROTOCOL_FROM_USER=1 git --git-dir="$to" fetch --quiet "$PWD" "+HEAD:$AS/HEAD" "+refs/heads/*:$AS/heads/*" 2>&1 || exit 3
            echo "the commits of submodule $displaypath are in that of the checkout: git submodule update"
        ' 2>/dev/null
    ) || fail "$(printf '%s\n' "${modules:-the submodules cannot be looked at}" | tail -n 1)"
    [ -z "$modules" ] || modules="$modules
"
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
        tip "$1"
        return
    fi
    refuse_unfinished "$1"
    forecast "$1" "$2"
    if ! patiently git_in "$1" merge --no-edit -m "$3" "$2"; then
        conflicts=$(git_in "$1" diff --name-only --diff-filter=U)
        if git_in "$1" rev-parse --verify --quiet MERGE_HEAD >/dev/null; then git_in "$1" merge --abort; fi
        [ -z "$conflicts" ] || fail "conflicts in: $(printf '%s' "$conflicts" | tr '\n' ' ')"
        fail "$(printf '%s' "$said" | sed 's/^error: //; s/^fatal: //')"
    fi
    tip "$1"
}

tip() { # SOURCE: the commit that it stands at, and the branch, where it is on one
    git_in "$1" rev-parse HEAD
    git_in "$1" symbolic-ref --quiet --short HEAD
    return 0
}

refuse_unfinished() { # SOURCE: what a person has begun there is theirs to end
    its=$(own "$1")
    for begun in MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD BISECT_LOG rebase-merge rebase-apply; do
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
    modules=$(git_in "$top" diff-tree -r --no-renames "$3" "$2" | sed -n -e 's/^:160000[^	]*	//p' -e 's/^:[0-7]* 160000[^	]*	//p')
    [ -z "$modules" ] || fail "it changes submodules, which only a merge brings: $(printf '%s' "$modules" | tr '\n' ' ')"
    patch=$(mktemp) || fail "no temporary file can be made"
    git_in "$top" diff-tree -p --binary --full-index --no-ext-diff "$3" "$2" >"$patch"
    if [ -s "$patch" ] && ! said=$(git_in "$top" apply --whitespace=nowarn "$patch" 2>&1); then
        rm -f "$patch"
        fail "it does not fit: $said"
    fi
    rm -f "$patch"
    tip "$top"
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
    reveal "$2"
    dirty=$(in_tree "$2" status --porcelain --untracked-files=all | head -n 5)
    [ -z "$dirty" ] || fail "it has uncommitted work: $(printf '%s' "$dirty" | cut -c4- | tr '\n' ' ')"
    refuse_unfinished "$2"
    refuse_nested "$2"
    refuse_astray "$2"
    keep_modules "$2"
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
