"""A notebook taken apart: its slides, each with a heading, what stands on it, and notes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from nbformat import NotebookNode

from .code import highlight
from .course import Course, course
from .errors import ExportError
from .execute import Executed, where
from .gaps import MAGIC, with_gaps
from .maths import Maths, MathsError
from .outputs import Outputs
from .prose import ProseError, to_html
from .wording import for_slides

HIDE_INPUT = {"hide-input", "hide_input", "remove-input", "remove_input"}
HIDE_OUTPUT = {"hide-output", "hide_output", "remove-output", "remove_output"}
ANSWER = "answer"  # a code cell whose output answers a question that was asked before
_HEADING = re.compile(r"\A<h([1-6])>(.*?)</h\1>\s*", re.S)


@dataclass
class Slide:
    """What stands under one heading.

    Attributes:
        title: HTML of the heading; empty where there is none.
        level: of the heading, 1 being the chapter's own.
        blocks: HTML of what follows, each in an element of the class `block`.
        notes: HTML for the speaker.
    """

    title: str = ""
    level: int = 2
    blocks: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass
class Chapter:
    """A notebook, ready to be put into a page.

    Attributes:
        name: of the notebook's file, without its ending.
        title: the chapter's, as plain text.
        device: what ran the kernels.
        slides: in order.
        outputs, maths: what the page has to hold besides.
        widgets: states of the widgets, by id.
        course: its goal and minutes.
    """

    name: str
    title: str
    device: str
    slides: list[Slide]
    outputs: Outputs
    maths: Maths
    widgets: dict[str, dict]
    course: Course = Course()


def chapter(executed: Executed, name: str, folder: Path, *, whole: bool = False) -> Chapter:
    """Take an executed notebook apart.

    Args:
        executed: the notebook.
        name: of its file, without the ending.
        folder: where its relative addresses start.
        whole: keep what slides skip, for a page to be read.

    Raises:
        ExportError: a text or an output cannot go into a page.
    """
    maths = Maths()
    outputs = Outputs(executed.widgets, maths, folder, executed.choices)
    slides: list[Slide] = []
    for number, cell in enumerate(executed.notebook.cells):
        try:
            _add(slides, cell, maths, outputs, folder, whole)
        except (MathsError, ProseError) as error:
            raise ExportError(f"{where(executed.notebook, number, name)}: {error}") from error
    title = plain(slides[0].title) if slides and slides[0].title else name
    about = course(executed.notebook)
    return Chapter(name, title, executed.device, slides, outputs, maths, executed.widgets, about)


def plain(html: str) -> str:
    """HTML as plain text; a formula is what its label says."""
    html = re.sub(r'<svg\b[^>]*aria-label="([^"]*)".*?</svg>', r"\1", html, flags=re.S)
    return re.sub(r"<[^>]+>", "", html).replace("&amp;", "&").replace("&lt;", "<").strip()


def _add(slides, cell: NotebookNode, maths, outputs: Outputs, folder: Path, whole: bool) -> None:
    kind = cell.metadata.get("slideshow", {}).get("slide_type") or "-"
    tags = set(cell.metadata.get("tags", []))
    source = for_slides(cell.source) if cell.cell_type == "markdown" else cell.source
    if cell.cell_type == "markdown" and not source.strip():
        return
    if kind == "notes" or "notes" in tags:
        if slides and cell.cell_type == "markdown":
            slides[-1].notes.append(to_html(source, maths, folder))
        return
    if kind == "skip" and not whole:
        if slides and cell.cell_type == "code" and (excerpt := with_gaps(cell.source)):
            slides[-1].blocks.append(_gaps(excerpt))
        return
    if kind in ("slide", "subslide") or not slides:
        before = slides[-1] if slides else Slide()
        slides.append(Slide(title=before.title if kind == "subslide" else ""))
    slide = slides[-1]
    fragment = " fragment" if kind == "fragment" else ""
    if cell.cell_type == "markdown":
        html = to_html(source, maths, folder, cell.get("attachments"))
        if not slide.blocks and (heading := _HEADING.match(html)):
            slide.level, slide.title = int(heading[1]), heading[2]
            html = html[heading.end() :]
        if html:
            slide.blocks.append(f'<div class="block prose{fragment}">{html}</div>')
    elif cell.cell_type == "code":
        hidden = tags & HIDE_INPUT or cell.metadata.get("jupyter", {}).get("source_hidden")
        if cell.source.strip() and not (hidden and not whole):
            slide.blocks.append(_code(cell, fragment, folded=bool(hidden)))
        if tags & HIDE_OUTPUT or cell.metadata.get("jupyter", {}).get("outputs_hidden"):
            return
        if whole and cell.source.startswith(MAGIC):
            return  # it says that a file is written
        answers = ANSWER in tags
        for shown in outputs.of(cell):
            html = shown.html
            if answers and whole:
                html = f"<details><summary>Result</summary>{html}</details>"
            waits = " fragment" if answers and not whole else fragment
            slide.blocks.append(f'<div class="block {shown.kind}{waits}" data-output>{html}</div>')
    elif cell.cell_type == "raw" and not cell.metadata.get("format"):
        slide.blocks.append(f'<div class="block text"><pre>{escape(cell.source)}</pre></div>')


def _gaps(excerpt: str) -> str:
    """What is to be filled in, of an exercise whose cell is not on the slide."""
    html = re.sub(r'<span>(?=\s*(?:<i class="c">)?(?://|#)\s*Gap\b)', '<span class="gap">',
                  highlight(excerpt, "cuda"))  # fmt: skip
    return f'<div class="block code gaps">{html}</div>'


def _code(cell: NotebookNode, fragment: str, folded: bool) -> str:
    language = "cuda" if cell.source.startswith(MAGIC) else "python"
    html = highlight(re.sub(r"\n{3,}", "\n\n", cell.source), language)
    if folded:
        html = f"<details><summary>Set-up</summary>{html}</details>"
    return f'<div class="block code{fragment}">{html}</div>'
