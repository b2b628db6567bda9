"""The glossary as a page of the site: each term leads to the section that defines it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape, unescape

from markupsafe import Markup

from ...chapters.glossary import Term, terms
from ..content.chapter import Chapter, plain
from .deck import own
from .page import Link, render, whole_page
from .sections import sections

ADDRESS = "glossary.html"
_BOLD = re.compile(r"<strong>(.*?)</strong>", re.S)


def glossary_page(chapters: Mapping[str, Chapter], course: str) -> str:
    """The HTML of the page.

    Args:
        chapters: those that the site has, by the names of their pages without the ending.
        course: what the whole is called.
    """
    rows = [(one, _with_code(one.means), anchor(one), _place(one, chapters)) for one in terms()]
    body = render("glossary_body.html", course=course, rows=rows)
    return whole_page(
        f"Glossary · {course}",
        description="The terms of the course, each in a sentence or two, with the chapter that "
        "defines it.",
        styles=f"<style>{own('page.css')}</style><style>{own('site.css')}</style>",
        body=body,
        scripts=["page.js"],
        allowed="default-src 'none'; script-src ; style-src 'unsafe-inline'; img-src data:",
    )


def anchor(one: Term) -> str:
    """What a link to a term ends in, behind the `#`."""
    return re.sub(r"[^\w]+", "-", one.term.lower()).strip("-")


def _with_code(text: str) -> Markup:
    """A text as HTML, with what stands between backticks as code."""
    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text, quote=False)))


def _place(one: Term, chapters: Mapping[str, Chapter]) -> Link | None:
    """The section that has the term in bold; None where the site has not that chapter."""
    name = next((name for name in chapters if name.startswith(f"{one.chapter}_")), None)
    if name is None:
        return None
    chapter = chapters[name]
    for part in sections(chapter):
        bold = _BOLD.findall("\n".join(part.blocks))
        if any(one.used_in(unescape(plain(text))) for text in bold):
            ends = f"#{part.anchor}" if part.anchor else ""
            return Link(f"{name}.html{ends}", f"{one.chapter} {chapter.title}")
    return Link(f"{name}.html", f"{one.chapter} {chapter.title}")
