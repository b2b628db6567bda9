"""A chapter as one page to read, complete in itself like a deck."""

from __future__ import annotations

from html import escape
from importlib.resources import files

from . import fonts
from .chapter import Chapter
from .deck import embed, page, policy, words

_CSS = files(__package__).joinpath("page.css")


def reading_page(chapter: Chapter) -> str:
    """The HTML of a chapter to be read from top to bottom."""
    embedded = embed(chapter)
    parts = []
    for slide in chapter.slides:
        if slide.title:
            parts.append(f"<h{slide.level}>{slide.title}</h{slide.level}>")
        parts += slide.blocks
        if slide.notes:
            parts.append(f'<aside class="notes">{"".join(slide.notes)}</aside>')
    text = "\n".join(parts)
    styles = [*chapter.outputs.styles, _CSS.read_text("utf-8"), fonts.css(text + words(chapter))]
    device = f'<p class="device">Numbers: {escape(chapter.device)}</p>' if chapter.device else ""
    return page(
        chapter.title,
        head=embedded.styles + "".join(f"<style>{sheet}</style>" for sheet in styles),
        body=f"<main>{device}\n{text}\n</main>\n{chapter.maths.symbols()}\n{embedded.scripts}",
        policy=policy(embedded.policy, []),
    )
