"""The address of a fleet that is served elsewhere, and why nobody answers there."""

from __future__ import annotations

import socket
import ssl

import pytest

from fleet.errors import ServerRefused, ServerUnreachable, UsageError
from fleet.front.address import broken_off, checked, unreachable


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("localhost:8000", "did you mean http://localhost:8000?"),
        ("127.0.0.1:8000", "did you mean http://127.0.0.1:8000?"),
        ("localhost", "did you mean http://localhost?"),
        ("[::1]:8000", "did you mean http://[::1]:8000?"),
        ("fleet.example:8000", "did you mean https://fleet.example:8000?"),
        ("fleet.example", "did you mean https://fleet.example?"),
        ("nonsense", ""),
        ("ftp://fleet.example", ""),
        ("http://", ""),
        ("http://fleet.example:port", ""),
        ("http://127.0.0.1:78789", ""),
        ("http://[::1", ""),
    ],
)
def test_what_is_no_address(url: str, hint: str) -> None:
    """It is told as that, with what was probably meant; a host without a scheme gets the one that a token may take."""
    with pytest.raises(UsageError, match="--url takes an address such as") as caught:
        checked(url, insecure=False)
    assert (f"not `{url}`" in str(caught.value), caught.value.hint) == (True, hint)


def test_an_address_is_a_host_and_a_port() -> None:
    """A slash behind it is let go; what would send the token in the clear has to be asked for."""
    assert checked("http://localhost:8000/", insecure=False) == "http://localhost:8000"
    assert checked("https://fleet.example", insecure=False) == "https://fleet.example"
    assert checked("http://fleet.example", insecure=True) == "http://fleet.example"
    for url in ("http://fleet.example", "http://bob:secret@localhost", "http://localhost/v1/fleet"):
        with pytest.raises(UsageError):
            checked(url, insecure=False)


def _wrapped(cause: OSError) -> Exception:
    """As a library of HTTP hands it on."""
    inner = RuntimeError(cause)
    outer = RuntimeError(str(cause))
    outer.__cause__ = inner
    return outer


def _untrusted(why: str) -> ssl.SSLCertVerificationError:
    exc = ssl.SSLCertVerificationError(1, f"certificate verify failed: {why}")
    exc.verify_message = why
    return exc


@pytest.mark.parametrize(
    ("cause", "kind", "said", "hint"),
    [
        (ConnectionRefusedError(111, "Connection refused"), ServerUnreachable, "Connection refused", "on that port"),
        (socket.gaierror(-2, "Name or service not known"), ServerUnreachable, "Name or service", "name of the host"),
        (OSError(113, "No route to host"), ServerUnreachable, "No route to host", "running there?"),
        (ssl.SSLError(1, "WRONG_VERSION_NUMBER"), ServerRefused, "does not speak TLS", "http://h:1"),
        (_untrusted("self-signed certificate"), ServerRefused, "self-signed certificate", "SSL_CERT_FILE"),
        (_untrusted("certificate has expired"), ServerRefused, "has expired", "the clock"),
    ],
)
def test_why_nobody_answers(cause: OSError, kind: type[Exception], said: str, hint: str) -> None:
    """Each reason has its own words and its own help, however deep it lies."""
    found = unreachable("https://h:1", _wrapped(cause))
    assert (type(found), said in str(found), hint in found.hint) == (kind, True, True)


def test_who_hangs_up_may_speak_tls() -> None:
    """Where http was spoken, https is proposed; where it was not, nothing is."""
    assert "https://h:1" in broken_off("http://h:1", ConnectionResetError(104, "Connection reset by peer")).hint
    assert broken_off("https://h:1", ConnectionResetError(104, "Connection reset by peer")).hint == ""
