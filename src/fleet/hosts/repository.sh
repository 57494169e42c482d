# shellcheck shell=sh disable=SC2154
# The clones that tasks work in, on a host. A part of workspace.sh, which says what each verb is.

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
    (umask 077 && mkdir -p "$(dirname "$3")" "$(dirname "$4")") || fail "$3 cannot be made"
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
