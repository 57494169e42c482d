"""The files of a stand-in sprite, by the endpoints of the API."""

from __future__ import annotations

import asyncio
import errno
import shutil
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.support.sprites.machine import MACHINE, Machine
from tests.support.sprites.wire import as_time

STATUS = {errno.ENOENT: 404, errno.ENOTDIR: 404, errno.ENOSPC: 507, errno.EACCES: 403}


async def answer(request: web.Request) -> web.StreamResponse:
    """Do what the last word of the path says."""
    machine = request[MACHINE]
    operation = request.match_info["operation"]
    given = await request.json() if request.method == "POST" else dict(request.query)
    path = machine.resolved(given.get("path", ""), given.get("workingDir", ""))
    try:
        match request.method, operation:
            case "GET", "read":
                if path.is_fifo():  # it waits for somebody who writes, until the asker has left
                    await asyncio.Event().wait()
                return web.Response(body=await asyncio.to_thread(path.read_bytes))
            case "PUT", "write":
                return web.json_response(await asyncio.to_thread(_written, path, await request.read(), given))
            case "GET", "list":
                return web.json_response(_listed(path))
            case "DELETE", "delete":
                return web.json_response(_deleted(path, recursive=given.get("recursive") == "true"))
            case "POST", "rename":
                return web.json_response(_renamed(machine, given))
            case "POST", "chmod":
                path.chmod(int(given["mode"], 8))
                return web.json_response({"path": str(path), "mode": given["mode"], "count": 1})
    except OSError as exc:
        told = {"error": str(exc), "code": errno.errorcode.get(exc.errno or 0, "EIO"), "path": str(path)}
        return web.json_response(told, status=STATUS.get(exc.errno or 0, 400))
    return web.Response(status=404)


def _written(path: Path, data: bytes, given: dict[str, Any]) -> dict[str, object]:
    mode = given.get("mode", "0644")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(int(mode, 8))
    return {"path": str(path), "size": len(data), "mode": mode}


def _listed(path: Path) -> dict[str, object]:
    entries = [_entry(each) for each in (sorted(path.iterdir()) if path.is_dir() else [path])]
    return {"path": str(path), "entries": entries, "count": len(entries)}


def _entry(path: Path) -> dict[str, object]:
    found = path.lstat()
    kind = "symlink" if path.is_symlink() else "directory" if path.is_dir() else "file"
    return {
        "name": path.name,
        "path": str(path),
        "type": kind,
        "size": found.st_size,
        "mode": f"{found.st_mode & 0o7777:04o}",
        "modTime": as_time(found.st_mtime),
        "isDir": kind == "directory",
    }


def _deleted(path: Path, *, recursive: bool) -> dict[str, object]:
    if not path.is_dir() or path.is_symlink():
        path.unlink()
    elif recursive:
        shutil.rmtree(path)
    else:
        path.rmdir()
    return {"deleted": [str(path)], "count": 1}


def _renamed(machine: Machine, given: dict[str, Any]) -> dict[str, object]:
    source, goal = (machine.resolved(given[word], given.get("workingDir", "")) for word in ("source", "dest"))
    source.rename(goal)
    return {"source": str(source), "dest": str(goal), "count": 1}
