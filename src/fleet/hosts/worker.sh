#!/bin/sh
# One worker of a pool, on its machine: its clone, its tmux session, and what the agent in it does.
#
# usage: sh worker.sh VERB [ARGUMENT]...     the directory of this file is the worker's; `conf` in it says what it works on
#   setup               clone and run the setup script, each until it succeeded once; variables for it come on stdin
#   clear               remove what a setup that was cut short had half made
#   open                the tmux session, with the windows shell and agent
#   look                nothing but the facts
#   state STATE WHY SESSION [STATE SESSION]
#                       what the agent does, as somebody outside saw it; with the last two, only if it is still as it was
#   hook EVENT          what the agent does, as its program tells; its words come on stdin
#   died                the agent's terminal is without a program
#   close               end the tmux session
# setup, clear, open, look and state answer with the facts: a line NAME=VALUE for each. hook and died answer nothing.

set -u
unset CDPATH
dir=$(dirname -- "$0")
cd -P -- "$dir" || exit 1
dir=$PWD
url='' branch='' script='' place='' socket='' session='' key=''
# shellcheck source=/dev/null
. ./conf
umask 077

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

tm() { # what is told to the worker's own server, or to the machine's only one
    if [ -n "$socket" ]; then set -- -L "$socket" "$@"; fi
    tmux -u -f /dev/null "$@"
}

now_ms() {
    now=$(date +%s%3N)
    case $now in *[!0-9]*) now=$(date +%s)000 ;; esac
}

one_line() { tr -s '\n\t\r' '   ' | cut -c 1-300; }

# --- what the agent does ----------------------------------------------------------------------------------------------

read_state() {
    state=none since='' of='' why=''
    [ -f agent ] || return 0
    while IFS='=' read -r name value; do
        case $name in
            state) state=$value ;;
            since) since=$value ;;
            session) of=$value ;;
            why) why=$value ;;
        esac
    done <./agent
}

set_state() { # STATE SESSION WHY [STATE SESSION]: with the last two, only if it is that: what was seen may be over by now
    take agent.taking || return 0
    read_state
    if [ $# -eq 3 ] || [ "$state $of" = "$4 $5" ]; then
        now_ms
        if [ "$state" != "$1" ] || [ "$of" != "$2" ]; then since=$now; fi
        printf 'state=%s\nsince=%s\nsession=%s\nwhy=%s\n' "$1" "$since" "$2" "$3" >"agent.$$" && mv -f "agent.$$" agent
    fi
    rmdir agent.taking
    read_state
    find_windows
    called=agent:$state
    if [ "$state" = none ]; then called=agent; fi
    if [ -n "$agent_window" ]; then tm rename-window -t "$agent_window" "$called" 2>/dev/null; fi
    return 0
}

fell() { # WHY: the agent that was at it when we looked is not there any more
    set_state error "$of" "$1" "$state" "$of"
}

take() { # NAME: for an instant; who is killed in it holds up nobody for long
    tries=0
    until mkdir "$1" 2>/dev/null; do
        tries=$((tries + 1))
        if [ $tries -eq 100 ]; then return 1; fi
        if [ $tries -eq 50 ]; then rmdir "$1" 2>/dev/null; fi
        sleep 0.1
    done
}

hook() { # EVENT
    said=$(head -c 2000000 | tr -d '\0')
    read_state
    case $1 in
        UserPromptSubmit | Stop | StopFailure) printf '%s' "$said" >"hook.$$" && mv -f "hook.$$" "hook.$1" ;;
    esac
    case $1 in
        UserPromptSubmit) set_state running "${FLEET_SESSION-}" 'it was given a prompt (hook UserPromptSubmit)' ;;
        Stop) set_state completed "${FLEET_SESSION-}" 'it ended its turn (hook Stop)' ;;
        StopFailure) set_state error "${FLEET_SESSION-}" 'its turn failed (hook StopFailure)' ;;
        Notification)
            words=$(printf %s "$said" | sed -n 's/.*"message" *: *"\([^"]*\)".*/\1/p' | one_line)
            set_state waiting "$of" "it asks (hook Notification): $words" running "$of"
            ;;
        PostToolUse) set_state running "$of" 'it works on (hook PostToolUse)' waiting "$of" ;;
    esac
}

died() {
    read_state
    case $state in
        running | waiting) fell 'its program ended before it was done' ;;
    esac
}

# --- tmux -------------------------------------------------------------------------------------------------------------

find_windows() { # by what they are called; they are spoken of by their ids, for a colon in a name means something else
    agent_window='' agent_name='' pane='' dead='' mode='' program='' shell_window='' shell_pane='' pane_pid=''
    listed=$(tm list-panes -s -t "=$session" \
        -F '#{window_id} #{pane_id} #{pane_dead} #{pane_in_mode} #{pane_pid} #{window_name} #{pane_current_command}' \
        2>/dev/null) || return 1
    while read -r w p is_dead in_mode its_pid name command; do
        case $name in
            agent | agent:*)
                agent_window=$w agent_name=$name pane=$p dead=$is_dead mode=$in_mode program=$command pane_pid=$its_pid
                ;;
            shell) shell_window=$w shell_pane=$p ;;
        esac
    done <<LIST
$listed
LIST
}

open_windows() {
    command -v tmux >/dev/null 2>&1 || fail 'tmux is not installed there'
    if ! tm has-session -t "=$session" 2>/dev/null; then
        # Outside of any session of an agent, and with nothing of our environment but harmless words.
        (
            if [ -n "$socket" ]; then set -- -L "$socket"; else set --; fi
            env -i ${PATH+"PATH=$PATH"} ${HOME+"HOME=$HOME"} ${USER+"USER=$USER"} ${SHELL+"SHELL=$SHELL"} \
                ${LOGNAME+"LOGNAME=$LOGNAME"} ${LANG+"LANG=$LANG"} ${LC_ALL+"LC_ALL=$LC_ALL"} ${TZ+"TZ=$TZ"} \
                ${TMPDIR+"TMPDIR=$TMPDIR"} ${TMUX_TMPDIR+"TMUX_TMPDIR=$TMUX_TMPDIR"} \
                tmux -u -f /dev/null "$@" new-session -d -s "$session" -n shell -x 160 -y 48 -c "$place"
        ) || fail 'tmux cannot open a session'
        tm set-option -g default-terminal screen-256color
        tm set-option -g history-limit 20000
    fi
    find_windows
    if [ -z "$shell_window" ]; then tm new-window -d -n shell -t "=$session:" -c "$place"; fi
    if [ -z "$agent_window" ]; then
        tm new-window -n agent -t "=$session:" -c "$place" "printf 'No agent was started here yet.\n'; sleep 1"
    fi
    find_windows
    for each in "$shell_window" "$agent_window"; do
        tm set-option -w -t "$each" automatic-rename off
        tm set-option -w -t "$each" allow-rename off
    done
    tm set-option -w -t "$agent_window" remain-on-exit on
    tm set-hook -w -t "$agent_window" pane-died "run-shell -b \"sh '$dir/worker.sh' died\""
}

# --- setting up -------------------------------------------------------------------------------------------------------

setup() { # what it prints is kept in setup.log; what came of it in setup
    given=$(cat)
    take_setup
    (
        set -a
        eval "$given"
        set +a
        steps
    ) >>setup.log 2>&1 </dev/null
    rm -f setup.pid
}

take_setup() { # of several that begin in the same instant one has it
    take setup.taking || fail "cannot write $dir/setup.taking"
    if is_setting_up; then
        rmdir setup.taking
        fail "it is being set up (process $maker)"
    fi
    echo $$ >setup.pid
    rmdir setup.taking
}

is_setting_up() { # whether who said so lives: after a crash, its number may be that of another program
    maker=$(cat setup.pid 2>/dev/null) && kill -0 "$maker" 2>/dev/null || return 1
    [ ! -r "/proc/$maker/cmdline" ] || tr '\0' ' ' <"/proc/$maker/cmdline" | grep -qF -e "${dir##*/}/worker.sh setup"
}

steps() {
    say "worker $(basename "$dir"): $(date -u '+%Y-%m-%d %H:%M:%S UTC')"
    GIT_TERMINAL_PROMPT=0
    GIT_SSH_COMMAND="ssh -o BatchMode=yes -o StrictHostKeyChecking=accept-new -o ConnectTimeout=20"
    # shellcheck disable=SC2089,SC2090 # git gives it to sh
    if [ -n "$key" ]; then GIT_SSH_COMMAND="$GIT_SSH_COMMAND -o IdentitiesOnly=yes -i '$key'"; fi
    # shellcheck disable=SC2090
    export GIT_TERMINAL_PROMPT GIT_SSH_COMMAND
    command -v git >/dev/null 2>&1 || ended failed 'git is not installed there'
    if [ -d "$place/.git" ]; then
        say "the clone is there: $place"
    else
        say "cloning $url to $place"
        rm -rf "$place.new"
        mkdir -p "$(dirname -- "$place")"
        git clone ${branch:+--branch "$branch"} -- "$url" "$place.new" ||
            ended failed "git cannot clone $url: $(tail -n 1 setup.log | one_line)"
        if [ -n "$key" ]; then git -C "$place.new" config core.sshCommand "$GIT_SSH_COMMAND"; fi
        mv -- "$place.new" "$place" || ended failed "something is in the way of the clone: $place"
    fi
    if [ -f ready ]; then
        say 'it was set up before'
    elif [ -n "$script" ] && [ -f "$place/$script" ]; then
        say "running $script"
        cd "$place" || ended failed "cannot enter $place"
        if [ -x "$script" ]; then "./$script"; elif command -v bash >/dev/null 2>&1; then bash "./$script"; else sh "./$script"; fi
        code=$?
        cd "$dir" || exit 1
        if [ $code -ne 0 ]; then ended failed "$script ended with code $code: $(tail -n 1 setup.log | one_line)"; fi
        note="$script ran"
    else
        note="there is no $script; skipped"
        say "note: $note"
    fi
    if [ ! -f ready ]; then printf '%s\n' "$note" >ready.new && mv ready.new ready; fi
    say 'ready'
    ended ready "$(cat ready)"
}

clear_setup() { # what was cut short may need a moment to die, and writes until then; a setup that lives is another's
    tries=0
    while is_setting_up; do
        tries=$((tries + 1))
        [ $tries -lt 20 ] || return 0
        sleep 0.1
    done
    [ -f setup.pid ] || return 0
    tries=0
    rm -rf "$place.new" 2>/dev/null
    while [ -e "$place.new" ] && [ $tries -lt 50 ]; do
        tries=$((tries + 1))
        sleep 0.1
        rm -rf "$place.new" 2>/dev/null
    done
    say 'cut short' >>setup.log
    rm -f setup.pid
}

say() { printf -- '--- %s\n' "$*"; }

ended() { # ready|failed WHY
    printf 'setup=%s\nsetup_why=%s\n' "$1" "$2" >setup.new && mv setup.new setup
    [ "$1" = ready ] || say "failed: $2"
    exit 0
}

# --- the facts --------------------------------------------------------------------------------------------------------

facts() {
    now_ms
    tmux=up
    read_state # first: an agent that begins meanwhile is not the one that is missed
    find_windows || tmux=down
    case $state/$tmux/$dead in
        running/down/* | waiting/down/*) fell 'its tmux server is gone, and its program with it' ;;
        running/up/1 | waiting/up/1) fell 'its program ended before it was done' ;;
        running/up/ | waiting/up/) fell 'its window is gone, and its program with it' ;;
    esac
    read_state
    if [ -n "$agent_window" ] && [ "$state" != none ] && [ "$agent_name" != "agent:$state" ]; then
        tm rename-window -t "$agent_window" "agent:$state"
        agent_name=agent:$state
    fi
    if [ -f setup ]; then cat setup; fi
    printf '%s=%s\n' now "$now" tmux "$tmux" agent_window "$agent_window" agent_name "$agent_name" pane "$pane" \
        dead "$dead" mode "$mode" program "$program" pane_pid "$pane_pid" shell_window "$shell_window" \
        shell_pane "$shell_pane" state "$state" since "$since" session "$of" why "$why"
    if [ -f setup.log ]; then printf 'log_bytes=%s\n' "$(wc -c <setup.log | tr -d ' ')"; fi
    if [ -d "$place/.git" ]; then
        printf '%s=%s\n' commit "$(git -C "$place" log -1 --format=%ct 2>/dev/null)" \
            head "$(git -C "$place" log -1 --format='%h %s' 2>/dev/null | one_line)" \
            branch "$(git -C "$place" symbolic-ref --short -q HEAD)" \
            dirty "$(git -C "$place" status --porcelain 2>/dev/null | wc -l | tr -d ' ')" \
            unpushed "$(git -C "$place" rev-list --count --branches HEAD --not --remotes 2>/dev/null)" \
            stashed "$(git -C "$place" stash list 2>/dev/null | wc -l | tr -d ' ')"
    fi
    echo end=1
}

case $dir in *[\'\"\\\$\`]*) fail "a worker's directory cannot have such a name: $dir" ;; esac
case ${1-} in
    setup) setup && facts ;;
    clear) clear_setup && facts ;;
    open) open_windows && facts ;;
    look) facts ;;
    state)
        if [ $# -lt 6 ]; then set_state "$2" "${4-}" "$3"; else set_state "$2" "$4" "$3" "$5" "$6"; fi
        facts
        ;;
    hook) hook "$2" >/dev/null 2>&1 ;;
    died) died >/dev/null 2>&1 ;;
    close) tm kill-session -t "=$session" 2>/dev/null || true ;;
    *) fail "no such verb: ${1-}" ;;
esac
