"""What programs write to a terminal, as it stands there in the end: overwritten, and in colours."""

from __future__ import annotations

import re

from nbconvert.filters.ansi import ansi2html

from ...show.colours import luminance

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# Movements of the cursor, titles of windows, links.
_OTHER = re.compile(r"\x1b\[[0-9;?]*[A-Za-ln-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[^\[\]]")
_OWN = re.compile(r'<span(?: class="([^"]*)")? style="([^"]*)">')
_RGB = re.compile(r"(background-)?color: rgb\((\d+),(\d+),(\d+)\)")
_LIGHT, _DARK = 0.91, 0.01  # luminance of what is written on
_CONTRAST = 4.6
MOST_LINES = 60  # of a text on slides, if they are long
_NARROW = 24
_SCROLLS = 20  # lines of a text that a page may show in a box with a scrollbar, which takes keys
_TAG = re.compile(r"(<span[^>]*>|</span>)")


def last_state(text: str) -> str:
    """A text in which `\\r` has taken the cursor back, and `\\b` a character away."""
    text = _OTHER.sub("", text.replace("\r\n", "\n"))
    while (less := re.sub(r"[^\n\r\x08]\x08", "", text)) != text:
        text = less
    lines = []
    for line in text.replace("\x08", "").split("\n"):
        shown = ""
        for part in line.split("\r"):
            # A shorter line leaves the end of the one before, as long as there are no colours.
            over = "" if "\x1b" in part + shown else shown[len(part) :]
            shown = part + over if part else shown
        lines.append(shown.rstrip() if "\r" in line else shown)
    return "\n".join(lines)


def lines_of(text: str) -> list[str]:
    """Lines of HTML, with classes for the colours of a terminal."""
    text = last_state(text).expandtabs(8)
    if not _COLOUR.search(text):
        return str(ansi2html(text)).split("\n")
    lines, open_tag = [""], ""
    for piece in _TAG.split(_OWN.sub(_readable, str(ansi2html(text)))):
        if _TAG.fullmatch(piece):
            open_tag = "" if piece == "</span>" else piece
            lines[-1] += piece
            continue
        for number, part in enumerate(piece.split("\n")):
            if number:
                if open_tag:
                    lines[-1] += "</span>"
                lines.append(open_tag)
            lines[-1] += part
    return lines


def html(text: str) -> str:
    """A text of a terminal as a `pre` with one `span` a line."""
    return pre(lines_of(text))


def pre(lines: list[str]) -> str:
    """Lines of HTML as a `pre` with one `span` a line."""
    scrolls = ' tabindex="0"' if len(lines) > _SCROLLS else ""
    inner = "\n".join(f"<span>{line}</span>" for line in lines)
    return f'<pre class="lines"{scrolls}>{inner}</pre>'


def shorten(lines: list[str]) -> int:
    """Leave out the middle of a long text; returns how many lines that are."""
    longest = max(len(_TAG.sub("", line)) for line in lines)
    most = MOST_LINES if longest > _NARROW else 4 * MOST_LINES  # which stand in columns
    if len(lines) <= most:
        return 0
    left = len(lines) - most
    lines[2 * most // 3 : 2 * most // 3 + left] = [f"… {left:,} lines are left out …"]
    return left


def _readable(found: re.Match) -> str:
    """A span of any of 16 million colours, changed where it could not be read."""
    classes, variables = [found[1] or ""], []
    whole = "background" in found[2]
    for ground, *parts in _RGB.findall(found[2]):
        rgb = tuple(map(int, parts))
        name = "bg" if ground else "fg"
        # On a ground of its own a colour stays as it is.
        light = rgb if ground or whole else _contrasting(rgb, _LIGHT)
        dark = rgb if ground or whole else _contrasting(rgb, _DARK)
        classes.append(f"ansi-own-{name}")
        variables.append(f"--ansi-{name}: light-dark({_hex(light)}, {_hex(dark)})")
    return f'<span class="{" ".join(classes).strip()}" style="{"; ".join(variables)}">'


def _contrasting(rgb: tuple[int, ...], ground: float) -> tuple[int, ...]:
    """The colour nearest to `rgb`, towards black or white, that is readable on a ground."""
    end = 0 if ground > 0.5 else 255
    for step in range(21):
        mixed = tuple(round(part + (end - part) * step / 20) for part in rgb)
        high, low = sorted((luminance(mixed), ground), reverse=True)
        if (high + 0.05) / (low + 0.05) >= _CONTRAST:
            return mixed
    return (end,) * 3


def _hex(rgb: tuple[int, ...]) -> str:
    return "#" + "".join(f"{part:02x}" for part in rgb)
