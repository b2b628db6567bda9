"""Markdown as HTML that is complete in itself: maths drawn, code coloured, images inlined."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape, unescape
from pathlib import Path
from typing import NamedTuple

from mistune import import_plugin
from mistune.util import striptags
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from ...show.highlighting import highlight
from .carried import Carrier, balanced, ignore
from .maths import Maths, MathsError

_OUTSIDE = re.compile(r"(?:https?|mailto):")
_TOGETHER = re.compile(r"(?<=\d) (×) (?=\d)|(?:^|(?<=\w)) (=) (?=\d)")
# Nor is a name broken before its number: FlashAttention-2.
_NUMBERED = re.compile(r"[A-Za-z]\w*-\d[\w.]*\b(?:(?:'|\u2019|&#x27;|&#39;)s\b)?")
# A line may be broken beside a drawing, even before a comma or a space that holds together.
_FORMULA_AND_MARK = re.compile(
    r'\(?<svg class="maths"(?:(?!</svg>).)*</svg>(?:\u00a0=\u00a0\d[\d,.]*|[,.;:!?)\u2019]+)+', re.S
)
_BLOCK = re.compile(
    r"<(/?)(blockquote|center|details|div|dl|ol|section|table|ul|h([1-6]))\b[^>]*>", re.I
)
_NOTE = re.compile(r"^ {0,3}\[\^([^\]\s]+)\]:[ \t]*(.*(?:\n(?: {4}|\t).*)*)", re.M)
_NOTED = re.compile(r"\[\^([^\]\s]+)\](?!:)")


class Renderer(IPythonRenderer):
    """The renderer of one cell.

    Args:
        maths: draws the formulas of the page.
        carrier: told what cannot be shown.
    """

    def __init__(self, maths: Maths, carrier: Carrier):
        super().__init__(escape=False, anchor_link_text="")
        self._maths, self._carrier = maths, carrier

    def text(self, text: str) -> str:
        """With the two factors of a product, and a name and its value, in one line."""
        joined = _TOGETHER.sub(
            lambda found: f"\u00a0{found[1] or found[2]}\u00a0", super().text(text)
        )
        return _NUMBERED.sub(r'<span class="keep">\g<0></span>', joined)

    def heading(self, text: str, level: int, **attrs) -> str:
        return f"<h{level}>{text}</h{level}>\n"

    def block_code(self, code: str, info: str | None = None) -> str:
        language = (info or "").split()[0] if (info or "").strip() else ""
        if language.strip("{}") == "mermaid":
            self._carrier.warn("a mermaid diagram is shown as its source")
        return f'<div class="code">{highlight(code, language)}</div>\n'

    def inline_math(self, body: str) -> str:
        return self._drawn(body)

    def block_math(self, body: str) -> str:
        drawn = self._drawn(body, display=True)
        return f'<span class="maths-line">{drawn}</span>\n' if drawn else ""

    def multiline_math(self, text: str) -> str:
        return self.block_math(text.strip().strip("$"))

    def latex_environment(self, name: str, body: str) -> str:
        return self.block_math(rf"\begin{{{name}}}{body}\end{{{name}}}")

    def link(self, text: str, url: str, title: str | None = None) -> str:
        """Out of the page only to hosts and to other chapters: a deck is carried about alone."""
        chapter = re.fullmatch(r"(?:\./)?([\w.-]+)\.ipynb", url)
        if chapter:
            return f'<a href="{escape(chapter[1])}.html">{text}</a>'
        if _OUTSIDE.match(url):
            return f'<a href="{escape(url)}" rel="noopener">{text}</a>'
        return f"<span>{text}</span>"

    def image(self, text: str, url: str, title: str | None = None) -> str:
        says = f' title="{escape(title)}"' if title else ""
        return f'<img alt="{escape(unescape(striptags(text)))}" src="{escape(url)}"{says}>'

    def block_html(self, html: str) -> str:
        return html

    def inline_html(self, html: str) -> str:
        return html

    def _drawn(self, body: str, display: bool = False) -> str:
        try:
            return self._maths.svg(body, display)
        except MathsError as error:
            self._carrier.warn(f"{error}; its source is shown")
            return f'<code class="maths-source">{escape(body.strip())}</code>'


class Passage(NamedTuple):
    """What stands under one heading of a cell.

    Attributes:
        level: of the heading; 0 in front of the first one.
        title: HTML of the heading.
        html: what follows it.
    """

    level: int
    title: str
    html: str


def to_html(
    source: str,
    maths: Maths,
    folder: Path,
    attachments: Mapping | None = None,
    warn: Callable[[str], None] = ignore,
    styles: dict[str, None] | None = None,
) -> str:
    """A markdown cell as HTML.

    Args:
        warn: told what cannot be shown: a box or its source stands in its place.
        styles: takes the style sheets that the cell brings along.
    """
    carrier = Carrier(folder, warn, attachments)
    plugins = [import_plugin(name) for name in MarkdownWithMath.DEFAULT_PLUGINS]
    made = MarkdownWithMath(
        renderer=Renderer(maths, carrier), plugins=[*plugins, import_plugin("footnotes"), _notes]
    )
    # As a whole, for a film or a frame comes in several pieces.
    html = balanced(carrier.html(made.render(source)).strip())
    if styles is not None:
        styles |= dict.fromkeys(carrier.styles)
    return _FORMULA_AND_MARK.sub(r'<span class="keep">\g<0></span>', html)


def _notes(markdown: MarkdownWithMath) -> None:
    """Footnotes without addresses: in a deck, these are those of slides."""
    register = markdown.renderer.register
    register("footnote_ref", lambda _, key, index: f'<sup class="note-mark">{index}</sup>')
    register("footnote_item", lambda _, text, key, index: f"<li>{text.strip()}</li>\n")
    register("footnotes", lambda _, text: f'<ol class="footnotes">\n{text}</ol>\n')


def with_notes(source: str, notes: Mapping[str, str]) -> str:
    """A text with the footnotes that it names, and that stand in other cells."""
    own = {found[1] for found in _NOTE.finditer(source)}
    wanted = dict.fromkeys(found[1] for found in _NOTED.finditer(source))
    more = [f"[^{name}]: {notes[name]}" for name in wanted if name in notes and name not in own]
    return "\n\n".join([source, *more])


def notes_of(source: str) -> dict[str, str]:
    """The footnotes that a text defines, by name."""
    return {found[1]: found[2] for found in _NOTE.finditer(source)}


def parts(html: str, most: int = 6) -> list[Passage]:
    """HTML cut at its headings down to the level `most`, but those inside lists and boxes."""
    found: list[Passage] = []
    level, title, depth = 0, "", 0
    start = opened = 0
    for tag in _BLOCK.finditer(html):
        heading = int(tag[3] or 0)
        if not heading:
            depth += -1 if tag[1] else 1
        elif depth == 0 and heading <= most and not tag[1]:
            found.append(Passage(level, title, html[start : tag.start()].strip()))
            level, opened = heading, tag.end()
        elif depth == 0 and heading == level and tag[1] and opened > start:
            title, start = html[opened : tag.start()].strip(), tag.end()
    found.append(Passage(level, title, html[start:].strip()))
    return found if found[0].html or len(found) == 1 else found[1:]
