"""The course's page: what it says of the chapters, its pages to read, where its links lead."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from test_slides import code, markdown, new_output, taken_apart

from helpers.slides.course import course
from helpers.slides.page import reading_page
from helpers.slides.sections import sections
from helpers.slides.site import build_site

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
BUILT = [NOTEBOOKS[0], NOTEBOOKS[3]]
MOST = 1.2 * 2**20


class Tags(HTMLParser):
    """The elements of a page, and where it leads."""

    def __init__(self, html: str):
        super().__init__()
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.headings: list[int] = []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids += [found["id"]] if "id" in found else []
        self.headings += [int(tag[1])] if re.fullmatch("h[1-6]", tag) else []
        for name in ("href", "src", "action"):
            if found.get(name) and tag not in ("use", "image"):
                self.addresses.append(found[name])


@pytest.fixture(scope="module")
def site(tmp_path_factory, executed):
    """The site of two chapters, in a folder whose name needs care, with a PDF as if printed."""
    folder = tmp_path_factory.mktemp("sites") / "the course #1"
    (folder / "slides").mkdir(parents=True)
    (folder / "slides" / f"{BUILT[1].stem}.pdf").write_bytes(b"%PDF")
    build_site(BUILT, folder, pdf=False, say=lambda text: None, run=executed)
    return folder


def test_the_teachers_table_gives_the_minutes_that_the_chapters_give():
    row = re.compile(r"^\| (\d\d) [^|]*\| (\d+) min \| (?:(\d+) min|–) \|", re.M)
    told = row.findall((ROOT / "TEACHING.md").read_text("utf-8"))
    said = {path.stem[:2]: course(nbformat.read(path, as_version=4)) for path in NOTEBOOKS}
    assert {number: (int(own), int(more or 0)) for number, own, more in told} == {
        number: (one.minutes, one.exercises) for number, one in said.items()
    }
    for path, one in zip(NOTEBOOKS, said.values(), strict=True):
        assert re.fullmatch(r"[A-Z][^.]{20,110}\.", one.goal), (path.stem, one.goal)


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
    assert "is written" not in html and "not yet" not in html and 'role="alert"' not in html
    assert "In the notebook this says" in html and "<summary>Solution</summary>" in html


def test_every_link_of_the_site_leads_to_something_in_it(site):
    pages = {path: Tags(path.read_text("utf-8")) for path in site.glob("*.html")}
    assert sorted(path.stem for path in pages) == [*(one.stem for one in BUILT), "index"]
    led = set()
    for path, page in pages.items():
        assert path.stat().st_size <= MOST
        for address in page.addresses:
            if re.match(r"https://|data:", address):
                continue
            parts = urlsplit(address)
            assert not parts.scheme and not parts.netloc and not parts.path.startswith("/"), address
            target = (path.parent / unquote(parts.path)) if parts.path else path
            assert target.resolve().is_relative_to(site) and target.is_file(), (path.name, address)
            if parts.fragment:
                assert unquote(parts.fragment) in pages[target].ids, (path.name, address)
            led.add(target.relative_to(site).as_posix())
    for one in BUILT:
        assert {f"{one.stem}.html", f"slides/{one.stem}.html", f"notebooks/{one.name}"} <= led
    assert f"slides/{BUILT[1].stem}.pdf" in led and "slides/index.html" in led
    assert "../index.html" in Tags((site / "slides/index.html").read_text("utf-8")).addresses


def test_what_is_searched_are_the_words_of_all_sections(site):
    html = (site / "index.html").read_text("utf-8")
    words = re.search(r'<script type="application/json" id="words">(.*?)</script>', html, re.S)
    found = json.loads(words[1])
    assert [address for _, address, _ in found] == [f"{one.stem}.html" for one in BUILT]
    for path, (_, address, parts) in zip(BUILT, found, strict=True):
        ids = Tags((site / address).read_text("utf-8")).ids
        assert all(anchor in ids for anchor, _, _ in parts[1:])
        said = " ".join(text for _, _, text in parts)
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "code" and not cell.source.startswith("check("):
                assert " ".join(cell.source.split()) in said
