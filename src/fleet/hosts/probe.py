"""A probe: whether a machine answers, and has what sessions need; a value with its evidence, whatever comes of it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from datetime import datetime

import msgspec

from fleet.config.clock import utc_ms
from fleet.errors import HostGone, HostMissing, TransportError
from fleet.hosts.transport import Completed, Seen, SupportsSight, Transport, refusal_behind
from fleet.model.host import Host
from fleet.model.reach import Reach

# Says who we are there; then, where a person asks, the facts; the last word is `fit`, or why it is not.
# Of a coder's login it tells the time that stands in its file, and whether it can renew itself; never what is secret.
# What the shell can do by itself it does: to start a program costs more than all else, and hundreds are asked at once.
SCRIPT = r"""
uid=
if [ -r /proc/self/status ]; then
    while read -r key x uid x; do if [ "$key" = Uid: ]; then break; fi; done </proc/self/status
fi
echo "${uid:-$(id -u)}"
if [ -n "$3" ]; then
    now=$(date +%s) disk= coder=no
    { read -r x; read -r x x x x disk x; } <<END
$(df -Pk -- "${1:-.}" 2>/dev/null)
END
    if command -v "$3" >/dev/null 2>&1; then coder=yes; fi
    printf '%s' "now=$now disk=$disk coder=$coder"
    for login in claude:.claude/.credentials.json:expiresAt codex:.codex/auth.json:last_refresh; do
        file=${login#*:} key=${login##*:}
        file=$HOME/${file%:*}
        if [ ! -r "$file" ]; then continue; fi
        at=$(tr -d ' \n' <"$file" | sed -n 's/.*"'"$key"'":"\{0,1\}\([0-9TZ:.+-]*\).*/\1/p') renews=no
        if grep -Eq '"refresh_?[Tt]oken" *: *"[^"]' "$file"; then renews=yes; fi
        printf '%s' " ${login%%:*}_login=$at/$renews"
    done
    echo
fi
if [ -n "$1" ]; then
    if ! cd -- "$1" 2>/dev/null; then echo "there is no directory $1"; exit; fi
    own=.
    if [ "${4-}" != local ]; then own=.fleet/sessions; fi # this machine's are in the home
    if [ ! -d "$own" ]; then mkdir -p "$own" 2>/dev/null; fi
    if [ ! -w "$own" ]; then echo "$1 cannot be written"; exit; fi
fi
if [ -n "$2" ] && ! command -v "$2" >/dev/null 2>&1; then echo "there is no program $2"; exit; fi
echo fit
"""


# The words of a provider, in those of the first Fleet Manager: running, warm, cold, not_found, error.
STATUS = {"missing?": "not_found", "missing": "not_found", "unknown": "error"}


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """How a coder is logged in there, by the file that it keeps."""

    coder: str
    expires_at: int | None = None  # UTC milliseconds
    renewed_at: int | None = None
    renews: bool = False  # whether it holds what renews it


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What a machine tells of itself, as far as it does."""

    coder: bool | None = None  # whether the coder's program is found there
    disk_used_pct: int | None = None  # of the disk that work happens on
    clock_ahead_seconds: int | None = None  # of ours
    logins: tuple[Login, ...] = ()


class Probed(msgspec.Struct, frozen=True):
    """What a probe found."""

    host: Host
    as_root: bool = False
    facts: Facts = Facts()


async def probe(name: str, reach: Reach, transport: Transport, *, seconds: float, coder: str = "") -> Probed:
    """Ask a machine once, for not longer than that. With the name of a coder's program, for further facts too."""
    now, began = utc_ms(), time.monotonic()
    state, took, as_root, facts = "down", None, False, Facts()
    words = ["sh", "-c", SCRIPT, "probe", reach.working_directory, reach.agent_binary, coder]
    words += ["local"] if reach.kind == "local" else []
    try:
        async with asyncio.timeout(seconds):
            done = await transport.run(words)
    except TimeoutError as exc:
        evidence = str(refusal_behind(exc) or f"no answer within {seconds:g} s")
    except TransportError as exc:
        evidence = str(exc)
        if isinstance(exc, HostMissing) and not isinstance(exc, HostGone):  # no single answer of that kind is believed
            state = "unknown"
    else:
        took = round((time.monotonic() - began) * 1000)
        up, as_root, facts, evidence = _read(done, with_facts=bool(coder))
        state = "up" if up else "down"
    host = Host(
        name=name,
        kind=reach.kind,
        state=state,
        since=now,
        evidence=evidence,
        latency_ms=took,
        probed_at=now,
        answered_at=now if took is not None else None,
        coder=facts.coder,
    )
    return Probed(host, as_root, facts)


def status_of(seen: Seen) -> str:
    """What a provider says of a machine, in the words that people know."""
    return STATUS.get(seen.presence, str(seen.presence))


async def sighted(name: str, reach: Reach, transport: SupportsSight) -> Host:
    """Of a machine that was fit when it was probed: what its provider says now. A command would keep it awake."""
    now, began = utc_ms(), time.monotonic()
    seen = await transport.seen()
    up = seen.asleep or seen.presence == "running"
    evidence = f"its provider says that it is {seen.presence}" if up else f"{seen.presence}: {seen.evidence}"
    return Host(
        name=name,
        kind=reach.kind,
        state="up" if up else "down" if seen.presence == "missing" else "unknown",
        since=now,
        evidence=evidence,
        latency_ms=round((time.monotonic() - began) * 1000),
        probed_at=now,
        status=status_of(seen),
    )


def _read(done: Completed, *, with_facts: bool) -> tuple[bool, bool, Facts, str]:
    """Whether it is fit, whether we are root there, the facts, and the words for it."""
    uid, _, said = done.stdout.decode("utf-8", "replace").strip().partition("\n")
    facts = Facts()
    if with_facts:
        line, _, said = said.partition("\n")
        facts = _facts(dict(word.split("=", 1) for word in line.split() if "=" in word))
    up = said == "fit"
    evidence = "it answered, and has what sessions need" if up else said or f"its sh ended with code {done.code}"
    return up, uid == "0", facts, evidence


def _facts(said: dict[str, str]) -> Facts:
    now, disk = said.get("now", ""), said.get("disk", "").rstrip("%")
    return Facts(
        coder=said["coder"] == "yes" if "coder" in said else None,
        disk_used_pct=int(disk) if disk.isdecimal() else None,
        clock_ahead_seconds=int(now) - round(time.time()) if now.isdecimal() else None,
        logins=tuple(login for name, word in said.items() if (login := _login(name, word))),
    )


def _login(name: str, word: str) -> Login | None:
    coder, is_login, _ = name.partition("_login")
    at, slash, renews = word.rpartition("/")
    if not is_login or not slash:
        return None
    if at.isdecimal():
        return Login(coder=coder, expires_at=int(at), renews=renews == "yes")
    return Login(coder=coder, renewed_at=_moment(at), renews=renews == "yes")


def _moment(text: str) -> int | None:
    """UTC milliseconds of a time as files have it."""
    with contextlib.suppress(ValueError):
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    return None
