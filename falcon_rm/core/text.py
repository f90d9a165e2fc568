"""
Any text as one line that every database and terminal can hold.

1. One line of valid UTF-8: white space and control characters become single spaces, half a surrogate becomes `\\udcff`.
2. Bounded in bytes, head and tail kept: the beginning says what it is about, the end usually says what went wrong.
3. Cleaning what is clean changes nothing.
"""

import re

TEXT_BYTES = 4096
"""The bound of a message (contract.md 3), and of every other text for people."""

CUT = " ... "

_BLANK = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_HALF = re.compile(r"[\ud800-\udfff]")


def clean(text: str, limit: int = TEXT_BYTES) -> str:
    """Return *text* as one line of valid UTF-8, at most *limit* bytes long."""
    line = text.strip()
    if not line.isprintable() or "  " in line:
        line = _HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", _BLANK.sub(" ", line)).strip()
    raw = line.encode()
    if len(raw) <= limit:
        return line
    head = (limit - len(CUT)) * 2 // 3
    tail = limit - len(CUT) - head
    return raw[:head].decode(errors="ignore").rstrip() + CUT + raw[-tail:].decode(errors="ignore").lstrip()
