"""A chapter as one page to read, complete in itself like a deck."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape, unescape

from markupsafe import Markup

from ...show import templates
from ..content.chapter import Chapter
from . import fonts
from .deck import embed, heading, own, page, policy, words
from .sections import Section, sections

_SHEETS = ("page.css", "notebook.css", "paper.css")
_TO_CHAPTER = re.compile(r'<a href="([\w.-]+)\.html">(.*?)</a>', re.S)


@dataclass(frozen=True)
class Link:
    """An address beside the page, and what it is called."""

    address: str
    words: str


@dataclass(frozen=True)
class Place:
    """Where a page stands in the course's site.

    Attributes:
        course: what the whole is called.
        number: of the chapter.
        minutes: how long the chapter takes, in words.
        files: its other forms, deck, PDF and notebook among them.
        before, behind: the chapters to both sides, if there are any.
        chapters: names of all, which links may lead to; a site may have some of them only.
    """

    course: str
    number: str
    minutes: str
    files: tuple[Link, ...]
    before: Link | None = None
    behind: Link | None = None
    chapters: frozenset[str] = frozenset()


def reading_page(chapter: Chapter, place: Place | None = None) -> str:
    """The HTML of a chapter to be read from top to bottom.

    Args:
        chapter: taken apart as a `whole`.
        place: in a site; a page without one stands alone.
    """
    embedded = embed(chapter)
    parts = sections(chapter)
    if place:
        for part in parts:
            part.blocks = [_linked(block, place.chapters) for block in part.blocks]
    body = render(
        "page_body.html",
        chapter=chapter,
        place=place,
        sections=parts,
        listed=[part for part in parts if part.anchor],
        origin=origin(chapter.device),
        heading=_heading if chapter.ours else Markup,
        description=description(chapter, parts),
        symbols=chapter.maths.symbols(),
        scripts=embedded.scripts,
    )
    sheets = [*chapter.outputs.styles, *map(own, _SHEETS)]
    return whole_page(
        f"{chapter.title} · {place.course}" if place else chapter.title,
        description=description(chapter, parts),
        styles=embedded.styles + "".join(f"<style>{sheet}</style>" for sheet in sheets),
        body=body,
        scripts=["page.js"],
        allowed=embedded.policy,
        text=words(chapter),
    )


def whole_page(
    title: str,
    *,
    description: str,
    styles: str,
    body: str,
    scripts: list[str],
    allowed: str,
    text: str = "",
) -> str:
    """A page that carries its styles, scripts and typefaces, and asks no host for anything.

    Args:
        title, description: for browsers and for those that list pages.
        styles: HTML of its style sheets.
        body: HTML; scripts in it are already in `allowed`.
        scripts: files of this package that run behind it.
        allowed: the policy of what is embedded.
        text: what its scripts may write besides, so that the typefaces have the characters.
    """
    first = own("theme.js")
    last = [own(name) for name in scripts]
    return page(
        title,
        head=f'<meta name="description" content="{escape(description)}">\n'
        f'<link rel="icon" href="data:,">\n<script>{first}</script>\n{styles}'
        f"<style>{fonts.css(body + title + text + ''.join(last))}</style>",
        body="\n".join([body, *(f"<script>{script}</script>" for script in last)]),
        policy=policy(allowed, [first, *last]),
    )


def description(chapter: Chapter, parts: list[Section]) -> str:
    """The chapter in a sentence: its goal, or else how it begins."""
    if chapter.course.goal:
        return chapter.course.goal
    begins = parts[0].words if parts else ""
    return re.split(r"(?<=[.?!]) ", begins)[0][:200]


def origin(device: str) -> str:
    """Where a page's numbers come from, in a sentence."""
    if device.startswith("simulator"):
        return "Counts come from a simulator, with no GPU; times name the GPU they were taken on."
    return f"Numbers come from: {device}."


def render(template: str, **values) -> Markup:
    """A template of this package, filled in; what is no HTML yet is escaped."""
    return Markup(templates(__package__).get_template(template).render(values))


def _linked(html: str, chapters: frozenset[str]) -> str:
    """HTML in which a chapter that is not there is named, and not linked to."""
    return _TO_CHAPTER.sub(lambda m: m[0] if unescape(m[1]) in chapters else m[2], html)


def _heading(title: str) -> Markup:
    return Markup(heading(title))
