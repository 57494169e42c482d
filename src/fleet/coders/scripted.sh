#!/bin/sh
# The scripted coder: plays the steps in $FLEET_SCRIPT, one per line, and tells of each as a line of JSON.
# Texts are written as inside a JSON string; what follows `run` and `write PATH` as for printf %b.
# Only POSIX sh is needed. Started as: sh -c "$(cat scripted.sh)" scripted

calls=0
input=0 output=0 cached=0 cost=0

emit() { printf '{"kind":"%s"%s}\n' "$1" "${2:+,$2}"; }

begin_call() { # NAME INPUT
    calls=$((calls + 1))
    emit tool_started "\"id\":\"call-$calls\",\"name\":\"$1\",\"input\":\"$2\""
}

end_call() { emit tool_ended "\"id\":\"call-$calls\",\"ok\":$1"; } # true|false

run_call() { # SHOWN COMMAND
    begin_call shell "$1"
    if (eval "$2") >&2; then end_call true; else end_call false; fi
}

finish() { # OK REASON
    emit turn_ended "\"ok\":$1,\"reason\":\"$2\""
}

play() { # VERB REST
    case $1 in
        say) emit text "\"text\":\"$2\"" ;;
        think) emit thinking "\"text\":\"$2\"" ;;
        tool) begin_call "$2" "" && end_call true ;;
        fail) begin_call "$2" "" && end_call false ;;
        run) run_call "${2%%|*}" "$(printf %b "${2#*|}")" ;;
        write)
            begin_call write "${2%% *}"
            mkdir -p "$(dirname "${2%% *}")"
            if printf %b "${2#* }" >"${2%% *}"; then end_call true; else end_call false; fi
            ;;
        lines)
            number=0
            while [ "$number" -lt "$2" ]; do
                number=$((number + 1))
                emit text "\"text\":\"line $number\""
            done
            ;;
        sleep) sleep "$2" ;;
        usage) # shellcheck disable=SC2086 # four numbers
            set -- $2
            input=${1:-0} output=${2:-0} cached=${3:-0} cost=${4:-0}
            emit used "\"input_tokens\":$input,\"output_tokens\":$output,\"cached_tokens\":$cached,\"cost_microusd\":$cost"
            ;;
        context) emit context "\"tokens\":$2" ;;
        retry) emit retrying "\"reason\":\"$2\"" ;;
        deny) emit denied "\"tool\":\"$2\"" ;;
        limit) # RESETS_AT in milliseconds
            emit limited "\"window\":\"scripted\",\"rejected\":true,\"used_pct\":100.0,\"resets_at\":$2"
            finish false plan_limit
            exit 1
            ;;
        end) # the name of an outcome
            if [ "$2" = ok ]; then finish true "$2"; else finish false "$2"; fi
            [ "$2" = ok ]
            exit
            ;;
        exit) exit "$2" ;;
        stderr) printf '%b\n' "$2" >&2 ;;
        raw) printf '%s\n' "$2" ;;
        spawn) sleep "$2" & ;;
        stubborn) trap '' HUP INT TERM ;;
        hang) while :; do sleep 3600; done ;;
        '' | '#'*) ;;
        *)
            printf 'scripted: unknown step: %s\n' "$1" >&2
            exit 2
            ;;
    esac
}

emit started "\"coder_session\":\"scripted-$$\",\"model\":\"scripted\",\"version\":\"1\""
if [ -n "${FLEET_SCRIPT_TOOLS-}" ]; then
    emit notice "\"text\":\"tool permissions do not apply to the scripted coder: $FLEET_SCRIPT_TOOLS\""
fi
while IFS= read -r step <&3; do
    case $step in
        *' '*) play "${step%% *}" "${step#* }" ;;
        *) play "$step" "" ;;
    esac
done 3<<SCRIPT
${FLEET_SCRIPT-say Nothing was asked of me.}
SCRIPT
finish true completed
