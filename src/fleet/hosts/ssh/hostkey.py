"""Pinned host keys: the key is fetched as ssh itself would meet it, compared, and from then on alone believed."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from fleet.errors import HostUntrusted, TransportError
from fleet.hosts.ssh.address import SshAddress, as_options
from fleet.hosts.ssh.client import failure, finished

# A server shows one key; which one depends on what it is asked for. The first asks for what ssh prefers.
KINDS = ("", "ssh-ed25519", "ecdsa-sha2-nistp256,ecdsa-sha2-nistp384,ecdsa-sha2-nistp521", "rsa-sha2-512,rsa-sha2-256")


def alias(address: SshAddress) -> str:
    """The name under which a pinned key is kept: the same whatever port and way lead there."""
    return f"fleet-{address.key}"


def fingerprint(blob: str) -> str | None:
    """The fingerprint of a key as known_hosts has it; None for what is no key."""
    try:
        digest = sha256(b64decode(blob, validate=True)).digest()
    except (Base64Error, ValueError):
        return None
    return "SHA256:" + b64encode(digest).decode().rstrip("=")


async def pin(address: SshAddress, folder: Path, environment: Mapping[str, str]) -> Path:
    """The file that holds the pinned key and no other. HostUntrusted: the host has no such key."""
    kept = folder / f"{address.key}.key"
    wanted = address.host_key_fingerprint
    if _fingerprints(kept).get(wanted):
        return kept
    seen: dict[str, str] = {}
    for kind in KINDS:
        seen |= await _shown(address, kind, folder, environment)
        if wanted in seen:
            break
    else:
        raise HostUntrusted(
            f"host {address.host} does not have the key {wanted}; it shows {', '.join(seen) or 'none'}",
            hint="if the host was set up anew, change its host_key_fingerprint; if not, somebody is in between",
        )
    new = folder / f".{kept.name}.{secrets.token_hex(6)}"
    new.write_text(f"{alias(address)} {seen[wanted]}\n", "ascii")
    new.replace(kept)
    return kept


async def _shown(address: SshAddress, kind: str, folder: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """The keys that the host shows before anybody has logged in, by their fingerprints."""
    file = folder / f".shown.{secrets.token_hex(6)}"
    options = as_options(
        UserKnownHostsFile=f'"{file}"',
        GlobalKnownHostsFile="/dev/null",
        StrictHostKeyChecking="accept-new",
        HashKnownHosts="no",
        HostKeyAlias=alias(address),
        PreferredAuthentications="none",  # not tried: the host has proved its key before that
        ControlPath="none",
        **({"HostKeyAlgorithms": kind} if kind else {}),
    )
    argv = ["ssh", *address.options(), *options, "-N", "--", address.host]
    try:
        async with asyncio.timeout(address.connect_seconds * 2):
            _, said = await finished(argv, environment)
        found = {mark: key for mark, key in _fingerprints(file).items() if key}
    except TimeoutError as exc:
        raise TransportError(f"host {address.host} did not show its key in time") from exc
    finally:
        with contextlib.suppress(OSError):
            file.unlink()
    if not found and not kind:
        raise failure(address, said)
    return found


def _fingerprints(file: Path) -> dict[str, str]:
    """The keys of a known_hosts file, by their fingerprints."""
    try:
        lines = file.read_text("ascii", "replace").splitlines()
    except FileNotFoundError:
        return {}
    found = {}
    for line in lines:
        _, kind, blob, *_ = [*line.split(), "", "", ""]
        if mark := fingerprint(blob):
            found[mark] = f"{kind} {blob}"
    return found
