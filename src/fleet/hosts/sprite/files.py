"""The files of a sprite, by the endpoints of the API. Each of them wakes the machine."""

from __future__ import annotations

import contextlib
import secrets

import httpx

from fleet.errors import TransportError
from fleet.hosts.sprite.answers import fields_of, refusal
from fleet.hosts.sprite.api import SpriteApi, path_of

ABSENT = frozenset({"ENOENT", "ENOTDIR", "EISDIR"})
WRITE_SECONDS = 120.0


async def write(api: SpriteApi, name: str, path: str, data: bytes) -> None:
    """Beside its place, then renamed: whole or not at all, and private."""
    what = f"cannot write {path} on sprite {name}"
    folder, _, last = path.rpartition("/")
    new = f"{folder}/.{last}.{secrets.token_hex(6)}.put"
    query = {"path": new, "workingDir": "/", "mode": "0600", "mkdirParents": "true"}
    try:
        await api.ask("PUT", _place(name, "write"), what, query=query, content=data, seconds=WRITE_SECONDS)
        names = {"source": new, "dest": path, "workingDir": "/"}
        await api.ask("POST", _place(name, "rename"), what, json=names, seconds=WRITE_SECONDS)
    except TransportError:
        with contextlib.suppress(TransportError):
            await api.ask("DELETE", _place(name, "delete"), what, query={"path": new, "workingDir": "/"})
        raise


async def read(api: SpriteApi, name: str, path: str, limit: int) -> bytes | None:
    """The first bytes of a file; b"" when it is absent. A sprite that is absent is no file that is: that raises.

    None: no answer came in time, as for a pipe, which the API opens like a file. A command can look before it opens.
    """
    try:
        return await _read(api, name, path, limit)
    except TransportError as exc:
        if isinstance(exc.__cause__, httpx.TimeoutException):
            return None
        raise


async def _read(api: SpriteApi, name: str, path: str, limit: int) -> bytes:
    what, data = f"cannot read {path} on sprite {name}", bytearray()
    query = {"path": path, "workingDir": "/"}
    async with api.reading(_place(name, "read"), what, query) as answer:
        if not answer.is_success:
            body = await answer.aread()
            if fields_of(body).get("code") in ABSENT:
                return b""
            raise refusal(what, answer.status_code, body, answer.headers)
        async for chunk in answer.aiter_bytes():
            data += chunk
            if len(data) >= limit:
                break
    return bytes(data[:limit])


def _place(name: str, operation: str) -> str:
    return f"{path_of(name)}/fs/{operation}"
