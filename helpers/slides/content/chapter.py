"""A notebook taken apart: its slides, each with a heading, what stands on it, and notes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape, unescape
from pathlib import Path

from nbformat import NotebookNode

from ...show.highlighting import highlight
from ..execute import Executed, where
from ..front import Course, Front, course, front, notes_minutes, unfolded
from . import terminal
from .deck_wording import for_slides
from .gaps import MAGIC, with_gaps
from .maths import Maths
from .outputs import Outputs
from .prose import Passage, notes_of, parts, to_html, with_notes

HIDE_INPUT = {"hide-input", "hide_input", "remove-input", "remove_input"}
HIDE_OUTPUT = {"hide-output", "hide_output", "remove-output", "remove_output"}
ANSWER = "answer"  # a code cell whose output answers a question that was asked before
_STARTS = ("slide", "subslide")


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
        title: the chapter's, as plain text: that of the metadata, or else the first heading.
        device: what ran the kernels.
        slides: in order.
        outputs, maths: what the page has to hold besides.
        widgets: states of the widgets, by id.
        course: its goal and minutes.
        warnings: what could not be shown, each with its cell.
        ours: whether the notebook is one of this course; of any other nothing is moved out of
            sight, and its headings are left as they are.
        front: authors, date and logo for the opening slide.
    """

    name: str
    title: str
    device: str
    slides: list[Slide]
    outputs: Outputs
    maths: Maths
    widgets: dict[str, dict]
    course: Course = Course()
    warnings: list[str] = field(default_factory=list)
    ours: bool = True
    front: Front = Front()


def chapter(executed: Executed, name: str, folder: Path, *, whole: bool = False) -> Chapter:
    """Take an executed notebook apart.

    Args:
        executed: the notebook.
        name: of its file, without the ending.
        folder: where its relative addresses start.
        whole: keep what slides skip, for a page to be read.
    """
    return _Taker(executed, name, folder, whole).chapter()


def plain(html: str) -> str:
    """HTML as plain text; a formula is what its label says."""
    html = re.sub(r'<svg\b[^>]*aria-label="([^"]*)".*?</svg>', r"\1", html, flags=re.S)
    return re.sub(r"<[^>]+>", "", html).replace("&amp;", "&").replace("&lt;", "<").strip()


class _Taker:
    """Takes a notebook apart, cell by cell."""

    def __init__(self, executed: Executed, name: str, folder: Path, whole: bool):
        self._executed, self._name, self._folder, self._whole = executed, name, folder, whole
        self._maths = Maths()
        self._ours = bool(executed.device)
        self._warnings: dict[tuple[int, str], None] = {}
        self._number = 0
        self._outputs = Outputs(
            executed.widgets, self._maths, folder, executed.choices, self._warn, whole
        )
        self._slides: list[Slide] = []
        self._notes: dict[str, str] = {}  # footnotes
        self._most = 2  # level of the headings that start slides of cells without slide metadata

    def chapter(self) -> Chapter:
        cells = self._executed.notebook.cells
        texts = [cell for cell in cells if cell.cell_type == "markdown"]
        for cell in texts:
            self._notes |= notes_of(cell.source)
        made: dict[int, list[Passage]] = {}
        for self._number, cell in enumerate(cells):
            if cell.cell_type == "markdown":
                made[self._number] = parts(self._html(cell))
        levels = [part.level for number, cut in made.items() for part in cut
                  if _type(cells[number]) is None and part.title]  # fmt: skip
        # A notebook may begin its topics at a deeper level than its title's neighbour.
        several = sorted(levels)[1:2]
        self._most = max(2, several[0]) if several and several[0] <= 4 else 2
        for self._number, cell in enumerate(cells):
            self._add(cell, made.get(self._number, []))
        slides = self._slides
        faults: list[str] = []
        own = front(self._executed.notebook, self._folder, faults.append)
        _open(slides, own, self._name)
        title = own.title or next((plain(one.title) for one in slides if one.title), "")
        return Chapter(
            self._name, title or self._name, self._executed.device, slides, self._outputs,
            self._maths, self._executed.widgets, course(self._executed.notebook),
            [*(f"{self._name}: {fault}" for fault in faults), *self._said()], self._ours, own,
        )  # fmt: skip

    def _warn(self, text: str) -> None:
        self._warnings.setdefault((self._number, text))

    def _said(self) -> list[str]:
        """The warnings, in the order of their cells."""
        return [f"{where(self._executed.notebook.cells, number, self._name)}: {text}"
                for number, text in sorted(self._warnings, key=lambda one: one[0])]  # fmt: skip

    def _html(self, cell: NotebookNode) -> str:
        source = for_slides(cell.source) if self._ours else cell.source
        if notes_minutes(cell) is not None:
            source = unfolded(source)
        return to_html(
            with_notes(source, self._notes), self._maths, self._folder,
            cell.get("attachments"), self._warn, self._outputs.styles,
        )  # fmt: skip

    def _add(self, cell: NotebookNode, cut: list[Passage]) -> None:
        kind = _type(cell)
        tags = set(cell.metadata.get("tags", []))
        if kind == "notes" or "notes" in tags:
            if self._slides and cut:
                html = _whole(cut)
                timed = notes_minutes(cell) is not None  # what is asked, and what is answered
                alone = f'<div class="speaker">{html}</div>' if timed else html
                self._slides[-1].notes.append(alone)
            return
        if kind == "skip" and not self._whole:
            if self._slides and cell.cell_type == "code" and (excerpt := with_gaps(cell.source)):
                self._slides[-1].blocks.append(_gaps(excerpt))
            return
        if cell.cell_type == "markdown" and not _whole(cut):
            return
        if kind in _STARTS or not self._slides:
            before = self._slides[-1] if self._slides else Slide()
            self._slides.append(Slide(title=before.title if kind == "subslide" else ""))
        fragment = " fragment" if kind == "fragment" else ""
        if cell.cell_type == "markdown":
            self._add_text(cut, kind, fragment)
        elif cell.cell_type == "code":
            self._add_code(cell, tags, fragment)
        elif (
            cell.cell_type == "raw"
            and cell.source.strip()
            and not (
                cell.metadata.get("format")
                or cell.metadata.get("raw_mimetype")  # of another exporter
            )
        ):
            lines = terminal.pre(escape(cell.source, quote=False).split("\n"))
            self._slides[-1].blocks.append(f'<div class="block text">{lines}</div>')

    def _add_text(self, cut: list[Passage], kind: str | None, fragment: str) -> None:
        """A text goes to the slide that there is, or begins slides at its own headings."""
        slide = self._slides[-1]
        inside: list[Passage] = []

        def put() -> None:
            if html := _whole(inside):
                slide.blocks.append(f'<div class="block prose{fragment}">{html}</div>')
            inside.clear()

        for number, part in enumerate(cut):
            first = number == 0 and bool(part.title) and not slide.blocks
            if first and (not slide.title or kind in _STARTS):
                slide.level, slide.title = part.level, part.title
                part = part._replace(level=0, title="")
            elif kind is None and part.title and part.level <= self._most:
                put()
                slide = Slide(part.title, part.level)
                self._slides.append(slide)
                part = part._replace(level=0, title="")
            inside.append(part)
        put()

    def _add_code(self, cell: NotebookNode, tags: set[str], fragment: str) -> None:
        slide = self._slides[-1]
        hidden = tags & HIDE_INPUT or cell.metadata.get("jupyter", {}).get("source_hidden")
        if cell.source.strip() and not (hidden and not self._whole):
            slide.blocks.append(_code(cell, fragment, folded=bool(hidden)))
        if tags & HIDE_OUTPUT or cell.metadata.get("jupyter", {}).get("outputs_hidden"):
            return
        if self._whole and cell.source.startswith(MAGIC):
            return  # it says that a file is written
        answers = ANSWER in tags
        for shown in self._outputs.of(cell):
            html = shown.html
            if answers and self._whole:
                html = f"<details><summary>Result</summary>{html}</details>"
            waits = " fragment" if answers and not self._whole else fragment
            slide.blocks.append(f'<div class="block {shown.kind}{waits}" data-output>{html}</div>')


def _open(slides: list[Slide], own: Front, name: str) -> None:
    """Have a slide for what the metadata says, where the first one is none that opens with it."""
    first = slides[0] if slides else Slide()
    opens = first.level == 1 and bool(first.title)
    other = own.title and " ".join(unescape(plain(first.title)).split()) != own.title
    if any(own) and (other or not opens):
        slides.insert(0, Slide(escape(own.title or name, quote=False), level=1))


def _type(cell: NotebookNode) -> str | None:
    """What the metadata makes of a cell on slides; None where nobody has said anything."""
    slideshow = cell.metadata.get("slideshow")
    return slideshow.get("slide_type") or None if isinstance(slideshow, dict) else None


def _whole(cut: list[Passage]) -> str:
    """Parts of a text as one again."""
    return "\n".join(
        f"<h{part.level}>{part.title}</h{part.level}>\n{part.html}" if part.title else part.html
        for part in cut
    ).strip()


def _gaps(excerpt: str) -> str:
    """What is to be filled in, of an exercise whose cell is not on the slide."""
    html = highlight(excerpt, "cuda").split("\n")
    inside = False  # of a comment that says what belongs into a gap
    for number, line in enumerate(excerpt.split("\n")):
        comment = line.lstrip().startswith("//")
        inside = comment and (inside or line.lstrip().startswith("// Gap"))
        if inside:
            html[number] = html[number].replace("<span>", '<span class="gap">', 1)
    return f'<div class="block code gaps">{chr(10).join(html)}</div>'


def _code(cell: NotebookNode, fragment: str, folded: bool) -> str:
    language = "cuda" if cell.source.startswith(MAGIC) else "python"
    html = highlight(re.sub(r"\n{3,}", "\n\n", cell.source), language)
    if folded:
        html = f"<details><summary>Set-up</summary>{html}</details>"
    return f'<div class="block code{fragment}">{html}</div>'
