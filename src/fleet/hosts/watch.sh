#!/bin/sh
# The far side of the watcher: tells what is new in the directories of many sessions, over one channel, until it is
# ended. It keeps nothing: whoever starts it says where to begin.
#
# usage: sh watch.sh ROOT MARK [SESSION STDOUT_OFFSET REQUESTS]...
#
# A frame is a line `KIND SESSION OFFSET LENGTH`, so many bytes, and a line with the mark. The bytes of a frame whose
# mark does not stand where it should are not to be believed: a file went away beneath it.
#   out      bytes of stdout from the offset on, which is not above the one that is wanted next
#   request  a request of the agent; the offset is its number
#   exit     the record of the end; all that stdout had before it, and every request, has been told by then
#   gone     nothing; the agent and its runner do not live, and there is no record of the end: told once
#   alive    nothing; every few seconds

set -u
cd -P -- "${1:?}" || exit 1
mark=${2:?}
shift 2

# How to read a part of a file without reading what is before it, to the byte where dd can.
exact=0
if dd if=/dev/null of=/dev/null bs=1 count=0 skip=0 iflag=skip_bytes,count_bytes 2>/dev/null; then exact=1; fi
pause=0.2 soon=0.05
if ! sleep 0.01 2>/dev/null; then pause=1 soon=1; fi

LC_ALL=C exec awk -v mark="$mark" -v exact="$exact" -v pause="$pause" -v soon="$soon" '
function frame(kind, name, number, file, from, bytes,    start) { # number: of a request; of the others, where it starts
    start = exact ? from : from - from % 512
    bytes += from - start
    printf("printf \"%s %s %.0f %.0f\\n\"; dd 2>/dev/null if=%s ", kind, name, number < 0 ? start : number, bytes, file) | sh
    if (exact) printf("bs=65536 iflag=skip_bytes,count_bytes skip=%.0f count=%.0f", start, bytes) | sh
    else printf("bs=512 skip=%.0f count=%.0f | head -c %.0f", start / 512, int((bytes + 511) / 512), bytes) | sh
    printf("; printf \"\\n%s\\n\"\n", mark) | sh
    told++
}

function look(first, last,    command, i, line, part) { # first the exit: what is found of stdout then has all before it
    command = "exec 2>/dev/null ls -dlniL" # whatever an agent made there: only regular files count
    for (i = first; i <= last && i <= sessions; i++)
        command = command " " session[i] "/exit " session[i] "/outbox/" (requests[session[i]] + 1) " " session[i] "/stdout"
    while ((command | getline line) > 0) {
        i = split(line, part, " ")
        if (part[2] !~ /^-/) continue # to open a pipe would silence this channel
        inode[part[i]] = part[1]
        size[part[i]] = part[6] + 0
    }
    close(command)
}

function tell(name,    have, more, request) {
    have = size[name "/stdout"] + 0
    if (have > offset[name]) {
        more = have - offset[name]
        if (more > most) more = most
        frame("out", name, -1, name "/stdout", offset[name], more)
        offset[name] += more
    }
    request = name "/outbox/" (requests[name] + 1)
    if (size[request] > 0) {
        requests[name]++
        frame("request", name, requests[name], request, 0, size[request] < longest ? size[request] : longest)
    } else if (size[name "/exit"] > 0 && inode[name "/exit"] != ended[name] && offset[name] >= have) { # else it is being written
        ended[name] = inode[name "/exit"]
        frame("exit", name, 0, name "/exit", 0, size[name "/exit"])
    }
}

function ended_of(file,    line, part, life, stat, field) { # whether the process that a file of the runner names is no more
    if ((getline line < file) < 1) line = ""
    close(file)
    split(line, part, " ")
    if (part[1] != "agent" && part[1] != "runner") return 0
    stat = "/proc/" part[2] "/stat"
    while ((getline line < stat) > 0) life = life line # a name may hold a line break
    close(stat)
    sub(/^.*\) /, "", life)
    split(life, field, " ")
    return part[4] != boot || field[20] != part[3] || field[1] ~ /^[ZX]/
}

function is_gone(name,    line, found) { # the record is looked for last: a runner writes it before it ends
    if (!ended_of(name "/pid") || !ended_of(name "/claim")) return 0
    found = (getline line < (name "/exit")) > 0
    close(name "/exit")
    return !found
}

BEGIN {
    most = 1048576; longest = 1048576; at_once = 200; sh = "exec sh"
    for (i = 1; i + 2 < ARGC; i += 3) {
        session[++sessions] = ARGV[i]
        offset[ARGV[i]] = ARGV[i + 1] + 0
        requests[ARGV[i]] = ARGV[i + 2] + 0
    }
    if ((getline boot < "/proc/sys/kernel/random/boot_id") < 1) boot = ""
    silent = 5
    while (1) {
        told = 0
        split("", size); split("", inode)
        for (i = 1; i <= sessions; i += at_once) look(i, i + at_once - 1)
        for (s = 1; s <= sessions; s++) tell(session[s])
        if (boot != "" && rounds++ % (pause < 1 ? 5 : 1) == 0) # every second
            for (s = 1; s <= sessions; s++)
                if (!ended[session[s]] && !(session[s] in gone) && is_gone(session[s])) {
                    gone[session[s]] = 1
                    printf("printf \"gone %s 0 0\\n\\n%s\\n\"\n", session[s], mark) | sh
                    told++
                }
        silent = told ? 0 : silent + pause
        if (silent >= 5) {
            printf("printf \"alive - 0 0\\n\\n%s\\n\"\n", mark) | sh
            silent = 0; told++
        }
        if (told && close(sh) != 0) exit 1
        if (system("exec sleep " (told ? soon : pause)) != 0) exit 1
    }
}' "$@"
