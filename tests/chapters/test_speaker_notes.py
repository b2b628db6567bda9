"""Speaker notes: every section has some, with minutes, and they are for the speaker alone."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from helpers.slides.front import course, notes_minutes, spoken, unfolded

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("[0-9][0-9]_*.ipynb"))


def sections(path: Path) -> list[list]:
    """The cells below each heading of a chapter, from its second heading on."""
    cut: list[list] = []
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown" and cell.source.startswith("## "):
            cut.append([])
        if cut:
            cut[-1].append(cell)
    return cut


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_section_has_notes_with_minutes(path):
    """Folded away in a notebook, where running a cell would show a source that is only hidden."""
    without = []
    for cells in sections(path):
        notes = [cell for cell in cells if cell.metadata.slideshow.slide_type == "notes"]
        if not notes or any(notes_minutes(cell) is None for cell in notes):
            without.append(cells[0].source.split("\n")[0])
        for cell in notes:
            assert cell.cell_type == "markdown" and "jupyter" not in cell.metadata, cell.id
            words = unfolded(cell.source).split()
            assert 40 <= len(words) <= 140, (cell.id, len(words))
            sentences = re.split(r"(?<=[.?!:])\s|\n\n", cell.source)
            assert max(len(one.split()) for one in sentences) <= 30, cell.id
    draft = nbformat.read(path, as_version=4).metadata.course.get("draft")
    assert draft or not without


def test_minutes_add_up_below_exercises_apart():
    """Of a notebook as a teacher writes it: what stands elsewhere in a cell is no number."""

    def cell(source: str, kind: str = "notes"):
        source = re.sub(
            r"\*\*(Notes, \d+ min\.)\*\* (.*)",
            r"<details><summary>\1</summary>\n\n\2\n\n</details>",
            source,
        )
        return nbformat.v4.new_markdown_cell(source, metadata={"slideshow": {"slide_type": kind}})

    book = nbformat.v4.new_notebook(cells=[
        cell("# Title", "slide"), cell("**Notes, 2 min.** Say hello."),
        cell("## See", "slide"), cell("**Notes, 3 min.** Play it. Notes, 50 min."),
        cell("**Notes, 90 min.** On a slide.", "-"), cell("My own notes."),
        cell("## Exercise: add", "slide"), cell("**Notes, 10 min.** Let them."),
        cell("## Next", "slide"), cell("**Notes, 1 min.** Go on."),
    ])  # fmt: skip
    assert spoken(book.cells) == (6, 10) and course(book)[1:] == (6, 10)
    book.metadata["course"] = {"minutes": 45, "exercises": 20}
    assert course(book)[1:] == (6, 10)
    book.cells = book.cells[:1]
    assert course(book)[1:] == (45, 20)
