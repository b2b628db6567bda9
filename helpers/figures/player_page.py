"""Players in a page of their own: one HTML file that plays with no kernel and no network.

`embed` gives the pieces for an exporter that makes the rest of the page; `standalone_html` makes a
whole page of them.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import NamedTuple

from .player import CSS, Figure

_RUNTIME = files(__package__).joinpath("player_page.js").read_text("utf-8")
_EXPORT = "export default"
_PAGE_CSS = """
:root { color-scheme: light dark; }
html { background: light-dark(#ffffff, #111111); color: light-dark(#1f2328, #e8eaed); }
body { margin: 0 auto; padding: 16px; max-width: 1100px; font: 17px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; }
"""


class Embedded(NamedTuple):
    """Figures for a page: `styles` goes in its head, `elements` where each is to stand, and
    `scripts` behind all of them.

    When everything stands, `window.figuresReady`, a promise that `scripts` makes, is fulfilled with
    their number; a deck should be initialised only then.
    """

    styles: str
    elements: list[str]
    scripts: str
    policy: str


class ShownFigure(NamedTuple):
    """A widget as a page needs it: the name of its class, module, style sheet, values, words."""

    name: str
    module: str
    css: str
    values: dict
    words: str


def embed(figures: Iterable[Figure]) -> Embedded:
    """The pieces that show `figures` in a page.

    `policy` is what the page's content security policy has to allow them and no more: nothing from
    any host; of scripts, the one that is here, known by its hash.

    Raises:
        TypeError: something is not a figure.
        ValueError: a widget's module does not end in one `export default`, or imports another, or
            two different widgets bear one name.
    """
    shown = []
    for figure in figures:
        if not isinstance(figure, Figure):
            raise TypeError(f"{type(figure).__name__} is no figure that a page can show.")
        words = figure.alt or figure.name or "This figure"
        name = type(figure).__name__
        shown.append(ShownFigure(name, figure._esm, figure._css, _state(figure), words))
    return embed_shown(shown)


def embed_shown(widgets: Sequence[ShownFigure]) -> Embedded:
    """As `embed`, of widgets that are known by their states, as an executed notebook holds them.

    Raises:
        ValueError: as for `embed`.
    """
    sources: dict[str, str] = {}
    for widget in widgets:
        if sources.setdefault(widget.name, widget.module) != widget.module:
            raise ValueError(f"two kinds of figures on one page are called {widget.name}.")
    modules = ",\n".join(
        f"{json.dumps(name)}: (() => {{\n{_module(source)}\n}})()"
        for name, source in sources.items()
    )
    script = _RUNTIME.replace("/* modules */", modules)
    styles = dict.fromkeys([CSS, *(widget.css for widget in widgets)])
    states = [{"module": widget.name, "state": widget.values} for widget in widgets]
    packed = base64.b64encode(gzip.compress(json.dumps(states).encode(), mtime=0)).decode()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    elements = [
        f'<div class="figure-embedded" data-figure="{number}">'
        f"<noscript>{escape(widget.words)} (needs JavaScript)</noscript></div>"
        for number, widget in enumerate(widgets)
    ]
    return Embedded(
        styles="".join(f"<style>{css}</style>" for css in styles),
        elements=elements,
        scripts=f'<script type="application/octet-stream" id="figure-states">{packed}</script>\n'
        f"<script>{script}</script>",
        policy=f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:",
    )


def standalone_html(players: Sequence[Figure], title: str) -> str:
    """One HTML page with `players` below each other, complete in itself.

    Raises:
        TypeError: one of them is not a figure.
    """
    parts = embed(players)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{parts.policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_PAGE_CSS}</style>
{parts.styles}
</head>
<body>
<h1>{escape(title)}</h1>
{"".join(parts.elements)}
{parts.scripts}
</body>
</html>
"""


def _state(figure: Figure) -> dict:
    """The values of a figure's own traits, without those that only a notebook needs."""
    own = {
        name: getattr(figure, name)
        for name in figure.keys
        if not name.startswith("_") and name not in ("layout", "tabbable", "tooltip")
    }
    return {name: value for name, value in own.items() if value is not None}


def _module(source: str) -> str:
    """A widget's module as the body of a function: inline scripts cannot be imported.

    Raises:
        ValueError: it does more than export a default at its end.
    """
    lines = source.splitlines()
    exports = [line for line in lines if line.startswith("export ")]
    if len(exports) != 1 or not exports[0].startswith(_EXPORT):
        raise ValueError(f"a figure's module has one line `{_EXPORT} {{...}};`, not {exports}.")
    if any(line.startswith("import ") for line in lines):
        raise ValueError("a figure's module imports nothing: a page has nothing to import from.")
    # The parser of HTML ends a script at this tag, wherever it stands.
    return source.replace(_EXPORT, "return").replace("</script", r"<\/script")
