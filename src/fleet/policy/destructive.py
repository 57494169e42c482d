"""Whether a command looks as if it destroyed something: a question worth asking, never a fence."""

from __future__ import annotations

import re

START = r"(?:^|[\s;&|(`/])"  # where a program's name may begin
SIGNS = {
    "deletes files": rf"{START}(?:rm|rmdir|shred|unlink)\s|{START}find\s.*-delete\b",
    "writes to a disk": rf"{START}(?:mkfs(?:\.\w+)?|wipefs|parted)\s|{START}dd\s.*\bof=|>\s*/dev/(?:sd|nvme|vd|disk)",
    "stops the machine": rf"{START}(?:shutdown|reboot|halt|poweroff)\b|{START}init\s+[06]\b",
    "ends processes": rf"{START}(?:kill|pkill|killall)\s",
    "stops a service": rf"{START}systemctl\s+(?:\S+\s+)*(?:stop|disable|mask|kill)\b|{START}service\s+\S+\s+stop\b",
    "throws away work": rf"{START}git\s+(?:\S+\s+)*(?:clean|reset\s+--hard|push\s+(?:\S+\s+)*(?:-f|--force))\b",
    "removes packages": rf"{START}(?:apt|apt-get|dnf|yum|brew|npm|pip3?)\s+(?:\S+\s+)*(?:remove|purge|uninstall)\b",
    "removes users or data": rf"{START}(?:userdel|dropdb|dropuser)\s|\b(?:drop|truncate)\s+(?:table|database)\b",
    "changes many files": rf"{START}(?:chmod|chown|chgrp)\s+(?:\S+\s+)*(?:-\w*R|--recursive)",
    "empties a file": rf"{START}truncate\s|(?:^|[;&|]\s*|\s:\s*)>\s*[^&\s]",
    "prunes containers": rf"{START}(?:docker|podman)\s+(?:\S+\s+)*(?:prune|rm|rmi|kill|stop)\b",
}
PATTERNS = {sign: re.compile(pattern, re.IGNORECASE | re.MULTILINE) for sign, pattern in SIGNS.items()}


def looks_destructive(command: str) -> str | None:
    """What it seems to do that cannot be undone; None where it seems harmless."""
    return next((sign for sign, pattern in PATTERNS.items() if pattern.search(command)), None)
