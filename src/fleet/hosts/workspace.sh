# shellcheck shell=sh
# Workspaces on a host: sh -c "$(cat workspace.sh)" workspace VERB ...
#
#   mark ROOT KEPT MOST FILE            write down what is in ROOT; what is below KEPT does not count
#   changes ROOT KEPT MOST FILE         what differs from that, one path a line, and write nothing
#   obtain URL BRANCH PATH TEMPORARY HOW   a clone at PATH; of one that is there HOW is fetch or keep
#   forward URL BRANCH PATH             bring the checkout of a clone forward to what was fetched; not to be cut off
#   discard TEMPORARY                   what is left of a clone that was cut off
#   sweep STATE                         what crashes left of clones more than a day ago; their names
#   make SOURCE PATH BRANCH BASE BEGIN [FILE...]   a worktree of SOURCE's repository at PATH, with some untracked files
#   unmake SOURCE PATH BRANCH BASE [FILE...]   what is left of a worktree whose making was cut off
#   list STATE                          the worktrees that are there, by name
#   state PATH BASE                     what became of it: head, base, commits, dirty files
#   diff PATH BASE                      all that differs from BASE, files that git does not know yet included
#   person                              who git takes us for, `Name <address>`
#   commit PATH BRANCH MESSAGE NAME ADDRESS   what is not committed yet; by that person where git knows nobody;
#                                       then BRANCH is what is checked out, also where the agent has left it
#   merge SOURCE REF MESSAGE NAME ADDRESS   into what SOURCE has checked out; not at all where there is a conflict
#   apply SOURCE REF BASE               the difference, into SOURCE's files; not at all where it does not fit
#   bundle PATH BRANCH BASE             the commits since BASE, in one stream
#   take SOURCE BUNDLE BRANCH REF BASE  those of a bundle, as REF; BASE is the commit that they began at
#   let_go SOURCE REF                   a ref that `take` made
#   drop PATH BRANCH GRAVE              remove a worktree without uncommitted work; its branch is kept as GRAVE
#   restore SOURCE PATH BRANCH GRAVE    bring it back
#
# Codes: 0 done, 3 it cannot be done and why is on stderr, 5 too many files, 6 the repository was not
# reached. A verb that was cut off may be said again.
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

# Keys and credentials are this machine's own, nobody is asked for them, and a server that falls silent is given up.
away() { # WORD...: git, with another machine
    if [ -z "${GIT_SSH_COMMAND-}" ] && ! git config core.sshCommand >/dev/null 2>&1; then
        GIT_SSH_COMMAND='ssh -o BatchMode=yes -o ConnectTimeout=20 -o ServerAliveInterval=15'
        export GIT_SSH_COMMAND
    fi
    GIT_HTTP_LOW_SPEED_LIMIT=1 GIT_HTTP_LOW_SPEED_TIME=60
    export GIT_HTTP_LOW_SPEED_LIMIT GIT_HTTP_LOW_SPEED_TIME
    if ! patiently git "$@"; then
        case $said in
            *"find remote ref"* | *"not found in upstream"*) fail "there is no branch $branch in $url" ;;
        esac
        printf 'cannot get %s: %s\n' "$url" "$(printf '%s' "$said" | grep -v '^Cloning into' | head -n 3 | tr '\n' ' ')" >&2
        exit 6
    fi
}

clone() { # URL BRANCH PATH TEMPORARY
    rm -rf "$4"
    mkdir -p "$(dirname "$3")" "$(dirname "$4")" || fail "$3 cannot be made"
    if [ -n "$2" ]; then set -- "$@" --branch "$2"; fi
    url=$1 path=$3 temporary=$4
    shift 4
    away clone --quiet --origin origin "$@" -- "$url" "$temporary"
    rmdir "$path" 2>/dev/null
    if ! mv "$temporary" "$path"; then # another was quicker, and ours did not go into it
        rm -rf "$temporary"
        [ -e "$path/.git" ] || fail "the clone cannot be moved to $path"
    fi
    if [ -d "$path/${temporary##*/}/.git" ]; then rm -rf "${path:?}/${temporary##*/}"; fi # it did
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

sweep() { # STATE: no clone takes a day, and nobody works in one before it is in its place
    cd "$1/clones" 2>/dev/null || return 0
    find . ! -name . -prune -type d -mtime +0 | while IFS= read -r clone; do
        rm -rf "$clone" && printf '%s\n' "${clone#./}"
    done
}

named() { # URL: without what git does not mind
    word=${1%/}
    printf '%s' "${word%.git}"
}

obtain() { # URL BRANCH PATH TEMPORARY HOW
    url=$1 branch=$2 path=$3 how=$5
    command -v git >/dev/null || fail "git is not installed"
    if [ -z "$(ls -A "$path" 2>/dev/null)" ]; then
        clone "$1" "$2" "$3" "$4"
        how=keep
    fi
    [ -e "$path/.git" ] || fail "$path is there, and is no clone of $url"
    origin=$(git_in "$path" config --get remote.origin.url)
    [ "$(named "$origin")" = "$(named "$url")" ] || fail "$path is a clone of ${origin:-nothing}, not of $url"
    tracked
    if [ "$how" != keep ]; then away -C "$path" fetch --quiet origin "+refs/heads/$branch:$remote"; fi
    git_in "$path" rev-parse --verify --quiet "$remote" || fail "there is no branch $branch in $path"
}

tracked() { # the branch, where none is named, and what is known of it here
    if [ -z "$branch" ]; then
        branch=$(git_in "$path" symbolic-ref --quiet --short refs/remotes/origin/HEAD) || fail "$url has no default branch"
        branch=${branch#origin/}
    fi
    remote=refs/remotes/origin/$branch
}

# Only forward: what is not committed, or not known elsewhere, stays as it is.
forward() { # URL BRANCH PATH
    url=$1 branch=$2 path=$3
    tracked
    set -- "$path" "$branch" "$remote"
    current=$(git_in "$1" symbolic-ref --quiet --short HEAD) || current=
    if [ "$current" != "$2" ]; then
        [ -n "$current" ] || [ -n "$(git_in "$1" for-each-ref --contains HEAD)" ] || fail "$1 has commits that are on no branch"
        [ -z "$(git_in "$1" status --porcelain --untracked-files=no)" ] || fail "$1 has uncommitted work, and not $2 checked out"
        if git_in "$1" rev-parse --verify --quiet "refs/heads/$2" >/dev/null; then set -- "$@" "$2"; else set -- "$@" -b "$2" "$3"; fi
        path=$1 branch=$2 remote=$3
        shift 3
        patiently git_in "$path" checkout --quiet "$@" -- || fail "$said"
        set -- "$path" "$branch" "$remote"
    fi
    if git_in "$1" merge-base --is-ancestor "$3" HEAD; then return; fi
    git_in "$1" merge-base --is-ancestor HEAD "$3" ||
        fail "$1 has commits on $2 that $url has not, and lacks others: they must be merged by a person first"
    patiently git_in "$1" merge --quiet --ff-only "$3" || fail "$1 cannot be brought forward: $said"
}

make() { # SOURCE PATH BRANCH BASE BEGIN [FILE...]
    source=$1 path=$2 branch=$3 base=$4 begin=$5
    shift 5
    command -v git >/dev/null || fail "git is not installed"
    top=$(git_in "$source" rev-parse --show-toplevel 2>/dev/null) || fail "$source is in no git repository"
    prefix=$(git_in "$source" rev-parse --show-prefix)
    await_maker "$top" "$path"
    if is_half_made "$top" "$path"; then clear_half_made "$top" "$path"; fi
    if [ ! -e "$path/.git" ]; then
        git_in "$top" rev-parse --verify --quiet HEAD >/dev/null || fail "$top has no commit yet"
        forget "$top" "$path"
        git_in "$top" rev-parse --verify --quiet "$base" >/dev/null || git_in "$top" update-ref "$base" "$begin"
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
    making=$(own_of "$1" "$2" fleet-making)
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
    mkdir -p "$(dirname "$2")" || fail "$2 cannot be made"
    patiently git_in "$1" worktree remove --force "$2"
    record=$(own_of "$1" "$2" record)
    if [ -d "$record" ] && [ ! -e "$record/gitdir" ]; then rm -rf "$record"; fi # its making was cut off at once
}

own_of() { # TOP PATH NAME: what is about that worktree, which may be half made: git's record, or who makes it
    common=$(git_in "$1" rev-parse --path-format=absolute --git-common-dir)
    case $3 in
        record) printf '%s/worktrees/%s' "$common" "${2##*/}" ;;
        *) printf '%s/%s-%s' "$common" "$3" "${2##*/}" ;;
    esac
}

is_half_made() { # TOP PATH: git locks a worktree until all of its files are there
    [ "$(cat "$(own_of "$1" "$2" record)/locked" 2>/dev/null)" = initializing ]
}

# A maker that outlived whoever asked for it goes on: what it makes will do, and to clear that away under it would not.
await_maker() { # TOP PATH
    maker=$(cat "$(own_of "$1" "$2" fleet-making)" 2>/dev/null) || return 0
    tries=0
    while [ $tries -lt 3000 ] && is_making "$maker" "$2"; do
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
    rm -f "$(own_of "$1" "$2" record)/locked" "$(own_of "$1" "$2" fleet-making)"
    forget "$1" "$2"
}

unmake() { # SOURCE PATH BRANCH BASE [FILE...]
    source=$1 path=$2 branch=$3 base=$4
    shift 4
    top=$(git_in "$source" rev-parse --show-toplevel 2>/dev/null) || return 0
    if is_half_made "$top" "$path"; then clear_half_made "$top" "$path"; fi
    for file do discard "$path/${file%/}.fleet-part"; done
    rm -f "$(own_of "$top" "$path" fleet-making)"
    [ ! -e "$path" ] || return 0
    began=$(git_in "$top" rev-parse --verify --quiet "$base") || return 0
    head=$(git_in "$top" rev-parse --verify --quiet "refs/heads/$branch") || head=$began
    [ "$head" = "$began" ] || return 0 # the branch has commits
    git_in "$top" update-ref -d "refs/heads/$branch"
    git_in "$top" update-ref -d "$base"
}

list() { # STATE
    ls -A "$1/worktrees" 2>/dev/null
    return 0
}

state() { # PATH BASE
    [ -e "$1/.git" ] || fail "there is no worktree at $1"
    git_in "$1" rev-parse HEAD "$2" || fail "it is not known where $1 began"
    git_in "$1" rev-list --count "$2..HEAD"
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

person() {
    git var GIT_COMMITTER_IDENT 2>/dev/null | sed 's/ [0-9]* [-+][0-9]*$//'
}

by() { # DIRECTORY NAME ADDRESS: who commits there
    if [ -z "$2" ] || git_in "$1" var GIT_COMMITTER_IDENT >/dev/null 2>&1; then return; fi
    GIT_AUTHOR_NAME=$2 GIT_AUTHOR_EMAIL=$3 GIT_COMMITTER_NAME=$2 GIT_COMMITTER_EMAIL=$3
    export GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL
}

commit() { # PATH BRANCH MESSAGE NAME ADDRESS
    by "$1" "$4" "$5"
    refuse_unfinished "$1"
    refuse_nested "$1"
    if [ -n "$(in_tree "$1" status --porcelain --untracked-files=all | head -n 1)" ]; then
        patiently in_tree "$1" add -A || fail "it cannot be committed: $said"
        patiently git_in "$1" commit --quiet -m "$3" || fail "it cannot be committed: $said"
    fi
    refuse_astray "$1" "$2"
    if [ "$(git_in "$1" symbolic-ref --quiet HEAD)" != "refs/heads/$2" ]; then
        patiently git_in "$1" branch --quiet -f "$2" HEAD || fail "$said"
    fi
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
refuse_astray() { # PATH BRANCH
    if git_in "$1" rev-parse --verify --quiet "refs/heads/$2" >/dev/null; then
        git_in "$1" merge-base --is-ancestor "refs/heads/$2" HEAD ||
            fail "$2 has commits that what is checked out in $1 has not: merge them there first"
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
    git_in "$top" diff --binary "$3" "$2" >"$patch"
    if [ -s "$patch" ] && ! said=$(git_in "$top" apply --check "$patch" 2>&1 && git_in "$top" apply "$patch" 2>&1); then
        rm -f "$patch"
        fail "it does not fit: $said"
    fi
    rm -f "$patch"
    git_in "$top" rev-parse HEAD
}

bundle() { # PATH BRANCH BASE
    git_in "$1" bundle create - "refs/heads/$2" "^$3" 2>/dev/null
}

take() { # SOURCE BUNDLE BRANCH REF BASE
    git_in "$1" rev-parse --show-toplevel >/dev/null 2>&1 || fail "$1 is in no git repository"
    git_in "$1" rev-parse --verify --quiet "$5^{commit}" >/dev/null ||
        fail "$1 does not have commit $5, which the work began at: fetch it first, or name another checkout"
    patiently git_in "$1" fetch --quiet "$2" "+refs/heads/$3:$4" || fail "$said"
}

let_go() { # SOURCE REF
    git_in "$1" update-ref -d "$2"
}

drop() { # PATH BRANCH GRAVE
    top=$(git_in "$1" rev-parse --path-format=absolute --git-common-dir 2>/dev/null) || fail "there is no worktree at $1"
    dirty=$(in_tree "$1" status --porcelain --untracked-files=all | head -n 5)
    [ -z "$dirty" ] || fail "it has uncommitted work: $(printf '%s' "$dirty" | cut -c4- | tr '\n' ' ')"
    refuse_nested "$1"
    refuse_astray "$1" "$2"
    git_in "$1" update-ref "$3" HEAD || fail "the branch cannot be kept"
    patiently git --git-dir="$top" worktree remove --force "$1" || fail "$said"
    if git --git-dir="$top" rev-parse --verify --quiet "refs/heads/$2" >/dev/null; then
        patiently git --git-dir="$top" branch --quiet -D "$2" || fail "$said"
    fi
}

restore() { # SOURCE PATH BRANCH GRAVE
    head=$(git_in "$1" rev-parse --verify --quiet "$4") || fail "nothing is kept of $3"
    now=$(git_in "$1" rev-parse --verify --quiet "refs/heads/$3") || now=$head
    [ "$now" = "$head" ] || fail "there is a branch $3 already, and it is not what was dropped"
    forget "$1" "$2"
    add_tree "$1" "$2" "$3" "$head"
    git_in "$1" update-ref -d "$4"
}

verb=$1
shift
"$verb" "$@"
