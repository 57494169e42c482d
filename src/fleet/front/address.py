"""Where a fleet is served: an address that a token may be sent to, and why nobody answers there, with what helps."""

from __future__ import annotations

import socket
import ssl
from urllib.parse import SplitResult, urlsplit

from fleet.errors import ServerError, ServerRefused, ServerUnreachable, UsageError

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
EXAMPLE = "--url takes an address such as http://127.0.0.1:7878"
CERTIFICATES = "SSL_CERT_FILE=FILE names the certificates that are believed: that of the server, or of who signed it"


def checked(url: str, *, insecure: bool) -> str:
    """The address without anything else; raises UsageError where it is none, or where the token could be seen."""
    parts = _parts(url)
    if parts.username or parts.password or parts.query or parts.fragment or parts.path.strip("/"):
        raise UsageError("--url takes a host and a port alone", hint="the token comes from the variable of --token-env")
    if parts.scheme == "http" and parts.hostname not in LOOPBACK and not insecure:
        raise UsageError(
            f"the token would travel to {parts.hostname} in the clear",
            hint="use https, or `ssh -L 7878:127.0.0.1:7878 HOST`; --insecure where something else encrypts",
        )
    return f"{parts.scheme}://{parts.netloc}"


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname:
            _ = parts.port  # raises where it is no number of a port
            return parts
        bare = "" if "://" in url else _with_scheme(url)
    except ValueError as exc:
        raise UsageError(f"{EXAMPLE}, not `{url}`: {exc}") from exc
    raise UsageError(f"{EXAMPLE}, not `{url}`", hint=f"did you mean {bare}?" if bare else "")


def _with_scheme(url: str) -> str:
    """What a host and a port were meant to be; empty where they are none."""
    parts = urlsplit(f"//{url}")
    if not parts.hostname or not (parts.port or parts.hostname in LOOPBACK or "." in parts.hostname):
        return ""
    return f"{'http' if parts.hostname in LOOPBACK else 'https'}://{parts.netloc}"


def unreachable(url: str, exc: Exception) -> ServerError:
    """That nobody answered, why, and what helps."""
    cause = _cause(exc)
    said = words(cause)
    if isinstance(cause, ssl.SSLCertVerificationError):
        why = cause.verify_message or said
        expired = "expired" in why or "not yet valid" in why
        hint = "it needs a new one; is the clock right, here and there?" if expired else CERTIFICATES
        return ServerRefused(f"{url} cannot be trusted: its certificate: {why}", hint=hint)
    if isinstance(cause, ssl.SSLError):
        plain = url.replace("https:", "http:", 1)
        return ServerRefused(
            f"{url} cannot be trusted: it does not speak TLS ({said})",
            hint=f"if it is served without a certificate, its address is {plain}",
        )
    return ServerUnreachable(f"cannot reach {url}: {said}", hint=_helps(cause))


def broken_off(url: str, exc: Exception) -> ServerError:
    """That a server hung up before it had answered."""
    secure = url.replace("http:", "https:", 1)
    hint = f"if it is served with a certificate, its address is {secure}" if url.startswith("http:") else ""
    return ServerUnreachable(f"{url} broke off: {words(exc)}", hint=hint)


def words(exc: Exception) -> str:
    """What the system said, without its numbers."""
    said = str(exc)
    return (said.partition("] ")[2] if said.startswith("[Errno ") else said) or type(exc).__name__


def _helps(cause: Exception) -> str:
    if isinstance(cause, ConnectionRefusedError):
        return "nobody listens on that port: is `fleet serve` running there? It prints its address"
    if isinstance(cause, socket.gaierror):
        return "is the name of the host right?"
    return "is `fleet serve` running there?"


def _cause(exc: Exception) -> Exception:
    """What the system itself raised, below what was made of it on the way."""
    below: BaseException | None = exc
    while below is not None:
        if isinstance(below, OSError):
            return below
        inner = next((each for each in below.args if isinstance(each, OSError)), None)
        below = inner or below.__cause__ or below.__context__
    return exc
