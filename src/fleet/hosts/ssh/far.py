"""What is said to the far side: a piece of sh that arrives whole under any login shell, and how its answer is read.

The login shell gets one line that csh, fish and sh read alike: all that they differ in is written in octal. Marks, new
for each exchange, tell our output from whatever a login prints, and the far side's code from ssh's own.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

from fleet.errors import TransportError
from fleet.hosts.unpacking import WHY_NOT, apart

PLAIN = frozenset(b' "#$%&()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmnopqrstuvwxyz{|}~')
_ESCAPES = {byte: f"\\0{byte:03o}" for byte in range(256) if byte not in PLAIN}
BLOCK = 4096
LEAST_MARK = 6  # bytes of a mark that was cut off, to be taken for one

# The program is in the login's process group. Our end of its stdin is the lifeline: when it closes, we are gone.
RUN = """
exec 3<&0 4>&2 2>/dev/null
{ read -r x || kill -s KILL 0; } <&3 >/dev/null 3<&- 4>&- &
line=$!
( exec %(words)s ) 2>&4 3<&- 4>&- </dev/null
code=$?
kill -s KILL $line
exec 2>&4
"""
RUN_WITH_INPUT = """
exec 3<&0 4>&2 2>/dev/null
{
    read -r me rest </proc/self/stat || me=$(exec sh -c 'echo $PPID')
    echo $me
    head -c %(size)d
    exec >&-
    read -r x || kill -s KILL 0
} <&3 3<&- 4>&- | {
    exec 3<&-
    read -r line
    ( exec %(words)s ) 2>&4 4>&-
    code=$?
    kill -s KILL $line
    exit $code
}
code=$?
exec 2>&4
"""
# What is launched is never ended by us: its stdin ends where ours does. Nobody waits for it, only for its first line.
LAUNCH = """
exec 3<&0
{ ( exec %(apart)s ) <&3 3<&- 2>/dev/null & } | {
    IFS= read -r said && echo "$said"
}
code=0
"""
# Where 126 or 127 is not the program's own, the program cannot be run.
FOUND = """
case $code in 126|127)
    case %(name)s in
        */*) [ -f %(name)s ] && [ -x %(name)s ] || code=unfound ;;
        *) command -v %(name)s >/dev/null 2>&1 || code=unfound ;;
    esac ;;
esac
"""
# dd that cannot fsync has read nothing when it says so; any other failure leaves a wrong size.
PUT = (
    """
umask 077
code=1 new=%(new)s
if mkdir -p %(folder)s && [ ! -d %(path)s ]; then
    dd bs=65536 conv=fsync of="$new" 2>/dev/null || cat >"$new"
    if [ "$(wc -c <"$new")" -eq %(size)d ] && mv -f "$new" %(path)s; then code=0; else rm -f "$new"; fi
elif [ -d %(path)s ]; then
    echo 'it is a directory' >&2
fi
"""
    + WHY_NOT
)
GET = """
code=0
exec 3>&1
if [ -f %(path)s ]; then
    said=$(dd if=%(path)s bs=%(block)d skip=%(skip)d count=%(count)d 2>&1 >&3) || code=$?
    if [ $code != 0 ] && [ -f %(path)s ]; then echo "$said" >&2; else code=0; fi
fi
"""


def line_for(script: str) -> str:
    """The line that makes any login shell run a piece of sh."""
    escaped = os.fsencode(script).decode("latin-1").translate(_ESCAPES)
    return f"""exec sh -c 'eval "$(printf %b "$0")"' '{escaped}'"""


def exchange(mark: str, body: str, *, streams: bool = False) -> str:
    """A body that leaves its `code`, between marks on both streams: a connection may end between the two.

    What `streams` has no last mark on stdout: who reads it as it comes would have to hold back what might be one.
    """
    first, last = f"printf '\\n{mark}\\n'", f"printf '\\n{mark} %s\\n' \"$code\""
    ends = [f"{last} >&2"] if streams else [last, f"{last} >&2"]
    return "\n".join([first, f"{first} >&2", body, *ends, "exit 0\n"])


def words_of(argv: Sequence[str]) -> str:
    """The words, quoted for sh. A word with a NUL in it cannot be handed over."""
    if any("\0" in word for word in argv):
        raise TransportError(f"cannot run `{argv[0]}`: a word has a NUL in it")
    return " ".join(map(shlex.quote, argv))


def run_body(argv: Sequence[str], size: int) -> str:
    """Run a program, with so many bytes of stdin, and end it when we are gone. It leaves the code `unfound` of none."""
    script = RUN_WITH_INPUT if size else RUN
    return script % {"words": words_of(argv), "size": size} + FOUND % {"name": shlex.quote(argv[0])}


def launch_body(argv: Sequence[str]) -> str:
    """Start a program apart from us, with a small environment, and give its first line."""
    return LAUNCH % {"apart": apart(words_of(argv))}


def stream_body(argv: Sequence[str]) -> str:
    """Run a program for what it prints, and end it when we are gone."""
    return RUN % {"words": words_of(argv) + " 2>/dev/null"}


def put_body(path: str, data: bytes, token: str) -> str:
    """Take a file from stdin; `token` makes its temporary name."""
    folder, _, name = path.rpartition("/")
    new = f"{folder}/.{name}.{token}.put"
    quoted = {"path": shlex.quote(path), "folder": shlex.quote(folder or "/"), "new": shlex.quote(new)}
    return PUT % {**quoted, "size": len(data)}


def get_body(path: str, offset: int, limit: int) -> str:
    """Give the whole blocks around a part of a file: every dd can do that, and without reading what is before."""
    skip = offset // BLOCK
    count = (offset + limit + BLOCK - 1) // BLOCK - skip
    return GET % {"path": shlex.quote(path), "block": BLOCK, "skip": skip, "count": count}


def hello_body(names: Sequence[str]) -> str:
    """Tell which of our variables arrived, and as what."""
    return (
        "".join(f'if [ -n "${{{name}+x}}" ]; then printf \'{name}=%s\\0\' "${name}"; fi\n' for name in names) + "code=0"
    )


def hello_answer(stdout: bytes) -> dict[str, bytes]:
    """The variables, by their names."""
    pairs = (each.partition(b"=") for each in stdout.split(b"\0") if each)
    return {name.decode("ascii", "replace"): value for name, _, value in pairs}


class Answer:
    """The two streams of an exchange, put together as they come."""

    def __init__(self, mark: str) -> None:
        self._first = f"\n{mark}\n".encode()
        self._last = f"\n{mark} ".encode()

    def begin(self, data: bytes) -> bytes | None:
        """What follows the first mark; None while it has not come."""
        _, found, rest = data.partition(self._first)
        return rest if found else None

    def so_far(self, data: bytes) -> bytes | None:
        """What has come of a stream that may have been cut off anywhere, without our marks; None: it has not begun."""
        said = self.begin(data)
        if said is None:
            return None
        before, last, rest = said.rpartition(self._last)
        if last:
            return before + rest.partition(b"\n")[2]
        for size in range(len(self._last) - 1, LEAST_MARK, -1):
            if said.endswith(self._last[:size]):
                return said[:-size]
        return said

    def printed(self, stdout: bytes) -> bytes | None:
        """What the far side printed; None when it did not come to its end. What it left behind may print on."""
        before, last, rest = (self.begin(stdout) or b"").rpartition(self._last)
        _, ended, after = rest.partition(b"\n")
        return before + after if last and ended else None

    def end(self, stderr: bytes) -> tuple[str, bytes] | None:
        """The code and what the far side wrote to stderr; None when it did not come to its end."""
        said = self.begin(stderr)
        before, last, rest = (said or b"").rpartition(self._last)
        code, ended, _ = rest.partition(b"\n")
        return (code.decode(), before) if last and ended else None
