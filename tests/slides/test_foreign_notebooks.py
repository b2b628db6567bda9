"""Notebooks of other people: a lecturer's of 25 cells, exported both ways, and what it may hold."""

from __future__ import annotations

import copy
import logging
import re
from pathlib import Path

import deck_checks
import pointer_checks
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from helpers.slides import build, exporters
from helpers.slides.content import terminal
from helpers.slides.content.carried import Carrier, balanced
from helpers.slides.content.chapter import chapter
from helpers.slides.content.maths import Maths, MathsError
from helpers.slides.content.prose import to_html
from helpers.slides.execute import Executed, execute, read
from helpers.slides.pages.deck import deck

TEACHER = Path(__file__).parents[1] / "data" / "teacher.ipynb"
WIDGET = "application/vnd.jupyter.widget-view+json"


def taken_apart(tmp_path, *cells, whole=False):
    executed = Executed(new_notebook(cells=list(cells)), {}, "", {})
    return chapter(executed, "lecture", tmp_path, whole=whole)


def titles(made) -> list[str]:
    return [slide.title for slide in made.slides]


def shown(made, number=-1) -> str:
    return "".join(made.slides[number].blocks)


# Topics


def test_headings_begin_slides_where_nobody_said_what_does(tmp_path):
    made = taken_apart(
        tmp_path,
        new_markdown_cell("# T\n\nwords"),
        new_markdown_cell("in between\n\n## A\n\n### inside\n\na\n\nB\n---\nb\n\n> ## quoted"),
        new_code_cell("x = 1"),
    )
    assert titles(made) == ["T", "A", "B"]
    assert "in between" in shown(made, 0)
    assert "<h3>inside</h3>" in shown(made, 1) and "<p>a</p>" in shown(made, 1)
    assert "<h2>quoted</h2>" in shown(made) and "x" in shown(made)
    assert not made.ours and ' as-written"' in deck(made)


def test_a_notebook_whose_topics_begin_deeper_is_cut_there(tmp_path):
    cells = [new_markdown_cell(f"{'# T' if not n else f'### {n}'}\n\ntext") for n in range(4)]
    assert titles(taken_apart(tmp_path, *cells)) == ["T", "1", "2", "3"]


def test_slide_metadata_is_kept_where_there_is_some(tmp_path):
    def cell(source, kind=None):
        return new_markdown_cell(
            source, metadata={"slideshow": {"slide_type": kind}} if kind else {}
        )

    made = taken_apart(
        tmp_path, cell("# T\n\n## no slide\n\nwords", "slide"), cell("## also none", "-"),
        cell("later", "fragment"), cell("left out", "skip"), cell("said", "notes"), cell("## Own"),
    )  # fmt: skip
    assert titles(made) == ["T", "Own"]
    assert "<h2>no slide</h2>" in shown(made, 0) and "<h2>also none</h2>" in shown(made, 0)
    assert re.search(r'fragment"><p>later', shown(made, 0)) and "left out" not in deck(made)
    assert made.slides[0].notes == ["<p>said</p>"]


def test_footnotes_of_other_cells_stand_with_what_names_them(tmp_path):
    made = taken_apart(
        tmp_path, new_markdown_cell("# T\n\nWords[^a]."), new_markdown_cell("[^a]: The *note*.")
    )
    assert '<sup class="note-mark">1</sup>' in shown(made, 0)
    assert "The <em>note</em>." in made.slides[0].blocks[0]


# Maths: for each formula another one in words that ziamath has always drawn right


@pytest.mark.parametrize(
    "tex, same",
    [
        (r"17 \bmod 12", r"17 \;\mathrm{mod}\; 12"),
        (r"\begin{align} a &= b \\ c \end{align}", r"\begin{align*} a &= b \\ c \end{align*}"),
        (r"\begin{eqnarray} a &=& b \end{eqnarray}", r"\begin{array}{rcl} a &=& b \end{array}"),
        (r"\text{if $x > 0$ then}", r"\text{if }x > 0\text{ then}"),
        (r"\operatorname*{arg\,max}_{x} f", r"\underset{x}{{\mathrm{arg}\,\mathrm{max}}}\, f"),
        (r"\begin{bmatrix} 1 \\[1ex] 2 \end{bmatrix}", r"{\begin{bmatrix} 1 \\ 2 \end{bmatrix}}"),
        (r"a = b \label{eq} \nonumber % why", r"a = b"),
        (r"a \tag{7}", r"a \qquad\text{(7)}"),
        (r"\begin{pmatrix*}[r] 1 \end{pmatrix*}", r"{\begin{pmatrix} 1 \end{pmatrix}}"),
        (r"\left< x \right>", r"\left\langle x \right\rangle"),
        (r"\newcommand{\norm}[1]{\lVert #1 \rVert} \norm{a}", r"{\lVert a \rVert}"),
        (r"\def\R{\mathbb{R}} \R^n", r"{\mathbb{R}}^n"),
        (r"\begin{array}{c|c} 1 & 2 \end{array}", r"\begin{array}{ccc} 1 & \vert & 2 \end{array}"),
    ],
)  # fmt: skip
def test_latex_of_notebooks_is_drawn_as_its_plain_words_are(tex, same):
    def drawing(source):
        return re.sub(r'aria-label="[^"]*"', "", Maths().svg(source, display=True))

    assert drawing(tex) == drawing(same)


def test_brackets_of_neighbouring_matrices_have_their_own_heights():
    tall, low = r"\begin{pmatrix} 1\\2\\3\\4\\5 \end{pmatrix}", r"\begin{pmatrix} 1&2 \end{pmatrix}"
    alone = set(re.findall(r'href="#([^"]+)"', Maths().svg(low, display=True)))
    both = set(re.findall(r'href="#([^"]+)"', Maths().svg(tall + low, display=True)))
    assert alone <= both


def test_a_space_in_a_text_swallows_no_letter_behind_it():
    assert (
        Maths().svg(r"x \text{if } x").count("<use")
        == Maths().svg(r"x \text{if} x").count("<use") + 1
    )


def test_macros_of_one_cell_hold_in_the_next_and_may_be_redefined():
    maths = Maths()
    assert maths.svg(r"\newcommand{\v}{\mathbf{v}}") == ""
    first = maths.svg(r"\v")
    maths.svg(r"\renewcommand{\v}{w}")
    assert first and maths.svg(r"\v") != first


@pytest.mark.parametrize(
    "tex",
    [r"\qty{9}{\metre}", r"\begin{CD} A \end{CD}", r"\text{数学}", r"\def\a{\a}\a", r"\frac{a"],
)
def test_what_would_be_drawn_wrong_is_not_drawn(tex, tmp_path):
    with pytest.raises(MathsError):
        Maths().svg(tex)
    said: list[str] = []
    html = to_html(f"a ${tex}$ b", Maths(), tmp_path, warn=said.append)
    assert "maths-source" in html and len(said) == 1 and "<svg" not in html


# What a terminal shows


def test_a_terminal_shows_what_was_written_last():
    assert terminal.last_state("1%\r50%\r100%\ndone\n") == "100%\ndone\n"
    assert terminal.last_state("abcdef\rxy\nab\x08c\r\nz") == "xycdef\nac\nz"
    assert terminal.last_state("\x1b[2K\x1b]0;title\x07a\x1b[1A") == "a"
    html = terminal.html("\x1b[31mred\nstill\x1b[0m <b>")
    assert html.count('<span class="ansi-red-fg">') == 2 and "&lt;b&gt;" in html
    assert [re.sub("<[^>]+>", "", line) for line in terminal.lines_of("a\tb\nc")] == [
        "a       b",
        "c",
    ]


def test_a_bar_that_was_taken_away_leaves_no_box(tmp_path):
    bar = [new_output("stream", name="stderr", text=text) for text in ("\r 50 %", "\r100 %\n", "")]
    gone = [*bar[:1], new_output("stream", name="stderr", text="\r      \r")]
    cells = [new_code_cell("run()", outputs=outputs) for outputs in (bar, gone)]
    texts = [shown(taken_apart(tmp_path, cell)) for cell in cells]
    assert [html.count("data-output") for html in texts] == [1, 0] and "100 %" in texts[0]


@pytest.mark.parametrize("rgb", [(255, 255, 0), (255, 135, 0), (0, 0, 120), (128, 128, 128)])
def test_any_colour_of_a_terminal_can_be_read_in_light_and_dark(rgb):
    html = terminal.html(f"\x1b[38;2;{';'.join(map(str, rgb))}mtext\x1b[0m")
    pair = re.search(r"light-dark\(#(\w+), #(\w+)\)", html).groups()
    for colour, ground in zip(pair, ("f4f6f8", "1f2429"), strict=True):
        levels = []
        for one in (colour, ground):
            parts = [int(one[at : at + 2], 16) / 255 for at in (0, 2, 4)]
            parts = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
            levels.append(0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2] + 0.05)
        assert max(levels) / min(levels) >= 4, (colour, ground)


def test_a_long_text_keeps_its_ends_on_slides_and_all_of_it_on_a_page(tmp_path):
    text = "\n".join(f"epoch {n:3d} with a loss of {1 / (n + 1):.4f}" for n in range(400))
    cell = new_code_cell("", outputs=[new_output("stream", text=text)])
    slides, page = (taken_apart(tmp_path, cell, whole=whole) for whole in (False, True))
    lines = re.findall(r"<span>(.*?)</span>", shown(slides))
    assert (
        len(lines) == 61 and lines[0].startswith("epoch   0") and lines[-1].startswith("epoch 399")
    )
    assert "… 340 lines are left out …" in lines and len(slides.warnings) == 1
    assert shown(page).count("<span>") == 400 and not page.warnings


# HTML


def test_html_keeps_what_it_may_and_carries_its_files(tmp_path):
    Image.new("RGB", (2, 2)).save(tmp_path / "a b.png")
    said: list[str] = []
    carrier = Carrier(tmp_path, said.append)
    html = carrier.html(
        "<img src='a%20b.png' width=40 alt='two > one' srcset='x'><style>p{color:red}</style>"
        '<img src="//h.example/x.png"><b onclick="x()">b</b><script>1</script>'
        '<iframe src="https://v.example/1"></iframe><iframe src="local.html"></iframe>'
    )
    assert "width=40 alt='two > one'" in html and html.count("data:image/png") == 1
    assert carrier.styles == [":where(.block) { p{color:red} }"]
    for gone in ("srcset", "onclick", "<script", "<iframe", "<style"):
        assert gone not in html
    assert '<a href="https://v.example/1" rel="noopener">v.example/1</a>' in html
    assert len(said) == 4 and html.count("not-shown") == 3


def test_what_comes_in_pieces_is_carried_whole(tmp_path):
    said: list[str] = []
    source = 'A film: <video width="9"><source src="https://h.example/a.mp4"></video> after.'
    html = to_html(source, Maths(), tmp_path, warn=said.append)
    assert "Film not shown: https://h.example/a.mp4" in html and "<video" not in html
    html = to_html('<audio src="data:audio/wav;base64,QQ=="></audio>', Maths(), tmp_path)
    assert '<audio controls src="data:audio/wav;base64,QQ==">' in html
    html = Carrier(tmp_path).html('<p style="position:fixed"><svg width="20" height="10"></svg>')
    assert "fixed" not in html and 'viewBox="0 0 20 10"' in html


def test_html_closes_what_it_opens_and_nothing_else():
    assert balanced("<div><ul>a</div></section>b") == "<div><ul>a</ul></div>b"
    assert balanced("<div>a") == "<div>a</div>"


def test_outputs_that_need_a_notebook_leave_a_box(tmp_path):
    outputs = [
        new_output("display_data", {WIDGET: {"model_id": "x"}, "text/plain": "Map(center=1)"}),
        new_output("display_data", {"text/html": "<div id=p></div><script>plot()</script>"}),
        new_output("display_data", {"image/png": "QUJD"}, metadata={"image/png": {"width": 300}}),
        new_output(
            "display_data", {"text/html": '<div>\n<table class="dataframe"></table>\n</div>'}
        ),
    ]
    made = taken_apart(tmp_path, new_code_cell("", outputs=outputs))
    kinds = [re.match(r'<div class="block ([\w ]+)"', one)[1] for one in made.slides[0].blocks]
    assert kinds == ["html", "html", "html sized", "table"]
    assert 'width="300"' in made.slides[0].blocks[2]
    assert "Widget not shown: Map" in shown(made) and "drawn by a script" in shown(made)
    assert len(made.warnings) == 3  # the script itself, too


# The lecturer's notebook


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    """Its deck and page as nbconvert's exporters make them, and what was said of it."""
    folder = tmp_path_factory.mktemp("teacher")
    (folder / "figures").mkdir()
    Image.new("RGB", (640, 400), "navy").save(folder / "figures" / "setup.png")
    executed = execute(read(TEACHER), TEACHER.name, folder)
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exporters, "execute", lambda *_, **__: copy.deepcopy(executed))
        resources = {"metadata": {"path": str(folder), "name": "teacher"}}
        for name, kind in (("deck", exporters.OfflineSlides), ("page", exporters.OfflinePage)):
            exporter = kind()
            exporter.log.addHandler(handler)
            html, _ = exporter.from_notebook_node(executed.notebook, copy.deepcopy(resources))
            exporter.log.removeHandler(handler)
            build.write(folder / f"{name}.html", html)
    return folder, said


# Of every slide its heading, words, and what of it is wrong.
LOOK = f"""() => {{
  {pointer_checks.SCRIPT}
  {deck_checks.MEASURE}
  return Array.from({{ length: Reveal.getTotalSlides() }}, (_, number) => {{
    Reveal.slide(number, 0, 99);
    const sheet = document.querySelector(".present .sheet");
    const size = (node) => [Math.round(node.getBoundingClientRect().width), node.alt ?? ""];
    return {{
      title: sheet.querySelector(".title > span").textContent,
      text: sheet.querySelector(".body").innerText,
      images: [...sheet.querySelectorAll(".body img")].map(size),
      plots: [...sheet.querySelectorAll(".kernel-figure svg")].map((one) => size(one)[0]),
      capitals: [...sheet.querySelectorAll(".body :is(h3, h4)")].map(
        (one) => getComputedStyle(one).textTransform),
      columns: [...sheet.querySelectorAll("thead th")].map((one) => one.textContent),
      last: sheet.querySelector(".body").lastElementChild?.hasAttribute("data-heading"),
      notes: document.querySelector(".present aside.notes")?.textContent ?? "",
      ...measure(),
    }};
  }});
}}"""


@pytest.mark.browser
def test_a_lecturers_notebook_as_a_deck(teacher, browser):
    folder, said = teacher
    with deck_checks.opened(browser, folder / "deck.html") as page:
        sheets = page.evaluate(LOOK)
        by: dict[str, list[dict]] = {}
        for sheet in sheets:
            by.setdefault(sheet["title"], []).append(sheet)
        for number, sheet in enumerate(sheets, 1):
            assert not sheet["over"] and not sheet["scrolls"] and not sheet["small"], (
                number,
                sheet,
            )
            assert not sheet["last"] and not sheet["notes"], (number, sheet)
            assert set(sheet["capitals"]) <= {"none"}
    assert [title.split()[0] for title in by] == [
        "Introduction", "What", "Matrices", "Congruences", "A", "A", "Several", "A", "A",
        "Pictures", "中文标题", "An",
    ]  # fmt: skip
    text = {title.split()[-1]: "\n".join(s["text"] for s in parts) for title, parts in by.items()}
    assert "Norms" in by["What this lecture covers"][0]["text"] and "Outlook" in text["covers"]
    assert "A @ A" in text["Matrices"] and "Trefethen" in text["Matrices"]
    assert r"\qty{9.81}" in text["Congruences"]
    # Sizes and words of images are their own; plots take what room there is.
    pictures = [one for sheet in by["A picture with a width"] for one in sheet["images"]]
    assert [width for width, _ in pictures] == [320, 296, 640, 300]
    assert pictures[0][1].startswith("The experiment") and pictures[2][1] == "markdown picture"
    assert max(by["A plot"][-1]["plots"]) > 600
    # All code stands on the slides, and a table in as many parts as it takes, whole.
    code = "\n".join(cell.source for cell in read(TEACHER).cells if cell.cell_type == "code")
    everything = re.sub(r"\s", "", "".join(sheet["text"] for sheet in sheets))
    for line in code.split("\n"):
        assert re.sub(r"\s", "", line) in everything, line
    seen = [name for sheet in by["A wide table"] for name in sheet["columns"] if name]
    assert set(seen) == {f"measurement_{n}" for n in range(14)}
    assert text["table"].count("\n24\t") == len(by["A wide table"][-1:]) + 1
    # The last state of a progress bar, a link for a frame, boxes for what is not there.
    long = next(parts for title, parts in by.items() if title.startswith("A very long"))
    words = "\n".join(sheet["text"] for sheet in long)
    assert words.count("fitting:") == 2 and "100%|##########| 50/50" in words  # one is the code's
    assert "example.org/embedded/video" in words and "epoch 3/3" in words
    assert "figures/lost.png" in text["there"] and "a remote figure" in text["there"]
    assert "As raw HTML has it, in no paragraph." in text["exercise"]
    assert "LinAlgError: Singular matrix" in text["exercise"] and "raw cell" in text["exercise"]
    assert len(said) == 10 and len(set(said)) == 5  # by both ways
    for place in ("cell 6 ", "cell 18 ", "cell 19 ", "cell 21 "):
        assert any(place in one for one in said), (place, said)


@pytest.mark.browser
def test_a_lecturers_notebook_as_a_page(teacher, browser):
    context = browser.new_context(offline=True, viewport={"width": 1000, "height": 800})
    page = context.new_page()
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", lambda m: m.type == "error" and troubles.append(m.text))
    page.goto((teacher[0] / "page.html").as_uri())
    words = page.locator("main").inner_text()
    for one in (
        "Outlook", "A deeper heading", r"\qty{9.81}", "Trefethen", "measurement_13", "199]",
        "LinAlg", "100%|##########| 50/50", "Image not shown: figures/lost.png", "中文标题",
    ):  # fmt: skip
        assert one in words, one
    assert page.locator("main img").first.bounding_box()["width"] == 320
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()
    assert not troubles
