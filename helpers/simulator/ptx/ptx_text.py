"""The small change of PTX's syntax: literals, operand lists, matching braces."""

import re
import struct

from .syntax import Imm

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
LABEL = re.compile(r"([A-Za-z_$%][\w$]*)\s*:(?!:)")
_INT = re.compile(r"^[+-]?\s*(0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9]\d*)[uU]?[lL]*$")
# A comma that may stand inside brackets or braces.
_NESTED = re.compile(r"[({]|\[[^\]]*,")
_BRACKET = re.compile(r"[\[\]{}(),]")
_MARK = re.compile(r'"[^"]*"|[{};]')
_FLOAT = re.compile(r"^[+-]?(\d+\.\d*|\.\d+|\d+)([eE][+-]?\d+)?$")


def split_operands(text: str) -> list[str]:
    """Split at commas that stand outside brackets and braces."""
    if _NESTED.search(text) is None:
        parts = [part.strip() for part in text.split(",")]
        return parts if parts[-1] else parts[:-1]
    parts, depth, start = [], 0, 0
    for mark in _BRACKET.finditer(text):
        depth += (mark[0] in "[{(") - (mark[0] in "]})")
        if mark[0] == "," and depth == 0:
            parts.append(text[start : mark.start()].strip())
            start = mark.end()
    last = text[start:].strip()
    return [*parts, last] if last else parts


def parse_int(text: str) -> int | None:
    """An integer literal of PTX, or None."""
    m = _INT.match(text.strip())
    if not m:
        return None
    digits = m.group(1)
    if len(digits) > 1 and digits[0] == "0" and digits[1] not in "xXbB":
        value = int(digits, 8)
    else:
        value = int(digits, 0)
    return -value if text.lstrip().startswith("-") else value


def immediate(text: str) -> Imm | None:
    """A literal of PTX, or None."""
    if text[:2] in ("0f", "0F") and len(text) == 10:
        bits = int(text[2:], 16)
        return Imm(struct.unpack("<f", struct.pack("<I", bits))[0], bits, 4)
    if text[:2] in ("0d", "0D") and len(text) == 18:
        bits = int(text[2:], 16)
        return Imm(struct.unpack("<d", struct.pack("<Q", bits))[0], bits, 8)
    value = parse_int(text)
    if value is not None:
        return Imm(value)
    if _FLOAT.match(text):
        number = float(text)
        return Imm(number, struct.unpack("<Q", struct.pack("<d", number))[0], 8)
    return None


def _find(text: str, pos: int, wanted: str) -> int:
    """Where `wanted` comes next outside quotes and inner braces; the end if it does not."""
    depth = 0
    for mark in _MARK.finditer(text, pos):
        depth += (mark[0] == "{") - (mark[0] == "}")
        if mark[0] == wanted and depth == 0:
            return mark.start()
    return len(text)


def matching(text: str, pos: int) -> int:
    """Where the brace that opens at `pos` closes."""
    return _find(text, pos, "}")


def statement_end(text: str, pos: int) -> int:
    """Where the semicolon of the statement at `pos` stands."""
    return _find(text, pos, ";")
