"""What a notebook's metadata says for its opening slide, and of it as a chapter of the course.

Title, authors and date are nbformat's own; a logo is a file beside the notebook:

    "title": "Heat conduction", "authors": [{"name": "A. Teacher"}], "date": "12 May 2026",
    "logo": "images/faculty.svg",
    "course": {"goal": "Launch a first kernel ..."}

How long a chapter takes is what its speaker notes come to: cells of the slide type `notes` that
begin with `<details><summary>Notes, 6 min.</summary>`. Where there are none, `"minutes"` and
`"exercises"` of `course` say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from html import escape
from pathlib import Path
from typing import NamedTuple

from nbformat import NotebookNode

from .content.carried import Carrier

_NOTES = re.compile(
    r"<details><summary>(?P<head>Notes, (?P<minutes>\d+) min\.)</summary>(?P<text>.*)</details>",
    re.DOTALL,
)


class Front(NamedTuple):
    """An opening slide's own words; empty where the notebook does not say.

    Attributes:
        title: as plain text.
        byline: authors and date, as plain text.
        logo: the image, as a data address.
    """

    title: str = ""
    byline: str = ""
    logo: str = ""

    def byline_html(self) -> str:
        """The line under the title."""
        return f'<p class="byline">{escape(self.byline)}</p>' if self.byline else ""

    def logo_html(self) -> str:
        """The image in the corner."""
        return f'<img class="logo" alt="Logo" src="{escape(self.logo)}">' if self.logo else ""


class Course(NamedTuple):
    """A chapter in a sentence and two numbers.

    Attributes:
        goal: what a reader can do or knows at its end, in a sentence; empty if it does not say.
        minutes: in class, without the exercises that are checked; 0 if nobody has said.
        exercises: minutes for those exercises; 0 if there are none.
    """

    goal: str = ""
    minutes: int = 0
    exercises: int = 0


def course(notebook: NotebookNode) -> Course:
    """What a notebook says of itself; of other people's notebooks, nothing."""
    said = notebook.metadata.get("course", {})
    minutes, exercises = spoken(notebook.cells)
    if not minutes:
        minutes, exercises = int(said.get("minutes", 0)), int(said.get("exercises", 0))
    return Course(str(said.get("goal", "")), minutes, exercises)


def notes_minutes(cell: Mapping) -> int | None:
    """The minutes that a cell of speaker notes begins with; None of any other cell."""
    slideshow = cell["metadata"].get("slideshow")
    if not isinstance(slideshow, Mapping) or slideshow.get("slide_type") != "notes":
        return None
    found = _NOTES.fullmatch("".join(cell["source"]).strip())
    return int(found["minutes"]) if found else None


def unfolded(source: str) -> str:
    """The text of speaker notes as the speaker's window has them, not folded away."""
    return _NOTES.sub(lambda found: f"**{found['head']}**{found['text']}".strip(), source.strip())


def spoken(cells: Iterable[Mapping]) -> tuple[int, int]:
    """Minutes of a notebook's speaker notes: in class, and below headings of exercises."""
    minutes, practice, exercise = 0, 0, False
    for cell in cells:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown" and text.startswith("#"):
            exercise = text.startswith("## Exercise")
        takes = notes_minutes(cell) or 0
        if exercise:
            practice += takes
        else:
            minutes += takes
    return minutes, practice


def front(notebook: NotebookNode, folder: Path, warn: Callable[[str], None]) -> Front:
    """What the metadata says.

    Args:
        notebook: read or executed.
        folder: where the logo's address starts.
        warn: told that there is no such logo, in a sentence.
    """
    said = notebook.metadata
    authors = said.get("authors") or said.get("author") or []
    names = ", ".join(filter(None, map(_name, authors if isinstance(authors, list) else [authors])))
    date = " ".join(str(said.get("date") or "").split())
    logo, fault = "", ""
    if url := str(said.get("logo") or ""):
        content, fault = Carrier(folder).content(url)
        if content and not content.startswith("data:image/"):
            content, fault = None, "it is no image"
        logo = content or ""
        if not logo:
            warn(f"the logo {url} is not shown: {fault}")
    title = " ".join(str(said.get("title") or "").split())
    return Front(title, " · ".join(filter(None, (names, date))), logo)


def _name(author: object) -> str:
    """An author's name, who is a dictionary in nbformat's schema and a string in many notebooks."""
    name = author.get("name", "") if isinstance(author, dict) else author
    return " ".join(str(name or "").split())
