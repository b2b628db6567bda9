"""A chapter to be read, section by section: headings that can be linked to, and words to search."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape

from ..content.chapter import Chapter, Slide, plain

_HEADING = re.compile(r"<h([1-6])\b([^>]*)>(.*?)</h\1>", re.S)
_DRAWN = re.compile(r"<svg\b(?![^>]*\bclass=\"maths\").*?</svg>|<style\b.*?</style>", re.S)
# What a check says of an exercise that nobody has filled in, and what stands in its place.
_VERDICT = '<div class="kernel-verdict'
_CHECKED = (
    '<div class="block prose"><p>In the notebook this says what is still wrong, on which line, and '
    "why.</p></div>"
)


@dataclass
class Section:
    """What stands under one heading of a page.

    Attributes:
        anchor: what a link to it ends in, behind the `#`; empty where there is no heading.
        title: HTML of the heading.
        level: of the heading; 1 is the page's own, and none is skipped on the way down.
        blocks: HTML of what follows.
        notes: HTML for the speaker.
    """

    anchor: str
    title: str
    level: int
    blocks: list[str]
    notes: list[str]

    @property
    def name(self) -> str:
        """The heading as plain text."""
        text = unescape(plain(self.title))
        return _without_latex(text) if 'class="maths"' in self.title else text

    @property
    def words(self) -> str:
        """What can be read in it, as plain text; drawings are left out."""
        html = _DRAWN.sub(" ", "\n".join(self.blocks))
        html = re.sub(r"</(?:p|li|pre|tr|h\d|div|td|th|summary)>|<br>", r"\g<0> ", html)
        return " ".join(unescape(plain(html)).split())


def sections(chapter: Chapter) -> list[Section]:
    """The sections of a page: its slides, each heading with an address of its own."""
    taken: set[str] = set()
    made: list[Section] = []
    if not (chapter.slides and chapter.slides[0].title):
        made.append(Section("", chapter.title, 1, [], []))
    level = 1
    for slide in chapter.slides:
        goes_on = not slide.title or bool(made and made[-1].title == slide.title)
        if goes_on and made:
            made[-1].blocks += _blocks(slide, level, taken)
            made[-1].notes += slide.notes
            continue
        level = _level(slide.level, level, first=not made)
        anchor = _anchor(slide.title, taken) if made else ""
        made.append(
            Section(anchor, slide.title, level, _blocks(slide, level, taken), [*slide.notes])
        )
    return made


def _without_latex(text: str) -> str:
    """A heading's formulas for a list, which has letters alone."""
    for command, sign in (("\\sqrt ", "√"), ("\\times", "×"), ("\\oplus", "⊕"), ("\\cdot", "·")):
        text = text.replace(command, sign)
    return re.sub(r"\\mathsf ?|[{}\\]", "", text)


def _level(wanted: int, before: int, first: bool = False) -> int:
    """The level of a heading behind another: one deeper at most, and the page's own is alone."""
    return 1 if first else max(2, min(wanted, before + 1))


def _blocks(slide: Slide, level: int, taken: set[str]) -> list[str]:
    """Those of a slide, with an anchor at each further heading in its text."""
    deepest = level

    def further(found: re.Match) -> str:
        nonlocal deepest
        deepest = _level(int(found[1]), deepest)
        anchor = _anchor(found[3], taken)
        return f'<h{deepest}{found[2]} id="{anchor}">{found[3]}</h{deepest}>'

    blocks = [_CHECKED if _VERDICT in block else block for block in slide.blocks]
    return [
        _HEADING.sub(further, block) if block.startswith('<div class="block prose') else block
        for block in blocks
    ]


def _anchor(title: str, taken: set[str]) -> str:
    """A heading's words joined by hyphens, with a number where others have the same."""
    base = re.sub(r"[^\w]+", "-", unescape(plain(title)).lower()).strip("-") or "section"
    anchor, number = base, 1
    while anchor in taken:
        number += 1
        anchor = f"{base}-{number}"
    taken.add(anchor)
    return anchor
