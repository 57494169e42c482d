"""The words that are spoken with the master of a shared ssh connection, byte for byte as PROTOCOL.mux has them."""

from __future__ import annotations

import pytest

from fleet.hosts.ssh.mux import (
    LONGEST_LINE,
    MuxError,
    NoMore,
    NotAsked,
    Stranger,
    TooLong,
    check_hello,
    check_opened,
    packet,
    request,
)

HELLO = "0000000800000001 00000004"
SESSION = "10000002 00000000 00000000 00000000 00000000 00000000 00000000 ffffffff 00000000"


def test_a_message() -> None:
    """Numbers have four bytes, strings their length before them, and the whole its own."""
    assert packet(1, b"ab", 0xFFFFFFFF, b"") == bytes.fromhex("00000012 00000001 00000002 6162 ffffffff 00000000")


def test_a_request() -> None:
    """After the hello comes a session without any extra: the command, then each variable as name=value."""
    command, variables = "00000006 6563686f20e9", "00000003 413d31 00000004 423da90a"
    expected = bytes.fromhex(f"{HELLO} 0000003d {SESSION} {command} {variables}")
    assert request("echo \udce9", {"A": "1", "B": "\udca9\n"}) == expected


def test_a_command_that_is_too_long() -> None:
    """What no shell over there would get is refused before anybody is asked."""
    assert request("x" * LONGEST_LINE, {})
    with pytest.raises(TooLong, match="131072 bytes"):
        request("x" * (LONGEST_LINE + 1), {})


def test_a_hello() -> None:
    """A master of our version is met, whatever extensions it names."""
    check_hello(bytes.fromhex("00000001 00000004"))
    check_hello(bytes.fromhex("00000001 00000004 00000001 61 00000000"))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("00000001 00000005", "version 5, not version 4"),
        ("80000003 00000000", "something else"),
        ("", "something else"),
    ],
)
def test_a_stranger(answer: str, said: str) -> None:
    """Whoever speaks otherwise is told apart, and what it speaks is said."""
    with pytest.raises(Stranger, match=said):
        check_hello(bytes.fromhex(answer))


def test_answers() -> None:
    """A session is open, or there is a reason; only that of a full server allows another try."""
    check_opened(bytes.fromhex("80000006 00000000 00000002"))
    with pytest.raises(NoMore):
        check_opened(packet(0x80000003, 0, b"Session open refused by peer")[4:])
    for answer, said in (
        (packet(0x80000003, 0, b"did not receive file descriptors")[4:], "did not receive"),
        (packet(0x80000002, 0, b"Permission denied")[4:], "Permission denied"),
        (packet(0x80000001, 0)[4:], "unknown answer, 0x80000001"),
        (b"", "unknown answer, 0x00000000"),
    ):
        with pytest.raises(MuxError, match=said) as caught:
            check_opened(answer)
        assert not isinstance(caught.value, NoMore | NotAsked)
