"""The deck's own typefaces, cut down to the characters that it has and carried inside it.

Source Sans Pro comes with reveal.js in the sphinx-revealjs wheel, DejaVu Sans Mono with matplotlib.
So a deck has the same lines and the same line breaks on every machine.
"""

from __future__ import annotations

import base64
import io
import logging
from collections.abc import Iterable
from importlib.resources import files
from importlib.resources.abc import Traversable

from fontTools import subset
from fontTools.ttLib import TTFont

_ASCII = {chr(code) for code in range(32, 127)}


def _faces() -> list[tuple[str, int, str, Traversable]]:
    sans = files("sphinx_revealjs") / "_static/revealjs/dist/theme/fonts/source-sans-pro"
    mono = files("matplotlib") / "mpl-data/fonts/ttf"
    return [
        ("Deck Sans", 400, "normal", sans / "source-sans-pro-regular.ttf"),
        ("Deck Sans", 400, "italic", sans / "source-sans-pro-italic.ttf"),
        ("Deck Sans", 600, "normal", sans / "source-sans-pro-semibold.ttf"),
        ("Deck Mono", 400, "normal", mono / "DejaVuSansMono.ttf"),
        ("Deck Mono", 700, "normal", mono / "DejaVuSansMono-Bold.ttf"),
    ]


def css(text: Iterable[str]) -> str:
    """The `@font-face` rules that carry what `text` needs, and ASCII."""
    wanted = {ord(c) for c in set(text) | _ASCII}
    logging.getLogger("fontTools").setLevel(logging.ERROR)
    rules = []
    for family, weight, style, file in _faces():
        data = base64.b64encode(_cut(file.read_bytes(), wanted)).decode()
        rules.append(
            f'@font-face{{font-family:"{family}";font-weight:{weight};font-style:{style};'
            f'src:url("data:font/woff;base64,{data}") format("woff")}}'
        )
    return "\n".join(rules)


def _cut(data: bytes, wanted: set[int]) -> bytes:
    """A font with the glyphs of some code points only, as WOFF."""
    font = TTFont(io.BytesIO(data), lazy=True)
    options = subset.Options()
    options.layout_features = ["kern", "mark", "mkmk", "ccmp", "locl"]
    options.hinting = False
    options.drop_tables += ["FFTM", "DSIG"]
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=wanted & set(font.getBestCmap()))
    # All tables would be walked through for names that they refer to, in a third of the time.
    names = font["name"]
    del font["name"]
    cutter.subset(font)
    names.names = [one for one in names.names if one.nameID <= 6 and one.isUnicode()]
    font["name"] = names
    font.flavor = "woff"
    out = io.BytesIO()
    font.save(out)
    return out.getvalue()
