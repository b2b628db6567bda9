"""Pages to read, and what chapters say of themselves for the course's page."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
from site_pages import Tags
from test_slides import code, markdown, new_output, taken_apart, text_of

from helpers.chapters.glossary import terms
from helpers.slides.front import course
from helpers.slides.pages.glossary_page import glossary_page
from helpers.slides.pages.page import reading_page
from helpers.slides.pages.sections import sections

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def test_every_chapter_says_its_goal_in_one_sentence():
    for path in NOTEBOOKS:
        goal = course(nbformat.read(path, as_version=4)).goal
        assert re.fullmatch(r"[A-Z][^.]{20,110}\.", goal), (path.stem, goal)


def test_headings_go_down_one_level_at_a_time_and_each_has_an_address_of_its_own(tmp_path):
    made = taken_apart(
        tmp_path,
        markdown("#### Deep\n\nWords.\n\n###### Deeper\n\nMore."),
        markdown("## Run"),
        markdown("# Walk\n\n### Run"),
        markdown("goes on", "subslide"),
        markdown(r"## See: $\sqrt d$ & `a[i]`"),
    )
    parts = sections(made)
    assert [(one.level, one.anchor, one.name) for one in parts] == [
        (1, "", "Deep"),
        (2, "run", "Run"),
        (2, "walk", "Walk"),
        (2, "see-sqrt-d-a-i", "See: √d & a[i]"),
    ]
    assert "goes on" in parts[2].words
    page = Tags(reading_page(made))
    assert page.headings == [1, 2, 2, 2, 3, 2] and "run-2" in page.ids
    assert len(page.ids) == len(set(page.ids))


def test_an_exercise_is_shown_with_its_gap_and_without_the_findings_of_an_empty_one(tmp_path):
    verdict = '<style>.v{}</style><div class="kernel-verdict" role="alert">not yet</div>'
    made = taken_apart(
        tmp_path,
        markdown("# T"),
        markdown("## Exercise: add"),
        code("%%kernel x.cu\n// Gap: add.\nint n = 0;", "skip",
             outputs=[new_output("stream", text="x.cu is written")]),
        code('check("x")', "skip", outputs=[new_output("execute_result", {"text/html": verdict})]),
        markdown("<details><summary>Solution</summary>\n\nOne.\n\n</details>", "skip"),
        whole=True,
    )  # fmt: skip
    html = reading_page(made)
    assert '<i class="c">// Gap: add.</i>' in html and '<i class="k">int</i>' in html
    assert "x.cu is written" not in html and "not yet" not in html and 'role="alert"' not in html
    assert "In the notebook this says" in html and "<summary>Solution</summary>" in html


def test_the_glossary_leads_to_the_sections_that_define_its_terms(tmp_path):
    made = taken_apart(
        tmp_path,
        markdown("# Start here"),
        markdown("## Measure: requests\n\n32 threads are a **warp** & more."),
    )
    html = glossary_page({"00_start_here": made}, "A course")
    assert '<a href="00_start_here.html#measure-requests">00 Start here</a>' in html
    page = Tags(html)
    assert len(page.ids) == len(set(page.ids)) >= len(terms())
    assert {"warp", "little-s-law", "l2-cache"} <= set(page.ids) and page.headings == [1]
    text = text_of(html)
    assert "`" not in text.split("The terms of the course.", 1)[1].split("@font-face")[0]
    others = [one for one in terms() if one.chapter != "00"]
    assert html.count("<span>Chapter ") == len(others) > 20
