"""Markdown as HTML that is complete in itself: maths drawn, code coloured, images inlined."""

from __future__ import annotations

import base64
import mimetypes
import re
from collections.abc import Mapping
from html import escape
from pathlib import Path

from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from .code import highlight
from .maths import Maths

_OUTSIDE = re.compile(r"(?:https?|mailto):")
_IMAGE_OF_HTML = re.compile(r'(<img\b[^>]*\bsrc=)(["\'])(.*?)\2', re.I)
# A line may be broken beside a drawing, even before a comma.
_FORMULA_AND_MARK = re.compile(r'\(?<svg class="maths"(?:(?!</svg>).)*</svg>[,.;:!?)\u2019]+', re.S)


class ProseError(ValueError):
    """Something in a text that cannot go into a page."""


class Renderer(IPythonRenderer):
    """The renderer of one cell.

    Args:
        maths: draws the formulas of the page.
        folder: where relative addresses start.
        attachments: of the cell, by name.
    """

    def __init__(self, maths: Maths, folder: Path, attachments: Mapping | None = None):
        super().__init__(escape=False, anchor_link_text="")
        self._maths, self._folder, self._files = maths, folder, attachments or {}

    def heading(self, text: str, level: int, **attrs) -> str:
        return f"<h{level}>{text}</h{level}>\n"

    def block_code(self, code: str, info: str | None = None) -> str:
        language = (info or "").split()[0] if info else ""
        return f'<div class="code">{highlight(code, language)}</div>\n'

    def inline_math(self, body: str) -> str:
        return self._maths.svg(body)

    def block_math(self, body: str) -> str:
        return f'<span class="maths-line">{self._maths.svg(body, display=True)}</span>\n'

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
        return f'<img alt="{escape(text)}" src="{self._inlined(url)}">'

    def block_html(self, html: str) -> str:
        return self.inline_html(html)

    def inline_html(self, html: str) -> str:
        return _IMAGE_OF_HTML.sub(lambda m: f"{m[1]}{m[2]}{self._inlined(m[3])}{m[2]}", html)

    def _inlined(self, url: str) -> str:
        """The address of an image as its content.

        Raises:
            ProseError: it is on another host, or there is no such file.
        """
        if url.startswith("data:"):
            return url
        if url.startswith("attachment:"):
            for kind, data in self._files.get(url.removeprefix("attachment:"), {}).items():
                return f"data:{kind};base64,{data}"
        path = self._folder / url
        if _OUTSIDE.match(url) or not path.is_file():
            raise ProseError(f"the image {url} is no file beside the notebook")
        kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def to_html(source: str, maths: Maths, folder: Path, attachments: Mapping | None = None) -> str:
    """A markdown cell as HTML.

    Raises:
        MathsError: a formula cannot be read.
        ProseError: an image cannot be had.
    """
    html = MarkdownWithMath(renderer=Renderer(maths, folder, attachments)).render(source).strip()
    return _FORMULA_AND_MARK.sub(r'<span class="keep">\g<0></span>', html)
