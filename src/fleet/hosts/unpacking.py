"""Many small files in one exchange: each whole or not at all, in their order, with programs that directories share.

The far side gets functions that write them, on stdin: what is cut off does nothing, as the call comes last. What was
unpacked may be launched in the same exchange.
"""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from hashlib import sha256

from fleet.hosts.launch_file import BASE_ENVIRONMENT

Exchange = Callable[[str, bytes], Awaitable[tuple[str, bytes, bytes]]]  # a body and its stdin: code, stdout, stderr
SHARED = ".shared"
ABSENT = "absent"  # the code when the shared programs are not over there yet
# Not every shell says why it could not write.
WHY_NOT = """
if [ "$code" = 1 ]; then
    left=$(df -Pk %(folder)s 2>/dev/null | awk 'NR == 2 { print $4 }')
    if [ "$left" = 0 ]; then echo 'No space left on device' >&2; fi
fi
"""
BODY = 'code=1\neval "$(cat)"\n' + WHY_NOT
# What is given may be secret: a printf that is a program of its own would show it to whoever lists processes.
LAUNCH = """
if [ "$code" = 0 ] && [ "$(command -v printf)" = printf ]; then
    { printf %%b "$given" | ( exec %(apart)s ) 2>/dev/null & } | { IFS= read -r said && echo "$said"; }
fi
"""


async def unpack(
    exchange: Exchange, directory: str, files: Mapping[str, bytes], shared: Mapping[str, bytes], then: bytes = b""
) -> tuple[str, bytes, bytes]:
    """What the last exchange gave; the shared programs are sent only where they are not over there yet."""
    for whole in (False, True):
        done = await exchange(_body(directory), _unpacking(directory, files, shared, whole=whole) + then)
        if done[0] != ABSENT:
            break
    return done


def apart(words: str) -> str:
    """Words for sh as the leader of a process session, with fresh signals and a small environment.

    Where the host's env cannot give it fresh signals, it does not begin.
    """
    kept = " ".join(f'${{{name}+"{name}=${name}"}}' for name in BASE_ENVIRONMENT)
    return f"setsid env --default-signal=INT,QUIT -i {kept} {words}"


def launching(argv: Sequence[str], stdin: bytes) -> bytes:
    """What comes after the call that unpacks: a program is run apart from us, and its first line is the answer."""
    words = apart(" ".join(map(shlex.quote, argv)))
    return b"given=" + _quoted(stdin) + (LAUNCH % {"apart": words}).encode("utf-8", "surrogateescape")


def digest(programs: Mapping[str, bytes]) -> str:
    """A name for these programs, by what they are."""
    parts = (b"%b\0%d\0%b" % (name.encode(), len(data), data) for name, data in programs.items())
    return sha256(b"".join(parts)).hexdigest()[:16]


def _body(directory: str) -> str:
    """What takes the functions; it leaves its `code`."""
    return BODY % {"folder": shlex.quote(directory.rpartition("/")[0] or "/")}


def _unpacking(directory: str, files: Mapping[str, bytes], shared: Mapping[str, bytes], *, whole: bool) -> bytes:
    """The functions and their call. `whole`: with the shared programs themselves, not only by their name."""
    kept = f"{directory.rpartition('/')[0]}/{SHARED}/{digest(shared)}"
    lines = [
        f"kept={shlex.quote(kept)} new={shlex.quote(f'{directory}.{secrets.token_hex(6)}.new')}",
        f"goal={shlex.quote(directory)}",
        "umask 077",
        f'if [ ! -d "$kept" ]; then {"share || return" if whole else f"code={ABSENT}; return"}; fi',
        'if [ ! -e "$goal" ] && cp -al "$kept" "$new" 2>/dev/null; then',
        # who shares the same programs at this moment may have its own among them for an instant
        '    for inner in "$new/${kept##*/}".*; do if [ -e "$inner" ]; then rm -rf "$inner"; fi; done',
        "    all_new || return",
        "else",
        '    if [ -e "$new" ]; then rm -rf "$new"; fi',
        "    one_by_one",
        "fi",
    ]
    main = _function("unpack", "\n".join(lines).encode() + b"\n")
    contents = [f"file{place}=".encode() + _quoted(data) + b"\n" for place, data in enumerate(files.values())]
    parts = [*contents, _all_new(files), _one_by_one(files, shared), main]
    return b"".join([_sharing(shared), *parts] if whole else parts) + b"unpack\n"


def _function(name: str, body: bytes) -> bytes:
    return name.encode() + b"() {\n" + body + b"}\n"


def _all_new(files: Mapping[str, bytes]) -> bytes:
    """A directory that is not there yet is made beside its place, with links to what is shared, and moved.

    That takes the fewest programs. Another may have been quicker: then the move goes into what it made, or fails, and
    the files go there one by one.
    """
    folders = [shlex.quote(name) for name in files if name.endswith("/")]
    made = f"mkdir -p {' '.join(folders)} && ".encode() if folders else b""
    writes = [
        f'printf %b "$file{place}" >{shlex.quote(name)} && '.encode()
        for place, name in enumerate(files)
        if not name.endswith("/")
    ]
    moved = b'mv "$new" "$goal" || { rm -rf "$new"; [ -d "$goal" ] || return; one_by_one; return; }\n'
    body = b'{ cd "$new" && ' + made + b"".join(writes) + b'cd /; } || { cd / && rm -rf "$new"; return 1; }\n' + moved
    again = b'inner=$goal/${new##*/}\nif [ -d "$inner" ]; then rm -rf "$inner"; one_by_one; else code=0; fi\n'
    return _function("all_new", body + again)


def _one_by_one(files: Mapping[str, bytes], shared: Mapping[str, bytes]) -> bytes:
    """Into a directory that may be there."""
    begin = b'mkdir -p "$goal" && cd "$goal" || return\n'
    lines = "".join(f"{line}\n" for line in (*_linked(shared), *_written(files)))
    return _function("one_by_one", begin + lines.encode() + b"code=0\n")


def _sharing(shared: Mapping[str, bytes]) -> bytes:
    """The function that keeps the shared programs. Of two that do it at once, either may be first."""
    folders = sorted({name.rpartition("/")[0] for name in shared if "/" in name})
    made = " ".join(shlex.quote(f"./{each}") for each in ("", *folders))
    lines = [b'fresh=$kept.$$\nmkdir -p "$fresh" && cd "$fresh" && mkdir -p ' + made.encode() + b" || return\n"]
    for name, data in shared.items():
        quoted = shlex.quote(name).encode()
        lines.append(b"printf %b " + _quoted(data) + b" >" + quoted + b" && chmod 700 " + quoted + b" || return\n")
    lines.append(b'[ -d "$kept" ] || mv "$fresh" "$kept" || [ -d "$kept" ] || return\n')
    lines.append(b'cd / && rm -rf "$fresh" "$kept/${fresh##*/}"\n')
    return _function("share", b"".join(lines))


def _linked(shared: Mapping[str, bytes]) -> Iterator[str]:
    """A file is linked, so that it is there as long as its directory; a folder is a symbolic link."""
    for top in dict.fromkeys(name.partition("/")[0] for name in shared):
        word = shlex.quote(top)
        if top in shared:
            yield f'[ -e {word} ] || ln "$kept"/{word} {word} || return'
        else:
            yield f'[ -e {word} ] || ln -s "../{SHARED}/${{kept##*/}}"/{word} {word} || return'


def _written(files: Mapping[str, bytes]) -> Iterator[str]:
    for place, name in enumerate(files):
        word = shlex.quote(name)
        if name.endswith("/"):
            yield f"[ -d {word} ] || mkdir -p {word} || return"
            continue
        new = shlex.quote(f".{name.replace('/', '.')}.{secrets.token_hex(6)}.put")
        yield f'printf %b "$file{place}" >{new} && mv -f {new} {word} || {{ rm -f {new}; return; }}'


def _quoted(data: bytes) -> bytes:
    """Any bytes, for `printf %b` of any sh."""
    return b"'" + data.replace(b"\\", b"\\\\").replace(b"'", b"\\0047").replace(b"\0", b"\\0000") + b"'"
