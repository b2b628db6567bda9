"""Maths as SVG, drawn at export, so that a page shows it with no script and no maths font.

Glyphs come from STIX Two Math, which ziamath carries. Each is drawn once a page, as a symbol, and
used by every formula; a formula's extent is in em, so that it grows with the text around it.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape, unescape
from importlib.resources import files

import ziamath
from fontTools.ttLib import TTFont
from ziamath.tex import tex2mml

from .tex import prepare

_SIZE = 20.0  # pixels at which formulas are laid out; any would do
# The glyph of a space has nothing inside, and so no end.
_SYMBOL = re.compile(r'<symbol id="([^"]+)"[^>]*(?:/>|(?<!/)>.*?</symbol>)', re.S)
_UNKNOWN = re.compile(r">\s*(\\[a-zA-Z]+)")
# A sign behind an opening bracket or a comma belongs to what follows, and has no space about it.
_SIGN = re.compile(r"(<mo[^>]*>(?:&#x00028;|&#x0002C;|&#x0007B;|\[)</mo>)<mo>(?=&#x02212;|\+)")


class MathsError(ValueError):
    """A formula that cannot be read; the message quotes it."""


class Maths:
    """Draws formulas and keeps the glyphs that they use."""

    def __init__(self) -> None:
        self._symbols: dict[str, str] = {}
        self._macros: dict[str, tuple[int, str]] = {}
        self._drawn: dict[tuple[str, bool], str] = {}

    def svg(self, tex: str, display: bool = False) -> str:
        """A formula as inline SVG whose baseline is that of the text; nothing for definitions.

        Args:
            tex: LaTeX without dollars. What it defines holds for all formulas after it.
            display: set on a line of its own, with limits above and below.

        Raises:
            MathsError: ziamath cannot read it, or would draw something else.
        """
        said = " ".join(tex.split())
        try:
            tex = prepare(tex, self._macros, display)
            if tex and (tex, display) not in self._drawn:
                self._drawn[tex, display] = self._draw(tex, said, display)
        except MathsError:
            raise
        except Exception as error:  # ziamath raises whatever its parser met
            raise MathsError(f"the formula {said!r} cannot be read: {error!r}") from error
        return self._drawn[tex, display] if tex else ""

    def symbols(self) -> str:
        """The glyphs, unseen, to stand once anywhere in the page."""
        if not self._symbols:
            return ""
        return (
            '<svg aria-hidden="true" width="0" height="0" style="position:absolute">'
            f"{''.join(self._symbols.values())}</svg>"
        )

    def _draw(self, tex: str, said: str, display: bool) -> str:
        mathml = _SIGN.sub(r'\1<mo form="prefix">', tex2mml(tex, inline=not display))
        if unknown := _UNKNOWN.search(mathml):
            raise MathsError(f"the formula {said!r} has {unknown[1]}, which is not known")
        missing = {c for c in unescape(re.sub(r"<[^>]+>", "", mathml)) if ord(c) > 0x24F}
        if missing := {c for c in missing if ord(c) not in _drawable() and c.isalpha()}:
            raise MathsError(f"the formula {said!r} has {min(missing)}, which no maths font has")
        svg = ziamath.Math(mathml, size=_SIZE).svg()
        box = re.match(r'<svg[^>]*viewBox="([^"]+)"[^>]*>', svg)
        assert box is not None
        left, top, width, height = map(float, box[1].split())
        for symbol in _SYMBOL.finditer(svg):
            # Brackets are put together for one formula: the same name may stand for other shapes.
            name = symbol[1]
            held = self._symbols.get(name)
            if held is not None and held != symbol[0]:
                name = f"{name}-{len(self._symbols)}"
            self._symbols[name] = symbol[0].replace(f'id="{symbol[1]}"', f'id="{name}"', 1)
            if name != symbol[1]:
                svg = svg.replace(f'href="#{symbol[1]}"', f'href="#{name}"')
        inside = _SYMBOL.sub("", svg[box.end() : svg.rindex("</svg>")])
        inside = re.sub(r'(fill|stroke)="black"', r'\1="currentColor"', inside)
        below = top + height  # from the baseline, which is at 0, down to the lower edge
        return (
            f'<svg class="maths" role="img" aria-label="{escape(said)}" '
            f'viewBox="{left:g} {top:g} {width:g} {height:g}" '
            f'style="width:{width / _SIZE:.3f}em;height:{height / _SIZE:.3f}em;'
            f'vertical-align:{-below / _SIZE:.3f}em">{inside}</svg>'
        )


@cache
def _drawable() -> frozenset[int]:
    """The characters of the font that ziamath draws with."""
    fonts = sorted(files("ziamath").joinpath("fonts").iterdir(), key=lambda file: file.name)
    return frozenset().union(
        *(TTFont(str(one), lazy=True).getBestCmap() for one in fonts if one.name.endswith("tf"))
    )
