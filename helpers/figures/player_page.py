"""Figures in a page of their own, which plays with no kernel and no network: the pieces for it."""

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import NamedTuple

from .player import CSS

_RUNTIME = files(__package__).joinpath("player_page.js").read_text("utf-8")
_EXPORT = "export default"
_BETWEEN_TAGS = re.compile("(?<=>)(?=<)")


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


def embed_shown(widgets: Sequence[ShownFigure]) -> Embedded:
    """The pieces that show widgets, known by their states as an executed notebook holds them.

    `policy` is what the page's content security policy has to allow them and no more: nothing from
    any host; of scripts, the one that is here, known by its hash.

    Raises:
        ValueError: a widget's module does not end in one `export default`, or imports another, or
            two different widgets bear one name.
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
    packed = base64.b64encode(gzip.compress(_by_pieces(states).encode(), mtime=0)).decode()
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


def _by_pieces(states: list) -> str:
    """The states as JSON: `[pieces, states]`, each drawing in these as `{"$": numbers of pieces}`.

    Frames of a figure differ in few of their elements, but lie further apart than gzip looks back.
    """
    numbers: dict[str, int] = {}

    def cut(value):
        if isinstance(value, str) and value.startswith("<"):
            pieces = _BETWEEN_TAGS.split(value)
            return {"$": [numbers.setdefault(piece, len(numbers)) for piece in pieces]}
        if isinstance(value, dict):
            return {key: cut(one) for key, one in value.items()}
        return [cut(one) for one in value] if isinstance(value, list | tuple) else value

    whole = cut(states)
    return json.dumps([list(numbers), whole], separators=(",", ":"))


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
