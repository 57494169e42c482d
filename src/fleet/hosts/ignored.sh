# shellcheck shell=sh disable=SC2154
# What git ignores in a worktree: looked at, put aside when the worktree goes, brought back with it. A part of workspace.sh.

EACH='git ls-files -z --others --directory --no-empty-directory'

# Here, NUL after each: what is in no commit and is no uncommitted work. A directory that is ignored as a whole is one.
left_over() { # COPIED
    $EACH --ignored --exclude-standard
    if [ -e .gitmodules ]; then # what git does not know there may be no work by the settings of the submodule
        # shellcheck disable=SC2016
        git submodule --quiet foreach --recursive "$EACH"' | xargs -0 sh -c '\''for each do printf "%s\0" "$0/$each"; done'\'' "$displaypath"'
    fi
    if [ -f "$1" ]; then
        while IFS= read -r file; do
            if is_there "$file" && ! git check-ignore -q -- "$file"; then printf '%s\0' "$file"; fi
        done <"$1"
    fi
}

is_there() { # PATH
    [ -e "$1" ] || [ -L "$1" ]
}

# Three lists: KiB and name of each as `du` tells them; then, NUL around and between, the directories that say that they can
# be made anew; then, as the first, the copies that the checkout still has as they are.
ignored() { # SOURCE PATH
    present "$2"
    top=$(git_in "$1" rev-parse --show-toplevel 2>/dev/null) || top=/nowhere
    copied=$(own "$2")/fleet-copied
    cd -- "$2" || fail "$2 cannot be entered"
    { left_over "$copied" | xargs -0 du -sk -- .git; } || fail "not all of what git ignores in $2 can be read"
    printf '\0'
    # shellcheck disable=SC2016
    left_over "$copied" | xargs -0 sh -c 'for each do
        if [ -e "$each/CACHEDIR.TAG" ] || [ -e "$each/pyvenv.cfg" ]; then printf "%s\0" "$each"; fi
    done' sh
    printf '\0'
    if [ -f "$copied" ]; then
        while IFS= read -r file; do
            if is_same "$top/$file" "$file"; then du -sk -- "$file"; fi
        done <"$copied"
    fi
}

is_same() { # ONE OTHER
    is_there "$2" && command diff -r -q -- "$1" "$2" >/dev/null 2>&1
}

put_aside() { # PATH TOP: what stdin names, NUL after each; tells where, in $place
    place=
    listed=$(mktemp) || fail "no temporary file can be made"
    cat >"$listed" || fail "$listed cannot be written"
    if [ ! -s "$listed" ]; then
        rm -f "$listed"
        return
    fi
    place=${1%/worktrees/*}/dropped/${1##*/}/$(git_in "$1" rev-parse HEAD)
    while [ -e "$place" ]; do place=$place+; done
    (umask 077 && mkdir -p "$place/files" && mv "$listed" "$place/names") || { rm -f "$listed"; fail "$place cannot be written"; }
    copied=$(own "$1")/fleet-copied
    cd -- "$1" || fail "$1 cannot be entered"
    if [ -f "$copied" ]; then
        while IFS= read -r file; do
            if is_same "$2/$file" "$file"; then rm -rf "./$file"; fi
        done <"$copied"
    fi
    if ! said=$(moved . "$place/files" "$place/names"); then
        bring_back "$1" "$place"
        fail "what git ignores cannot be put aside: $said"
    fi
    cd / || exit 1
}

# shellcheck disable=SC2016
moved() { # FROM TO NAMES: where nothing stands in the way
    xargs -0 sh -c 'from=$1 to=$2
        shift 2
        for each do
            if [ ! -e "$from/$each" ] && [ ! -L "$from/$each" ]; then continue; fi
            if [ -e "$to/$each" ] || [ -L "$to/$each" ]; then continue; fi
            mkdir -p -- "$to/$(dirname -- "$each")" && mv -- "$from/$each" "$to/$each" || exit 255
        done' sh "$1" "$2" <"$3" 2>&1
}

aside() { # STATE DAYS
    for names in "$1"/dropped/*/*/names; do
        if is_past "$names" "$2"; then
            names=${names%/*/names}
            printf '%s\n' "${names##*/}"
        fi
    done | sort -u
}

is_past() { # FILE DAYS
    [ -n "$(find "$1" -prune -type f -mtime "+$(($2 - 1))" 2>/dev/null)" ]
}

clear_aside() { # STATE NAME DAYS: in one step nobody can bring it back any more, in the next it is removed
    for place in "$1/dropped/$2"/*; do
        is_past "$place/names" "$3" || continue
        mv "$place" "$1/dropped/.gone.$$" || fail "$place cannot be removed"
        rm -rf "$1/dropped/.gone.$$"
    done
    rmdir "$1/dropped/$2" 2>/dev/null
    rm -rf "$1"/dropped/.gone.* # of one who was cut off
    [ -z "$(ls -d "$1"/dropped/.gone.* 2>/dev/null)" ] || fail "not all of $1/dropped/$2 can be removed"
}

bring_back() { # PATH PLACE
    for place in "$2" "$2"+*; do
        [ -f "$place/names" ] || continue
        moved "$place/files" "$1" "$place/names" >&2
        find "$place/files" -depth -type d -exec rmdir -- {} + 2>/dev/null
        [ -e "$place/files" ] || rm -rf "$place"
    done
    rmdir "${2%/*}" 2>/dev/null
    return 0
}
