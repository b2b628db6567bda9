"""What chapters say and hold back on slides: answers, a deck's own words, exercises."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_output
from test_slides import code, markdown, taken_apart, text_of

from helpers.slides.content.deck_wording import for_slides
from helpers.slides.content.gaps import with_gaps
from helpers.slides.pages.page import reading_page

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
CHAPTERS = [nbformat.read(path, as_version=4) for path in NOTEBOOKS]
for chapter in CHAPTERS:  # what the speaker alone has is on no slide
    slides = [c for c in chapter.cells if c.metadata.slideshow.slide_type != "notes"]
    chapter.cells = slides
# What only somebody with a notebook in front of them can do.
FOR_NOTEBOOKS = re.compile(
    r"\brun (?:the|this|all)\s*cells?|cells? (?:below|above)|next cells?|this cell"
    r"|then\s+run|run again|[Ee]dit the|Shift \+ Enter|\b[Tt]ype (?:any|in|an)\b|the one below"
    r"|[Ee]very change compiles|[Pp]ut in another|before running"
)
KERNEL = """%%kernel 99_x.cu
// Adds.

__global__ void add(float* a, int n) {
    int i = threadIdx.x;
    int far = 0;
    if (i < n) {
        // Gap 1: add one
        // to the element.
        a[i] *= 2;
    }
    a[0] = 1;
    a[1] = 1;
    a[2] = 1;
    // Gap 2: again.
}
"""


def test_words_for_notebooks_are_left_out_or_said_otherwise():
    source = (
        "Which? <!-- notebook -->Decide, then run.<!-- slides: Decide *first*. -->\n\n"
        "<!-- notebook -->\nRun\nit.\n<!-- slides -->\n\nMore <!-- a comment -->"
    )
    assert for_slides(source) == "Which? Decide *first*.\n\n\n\nMore <!-- a comment -->"


def test_no_slide_speaks_of_cells_to_run():
    for chapter in CHAPTERS:
        for cell in chapter.cells:
            if cell.cell_type == "markdown":
                found = FOR_NOTEBOOKS.search(for_slides(cell.source))
                assert not found, (cell.id, found[0])
                # In a notebook the first line of a paragraph is formatted all the same.
                for line in cell.source.split("\n"):
                    assert not re.match(r"\s*<!--.*-->.*\S", line), (cell.id, line)


def test_an_answer_waits_for_a_step_and_is_folded_in_a_text(tmp_path):
    shown = new_output("stream", text="42\n")
    cells = (
        markdown("# T"),
        code("print(42)", "-", "answer", outputs=[shown]),
        code("print(42)", outputs=[shown]),
    )
    _, waits, _, stands = taken_apart(tmp_path, *cells).slides[0].blocks
    assert re.match(r'<div class="block text fragment" data-output>', waits)
    assert re.match(r'<div class="block text" data-output>', stands)
    page = reading_page(taken_apart(tmp_path, *cells, whole=True))
    assert page.count("<summary>Result</summary>") == 1


def test_what_comes_of_a_question_waits_in_every_chapter(executed):
    """A section that asks first shows none of its cells' outputs with the question."""
    asked = 0
    for chapter in CHAPTERS:
        waits = False
        for cell in chapter.cells:
            if cell.source.startswith("#"):
                waits = cell.source.startswith("## Try")
            elif cell.cell_type == "markdown":
                waits = waits and not cell.source.startswith("<details>")
            if cell.cell_type == "markdown" and re.search(
                r"[Dd]ecide,|[Pp]redict (?:the|what|how)", cell.source
            ):
                waits = True
            tagged = "answer" in cell.metadata.get("tags", [])
            if cell.cell_type == "code":
                last = cell.source.strip().split("\n")[-1]
                silent = re.match(r"\s*(?:return\b|[\w, \[\].]+ = )", last)
                assert not waits or tagged or silent, cell.id
                asked += tagged
    assert asked >= 25


def test_an_exercise_shows_its_gaps_and_where_they_are(tmp_path):
    shown = with_gaps(KERNEL)
    assert shown.split("\n") == [
        "int far = 0;", "if (i < n) {", "    // Gap 1: add one", "    // to the element.",
        "    a[i] *= 2;", "}", "...", "a[1] = 1;", "a[2] = 1;", "// Gap 2: again.",
    ]  # fmt: skip
    assert with_gaps("x = 1") is None and with_gaps("%%kernel x.cu\nint a;") is None
    slide = taken_apart(tmp_path, markdown("## Exercise"), code(KERNEL, "skip")).slides[0]
    assert unescape(text_of(slide.blocks[0])) == shown and slide.blocks[0].count('class="gap"') == 3


def test_an_exercise_without_a_gap_shows_what_its_threads_share():
    """Where a line is to be added, and the place is the question."""
    lines = [
        "__shared__ float s[32];", "int mine = 1;", "s[tid] = mine;", "for (;;) {",
        "    if (tid < 2)", "        mine += s[tid + 1];", "    __syncthreads();", "}",
        "a[tid] = mine;",
    ]  # fmt: skip
    kernel = "\n".join(["%%kernel x.cu", "void k() {", *(f"    {line}" for line in lines), "}"])
    without = [line for line in lines if line not in ("int mine = 1;", "a[tid] = mine;")]
    assert with_gaps(kernel).split("\n") == [without[0], "...", *without[1:]]


def test_every_exercise_shows_where_to_write():
    cells = [cell for chapter in CHAPTERS for cell in chapter.cells]
    exercises = [cell.source for cell in cells if cell.source.startswith("%%kernel")]
    assert len(exercises) >= 17
    for source in exercises:
        assert len(with_gaps(source).split("\n")) >= 3, source


@pytest.mark.parametrize("chapter", CHAPTERS, ids=[path.stem for path in NOTEBOOKS])
def test_every_slide_has_a_title_of_its_own(chapter):
    for cell in chapter.cells:
        for title in re.findall(
            r"^#+ (.*)", cell.source if cell.cell_type == "markdown" else "", re.M
        ):
            assert not re.fullmatch(r"(?i)see|read|run|measure|tweak|try|next", title), cell.id
