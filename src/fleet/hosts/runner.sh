#!/bin/sh
# The session runner: runs one agent in one directory, once, and outlives whoever asked for it.
#
# usage: sh runner.sh VERB DIRECTORY EPOCH [ARGUMENT]...      each verb answers with one line of facts
#   start                 run the agent; what it may not read from disk comes on stdin
#   observe               what is so
#   abandon               see to it that the agent never runs; too late once it has begun
#   stop GRACE_MS         end the agent and all it has started: INT, TERM, KILL, with a grace between
#   sweep GRACE_MS        end what a finished agent has left behind
#   free OFFSET           give back the disk space of stdout below the offset, where the host can
#   forget STDOUT STDERR  remove the directory, once these many bytes of each were collected and nothing lives
# exit codes: 0 the facts are on stdout; 1 failed; 3 a higher epoch was here; 4 refused
#
# run and agent are its own steps: start -> run (claims, waits, records the exit) -> agent (publishes its pid, execs).
# Two names are taken by `ln`, so that exactly one can have each: `claim` by who may start the agent, or by who gave
# it up; `pid` by the agent that begins, or by who found that it cannot begin any more.

set -u
unset CDPATH
newline='
'
self=$0 verb=${1-} dir=${2-} epoch=${3-}
proto=1 session='' shell=sh cap=0 tick=5 keep=0 grace_ms=2000 use_cgroup=1 cwd=/ stdin=/dev/null secrets=''

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

refuse() {
    printf 'refused: %s\n' "$*" >&2
    exit 4
}

unwritable() { # WHAT...: why a file could not be written; not every shell says it
    if [ "$(df -Pk . 2>/dev/null | awk 'NR == 2 { print $4 }')" = 0 ]; then set -- "$*: No space left on device"; fi
    printf 'cannot write %s' "$*"
}

# --- epochs -----------------------------------------------------------------------------------------------------------

heed_epoch() { # the greatest N of all epoch.N: made of files that are only ever added, it cannot fall
    highest=0
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
if [ -r /proc/self/stat ]; then
    linux=1
    read -r boot </proc/sys/kernel/random/boot_id
else
    boot=$(sysctl -n kern.boottime 2>/dev/null | sed 's/^[^0-9]*\([0-9]*\).*/\1/')
fi

now_ms() {
    now=$(date +%s%3N)
    case $now in *[!0-9]*) now=$(date +%s)000 ;; esac
}

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

apart() { # exec the words as the leader of a process session of their own
    if command -v setsid >/dev/null 2>&1; then exec setsid "$@"; fi
    exec perl -e 'use POSIX; POSIX::setsid(); exec { $ARGV[0] } @ARGV' "$@"
}

apart_and_fresh() { # the same, with every signal as a program expects it: sh makes what runs behind it deaf to INT
    if command -v setsid >/dev/null 2>&1 && env --default-signal true 2>/dev/null; then
        exec setsid env --default-signal "$@"
    fi
    if command -v perl >/dev/null 2>&1; then
        exec perl -e 'use POSIX; $SIG{$_} = "DEFAULT" for qw(HUP INT QUIT PIPE ALRM TERM USR1 USR2);
            POSIX::setsid(); exec { $ARGV[0] } @ARGV' "$@"
    fi
    exec setsid "$@"
}

# --- what is so -------------------------------------------------------------------------------------------------------

read_exit() { # a record without its last line is no record
    code='' ended='' cause='' swept='' killed='' whole=''
    [ -f exit ] || return 1
    while IFS='=' read -r key value; do
        case $key in
            code) code=$value ;;
            ended) ended=$value ;;
            cause) cause=$value ;;
            swept) swept=$value ;;
            killed) killed=$value ;;
            end) whole=1 && break ;;
        esac
    done <./exit
    [ -n "$whole" ]
}

read_pids() { # who claimed the session, and which process the agent is; '' means that the file was not there
    claimant='' runner_pid='' runner_start='' runner_boot='' kind='' pid='' start='' pid_boot='' reason=''
    if [ -f claim ]; then
        read -r claimant runner_pid runner_start runner_boot _ <./claim
        if [ "$claimant" != runner ]; then claimant=${claimant:-torn} runner_pid=''; fi
    fi
    [ -f pid ] || return 0
    read -r kind reason <./pid
    kind=${kind:-torn}
    if [ "$kind" = agent ]; then
        read -r kind pid start pid_boot _ <./pid
        reason=''
    fi
}

runner_lives() { alive "$runner_pid" "$runner_start" "$runner_boot"; }
agent_lives() { alive "$pid" "$start" "$pid_boot"; }

void() { # REASON: the agent shall not begin; lost to an agent that has
    if ! printf 'void %s\n' "$1" >"void.$$"; then
        rm -f "void.$$"
        fail "$(unwritable that the agent does not begin)"
    fi
    ln "void.$$" pid 2>/dev/null
    rm -f "void.$$"
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
    fi
    if [ "$kind" = void ]; then state=abandoned && return; fi
    state=running
    if agent_lives || runner_lives; then return; fi # a runner that lives is about to record the exit
    state=gone
    if read_exit; then state=exited; fi
}

sizes() {
    stdout_size=0 stderr_size=0
    if [ ! -f stdout ] || [ ! -f stderr ]; then return; fi
    # shellcheck disable=SC2012,SC2046 # words are wanted; the fifth is the size in every ls, where stat differs
    set -- $(ls -ln stderr stdout)
    stderr_size=$5 stdout_size=${14}
}

idle_since() { # the last change of the agent's output, by this host's clock
    changed=$(stat -c %.3Y pid stdout stderr 2>/dev/null || stat -f %m pid stdout stderr 2>/dev/null)
    last=0
    for each in $changed; do
        case $each in
            *.???) each=${each%.*}${each#*.} ;;
            *) each=${each}000 ;;
        esac
        if [ "$each" -gt "$last" ]; then last=$each; fi
    done
    idle=$((now - last))
    if [ "$last" -eq 0 ] || [ "$idle" -lt 0 ]; then idle=0; fi
}

facts() { # [WORD=VALUE]...: one line; the reason comes last and may have blanks
    now_ms
    sizes
    idle_since
    runner=none
    if [ -n "$runner_pid" ]; then
        runner=dead
        if runner_lives; then runner=alive; fi
    fi
    line="proto=$proto state=$state epoch=$epoch boot=$boot now=$now idle=$idle runner=$runner"
    line="$line stdout=$stdout_size stderr=$stderr_size"
    if [ -n "$pid" ]; then line="$line pid=$pid start=$start"; fi
    if [ "$state" = exited ]; then line="$line code=$code ended=$ended cause=$cause swept=$swept"; fi
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

set_cause() { # why the session ends, when it is not the agent's own doing: the first to say so is believed
    echo "$1" >"cause.$$" || return
    ln "cause.$$" cause 2>/dev/null
    rm -f "cause.$$"
}

# --- running ----------------------------------------------------------------------------------------------------------

# shellcheck source=/dev/null
load() { # what prepare wrote: settings, and the function launch_agent; it runs nothing by itself
    if [ -f launch ]; then . ./launch; fi
    cgroup=''
    if [ -f cgroup ]; then read -r cgroup <./cgroup; fi
    if [ -n "$cgroup" ] && [ ! -d "$cgroup" ]; then cgroup=''; fi
    [ "$proto" -eq 1 ] || fail "the session directory speaks protocol $proto, this runner 1"
}

start() {
    [ -f launch ] || fail "the session is not prepared"
    if [ ! -e claim ]; then
        command -v setsid >/dev/null 2>&1 || command -v perl >/dev/null 2>&1 || fail "the host needs setsid or perl"
        exec 3<&0
        # It answers by closing the pipe: its own end at once, the agent's with the exec. Nothing here waits by a clock.
        # shellcheck disable=SC2086 # $shell is words
        said=$(
            (
                apart env -i ${PATH+"PATH=$PATH"} ${HOME+"HOME=$HOME"} ${USER+"USER=$USER"} ${SHELL+"SHELL=$SHELL"} \
                    ${LOGNAME+"LOGNAME=$LOGNAME"} ${LANG+"LANG=$LANG"} ${LC_ALL+"LC_ALL=$LC_ALL"} ${TZ+"TZ=$TZ"} \
                    ${LC_CTYPE+"LC_CTYPE=$LC_CTYPE"} ${TMPDIR+"TMPDIR=$TMPDIR"} \
                    ${FLEET_SESSION+"FLEET_SESSION=$FLEET_SESSION"} \
                    ${FLEET_SESSION_DIR+"FLEET_SESSION_DIR=$FLEET_SESSION_DIR"} $shell "$self" run "$dir" "$epoch"
            ) <&3 3<&- 2>&1 &
        )
        exec 3<&-
    fi
    rounds=0
    while judge && [ "$state" = starting ] && [ "$rounds" -lt 200 ]; do # another start was first: its runner answers
        rounds=$((rounds + 1))
        sleep 0.05 2>/dev/null || sleep 1
    done
    case $state in prepared | absent) fail "the session did not start: ${said:-no word from the runner}" ;; esac
    facts
}

run() {
    trap 'caught=1' HUP INT QUIT TERM PIPE ALRM USR1 USR2 # not ignored: that would be passed on to the agent
    mask=$(umask)
    umask 077
    look $$ || fail "cannot see the process that this is"
    if ! printf 'runner %s %s %s %s\n' "$$" "$start_of" "$boot" "$epoch" >"claim.$$"; then
        rm -f "claim.$$"
        fail "$(unwritable the claim)"
    fi
    if ! ln "claim.$$" claim 2>/dev/null; then
        rm -f "claim.$$"
        [ -e claim ] || fail "cannot link files in the session directory"
        return # another has it
    fi
    rm -f "claim.$$"
    if ! said=$(reserve 2>&1); then
        rm -f exit.new exit.swept
        void "$(echo "${said:-cannot write}" | tr '\n' ' ')"
        return
    fi
    make_cgroup
    exec 3<&0
    (
        FLEET_SESSION=$session FLEET_SESSION_DIR=$dir
        export FLEET_SESSION FLEET_SESSION_DIR
        # shellcheck disable=SC2086 # $shell is words
        apart_and_fresh $shell "$self" agent "$dir" "$epoch" "$mask"
    ) <&3 3<&- &
    agent=$!
    exec 3<&- </dev/null >/dev/null 2>>runner.log
    ticker=''
    if [ "$cap" -gt 0 ]; then
        watch_output &
        ticker=$!
    fi
    while :; do
        caught=''
        wait "$agent"
        code=$?
        if [ -z "$caught" ] || ! kill -0 "$agent" 2>/dev/null; then break; fi # else a signal to us cut the wait short
    done
    if [ -n "$ticker" ]; then kill "$ticker" 2>/dev/null; fi
    read_pids
    if [ "$kind" != agent ]; then
        void "the agent's shell ended before the agent began"
        if [ -n "$cgroup" ]; then rmdir "$cgroup"; fi
        return
    fi
    record_end "$code"
}

reserve() { # room for the records of the end, so that a disk which the agent fills cannot keep them from us
    heed_epoch
    if [ -d bin ]; then chmod 700 bin/*; fi
    mkdir -p outbox && true >>stdout && true >>stderr &&
        printf '%4095s\n' '' >exit.new && printf '%4095s\n' '' >exit.swept && return
    unwritable the records of the end
    return 1
}

record_end() { # CODE: at once, for the slot is free now; then once more with what the sweep had to end
    now_ms
    ended=$now cause=exit
    if [ -f cause ]; then read -r cause <./cause; fi
    write_exit exit.new "code=$1" "ended=$ended" "cause=$cause"
    swept=kept ended_list='' left=0
    if [ "$keep" -eq 0 ] || [ "$cause" != exit ]; then
        end_all "$grace_ms" TERM
        swept='done'
    fi
    write_exit exit.swept "code=$1" "ended=$ended" "cause=$cause" "swept=$swept" "killed=$ended_list" "left=$left"
}

write_exit() { # FILE LINE...: over the room that was reserved
    record=$1
    shift
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        if printf '%s\n' "$@" end 1<>"$record" && mv -f "$record" exit; then return; fi
        sleep 1
    done
}

watch_output() { # beside the runner, which waits, and after it if it is killed: ends a session that writes too much
    pause=''
    trap '[ -z "$pause" ] || kill "$pause" 2>/dev/null; exit 0' TERM
    trap '' HUP INT
    while :; do
        sleep "$tick" &
        pause=$!
        wait "$pause"
        pause=''
        read_pids
        if ! runner_lives && ! agent_lives; then return; fi
        sizes
        if [ "$stdout_size" -gt "$cap" ] || [ "$stderr_size" -gt "$cap" ]; then
            set_cause cap
            end_all "$grace_ms" INT TERM
            return
        fi
    done
}

make_cgroup() { # where the host lets us: nothing leaves it by clearing its environment or its session
    cgroup=''
    if [ "$use_cgroup" -eq 0 ] || [ ! -r /proc/self/cgroup ]; then return; fi
    mount=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
    inside=$(sed -n 's/^0:://p' /proc/self/cgroup)
    if [ -z "$mount" ] || [ ! -w "$mount$inside/cgroup.procs" ]; then return; fi
    cgroup=${mount}${inside%/}/fleet-$session
    if mkdir "$cgroup" 2>/dev/null && [ -e "$cgroup/cgroup.kill" ] && echo "$cgroup" >cgroup; then return; fi
    rmdir "$cgroup" 2>/dev/null
    rm -f cgroup
    cgroup=''
}

agent() { # MASK: becomes the agent
    given=$(cat)
    case $given in
        '#end' | *"$newline#end") ;;
        *) give_up 'what the agent is given on stdin was cut off' ;;
    esac
    for each in $secrets; do
        case $newline$given in *"$newline$each="*) ;; *) give_up "the secret $each was not given" ;; esac
    done
    if [ -n "$cgroup" ] && ! echo 0 2>/dev/null >"$cgroup/cgroup.procs"; then
        rmdir "$cgroup"
        rm -f cgroup
    fi
    if [ "$stdin" = prompt ] && [ ! -r prompt ]; then give_up 'the prompt is missing'; fi
    look $$ || give_up 'cannot see the process that this is'
    cd -- "$cwd" 2>/dev/null || give_up "cannot enter the directory $cwd"
    printf 'agent %s %s %s %s\n' "$$" "$start_of" "$boot" "$epoch" >"$dir/pid.$$" || give_up "$(unwritable the pid)"
    if ! ln "$dir/pid.$$" "$dir/pid" 2>/dev/null; then
        rm -f "$dir/pid.$$"
        exit 125 # somebody has settled that this does not begin
    fi
    rm -f "$dir/pid.$$"
    exec >>"$dir/stdout" 2>>"$dir/stderr" </dev/null
    if [ "$stdin" = prompt ]; then exec <"$dir/prompt"; fi
    umask "$1"
    set -a
    eval "$given"
    set +a
    launch_agent
}

give_up() { # REASON
    cd -- "$dir" || exit 125
    void "$(echo "$1" | tr '\n' ' ')"
    exit 125
}

# --- the other verbs --------------------------------------------------------------------------------------------------

abandon() {
    if [ ! -e claim ]; then
        echo "abandoned $epoch" >"claim.$$" || fail "$(unwritable the claim)"
        ln "claim.$$" claim 2>/dev/null
        rm -f "claim.$$"
        [ -e claim ] || fail "cannot link files in the session directory"
    fi
    judge
}

stop() { # GRACE_MS
    judge
    case $state in
        absent | abandoned) facts && return ;;
        prepared) abandon ;;
        starting) void 'stopped before it began' && judge ;;
    esac
    if [ "$state" = running ]; then set_cause stop; fi
    end_all "$1" INT TERM
    rounds=0
    while judge && [ "$state" = running ] && [ "$rounds" -lt 100 ]; do # the runner is about to record the exit
        rounds=$((rounds + 1))
        sleep 0.05 2>/dev/null || sleep 1
    done
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
        write_exit exit.swept "code=$code" "ended=$ended" "cause=$cause" "swept=$swept" "killed=$killed"
    fi
    facts "left=$left"
}

free() { # OFFSET
    if [ "$1" -gt 0 ]; then fallocate -p -o 0 -l "$1" stdout 2>/dev/null; fi
    judge
    facts
}

forget() { # STDOUT STDERR
    judge
    if [ -f launch ]; then may_forget "$1" "$2"; fi # else a removal that was cut short goes on
    rm -f launch                                   # first: what is left cannot be started
    rm -rf outbox bin
    rm -f prompt stdout stderr pid pid.* void.* claim claim.* cause cause.* exit exit.* cgroup runner.log epoch.* .*.put
    if [ -n "$cgroup" ]; then rmdir "$cgroup" 2>/dev/null; fi
    rm -f runner.sh
    cd /
    rmdir "$dir" || fail "files that are not ours are in $dir; they were kept"
    echo "proto=$proto state=absent epoch=$epoch"
}

may_forget() { # STDOUT STDERR
    case $state in starting | running) refuse "the agent still runs" ;; esac
    if runner_lives; then refuse "the runner still ends what the agent left behind"; fi
    found=$(members)
    [ -z "$found" ] || refuse "processes of the session live: $(echo "$found" | tr '\n' ' ')"
    sizes
    if [ "$stdout_size" -ne "$1" ] || [ "$stderr_size" -ne "$2" ]; then
        refuse "not all output was collected: stdout has $stdout_size bytes, stderr $stderr_size"
    fi
    for each in outbox/*; do
        case ${each#outbox/} in *[!0-9]*) continue ;; esac
        [ -e "$each.answer" ] || refuse "request ${each#outbox/} of the agent was not answered"
    done
}

case $epoch in '' | *[!0-9]*) fail "usage: runner.sh VERB DIRECTORY EPOCH [ARGUMENT]..." ;; esac
case $self in /*) ;; *) self=$PWD/$self ;; esac
cd -P -- "$dir" || fail "cannot enter $dir"
dir=$PWD # without links: it is part of the marker
load
# A number is all that a further argument can be; the mask of `agent` is one too.
case ${4-0}${5-0} in *[!0-9]*) fail "not a number: ${4-} ${5-}" ;; esac
if [ "$verb" != run ] && [ "$verb" != agent ]; then heed_epoch; fi
case $verb in
    start) start ;;
    run) run ;;
    agent) agent "$4" ;;
    observe) judge && facts ;;
    abandon) abandon && facts ;;
    stop) stop "${4:-2000}" ;;
    sweep) sweep "${4:-2000}" ;;
    free) free "${4:-0}" ;;
    forget) forget "${4:-0}" "${5:-0}" ;;
    *) fail "no such verb: $verb" ;;
esac
