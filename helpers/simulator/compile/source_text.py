"""CUDA C source as text: what is comment or string, where it includes, whose line a line is."""

import functools
import re
from dataclasses import dataclass

_NOT_CODE = re.compile(
    r"""//(?:\\\n|[^\n])*                                   # comment to the end of the line
      | /\*.*?(?:\*/|\Z)                                    # comment over several lines
      | \bR"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"        # raw string
      | "(?:\\.|[^"\\\n])*"                                 # string
      | (?<![0-9A-Za-z_])(?:u8|[uUL])?'(?:\\.|[^'\\\n])+'   # character, not the ' of 1'000
    """,
    re.DOTALL | re.VERBOSE,
)
_NOT_NEWLINE = re.compile(r"[^\n]")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?P<open>["<])', re.MULTILINE)
_INCLUDE_MACRO = re.compile(r"^[ \t]*#[ \t]*include[ \t]+[A-Za-z_]", re.MULTILINE)
_LINE_DIRECTIVE = re.compile(r'\s*#\s*(?:line\s+)?(\d+)(?:\s+"([^"]*)")?\s*$')


@dataclass(frozen=True)
class Include:
    """One `#include` of a source text: `start:end` is the extent of the directive in it."""

    name: str
    quoted: bool
    start: int
    end: int


@functools.lru_cache(maxsize=128)  # a kernel's text is asked for again and again
def mask(source: str) -> str:
    """Return `source` with comments and the inside of strings as spaces, equally long.

    Newlines stay, so offsets and line numbers of the result are those of `source`.
    """

    def blank(found: re.Match) -> str:
        text = found[0]
        if text.startswith("/"):
            return _NOT_NEWLINE.sub(" ", text)
        first = min(i for i in (text.find('"'), text.find("'")) if i >= 0)
        return text[: first + 1] + _NOT_NEWLINE.sub(" ", text[first + 1 : -1]) + text[-1]

    return _NOT_CODE.sub(blank, source)


def line_of(text: str, at: int) -> int:
    """The number of the line, counted from 1, in which a position of a text lies."""
    return text.count("\n", 0, at) + 1


def includes(source: str) -> list[Include]:
    """List the `#include "x"` and `#include <x>` directives of `source`, comments apart."""
    if "include" not in source:
        return []
    found = []
    for match in _INCLUDE.finditer(mask(source)):
        quoted = match["open"] == '"'
        line_end = source.find("\n", match.end())
        line_end = len(source) if line_end < 0 else line_end
        close = source.find('"' if quoted else ">", match.end(), line_end)
        if close >= 0:
            name = source[match.end() : close].strip()
            found.append(Include(name, quoted, match.start(), close + 1))
    return found


def has_computed_include(source: str) -> bool:
    """Whether `source` includes a file named by a macro, which only a preprocessor resolves."""
    return "include" in source and bool(_INCLUDE_MACRO.search(mask(source)))


def numbered_lines(source: str, filename: str) -> list[tuple[str, int, str]]:
    """Return (file, line number, text) of every line of `source`, following `#line`."""
    result = []
    number = 1
    for text in source.split("\n"):
        result.append((filename, number, text))
        directive = _LINE_DIRECTIVE.match(text) if "#" in text else None
        if directive:
            number = int(directive[1])
            filename = filename if directive[2] is None else directive[2]
        else:
            number += 1
    return result


def main_file(source: str, filename: str) -> str:
    """Return the name under which the compiler reports `source`: a leading `#line` renames it."""
    first = _LINE_DIRECTIVE.match(source.lstrip().split("\n", 1)[0])
    return first[2] if first and first[2] else filename
