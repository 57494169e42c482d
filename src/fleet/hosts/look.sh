# shellcheck shell=sh
# What files a session left: sh -c "$(cat look.sh)" look REFERENCE ARTIFACTS WORKSPACE [PATH...]
#
# Prints a record for each file, ended by NUL:  INDEX KIND SIZE FRESH NAME
#   INDEX     - for what is in the artifact directory, else the number of the PATH that was asked for, from 0;
#             first of all come a and w: where the artifact directory and the workspace really are
#   KIND      file, directory, absent, outside (it leads out of both directories), other
#   FRESH     1 when it is not older than REFERENCE
#   NAME      where it really is, with every link followed
# Links are followed where a PATH was asked for, and never when a directory is listed.

reference=$1 artifacts=$2 workspace=$3
shift 3
if stat -c %s / >/dev/null 2>&1; then flag=-c format=%s; else flag=-f format=%z; fi
newline='
'

# Run by find, as: sh -c "$each" each INDEX REFERENCE FLAG FORMAT FILE...
# One stat for all; one for each only where a file vanished meanwhile.
# shellcheck disable=SC2016
each='
index=$1 reference=$2 flag=$3 format=$4
shift 4
newline="
"
all=$(stat "$flag" "$format" -- "$@" 2>/dev/null)$newline
if [ "$(printf %s "$all" | wc -l)" -ne $# ]; then all=; fi
for file do
    if [ -n "$all" ]; then
        size=${all%%"$newline"*} all=${all#*"$newline"}
    else
        size=$(stat "$flag" "$format" -- "$file" 2>/dev/null) || continue
    fi
    fresh=1
    if [ "$reference" -nt "$file" ]; then fresh=0; fi
    printf "%s file %s %s %s\0" "$index" "$size" "$fresh" "$file"
done
'

listed() { # INDEX DIRECTORY: the files in it, at any depth
    find "$2" -type f -exec sh -c "$each" each "$1" "$reference" "$flag" "$format" {} + 2>/dev/null
}

said() { # INDEX KIND NAME
    if [ "$verb" = tell ]; then printf '%s %s 0 0 %s\0' "$1" "$2" "$3"; fi
}

real() { # the directory, with every link followed
    (unset CDPATH; cd -P -- "$1" 2>/dev/null && pwd -P)
}

seek() { # INDEX PATH: tell what it is; or list what is in it, where it is a directory
    case $2 in /*) path=$2 ;; *) path=$workspace/$2 ;; esac
    path=${path%/}
    hops=0
    while [ -L "$path" ]; do
        hops=$((hops + 1))
        if [ "$hops" -gt 20 ]; then said "$1" outside "$2"; return; fi
        link=$(readlink "$path")
        case $link in /*) path=$link ;; *) path=${path%/*}/$link ;; esac
    done
    if [ -d "$path" ]; then
        path=$(real "$path")
    elif where=$(real "${path%/*}/"); then
        path=${where%/}/${path##*/}
    else
        said "$1" absent "$2"
        return
    fi
    case $path/ in
        "$inner"/* | "$kept"/*) ;;
        *) said "$1" outside "$2"; return ;;
    esac
    if [ -d "$path" ]; then
        said "$1" directory "$path"
        if [ "$verb" = list ]; then listed "$1" "$path"; fi
    elif [ -f "$path" ] && [ "$verb" = tell ]; then
        sh -c "$each" each "$1" "$reference" "$flag" "$format" "$path"
    elif [ -e "$path" ]; then
        said "$1" other "$path"
    else
        said "$1" absent "$2"
    fi
}

inner=$(real "$workspace") || inner=/nowhere${newline}
kept=$(real "$artifacts") || kept=/nowhere${newline}
all() { # tell|list
    index=0
    verb=$1
    shift
    for wanted do
        seek "$index" "$wanted"
        index=$((index + 1))
    done
}

# What has no end comes last, and is cut off; that ends find, too.
{
    printf 'a directory 0 0 %s\0w directory 0 0 %s\0' "$kept" "$inner"
    all tell "$@"
    if [ -d "$kept" ]; then listed - "$kept"; fi
    all list "$@"
} | head -c 1048576
