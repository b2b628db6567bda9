"""For tests of figures: pages without kernel and network, and kernels that are changed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from html import escape
from unittest import mock

from helpers.figures import runs
from helpers.figures.player import Figure
from helpers.figures.player_page import Embedded, ShownFigure, embed_shown
from helpers.kernels import load_kernel

_PAGE_CSS = """
:root { color-scheme: light dark; }
html { background: light-dark(#ffffff, #111111); color: light-dark(#1f2328, #e8eaed); }
body { margin: 0 auto; padding: 16px; max-width: 1100px; font: 17px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; }
"""


def embed(figures: Iterable[Figure]) -> Embedded:
    """The pieces that show `figures` in a page; see `embed_shown`."""
    shown = []
    for figure in figures:
        words = figure.alt or figure.name or "This figure"
        name = type(figure).__name__
        shown.append(ShownFigure(name, figure._esm, figure._css, _state(figure), words))
    return embed_shown(shown)


def standalone_html(players: Sequence[Figure], title: str) -> str:
    """One HTML page with `players` below each other, complete in itself."""
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


@contextlib.contextmanager
def changed(file: str, code: str):
    """Inside the block, figures run `code` where they would run a file of `kernels/`."""

    def load(name: str, entry: str):
        kernel = load_kernel(name, entry)
        return kernel.altered(code) if name == file else kernel

    with mock.patch.object(runs, "load_kernel", load):
        yield
