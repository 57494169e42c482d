"""Redaction: what looks like a secret in a text is put out of it before the text is kept."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
MARK = "<redacted>"

KNOWN = r"""(?<![A-Za-z0-9_-])(?:
      sk-[A-Za-z0-9_-]{16,} | sk_(?:live|test)_[A-Za-z0-9]{10,} | [pr]k_live_[A-Za-z0-9]{10,}
    | gh[pousr]_[A-Za-z0-9]{20,} | github_pat_[A-Za-z0-9_]{20,} | glpat-[A-Za-z0-9_-]{16,}
    | xox[abeoprs]-[A-Za-z0-9-]{10,} | hf_[A-Za-z0-9]{20,} | npm_[A-Za-z0-9]{30,} | AIza[A-Za-z0-9_-]{30,}
    | (?:AKIA|ASIA)[A-Z0-9]{16} | eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}
    | https://hooks\.slack\.com/[A-Za-z0-9/_-]+
    )"""  # keys that are known by how they begin
PRIVATE_KEY = r"-----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----[^-]{0,20000}(?:-----END[ ][A-Z ]*PRIVATE[ ]KEY-----)?"
BEARER = r"\b([Bb]earer|[Bb]asic)[ ]+(?=[A-Za-z0-9+/._~-]*[0-9])[A-Za-z0-9+/._~-]{16,}=*"
# `password = x`, `"api_key": "x"`: a value with a digit in it, not the name of a variable or a place to fill.
PAIR = r"""(?i)((?:password|passwd|secret|token|api[_-]?key|private[_-]?key|credential)s?["']?[ ]?[:=][ ]?["']?)
    (?=[^\s"'<>$]{0,200}[0-9])[^\s"'<>${(][^\s"'<>]{5,199}"""
IN_URL = r"\b([a-z][a-z0-9+.-]{1,20}://[^\s:/@]{1,100}:)[^\s:/@$<{][^\s/@]{2,200}@"


def redact(text: str) -> str:
    """The text with every secret in it replaced by a mark."""
    for pattern, instead in _patterns():
        text = pattern.sub(instead, text)
    return text


def is_secret_name(name: str) -> bool:
    """Whether a variable of this name likely holds a secret: its value must not travel by an allowlist."""
    from fleet.model.reach import SECRET_LIKE

    return any(word in name.upper() for word in SECRET_LIKE)


def looks_like_a_key(name: str) -> bool:
    """Whether what should be the name of a variable is more likely a key that was pasted: long, no words, digits."""
    return len(name) >= 20 and "_" not in name and any(char.isdigit() for char in name)


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Made when first needed: most commands keep nothing."""
    pairs = (
        (PRIVATE_KEY, MARK),
        (KNOWN, MARK),
        (BEARER, rf"\1 {MARK}"),
        (IN_URL, rf"\1{MARK}@"),
        (PAIR, rf"\1{MARK}"),
    )
    return tuple((re.compile(pattern, re.VERBOSE), instead) for pattern, instead in pairs)


def redacted(value: T, found: Callable[[str], object] = lambda _: None, path: str = "") -> T:
    """A value of plain data with every text in it redacted; `found` is told where there was something to do."""
    return msgspec.convert(_walked(msgspec.to_builtins(value), found, path), type(value))


def _walked(value: Any, found: Callable[[str], object], path: str) -> Any:
    if isinstance(value, str):
        clean = redact(value)
        if clean != value:
            found(path)
        return clean
    if isinstance(value, dict):
        return {name: _walked(each, found, f"{path}.{name}" if path else str(name)) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_walked(each, found, f"{path}[{place}]") for place, each in enumerate(value)]
    return value
