#!/bin/sh
# The session runner: runs one agent in one directory, once, and outlives whoever asked for it.
#
# usage: sh runner.sh VERB DIRECTORY EPOCH [ARGUMENT]...      each verb answers with one line of facts
#   start                 run the agent; what it may not read from disk comes on stdin
#   observe               what is so in many directories: EPOCH DIRECTORY on each line of stdin, and no further word
#   abandon               see to it that the agent never runs; too late once it has begun
#   stop GRACE_MS         end the agent and all it has started: INT, TERM, KILL, with a grace between; 0: it stands still at once
#   sweep GRACE_MS        end what a finished agent has left behind
#   conclude              record the end of an agent on a terminal that did what it was given; its process stays there
#   attend                let an agent that ends when nobody attends it live on for as long again
#   free OFFSET [FROM]    give back the disk space of stdout below the offset, or from one to the other, where the host can
#   forget STDOUT STDERR  remove the directory, once these many bytes of each were collected and nothing lives
# exit codes: 0 the facts are on stdout; 1 failed; 3 a higher epoch was here; 4 refused
#
# run [BOOT CGROUP] is the runner itself: it claims the session, says `state=running` once the agent has begun, waits, and
# records the exit. Who can give it a process session of its own, fresh signals and a small environment may call it
# without start, and may spare it what it would find out: the boot id, a cgroup (made; empty: none is to be had) and, as
# the first line of stdin, the start time of its process.
# What it needs for that stands first, and the rest of this file is read only when something is left to be done: a shell
# that reads all of it takes as long as the start of a process. watch is what a runner starts beside itself.
# Two names are taken by whoever makes the file first: `claim` by who may start the agent, or by who gave it up; `pid` by
# the agent that begins, or by who found that it cannot begin any more. The line in it comes a moment after the name, so
# the runner and the agent first write it to a file of their own: who finds an empty one looks whether one of them lives.

set -u
unset CDPATH
newline='
'
self=$0 verb=${1-} dir=${2-} epoch=${3-}
proto=1 session='' shell=sh cap=0 tick=5 keep=0 grace_ms=2000 use_cgroup=1 dead_man=0 first_epoch=0 cwd=/ stdin=/dev/null
secrets='' tty=0 margin=17825792 # longer than a line that is read as one, and what is looked at for the last ones

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

unwritable() { # WHAT...: why a file could not be written; not every shell says it
    if is_full; then set -- "$*: No space left on device"; fi
    printf 'cannot write %s' "$*"
}

is_full() { # or was a moment ago: what was in the way of a write may have been given back since
    [ "$(df -Pk "$dir" 2>/dev/null | awk 'NR == 2 { print $4 }')" -lt 64 ] 2>/dev/null
}

take() { # NAME LINE [WIDTH]: make the file; false when it is there, or only its name could be made. It needs no process
    took=no
    set -C
    # shellcheck disable=SC2059 # the width
    { took=name && printf "%-${3:-1}s\n" "$2" && took=all; } 2>/dev/null >"$1"
    set +C
    [ "$took" = all ]
}

# --- epochs -----------------------------------------------------------------------------------------------------------

heed_epoch() { # that of the launch, or the greatest N of all epoch.N: of files that are only added, it cannot fall
    highest=$first_epoch
    for each in epoch.*; do
        each=${each#epoch.}
        case $each in *[!0-9]*) continue ;; esac
        if [ "$each" -gt "$highest" ]; then highest=$each; fi
    done
    if [ "$epoch" -lt "$highest" ]; then
        printf 'fenced: the session is at epoch %s, this is %s\n' "$highest" "$epoch" >&2
        exit 3
    fi
    if [ "$epoch" -gt "$highest" ]; then true >"epoch.$epoch" || fail "$(unwritable the epoch)"; fi
}

# --- the machine ------------------------------------------------------------------------------------------------------

linux=''
boot=''
if [ "$verb" = run ] && [ -n "${4-}" ]; then
    linux=1 boot=$4
elif [ -r /proc/self/stat ]; then
    linux=1
    read -r boot </proc/sys/kernel/random/boot_id
else
    boot=$(sysctl -n kern.boottime 2>/dev/null | sed 's/^[^0-9]*\([0-9]*\).*/\1/')
fi

look() { # PID: what the kernel says of it now, as state_of and start_of
    state_of='' start_of='' stat_line=''
    if [ -n "$linux" ]; then
        { while IFS= read -r part; do stat_line=$stat_line$part; done <"/proc/$1/stat"; } 2>/dev/null
        [ -n "$stat_line" ] || return 1
        # shellcheck disable=SC2086 # words are wanted: those after the name, which may itself hold brackets and spaces
        set -- ${stat_line##*) }
        state_of=$1
        shift 19
        start_of=$1
    else
        state_of=$(ps -o stat= -p "$1" 2>/dev/null) || return 1
        start_of=$(LC_ALL=C TZ=UTC ps -o lstart= -p "$1" | tr -s ' ' '-')
        [ -n "$start_of" ]
    fi
}

alive() { # PID START BOOT: whether that very process lives; its number alone may be another's by now
    [ -n "$1" ] && [ "$3" = "$boot" ] && look "$1" && [ "$start_of" = "$2" ] || return 1
    case $state_of in Z* | X*) return 1 ;; esac
}

find_setsid() { # where it is, before the agent's own PATH counts; '' where perl must do
    setsid=/usr/bin/setsid
    if [ ! -x "$setsid" ]; then setsid=$(command -v setsid); fi
    [ -n "$setsid" ] || command -v perl >/dev/null 2>&1 || fail "the host needs setsid or perl"
}

become() { # WORD...: exec the agent as the leader of a process session of its own
    if ! command -v -- "$1" >/dev/null 2>&1; then
        printf '%s: not found\n' "$1" >&2
        if [ "$tty" -ne 0 ]; then printf '%s: not found\n' "$1" >>"$FLEET_SESSION_DIR/stderr"; fi
        exit 127
    fi
    if [ "$tty" -ne 0 ]; then exec "$@"; fi # its process session is that of its terminal
    if [ -n "$setsid" ]; then exec "$setsid" "$@"; fi
    exec perl -e 'use POSIX; POSIX::setsid(); exec { $ARGV[0] } @ARGV' "$@"
}

read_uptime() { # in seconds; and in milliseconds, where a clock tells that nobody sets
    uptime='' uptime_ms=''
    if [ -r /proc/uptime ]; then read -r uptime _ </proc/uptime; fi
    case $uptime in [1-9]*.??) uptime_ms=${uptime%.*}${uptime#*.}0 ;; esac
    uptime=${uptime%%.*}
    if [ -z "$uptime" ]; then uptime=$(date +%s); fi
}

read_ran() { # for how long the agent has run, in milliseconds; '' where only a clock could tell that somebody may set
    ran=''
    if [ -z "$linux" ] || [ -z "$start" ] || [ "$pid_boot" != "$boot" ]; then return; fi
    read_uptime
    if [ -n "$uptime_ms" ]; then ran=$((uptime_ms - start * 10)); fi # it began at so many hundredths of a second
}

# --- who has it -------------------------------------------------------------------------------------------------------

read_pids() { # who claimed the session, and which process the agent is; '' means that the file was not there
    claimant='' runner_pid='' runner_start='' runner_boot='' cap_of=0
    if [ -f claim ]; then
        read -r claimant runner_pid runner_start runner_boot _ cap_of _ <./claim
        if [ -z "$claimant" ]; then read_torn_claim; fi
        if [ "$claimant" != runner ]; then runner_pid='' cap_of=''; fi
        cap_of=${cap_of:-0}
    fi
    read_pid
}

read_pid() {
    kind='' pid='' start='' pid_boot='' reason=''
    [ -f pid ] || return 0
    read -r kind pid start pid_boot _ <./pid
    if [ "$kind" != agent ]; then
        pid='' start='' pid_boot=''
        read -r kind reason <./pid
        if [ -z "$kind" ]; then read_torn_pid; fi
    fi
}

read_torn_claim() { # the one that lives of those who may have taken it this moment; else whoever did is dead
    for each in claim.*; do
        [ -f "$each" ] || continue
        read -r claimant runner_pid runner_start runner_boot _ cap_of _ <"$each"
        if runner_lives; then return; fi
    done
    claimant=torn
}

read_torn_pid() { # as if it were not there while an agent's shell lives that may have taken it; else no agent began
    for each in pid.*; do
        [ -f "$each" ] || continue
        read -r kind reason <"$each"
        if [ "$kind" = void ]; then return; fi
        read -r _ pid start pid_boot _ <"$each"
        if agent_lives; then kind='' pid='' reason='' && return; fi
    done
    kind=void pid='' reason='its shell died before the agent began'
    if is_full; then reason="$(unwritable the pid); $reason"; fi
}

runner_lives() { alive "$runner_pid" "$runner_start" "$runner_boot"; }
agent_lives() { alive "$pid" "$start" "$pid_boot"; }

void() { # REASON: the agent shall not begin; lost to an agent that has
    take pid "void $1" || [ -e pid ] || fail "$(unwritable that the agent does not begin)"
}

# --- running ----------------------------------------------------------------------------------------------------------

enter() { # the directory; for every verb but observe
    case $epoch in '' | *[!0-9]*) fail "usage: runner.sh VERB DIRECTORY EPOCH [ARGUMENT]..." ;; esac
    case $self in /*) ;; *) self=$PWD/$self ;; esac
    cd -P -- "$dir" || fail "cannot enter $dir"
    dir=$PWD # without links: it is part of the marker
    load
}

# shellcheck source=/dev/null
load() { # what prepare wrote: settings, and the function launch_agent; it runs nothing by itself
    if [ -f launch ]; then . ./launch; fi
    [ "$proto" -eq 1 ] || fail "the session directory speaks protocol $proto, this runner 1"
}

run() { # [BOOT CGROUP]
    trap : HUP INT QUIT TERM PIPE ALRM USR1 USR2 # not ignored: that would be passed on to the agent
    find_setsid
    read_mask
    umask 077
    if [ $# -eq 2 ]; then
        cgroup=$2
        read -r start_of || start_of=''
    else
        name_cgroup
        start_of=''
    fi
    [ -n "$start_of" ] || look $$ || fail "cannot see the process that this is"
    runner_pid=$$ runner_start=$start_of runner_boot=$boot
    line="runner $$ $start_of $boot $epoch $cap $cgroup"
    # The first has room for the record of the end, so that a disk which the agent fills cannot keep it from us.
    if ! take "claim.$$" "$line" 4095 || ! take claim "$line"; then
        said=$(unwritable the claim)
        if [ "$took" = name ] && [ -s "claim.$$" ]; then rm -f claim; fi # it is ours, and says nothing
        rm -f "claim.$$"
        [ -e claim ] || fail "$said"
        exit 0 # another has it
    fi
    if ! make_output 2>/dev/null && ! said=$(make_output 2>&1); then
        rm -f "claim.$$" # some room, for the reason
        void "$(echo "${said:-cannot write}" | tr '\n' ' ')"
        exit 0
    fi
    if ! attend_now 2>/dev/null; then
        rm -f "claim.$$"
        void "cannot write until when it is attended"
        exit 0
    fi
    if [ $# -ne 2 ] && [ -n "$cgroup" ] && ! mkdir "$cgroup" 2>/dev/null; then cgroup=''; fi
    keep_watch
    if [ -f hold ]; then hold on "$session" </dev/null >/dev/null 2>&1 & fi
    holding=${!-}
    if [ "$tty" -ne 0 ]; then
        exec 5<&0 6>&1 # the terminal, for the agent
        exec 3<given 4>/dev/null </dev/null >/dev/null 2>&1
        (mind_terminal) 3<&- &
        minding=$!
    else
        exec 3<&0 4>&1 </dev/null >/dev/null 2>&1
    fi
    # In front, not behind: what sh runs behind itself is deaf to INT. A signal to us is kept until the agent has ended.
    (agent)
    code=$?
    exec 3<&- 4>&-
    if [ "$tty" -ne 0 ]; then kill "$minding"; fi
    read_pid
    if [ "$tty" -ne 0 ] && grep -qs '^cause=done$' exit; then
        : # its end was recorded when it had done what it was given
    elif [ "$kind" != agent ]; then
        void "the agent's shell ended before the agent began"
        if [ -n "$cgroup" ]; then rmdir "$cgroup"; fi
    elif ! record_end "$code"; then
        return # and go on below
    fi
    release
    exit 0
}

read_mask() { # what the agent shall have; asked of the kernel where that takes no process
    mask=''
    if [ -n "$linux" ]; then
        while read -r key mask && [ "$key" != Umask: ]; do mask=''; done </proc/self/status
    fi
    if [ -z "$mask" ]; then mask=$(umask); fi
}

name_cgroup() { # where the host lets us make one: nothing leaves it by clearing its environment or its session
    cgroup=''
    if [ "$use_cgroup" -eq 0 ] || [ ! -r /proc/self/cgroup ]; then return; fi
    mount=/sys/fs/cgroup
    if [ ! -f "$mount/cgroup.procs" ]; then mount=/sys/fs/cgroup/unified; fi
    inside=''
    while IFS= read -r each; do
        case $each in 0::*) inside=${each#0::} ;; esac
    done </proc/self/cgroup
    if [ -z "$inside" ] || [ ! -w "$mount$inside/cgroup.procs" ]; then return; fi
    cgroup=${mount}${inside%/}/fleet-$session.$$ # another home may have a session of the same name
}

make_output() { # where the agent writes
    if [ -d bin ] && [ ! -x bin/fleet ]; then chmod 700 bin/*; fi
    if [ ! -d outbox ]; then mkdir outbox || return; fi
    true >>stdout && true >>stderr && return
    unwritable the output
    return 1
}

attend_now() {
    [ "$dead_man" -gt 0 ] || return 0
    read_uptime
    echo $((uptime + dead_man)) >"attended.$$" && mv -f "attended.$$" attended
}

keep_watch() { # see to it that somebody does; a runner asks once its own claim can be seen
    watch_pid='' watch_start='' watch_boot=''
    if [ -f ../.watch ]; then read -r watch_pid watch_start watch_boot <../.watch; fi
    if ! alive "$watch_pid" "$watch_start" "$watch_boot"; then
        # shellcheck disable=SC2086 # $shell is words
        $shell "$self" watch "$dir" "$epoch" </dev/null >/dev/null 2>&1 &
    fi
}

mind_terminal() { # beside the agent: when its terminal is taken away only we are told, who must outlive it
    trap '' HUP
    while [ -t 5 ]; do sleep "$tick"; done
    for signal in HUP TERM KILL; do
        read_pids
        if ! agent_lives; then return; fi
        kill -s "$signal" "$pid"
        sleep $((grace_ms / 1000 + 1))
    done
}

hold() { # on|off SESSION: with what came along for a host that falls asleep when it seems idle; a complaint is kept
    # shellcheck disable=SC2086 # $shell is words
    $shell ./hold "$1" "$2" >hold.log 2>&1
}

release() { # a host that was kept awake
    if [ -f hold ]; then
        wait "$holding"
        hold off "$session"
    fi
}

agent() { # in a shell of its own, which becomes the agent; 3 has what it is given, 4 is for our answer
    FLEET_SESSION=$session FLEET_SESSION_DIR=$dir
    export FLEET_SESSION FLEET_SESSION_DIR
    read_given <&3
    if [ -n "$cgroup" ] && ! echo 0 2>/dev/null >"$cgroup/cgroup.procs"; then rmdir "$cgroup"; fi
    if [ "$stdin" = prompt ] && [ ! -r prompt ]; then give_up 'the prompt is missing'; fi
    own_identity || give_up 'cannot see the process that this is'
    cd -- "$cwd" 2>/dev/null || give_up "cannot enter the directory $cwd"
    line="agent $own_pid $start_of $boot $epoch"
    take "$dir/pid.$$" "$line" || give_up "$(unwritable the pid)"
    if ! take "$dir/pid" "$line"; then
        # In the room of the line that is there: another may have taken what is given back.
        if [ "$took" = name ]; then printf 'void %s\n' "$(unwritable the pid)" 1<>"$dir/pid.$$"; fi
        exit 125 # else somebody has settled that this does not begin
    fi
    trap '' PIPE # who asked may be gone
    printf 'proto=%s state=running epoch=%s boot=%s runner=alive pid=%s start=%s\n' \
        "$proto" "$epoch" "$boot" "$own_pid" "$start_of" 2>/dev/null >&4
    trap - PIPE
    if [ "$tty" -ne 0 ]; then
        exec <&5 >&6 2>&6 3<&- 4>&- 5<&- 6>&-
    else
        exec >>"$dir/stdout" 2>>"$dir/stderr" </dev/null 3<&- 4>&-
        if [ "$stdin" = prompt ]; then exec <"$dir/prompt"; fi
    fi
    umask "$mask"
    set -a
    eval "$given"
    set +a
    launch_agent
}

read_given() { # all of stdin, which has an end, so that half of it is never taken
    given='' each='' last=''
    while IFS= read -r each || [ -n "$each" ]; do given=$given$each$newline last=$each; done
    if [ "$last" != '#end' ]; then give_up 'what the agent is given on stdin was cut off'; fi
    for each in $secrets; do
        case $newline$given in *"$newline$each="*) ;; *) give_up "the secret $each was not given" ;; esac
    done
}

own_identity() { # of this very process, which in a subshell is not $$
    if [ -n "$linux" ]; then
        look self && own_pid=${stat_line%% *}
    else
        own_pid=$(exec sh -c 'echo "$PPID"') && look "$own_pid"
    fi
}

give_up() { # REASON
    cd -- "$dir" || exit 125
    rm -f "claim.$$" # some room, for the reason
    void "$(echo "$1" | tr '\n' ' ')"
    exit 125
}

record_end() { # CODE: at once, for the slot is free now; false where something was left behind, which is to be ended first
    cause=exit swept='done'
    if [ -f cause ]; then read -r cause <./cause; fi
    if [ "$keep" -ne 0 ] && [ "$cause" = exit ]; then
        swept=kept
    elif ! nothing_left; then
        return 1
    fi
    read_ran
    set -- "code=$1" "ran=$ran" "cause=$cause" "swept=$swept" "killed=" "left=0" # it ended when this is written
    first_exit "$@" || write_exit "$@"
}

nothing_left() { # whether it is certain, at little cost, that no process of an agent that ended lives
    if [ -n "$cgroup" ] && [ -r "$cgroup/cgroup.events" ]; then
        populated=''
        while read -r key value; do
            if [ "$key" = populated ]; then populated=$value; fi
        done <"$cgroup/cgroup.events"
        if [ "$populated" != 0 ]; then return 1; fi
        if [ ! -d /run/systemd/system ]; then return 0; fi # else it may have moved something out
    fi
    [ -n "$linux" ] || return 1
    grep -qsE -e "FLEET_SESSION=$session" -e "\) [A-Za-z] [0-9]+ [0-9]+ $pid " /proc/[0-9]*/environ /proc/[0-9]*/stat
    case $? in 1 | 2) return 0 ;; esac # 2: a process ended while it was looked at
    return 1
}

first_exit() { # LINE...: where there is none yet, and room. Its last line says that it is whole: it takes no process
    record=''
    for line in "$@"; do record=$record$line$newline; done
    take exit "${record}end"
}

write_exit() { # LINE...: in place of what there is; over the room that was kept for it, if any was
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        if printf '%s\n' "$@" end 1<>"claim.$$" && mv -f "claim.$$" exit; then return; fi
        sleep 1
    done
}

if [ "$verb" = run ]; then
    enter
    heed_epoch
    shift 3
    run "$@" # and ends, unless the agent left something behind
fi

# --- what is so -------------------------------------------------------------------------------------------------------

refuse() {
    printf 'refused: %s\n' "$*" >&2
    exit 4
}

now_ms() {
    now=$(date +%s%3N)
    case $now in *[!0-9]*) now=$(date +%s)000 ;; esac
}

read_exit() { # a record without its last line is no record
    code='' ended='' ran='' cause='' swept='' killed='' whole=''
    [ -f exit ] || return 1
    while IFS='=' read -r key value; do
        case $key in
            code) code=$value ;;
            ended) ended=$value ;;
            ran) ran=$value ;;
            cause) cause=$value ;;
            swept) swept=$value ;;
            killed) killed=$value ;;
            end) whole=1 && break ;;
        esac
    done <./exit
    [ -n "$whole" ]
}

judge() { # from what was read, never from a second look: a session moves on between the two
    state=absent
    read_pids
    if read_exit; then state=exited && return; fi
    if [ -z "$claimant" ]; then
        if [ -f launch ]; then state=prepared; fi
        return
    fi
    if [ "$claimant" = abandoned ]; then state=abandoned reason='given up before it was started' && return; fi
    if [ -z "$kind" ]; then
        if runner_lives; then state=starting && return; fi
        void 'the runner died before the agent began' # it may have left the agent's shell behind: one of the two has it
        read_pids
        if [ -z "$kind" ]; then state=starting && return; fi
    fi
    if [ "$kind" = void ]; then state=abandoned && return; fi
    state=running
    if agent_lives || runner_lives; then return; fi # a runner that lives is about to record the exit
    state=gone
    if read_exit; then state=exited; fi
}

judge_settled() { # the same, once it does not merely start
    rounds=0
    while judge && [ "$state" = starting ] && [ "$rounds" -lt 200 ]; do
        rounds=$((rounds + 1))
        sleep 0.05 2>/dev/null || sleep 1
    done
}

measure() { # FILE...: size, time and name of each that is there
    if [ -n "$linux" ]; then
        measured=$(stat -c '%s %.3Y %n' "$@" 2>/dev/null)
    else
        measured=$(stat -f '%z %m %N' "$@" 2>/dev/null)
    fi
}

read_measured() { # the sizes of the output, when it last changed and when the record of the end was written
    stdout_size=0 stderr_size=0 changed=0 written=0
    while read -r size time file; do
        case $time in
            *.???) time=${time%.*}${time#*.} ;;
            *) time=${time}000 ;;
        esac
        case $file in
            '') continue ;;
            *exit) written=$time && continue ;;
            *stdout) stdout_size=$size ;;
            *stderr) stderr_size=$size ;;
        esac
        if [ "$time" -gt "$changed" ]; then changed=$time; fi
    done <<LIST
$measured
LIST
}

facts() { # [WORD=VALUE]...: one line; the reason comes last and may have blanks
    if [ -z "$measured" ]; then
        now_ms
        measure pid stdout stderr exit
    fi
    read_measured
    idle=$((now - changed))
    if [ "$changed" -eq 0 ] || [ "$idle" -lt 0 ]; then idle=0; fi
    runner=none
    if [ -n "$runner_pid" ]; then
        runner=dead
        if runner_lives; then runner=alive; fi
    fi
    line="proto=$proto state=$state epoch=$epoch boot=$boot now=$now idle=$idle runner=$runner"
    line="$line stdout=$stdout_size stderr=$stderr_size"
    if [ -n "$pid" ]; then line="$line pid=$pid start=$start"; fi
    if [ "$state" = running ]; then read_ran; fi
    if [ -n "$ran" ]; then line="$line ran=$ran"; fi
    if [ "$state" = exited ]; then line="$line code=$code ended=${ended:-$written} cause=$cause swept=$swept"; fi
    if [ -n "$killed" ]; then line="$line killed=$killed"; fi
    printf '%s%s%s\n' "$line" "${*:+ $*}" "${reason:+ reason=$reason}"
}

# --- ending processes -------------------------------------------------------------------------------------------------

marked() { # every process that carries the session's marker; another home may have a session of the same name
    [ -n "$session" ] || return 0
    if [ -z "$linux" ]; then
        ps -axEww -o pid=,command= | LC_ALL=C awk -v one=" FLEET_SESSION=$session " -v two=" FLEET_SESSION_DIR=$dir " '
            index($0 " ", one) && index($0 " ", two) { print $1 }'
        return
    fi
    tail -n +1 /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' | LC_ALL=C awk -v mark="FLEET_SESSION=$session" '
        /^==> \/proc\/[0-9]+\/environ <==$/ { split($2, part, "/") }
        $0 == mark { print part[3] }' | while read -r each; do
        has="$newline$(tr '\0' '\n' 2>/dev/null <"/proc/$each/environ")$newline"
        case $has in *"${newline}FLEET_SESSION=$session$newline"*) ;; *) continue ;; esac
        case $has in
            *"${newline}FLEET_SESSION_DIR=$dir$newline"*) echo "$each" ;;
            *"${newline}FLEET_SESSION_DIR="*) ;;
            *) echo "$each" ;;
        esac
    done
}

processes() { # PID PPID SESSION STATE NAME of every process
    if [ -z "$linux" ]; then
        ps -axo pid=,ppid=,pgid=,stat=,comm= # there, the group stands for the session
        return
    fi
    cat /proc/[0-9]*/stat 2>/dev/null | LC_ALL=C awk '
        { held = held $0 }
        held !~ /\) [A-Za-z] -?[0-9]+ -?[0-9]+ .*[0-9]$/ { next } # a name may hold a line break
        {
            name = held; sub(/^[0-9]+ \(/, "", name); sub(/\) [A-Za-z] -?[0-9]+ .*$/, "", name)
            gsub(/[^A-Za-z0-9._+-]/, "_", name)
            rest = held; sub(/^.*\) /, "", rest); split(rest, field, " ")
            print held + 0, field[2], field[4], field[1], name
            held = ""
        }'
}

members() { # PID NAME of everything alive that belongs to the session
    seeds=$(marked)
    leader=0
    if [ -n "$pid" ] && [ "$pid_boot" = "$boot" ]; then
        leader=$pid # the number of a session is not given away while the session has members
        if look "$pid" && [ "$start_of" != "$start" ]; then leader=0; fi
    fi
    if [ -n "$cgroup" ]; then seeds="$seeds $(cat "$cgroup"/cgroup.procs "$cgroup"/*/cgroup.procs 2>/dev/null)"; fi
    processes | LC_ALL=C awk -v leader="$leader" -v seeds="$(echo "$seeds" | tr '\n' ' ')" -v spared="$$ $runner_pid" '
        function add(one) { if (one in state && !(one in member) && !(one in spare)) { member[one] = 1; grew = 1 } }
        { parent[$1] = $2; session[$1] = $3; state[$1] = $4; name[$1] = $5 }
        END {
            n = split(spared, list, " "); for (i = 1; i <= n; i++) spare[list[i]] = 1
            n = split(seeds, list, " "); for (i = 1; i <= n; i++) add(list[i])
            if (leader) { add(leader); for (one in state) if (session[one] == leader) add(one) }
            do { grew = 0; for (one in state) if (parent[one] in member) add(one) } while (grew)
            for (one in member) if (state[one] ~ /^[ZX]/) delete member[one]
            if (leader in member) { print leader, name[leader]; delete member[leader] } # first: it ends its own in order
            for (one in member) print one, name[one]
        }'
}

signal_members() { # SIGNAL: to each that has not had it; true while any is left
    found=$(members)
    [ -n "$found" ] || return 1
    while read -r one name; do
        case $had in *" $one "*) continue ;; esac
        if kill -s "$1" "$one" 2>/dev/null; then
            ended_list="$ended_list$one/$1/$name$newline"
        fi
        if [ "$1" != KILL ]; then had="$had$one "; fi
    done <<LIST
$found
LIST
}

end_all() { # GRACE_MS SIGNAL...: with each signal in turn, then KILL until none is left
    grace=$1 ended_list='' left=0
    shift
    for signal in "$@"; do
        had=' ' waited=0 pause=50
        while :; do
            signal_members "$signal" || break 2
            if [ "$waited" -ge "$grace" ]; then break; fi
            sleep "0.$(printf %03d "$pause")" 2>/dev/null || sleep 1
            waited=$((waited + pause))
            if [ "$pause" -lt 400 ]; then pause=$((pause * 2)); fi
        done
    done
    had=' ' rounds=0
    while signal_members KILL; do
        if [ -n "$cgroup" ]; then echo 1 2>/dev/null >"$cgroup/cgroup.kill"; fi
        rounds=$((rounds + 1))
        if [ "$rounds" -ge 50 ]; then
            left=$(echo "$found" | wc -l)
            break
        fi
        sleep 0.05 2>/dev/null || sleep 1
    done
    if [ -n "$cgroup" ]; then rmdir "$cgroup" 2>/dev/null; fi
    # each process once, with the last signal it was sent; not more than a record has room for
    ended_list=$(printf %s "$ended_list" | LC_ALL=C awk -F/ '
        !($1 in last) { order[++n] = $1 } { last[$1] = $0 }
        END { for (i = 1; i <= n && length(all) < 3500; i++) all = all (i > 1 ? "," : "") last[order[i]]; print all }')
}

freeze() { # the agent and what shares its process group: whatever they do, they do no more of it until they are ended
    if [ "$kind" = agent ] && agent_lives; then kill -s STOP -- "-$pid" 2>/dev/null; fi
}

end_rest() { # CODE: of an agent that left something behind. The slot is free now: that is recorded first, if there is room
    now_ms
    read_ran
    first_exit "code=$1" "ended=$now" "ran=$ran" "cause=$cause"
    end_all "$grace_ms" TERM
    write_exit "code=$1" "ended=$now" "ran=$ran" "cause=$cause" "swept=$swept" "killed=$ended_list" "left=$left"
    release
}

find_cgroup() { # of the session whose directory this is, if it is still there
    cgroup=''
    if [ -f claim ]; then read -r _ _ _ _ _ _ cgroup <./claim; fi
    if [ ! -d "$cgroup" ]; then cgroup=''; fi
}

set_cause() { # why the session ends, when it is not the agent's own doing: the first to say so is believed
    echo "$1" >"cause.$$" || return
    ln "cause.$$" cause 2>/dev/null
    rm -f "cause.$$"
}

# --- starting ---------------------------------------------------------------------------------------------------------

start() {
    [ -f launch ] || fail "the session is not prepared"
    said=''
    if [ ! -e claim ] && [ "$tty" -ne 0 ]; then
        start_on_terminal
    elif [ ! -e claim ]; then
        find_setsid
        exec 3<&0
        # It answers with a line once the agent has begun, or ends. Nothing here waits by a clock.
        # shellcheck disable=SC2086 # $shell is words
        said=$({
            (
                apart_and_fresh env -i ${PATH+"PATH=$PATH"} ${HOME+"HOME=$HOME"} ${USER+"USER=$USER"} \
                    ${SHELL+"SHELL=$SHELL"} ${LOGNAME+"LOGNAME=$LOGNAME"} ${LANG+"LANG=$LANG"} \
                    ${LC_ALL+"LC_ALL=$LC_ALL"} ${TZ+"TZ=$TZ"} ${LC_CTYPE+"LC_CTYPE=$LC_CTYPE"} \
                    ${TMPDIR+"TMPDIR=$TMPDIR"} ${FLEET_SESSION+"FLEET_SESSION=$FLEET_SESSION"} \
                    ${FLEET_SESSION_DIR+"FLEET_SESSION_DIR=$FLEET_SESSION_DIR"} $shell "$self" run "$dir" "$epoch"
            ) <&3 3<&- 2>&1 &
        } | {
            IFS= read -r said
            printf %s "$said"
        })
        exec 3<&-
    fi
    judge_settled # another start was first: its runner settles it
    case $state in prepared | absent) fail "the session did not start: ${said:-no word from the runner}" ;; esac
    facts
}

start_on_terminal() { # what the agent is given goes through a pipe with a name: nothing of it is on the disk
    rm -f given
    mkfifo -m 600 given || fail "$(unwritable the pipe for what the agent is given)"
    exec 3<&0
    cat <&3 >given &
    giving=$!
    exec 3<&-
    rounds=0
    # shellcheck disable=SC2086 # $shell is words
    if said=$(on_terminal $shell "$self" run "$dir" "$epoch" 2>&1); then
        while [ ! -e claim ] && [ "$rounds" -lt 200 ]; do
            rounds=$((rounds + 1))
            sleep 0.05 2>/dev/null || sleep 1
        done
    fi
    judge_settled
    kill "$giving" 2>/dev/null
    rm -f given
}

apart_and_fresh() { # exec the words apart, each signal as a program expects it: sh makes what runs behind it deaf to INT
    if command -v setsid >/dev/null 2>&1 && env --default-signal true 2>/dev/null; then
        exec setsid env --default-signal "$@"
    fi
    if command -v perl >/dev/null 2>&1; then
        exec perl -e 'use POSIX; $SIG{$_} = "DEFAULT" for qw(HUP INT QUIT PIPE ALRM TERM USR1 USR2);
            POSIX::setsid(); exec { $ARGV[0] } @ARGV' "$@"
    fi
    exec setsid "$@"
}

# --- the watch: one process for all sessions that stand beside each other; it outlives their runners ------------------

watch_all() {
    trap '' HUP PIPE
    living=0 waited=0
    own_identity || return
    while take_watch; do
        while sleep $((tick + living / 250)) && is_our_watch && look_at_all; do # seldom where there are many
            waited=$(((waited + tick + living / 250) % 60))
        done
        is_our_watch || return
        rm -f .watch
        look_at_all || return # who saw our name, and left the watch to us, was there to be seen
    done
}

take_watch() { # false: another lives who has it
    look "$own_pid"
    printf '%s %s %s\n' "$own_pid" "$start_of" "$boot" >".watch.$own_pid" || return
    if ln ".watch.$own_pid" .watch 2>/dev/null; then
        rm -f ".watch.$own_pid"
        return
    fi
    if [ -f .watch ]; then read -r watch_pid watch_start watch_boot <.watch; fi
    if alive "$watch_pid" "$watch_start" "$watch_boot"; then
        rm -f ".watch.$own_pid"
        return 1
    fi
    mv -f ".watch.$own_pid" .watch # of several who find it orphaned, the last has it; the others see that at the next look
}

is_our_watch() {
    watch_pid=''
    if [ -f .watch ]; then read -r watch_pid _ <.watch; fi
    [ "$watch_pid" = "$own_pid" ]
}

look_at_all() { # end what writes too much, remove the cgroups of what has ended; true while any lives
    ended='' files='' least='' living=0
    for each in ./*/claim; do
        each=${each%/claim}
        if [ -f "$each/exit" ]; then
            ended="$ended $each"
        elif cd "$each" 2>/dev/null; then
            read_pids
            if runner_lives || agent_lives; then
                if [ -f hold ] && [ "$waited" -lt "$tick" ]; then hold on "${each#./}"; fi # every minute
                files="$files $each/stdout $each/stderr" living=$((living + 1))
                if [ "$cap_of" -gt 0 ] && [ "$cap_of" -le "${least:-$cap_of}" ]; then least=$cap_of; fi
                if [ -f attended ] && is_unattended && [ ! -f cause ]; then
                    set_cause unattended
                    (end_over) &
                fi
            else
                ended="$ended $each"
            fi
            cd .. || return 1
        fi
    done
    if [ "$living" -eq 0 ] || [ "$waited" -lt "$tick" ]; then remove_cgroups; fi # every minute, and at last
    if [ -n "$least" ]; then look_at_sizes; fi
    [ "$living" -gt 0 ]
}

is_unattended() { # the session whose directory this is: by a clock that nobody sets, where there is one
    read_uptime
    attended_until=''
    read -r attended_until _ <./attended
    [ "$uptime" -gt "${attended_until:-$uptime}" ]
}

look_at_sizes() { # of the files
    # shellcheck disable=SC2086 # words are wanted: the names of sessions have no blanks
    sizes_of=$(ls -ln $files 2>/dev/null)
    while read -r _ _ _ _ size _ _ _ file; do
        if [ "${size:-0}" -gt "$least" ]; then end_if_over "${file%/*}" "$size"; fi
    done <<LIST
$sizes_of
LIST
}

end_if_over() { # SESSION SIZE
    cd "$1" 2>/dev/null || return
    read_pids
    if [ "$cap_of" -gt 0 ] && [ "$2" -gt "$cap_of" ] && [ ! -f cause ]; then
        freeze # it writes as fast as the disk can, and to look for all its processes takes a while
        set_cause cap
        (end_over 0; give_back) &
    fi
    cd .. || exit
}

end_over() { # [GRACE_MS]: the session whose directory this is
    dir=$PWD
    load
    find_cgroup
    read_pids
    end_all "${1:-$grace_ms}" INT TERM
}

give_back() { # the space of what is beyond the bound: nobody reads that, but for a line that crosses it, and the last one
    if [ "$cap_of" -eq 0 ]; then return; fi
    for each in stdout stderr; do
        measured=$(ls -ln "$each" 2>/dev/null)
        # shellcheck disable=SC2086 # words are wanted
        set -- $measured
        length=$((${5:-0} - cap_of - 2 * margin))
        if [ "$length" -gt 0 ]; then fallocate -p -o $((cap_of + margin)) -l "$length" "$each" 2>/dev/null; fi
    done
}

remove_cgroups() { # of what has ended and left nothing in it
    set --
    for each in $ended; do
        cd "$each" 2>/dev/null || continue
        find_cgroup
        if [ -n "$cgroup" ]; then set -- "$@" "$cgroup"; fi
        cd .. || return
    done
    if [ $# -gt 0 ]; then rmdir "$@" 2>/dev/null; fi
}

# --- the other verbs --------------------------------------------------------------------------------------------------

observe() { # what costs a process is asked once for all; what goes wrong with one is its line of the answer
    now_ms
    list=$(cat)
    set --
    while read -r epoch dir; do set -- "$@" "$dir/pid" "$dir/stdout" "$dir/stderr" "$dir/exit"; done <<LIST
$list
LIST
    measure "$@"
    all=$measured$newline
    while read -r epoch dir; do
        measured=''
        while [ -n "${all%"$newline"}" ]; do # they come in the order in which they were asked for
            line=${all%%"$newline"*}
            case $line in *" $dir/pid" | *" $dir/stdout" | *" $dir/stderr" | *" $dir/exit") ;; *) break ;; esac
            measured=$measured$line$newline all=${all#*"$newline"}
        done
        if [ -f "$dir/runner.sh" ]; then (observe_one) 2>&1; else echo state=absent; fi
    done <<LIST
$list
LIST
}

observe_one() {
    cd -P -- "$dir" || fail "cannot enter $dir"
    load
    heed_epoch
    judge
    facts
}

abandon() {
    take claim "abandoned $epoch" || [ -e claim ] || fail "$(unwritable the claim)"
    judge
}

stop() { # GRACE_MS
    judge
    case $state in
        absent | abandoned) facts && return ;;
        prepared) abandon ;;
        starting) void 'stopped before it began' && judge_settled ;;
    esac
    if [ "$state" = running ]; then
        if [ "$1" -eq 0 ]; then freeze; fi
        set_cause stop
    fi
    end_all "$1" INT TERM
    rounds=0
    while judge && [ "$state" = running ] && [ "$rounds" -lt 100 ]; do # the runner is about to record the exit
        rounds=$((rounds + 1))
        sleep 0.05 2>/dev/null || sleep 1
    done
    if [ "$1" -eq 0 ]; then (give_back); fi
    killed=$ended_list
    facts "left=$left"
}

sweep() { # GRACE_MS
    judge
    case $state in starting | running) refuse "the agent still runs" ;; esac
    end_all "$1" TERM
    if [ -n "$ended_list" ]; then killed=${killed:+$killed,}$ended_list; fi
    if [ "$state" = exited ] && [ -z "$swept" ] && ! runner_lives; then # it was killed in the middle of its own sweep
        swept='done'
        write_exit "code=$code" "ended=${ended:-0}" "ran=$ran" "cause=$cause" "swept=$swept" "killed=$killed"
    fi
    facts "left=$left"
}

conclude() {
    [ "$tty" -ne 0 ] || refuse "only an agent on a terminal lives on when its session has ended"
    judge
    if [ "$state" = running ]; then
        now_ms
        read_ran
        write_exit "code=0" "ended=$now" "ran=$ran" "cause=done" "swept=kept" "killed=" "left=0"
        judge
    fi
    facts
}

attend() {
    judge
    if [ "$state" = running ] && ! attend_now; then fail "$(unwritable that it is attended)"; fi
    facts
}

free() { # OFFSET FROM
    if [ "$1" -gt "$2" ]; then fallocate -p -o "$2" -l $(($1 - $2)) stdout 2>/dev/null; fi
    judge
    facts
}

forget() { # STDOUT STDERR
    judge
    if [ -f launch ]; then may_forget "$1" "$2"; fi # else a removal that was cut short goes on
    others=''
    for each in * .*; do
        if ! is_ours "$each" && [ ${#others} -lt 300 ]; then others="$others $each"; fi
    done
    [ -z "$others" ] || refuse "files that are not ours are in $dir:$others"
    rm -f launch # first: what is left cannot be started
    rm -rf outbox bin
    set --
    for each in * .*; do
        case $each in . | .. | runner.sh) continue ;; esac
        if is_ours "$each"; then set -- "$@" "$each"; fi
    done
    rm -f -- "$@"
    if [ -n "$cgroup" ]; then rmdir "$cgroup" 2>/dev/null; fi
    rm -f runner.sh
    cd /
    rmdir "$dir" || fail "files that are not ours are in $dir; they were kept"
    echo "proto=$proto state=absent epoch=$epoch"
}

is_ours() { # NAME: whether it is there because of us, or is not there
    case $1 in
        . | .. | outbox | bin) return ;;
        runner.sh | launch | hold | hold.log | prompt | stdout | stderr | pid | pid.* | claim | claim.*) ;;
        cause | cause.* | exit | epoch.* | .*.put | attended | attended.* | given) ;;
        workspace | workspace.* | answer.json) ;;
        *)
            [ ! -e "$1" ] && [ ! -L "$1" ]
            return
            ;;
    esac
    [ ! -d "$1" ] || [ -L "$1" ] # what we make is no directory
}

may_forget() { # STDOUT STDERR
    case $state in starting | running) refuse "the agent still runs" ;; esac
    if runner_lives; then refuse "the runner still ends what the agent left behind"; fi
    found=$(members)
    [ -z "$found" ] || refuse "processes of the session live: $(echo "$found" | tr '\n' ' ')"
    measure stdout stderr
    read_measured
    if [ "$stdout_size" -ne "$1" ] || [ "$stderr_size" -ne "$2" ]; then
        refuse "not all output was collected: stdout has $stdout_size bytes, stderr $stderr_size"
    fi
    for each in outbox/*; do
        case ${each#outbox/} in *[!0-9]*) continue ;; esac
        if [ ! -f "$each" ] || [ ! -s "$each" ]; then continue; fi # nobody hears what is no file, or says nothing
        [ -e "$each.answer" ] || refuse "request ${each#outbox/} of the agent was not answered"
    done
}

if [ "$verb" = observe ]; then
    measured=''
    observe
    exit 0
fi
if [ "$verb" = run ]; then
    end_rest "$code"
    exit 0
fi
enter
if [ "$verb" = watch ]; then
    cd .. && watch_all
    exit 0
fi
find_cgroup
# A number is all that a further argument can be.
case ${4-0}${5-0} in *[!0-9]*) fail "not a number: ${4-} ${5-}" ;; esac
heed_epoch
measured=''
shift 3
case $verb in
    start) start ;;
    abandon) abandon && facts ;;
    stop) stop "${1:-2000}" ;;
    sweep) sweep "${1:-2000}" ;;
    conclude) conclude ;;
    attend) attend ;;
    free) free "${1:-0}" "${2:-0}" ;;
    forget) forget "${1:-0}" "${2:-0}" ;;
    *) fail "no such verb: $verb" ;;
esac
