"""Many small files in one exchange: each whole or not at all, in their order, with programs that directories share.

The far side gets a function that writes them, on stdin: one that is cut off is no function, and does nothing.
"""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Iterator, Mapping
from hashlib import sha256

from fleet.hosts.ssh.far import WHY_NOT

SHARED = ".shared"
ABSENT = "absent"  # the code when the shared programs are not over there yet
BODY = 'code=1\neval "$(cat)"\n' + WHY_NOT


def body(directory: str) -> str:
    """What takes the function."""
    return BODY % {"folder": shlex.quote(directory.rpartition("/")[0] or "/")}


def digest(programs: Mapping[str, bytes]) -> str:
    """A name for these programs, by what they are."""
    parts = (b"%b\0%d\0%b" % (name.encode(), len(data), data) for name, data in programs.items())
    return sha256(b"".join(parts)).hexdigest()[:16]


def unpacking(directory: str, files: Mapping[str, bytes], shared: Mapping[str, bytes], *, whole: bool) -> bytes:
    """The function and its call. `whole`: with the shared programs themselves, not only by their name."""
    kept = f"{directory.rpartition('/')[0]}/{SHARED}/{digest(shared)}"
    lines = [
        "unpack() {",
        "umask 077",
        f"kept={shlex.quote(kept)}",
        f'if [ ! -d "$kept" ]; then {"share || return" if whole else f"code={ABSENT}; return"}; fi',
        f"mkdir -p {shlex.quote(directory)} && cd {shlex.quote(directory)} || return",
        *_linked(shared),
    ]
    script = "\n".join(lines).encode() + b"\n" + b"".join(_written(files)) + b"code=0\n}\nunpack\n"
    return (_sharing(shared) if whole else b"") + script


def _sharing(shared: Mapping[str, bytes]) -> bytes:
    """The function that keeps the shared programs. Of two that do it at once, either may be first."""
    folders = sorted({name.rpartition("/")[0] for name in shared if "/" in name})
    made = " ".join(shlex.quote(f"./{each}") for each in ("", *folders))
    lines = [b'share() {\nnew=$kept.$$\nmkdir -p "$new" && cd "$new" && mkdir -p ' + made.encode() + b" || return\n"]
    for name, data in shared.items():
        quoted = shlex.quote(name).encode()
        lines.append(b"printf %b " + _quoted(data) + b" >" + quoted + b" && chmod 700 " + quoted + b" || return\n")
    lines.append(b'[ -d "$kept" ] || mv "$new" "$kept" || return\ncd / && rm -rf "$new" "$kept/${new##*/}"\n}\n')
    return b"".join(lines)


def _linked(shared: Mapping[str, bytes]) -> Iterator[str]:
    """A file is linked, so that it is there as long as its directory; a folder is a symbolic link."""
    for top in dict.fromkeys(name.partition("/")[0] for name in shared):
        word = shlex.quote(top)
        if top in shared:
            yield f'[ -e {word} ] || ln "$kept"/{word} {word} || return'
        else:
            yield f'[ -e {word} ] || ln -s "../{SHARED}/${{kept##*/}}"/{word} {word} || return'


def _written(files: Mapping[str, bytes]) -> Iterator[bytes]:
    for name, data in files.items():
        quoted = shlex.quote(name).encode()
        if name.endswith("/"):
            yield b"[ -d " + quoted + b" ] || mkdir -p " + quoted + b" || return\n"
            continue
        new = shlex.quote(f".{name.replace('/', '.')}.{secrets.token_hex(6)}.put").encode()
        write = b"printf %b " + _quoted(data) + b" >" + new + b" && mv -f " + new + b" " + quoted
        yield write + b" || { rm -f " + new + b"; return; }\n"


def _quoted(data: bytes) -> bytes:
    """Any bytes, for `printf %b` of any sh."""
    return b"'" + data.replace(b"\\", b"\\\\").replace(b"'", b"\\0047").replace(b"\0", b"\\0000") + b"'"
