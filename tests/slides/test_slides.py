"""Decks and reading pages: what goes into them, and what stops an export."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import itertools
import math
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from importlib.metadata import entry_points
from io import BytesIO
from types import SimpleNamespace

import nbformat
import pytest
import zmq.asyncio
from fontTools.ttLib import TTFont
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from helpers.show.highlighting import highlight
from helpers.slides import build, waking_client
from helpers.slides.content import choices, live, sweep_chart
from helpers.slides.content.chapter import chapter
from helpers.slides.content.maths import Maths, MathsError
from helpers.slides.content.prose import to_html
from helpers.slides.execute import Executed, execute, read
from helpers.slides.export_error import ExportError
from helpers.slides.exporters import OfflinePage, OfflineSlides
from helpers.slides.pages import deck, decks, fonts
from helpers.slides.pages.page import reading_page

KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


def notebook(*cells):
    return new_notebook(cells=list(cells), metadata={"kernelspec": KERNEL})


def markdown(source, kind="slide", *tags):
    return new_markdown_cell(
        source, metadata={"slideshow": {"slide_type": kind}, "tags": list(tags)}
    )


def code(source, kind="-", *tags, outputs=(), **metadata):
    metadata = {"slideshow": {"slide_type": kind}, "tags": list(tags), **metadata}
    return new_code_cell(source, metadata=metadata, outputs=list(outputs))


def taken_apart(tmp_path, *cells, widgets=None, turned=None, whole=False):
    executed = Executed(notebook(*cells), widgets or {}, "NVIDIA H200", turned or {})
    return chapter(executed, "02_things", tmp_path, whole=whole)


def text_of(html: str) -> str:
    return re.sub(r"<[^>]+>", "", html)


# Text, code and maths


def test_code_is_one_span_a_line_and_says_the_same():
    source = 'def f(x):\n    """Two\n    lines & <tags>."""\n\n    return x\n'
    html = highlight(source)
    lines = re.findall(r"<span>(.*?)</span>", html)
    assert [text_of(line) for line in lines] == [
        "def f(x):", '    """Two', "    lines &amp; &lt;tags&gt;.\"\"\"", "", "    return x",
    ]  # fmt: skip
    assert '<i class="k">def</i>' in html and html.count('<i class="s">') == 2
    assert text_of(highlight("a < b", "no-such-language")) == "a &lt; b"


def test_a_formula_is_drawn_on_the_line_of_the_text():
    maths = Maths()
    root = ET.fromstring(maths.svg("x_i"))
    left, top, width, height = map(float, root.get("viewBox").split())
    style = dict(part.split(":") for part in root.get("style").split(";"))
    em = {name: float(value.removesuffix("em")) for name, value in style.items()}
    # The lower edge is as far below the baseline as the drawing reaches below zero.
    assert em["height"] * (top + height) / height == pytest.approx(-em["vertical-align"], abs=2e-3)
    assert em["width"] / em["height"] == pytest.approx(width / height, rel=1e-2)
    assert root.get("aria-label") == "x_i"
    uses = [node.get("href") for node in root.iter() if node.tag.endswith("use")]
    assert len(uses) == 2
    for use in uses:
        assert f'id="{use[1:]}"' in maths.symbols()


def test_glyphs_are_held_once_a_page_and_refer_to_the_right_shape():
    maths = Maths()
    maths.svg(r"\left(\frac{a}{b}\right)", display=True)
    before = maths.symbols()
    maths.svg(r"\left(\frac{a}{b}\right)", display=True)
    assert maths.symbols() == before
    maths.svg(r"\left(\frac{\frac{a}{c}}{\frac{b}{d}}\right)", display=True)
    names = re.findall(r'<symbol id="([^"]+)"', maths.symbols())
    assert len(names) == len(set(names)) > before.count("<symbol")


def test_a_formula_that_cannot_be_read_is_named():
    with pytest.raises(MathsError, match=r"\\frac\{a"):
        Maths().svg(r"\frac{a")


def test_a_sign_behind_a_bracket_or_a_comma_has_no_space_about_it():
    def width(tex: str) -> float:
        return float(re.search(r"width:([\d.]+)em", Maths().svg(tex))[1])

    minus = width("-")
    assert width(r"(-\infty)") == pytest.approx(width(r"(\infty)") + minus, abs=0.1)
    assert width("[a, -b]") == pytest.approx(width("[a, b]") + minus, abs=0.1)
    # Between two numbers it has one on either side.
    assert width("(a - b)") > width("(a b)") + minus + 0.3


def test_a_name_its_value_and_the_mark_behind_them_stay_on_one_line(tmp_path):
    html = to_html("From $N$ = 1,024 on; with $d$ = 64, and $x$.", Maths(), tmp_path)
    kept = re.findall(r'<span class="keep"><svg.*?</svg>(.*?)</span>', html)
    assert kept == ["\xa0=\xa01,024", "\xa0=\xa064,", "."]


def test_a_name_is_not_parted_from_its_number_and_an_image_is_told_in_words_alone(tmp_path):
    (tmp_path / "dot.png").write_bytes(b"\x89PNG data")
    html = to_html("Above FA-2's 1-2, and `x-1`; ![FA-2 & more](dot.png)", Maths(), tmp_path)
    assert re.findall(r'<span class="keep">(.*?)</span>', html) == ["FA-2's"]
    assert "<code>x-1</code>" in html and 'alt="FA-2 &amp; more"' in html


def test_prose_carries_its_images_and_leads_to_other_decks_only(tmp_path):
    (tmp_path / "dot.png").write_bytes(b"\x89PNG data")
    source = (
        "![a dot](dot.png) [next](03_more.ipynb) [file](../kernels/x.cu) [paper](https://a.example)"
        "\n\n$$a^2$$\n\nText with $b$ and `x < y`."
    )
    html = to_html(source, Maths(), tmp_path)
    data = base64.b64encode(b"\x89PNG data").decode()
    assert f'src="data:image/png;base64,{data}"' in html
    assert '<a href="03_more.html">next</a>' in html and "<span>file</span>" in html
    assert '<a href="https://a.example" rel="noopener">paper</a>' in html
    assert html.count('class="maths"') == 2 and html.count("maths-line") == 1
    assert "<code>x &lt; y</code>" in html


def test_fonts_hold_what_is_written_and_no_more():
    css = fonts.css("Δ×")
    faces = re.findall(r"base64,([^\"]+)", css)
    assert len(faces) == 5 and "http" not in css
    maps = [TTFont(BytesIO(base64.b64decode(face))).getBestCmap() for face in faces]
    for held in maps:
        assert {ord("a"), ord("~"), ord("×")} <= set(held) and ord("é") not in held
    assert ord("Δ") in maps[-1]


def test_figures_of_a_gpu_are_known_by_their_words():
    told = ["an H200, recorded", "Recorded on", "k.profile(x)", "1.66 ms.", "655\xa0TFLOPS"]
    assert all(map(deck.tells_of_recordings, [*told, "All of it on the RTX 3090", "on an H200"]))
    others = ["unrecorded time", "recorded data", "2 msg", "0 items", "TFLOPS", "upon an H200"]
    assert not any(map(deck.tells_of_recordings, [*others, "no ms at all", "an H200 holds 2"]))


# A notebook taken apart


def test_notes_are_for_the_speaker_alone(tmp_path):
    """Unfolded in the speaker's window, and marked there, so that handouts leave them out."""
    said = "<details><summary>Notes, 3 min.</summary>\n\nAsk *who*.\n\n</details>"
    made = taken_apart(tmp_path, markdown("# T"), markdown("Words.", "-"), markdown(said, "notes"))
    (notes,) = made.slides[0].notes
    assert "<p><strong>Notes, 3 min.</strong></p>" in notes and "Ask <em>who</em>." in notes
    assert notes.startswith('<div class="speaker">') and "details" not in notes
    assert all("Ask" not in block for block in made.slides[0].blocks)


def test_slides_notes_and_hidden_cells(tmp_path):
    figure = new_output("display_data", {"text/html": "<style>.a{}</style><svg></svg>"})
    made = taken_apart(
        tmp_path,
        markdown("# Things\n\nOpening words."),
        code("import secrets_of_setup", "skip", "hide-input"),
        markdown("## See: a thing"),
        code("draw()", "-", "hide-input", outputs=[figure]),
        markdown("Say *this*.", "-", "notes"),
        markdown("And that.", "notes"),
        code("quiet()", "-", jupyter={"source_hidden": True}),
        code("x = 1\n\n\n\ny = 2", "fragment"),
        markdown("More of it.", "subslide"),
        code("z", "-", "hide-output", outputs=[new_output("stream", text="kept_from_view")]),
    )
    assert [(slide.title, slide.level) for slide in made.slides] == [
        ("Things", 1), ("See: a thing", 2), ("See: a thing", 2),
    ]  # fmt: skip
    html = deck.deck(made)
    shown = [text_of(block) for block in made.slides[1].blocks]
    assert shown == ["", "x = 1\n\ny = 2"]  # two blank lines are one
    assert "fragment" in made.slides[1].blocks[1]
    for hidden in ("secrets_of_setup", "draw()", "quiet()", "kept_from_view"):
        assert hidden not in html
    assert "<p>Say <em>this</em>.</p><p>And that.</p>" in html.split('aside class="notes"')[1]
    assert html.count("<style>.a{}</style>") == 1 and list(made.outputs.styles) == [".a{}"]
    # Once for other pages to read, and on each slide.
    assert html.count("NVIDIA H200") == 4 and html.count(">Things</span>") == 4
    assert '<span class="step step-see">See</span><span>A thing</span>' in html
    # To be read, everything is there.
    whole = reading_page(taken_apart(tmp_path, *made_cells(), whole=True))
    assert "secrets_of_setup" in whole and "<summary>Set-up</summary>" in whole


def test_authors_date_title_and_logo_are_those_of_the_metadata(tmp_path):
    drawing = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 2 1"/>'
    (tmp_path / "logo.svg").write_bytes(drawing)
    said = {
        "title": "Heat & flow", "authors": [{"name": "A. Müller"}, {"name": "B. <Cho>"}],
        "date": "12 May 2026", "logo": "logo.svg",
    }  # fmt: skip
    book = notebook(markdown("# Things\n\nWords."), markdown("## More"))
    book.metadata.update(said)
    made = chapter(Executed(book, {}, "", {}), "02_things", tmp_path, whole=True)
    line = '<p class="byline">A. Müller, B. &lt;Cho&gt; · 12 May 2026</p>'
    image = f'src="data:image/svg+xml;base64,{base64.b64encode(drawing).decode()}"'
    for html in (deck.deck(made), reading_page(made)):
        assert "<title>Heat &amp; flow</title>" in html and not made.warnings
        assert html.count(line) == html.count(image) == 1
        opening = html[html.index("<h1") :]
        assert 0 < opening.index("Heat &amp; flow") < opening.index(line) < opening.index("Things")
        assert len(re.findall(r"<h1\b", html)) == 1

    book.metadata.update(title="Things", author="C. Writer", logo="none.png", date="")
    del book.metadata["authors"]
    made = chapter(Executed(book, {}, "", {}), "02_things", tmp_path)
    assert [slide.title for slide in made.slides] == ["Things", "More"]
    [warning] = made.warnings
    assert "02_things" in warning and "none.png" in warning and "no such file" in warning
    assert '<p class="byline">C. Writer</p>' in deck.deck(made)


def made_cells():
    return markdown("# Things"), code("import secrets_of_setup", "skip", "hide-input")


@pytest.mark.parametrize(
    "title, html",
    [
        ("Try: two", '<span class="step step-try">Try</span><span>Two</span>'),
        ("Next", "<span>Next</span>"),
        ("Scores · read", '<span class="step step-read">Read</span><span>Scores</span>'),
        ("Scores · see: why", '<span class="step step-see">See</span><span>Scores · why</span>'),
        (
            "Read and run: a sum",
            '<span class="step step-read">Read</span><span class="step step-run">Run</span>'
            "<span>A sum</span>",
        ),
        ("Running sums", "<span>Running sums</span>"),
        ("Seen · readings", "<span>Seen · readings</span>"),
    ],
)
def test_the_step_of_a_heading_is_set_off(title, html):
    assert deck.heading(title) == html


def test_outputs_in_their_richest_form_without_scripts(tmp_path):
    listing = '<style>.k{}</style><div class="kernel-listing"></div>'
    outputs = [
        new_output("stream", text="one\n"),
        new_output("stream", text="\x1b[31mtwo\x1b[0m <b>\n"),
        new_output("display_data", {"text/html": listing, "text/plain": "no"}),
        new_output("execute_result", {"text/html": "<table></table><script>alert(1)</script>"}),
        new_output("display_data", {"image/svg+xml": "<?xml?><svg><g/></svg>"}),
        new_output("display_data", {"image/png": "QUJD\n", "text/plain": "no"}),
        new_output("display_data", {"text/latex": "$$e$$"}),
        new_output("execute_result", {"text/plain": "array([1, 2])"}),
    ]
    made = taken_apart(tmp_path, markdown("# T"), code("x", outputs=outputs))
    blocks = made.slides[0].blocks[1:]
    kinds = [re.match(r'<div class="block (\w+)', block)[1] for block in blocks]
    assert kinds == ["text", "listing", "table", "figure", "figure", "html", "text"]
    assert text_of(blocks[0]) == "one\ntwo &lt;b&gt;"  # two prints are one text
    assert "alert(1)" not in deck.deck(made)
    assert "data:image/png;base64,QUJD" in blocks[4]


def test_widgets_are_run_or_shown_as_they_stood(tmp_path):
    def view(identity):
        return new_output(
            "display_data", {"application/vnd.jupyter.widget-view+json": {"model_id": identity},
                             "text/html": "the bench's page"},
        )  # fmt: skip

    esm = "function render() {}\nexport default { render };\n"
    widgets = {
        "box": {"children": ["IPY_MODEL_slider", "IPY_MODEL_out"], "_model_name": "VBoxModel"},
        "slider": {"description": "n", "value": 2.5},
        "out": {"outputs": [{"output_type": "stream", "name": "stdout", "text": "n is 2.5"}]},
        "one": {"_esm": esm, "_anywidget_id": "a.Player", "frames": [{"svg": "<svg/>"}],
                "alt": "x", "layout": "IPY_MODEL_no"},
        "bench": {"_esm": esm, "_anywidget_id": "b.Bench", "sweep": []},
        "swept": {"_esm": esm, "_anywidget_id": "b.Bench", "sweep": [{}], "title": "t"},
    }  # fmt: skip
    cell = code("x", outputs=[view(name) for name in ("box", "one", "bench", "swept", "gone")])
    made = taken_apart(tmp_path, markdown("# T"), cell, widgets=widgets)
    blocks = made.slides[0].blocks[1:]
    kinds = [re.match(r'<div class="block (\w+)', block)[1] for block in blocks]
    assert kinds == ["text", "figure", "html", "bench", "html", "settings"]
    assert "n = 2.5" in text_of(blocks[-1]) and "the bench's page" in blocks[2]
    assert made.outputs.embedded == ["one", "swept"]
    embedded = deck.embed(made)
    assert len(embedded.elements) == 2 and "Player" in embedded.scripts


def test_what_is_turned_names_the_places_of_the_page(tmp_path):
    esm = "export default { render };\n"
    change = {"target": "player", "values": {"frames": []}}
    gone = {"target": "elsewhere", "values": {}}
    results = [{"settings": {"n": n}, "changes": [change, gone]} for n in (1, 2)]
    widgets = {
        "box": {"children": ["IPY_MODEL_out"]},
        "out": {"outputs": []},
        "choices": {"_esm": esm, "_anywidget_id": "x.Choices", "results": results, "controls": []},
        "player": {"_esm": esm, "_anywidget_id": "x.Player"},
    }
    views = [
        new_output("display_data", {"application/vnd.jupyter.widget-view+json": {"model_id": i}})
        for i in ("box", "player")
    ]
    made = taken_apart(
        tmp_path, code("x", outputs=views), widgets=widgets, turned={"box": "choices"}
    )
    assert made.outputs.embedded == ["choices", "player"]
    places = {"choices": 0, "player": 1}
    assert deck._aimed(results[0], places)["changes"] == [{"target": 1, "values": {"frames": []}}]


# The page as a whole


def test_a_page_allows_its_own_scripts_and_nothing_else(tmp_path):
    made = taken_apart(tmp_path, markdown("# T & U\n\n$a$ and [x](https://c.example)"))
    for html in (deck.deck(made), reading_page(made)):
        policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html)[1]
        assert policy.startswith("default-src 'none'; ")
        for script in re.findall(r"<script>(.*?)</script>", html, re.S):
            digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy
        assert "unsafe-eval" not in policy and "script-src 'unsafe" not in policy
        # Nothing is fetched: addresses of hosts stand in links and namespaces alone.
        head = html[: html.index("<body")]
        rules = re.sub(r"/\*.*?\*/", "", head, flags=re.S)
        assert not re.search(r"@import|url\((?!\s*[\"']?(?:data:|#))", rules)
        assert not re.search(r"<(?:script|img|link|iframe)\b[^>]*(?:src|href)=[\"']?http", html)
        assert "<title>T &amp; U</title>" in html and 'id="STIX' in html


def test_the_exporters_are_registered_with_nbconvert():
    found = {entry.name: entry.load() for entry in entry_points(group="nbconvert.exporters")}
    assert found["offline_slides"] is OfflineSlides and found["offline_page"] is OfflinePage


# What a page can be turned to


def control(name, count, kind="parameter"):
    return SimpleNamespace(name=name, choices=tuple(range(count)), kind=kind)


def test_switches_are_exported_before_long_lists_and_parameters_before_sizes():
    offered = [control("TILE", 3), control("COARSE", 4), control("PAD", 2), control("N", 2, "size")]
    assert list(live.choose(offered, 24)) == ["TILE", "COARSE", "PAD"]
    assert list(live.choose(offered, 23)) == ["TILE", "PAD", "N"]
    assert list(live.choose(offered, 48)) == ["TILE", "COARSE", "PAD", "N"]
    assert live.choose([control("ONE", 1), control("MANY", 99)], 24) == {}


def test_choices_with_which_nothing_runs_are_left_out():
    def result(status, **settings):
        return SimpleNamespace(status=status, settings=settings)

    def ran(element, size):
        fits = element == "half" and size != 9
        return result("right" if fits else "refused", ELEMENT=element, SIZE=size)

    sizes = (1, 2, 9)
    chosen = {"ELEMENT": ("half", "bfloat16"), "SIZE": sizes}
    found = [ran(element, size) for element in chosen["ELEMENT"] for size in sizes]
    left, results = live.running(chosen, found)
    assert left == {"SIZE": (1, 2)} and results == found[:2]
    # What runs with another choice stays, and so does all where nothing runs.
    assert live.running({"SIZE": (1, 2)}, found[:2]) == ({"SIZE": (1, 2)}, found[:2])
    assert live.running({"SIZE": (9,)}, found[2:3]) == ({"SIZE": (9,)}, found[2:3])


def test_what_a_control_can_be_set_to():
    import ipywidgets as w

    assert list(choices.values_of(w.IntSlider(min=1, max=7, step=3, value=2))) == [1, 2, 4, 7]
    steps = choices.values_of(w.FloatSlider(min=0, max=0.3, step=0.1, value=0.1))
    assert list(steps) == [0, 0.1, 0.2, 0.3]
    assert choices.values_of(w.Dropdown(options=[("a", (1,)), ("b", (2,))])) == {
        "a": (1,), "b": (2,)
    }  # fmt: skip
    assert choices.values_of(w.Dropdown(options=[8, 16])) == {8: 8, 16: 16}
    assert choices.values_of(w.Checkbox(value=True)) == {False: False, True: True}
    assert choices.values_of(w.Text("endless")) is None


def test_thinning_keeps_what_is_set_zero_and_the_order():
    wide = [n / 4 for n in range(-6, 7)]
    offered = {"a": wide, "b": wide, "c": wide, "d": [1, 2]}
    now = {"a": 1.25, "b": 0.0, "c": -0.5, "d": 2}
    for most in (1, 2, 30, 48, 200, 10**5):
        listed = choices.thin(offered, now, most)
        assert math.prod(map(len, listed.values())) <= max(most, 1)
        for name, values in listed.items():
            assert now[name] in values and values == sorted(values) and set(values) <= set(
                offered[name]
            )  # fmt: skip
            assert len(values) < 2 or name == "d" or 0 in values
    assert choices.thin(offered, now, 10**5) == offered
    few = choices.thin({"n": list(range(61))}, {"n": 30}, 13)["n"]
    assert (few[0], few[-1]) == (0, 60) and 8 < len(few) <= 13


def test_every_setting_is_run_and_the_notebook_left_as_it_was():
    import ipywidgets as w

    from helpers.figures.player import Player

    player, calls = Player(["<svg>0</svg>"]), []

    def draw(n, twice):
        calls.append((n, twice))
        if n == 3:
            raise ValueError("not <three>")
        player.frames = [f"<svg>{n * (2 if twice else 1)}</svg>"]
        print(f"n={n}")

    made = w.interactive(draw, n=(1, 3), twice=False)
    found = choices.sweep(made, draw)
    assert [one["settings"] for one in found.results] == [
        {"n": n, "twice": t} for n, t in itertools.product((1, 2, 3), (False, True))
    ]
    assert found.settings == {"n": 2, "twice": False} and calls[-1] == (2, False)
    assert player.frames[0]["svg"] == "<svg>2</svg>"
    by = {tuple(one["settings"].values()): one for one in found.results}
    # Also the result that is on show says what it changes: another may have been picked before.
    for (n, twice), svg in {(1, True): "2", (2, False): "2", (2, True): "4"}.items():
        [change] = by[n, twice]["changes"]
        assert change["target"] == player.model_id
        assert change["values"]["frames"][0]["svg"] == f"<svg>{svg}</svg>"
        assert f"n={n}" in by[n, twice]["html"]
    assert by[3, True]["html"] == "<p>ValueError: not &lt;three&gt;</p>"


def test_the_chart_of_a_sweep_sets_off_what_is_shown():
    results = [
        {"settings": {"PAD": pad}, "status": status, "milliseconds": None, "totals": totals}
        for pad, status, totals in (
            (0, "right", {"instructions": 100, "shared_load_wavefronts": 80}),
            (1, "right", {"instructions": 100, "shared_load_wavefronts": 20}),
            (2, "refused", {}),
        )
    ]
    made = sweep_chart.charts(results, ["PAD"])
    assert len(made) == 3
    root = ET.fromstring(made[1])
    [picture] = [node for node in root if node.tag.endswith("svg")]  # instructions do not differ
    bars = [node for node in picture.iter() if node.tag.endswith("rect")]
    heights = [float(bar.get("height")) for bar in bars]
    assert heights[0] == pytest.approx(4 * heights[1], rel=0.02) and heights[2] == 1
    fills = [
        f"var(--fig-{name}, {value})"
        for name, value in (("blue-fill", "#b2d5e8"), ("blue", "#0072b2"))
    ]
    assert [bar.get("fill") for bar in bars] == [fills[0], fills[1], fills[0]]
    assert "shared loads, wavefronts: 20" in made[1] and "cannot run" in made[2]


# What stops an export


def test_a_file_that_is_no_notebook_is_named(tmp_path):
    broken = tmp_path / "05_broken.ipynb"
    broken.write_text('{"cells": [')
    with pytest.raises(ExportError, match="05_broken.ipynb: this is no notebook: "):
        read(broken)
    with pytest.raises(ExportError, match="06_gone.ipynb: cannot be read"):
        read(tmp_path / "06_gone.ipynb")


def test_a_failing_cell_is_named_and_stops_no_other_notebook(tmp_path):
    good, bad = tmp_path / "03_good.ipynb", tmp_path / "02_bad.ipynb"  # the bad one comes first
    nbformat.write(notebook(markdown("# Good")), good)
    cells = [markdown("# Bad"), code("x = 1"), code("if x:\n    missing(x)")]
    cells[2].id = "02-02"
    nbformat.write(notebook(*cells), bad)
    out = tmp_path / "out"
    out.mkdir()
    earlier = taken_apart(tmp_path, markdown("# Earlier & one"))
    build.write(out / "01_earlier.html", deck.deck(earlier))
    build.write(out / "00_other.html", "<title>Not a deck</title>")
    command = [sys.executable, "-m", "helpers.slides", "--no-pdf", "--to", str(out), bad, good]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert f"{bad}, cell 3 (id 02-02): NameError: name 'missing' is not defined" in done.stderr
    assert "        missing(x)" in done.stderr and "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 6
    assert not (out / "02_bad.html").exists() and (out / "03_good.html").exists()
    listed = re.findall(r'<a href="([^"]+)">(.*?)</a>', (out / "index.html").read_text())
    assert listed == [
        ("01_earlier.html", "Earlier &amp; one"), ("03_good.html", "Good"),
    ]  # fmt: skip
    # Where it was made is nobody's business.
    for path in out.glob("*.html"):
        assert (
            str(build.Path.cwd()) not in path.read_text() and str(tmp_path) not in path.read_text()
        )


def test_chapters_can_be_named_by_their_numbers(tmp_path):
    for name in ("06_a", "07_bank", "07b_more"):
        (tmp_path / f"{name}.ipynb").touch()
    for word in ("7", "07", "07_bank", "07_bank.ipynb", str(tmp_path / "07_bank.ipynb")):
        assert decks.notebooks([word], tmp_path) == [tmp_path / "07_bank.ipynb"], word
    assert len(decks.notebooks([], tmp_path)) == 3
    with pytest.raises(FileNotFoundError, match="99: there is no such notebook"):
        decks.notebooks(["07", "99"], tmp_path)


def test_a_reply_that_came_unnoticed_is_found(monkeypatch):
    """A poll that is never woken, as after a lost signal, ends with the next look."""
    monkeypatch.setattr(waking_client, "_LOOK_EVERY", 0.05)
    poll = zmq.asyncio.Socket.poll

    def deaf(socket, timeout=None, flags=zmq.POLLIN):
        async def later():
            assert timeout is not None and timeout <= 5000, "a wait for good"
            await asyncio.sleep(timeout / 1000)
            return await poll(socket, 0, flags)

        return later()

    monkeypatch.setattr(zmq.asyncio.Socket, "poll", deaf)
    cells = [code(f"import time; time.sleep(0.1); print({n})") for n in range(3)]
    # What the exporter imports there would cost each kernel two seconds.
    cells.append(code("import sys; print({'nbconvert', 'jsonschema'} & {*sys.modules})"))
    done = execute(notebook(markdown("# T"), *cells), "n.ipynb", build.Path("."))
    said = [cell.outputs[0].text.strip() for cell in done.notebook.cells[1:]]
    assert said == ["0", "1", "2", "set()"]


def test_an_error_inside_a_widget_stops_an_export_too():
    source = "from ipywidgets import interact\n\n@interact(x=(1, 2))\ndef f(x):\n    1 / (x - 1)"
    with pytest.raises(ExportError, match=r"n.ipynb, cell 2 .*: ZeroDivisionError: division"):
        execute(notebook(markdown("# T"), code(source)), "n.ipynb", build.Path("."))


def test_what_cannot_be_shown_is_told_with_its_own_error(tmp_path):
    """IPython tells of an image that is not there in the traceback alone."""
    source = "from IPython.display import Image\nImage('missing.png')"
    bad = new_notebook(cells=[new_code_cell(source)])
    with pytest.raises(ExportError, match=r"cell 1 .*FileNotFoundError: .*'missing.png'"):
        execute(bad, "n.ipynb", tmp_path)


def test_a_formula_that_fails_shows_its_source_and_names_its_cell(tmp_path):
    made = taken_apart(tmp_path, markdown("# T"), markdown(r"$\frac{a$", "-"))
    assert r'<code class="maths-source">\frac{a</code>' in made.slides[0].blocks[0]
    [warning] = made.warnings
    assert re.match(r"02_things, cell 2 .*the formula", warning)


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    target = tmp_path / "deck.html"
    build.write(target, "old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(build.os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        build.write(target, "new")
    assert target.read_text() == "old" and [path.name for path in tmp_path.iterdir()] == [
        "deck.html"
    ]


def test_the_start_page_lists_the_decks(tmp_path):
    decks = []
    for name in ("00_start", "01_more"):
        path = tmp_path / f"{name}.html"
        path.write_text("")
        decks.append((path, SimpleNamespace(title=f"<{name}>", device="NVIDIA H200")))
    (tmp_path / "01_more.pdf").write_bytes(b"%PDF")
    html = build.start_page(decks)
    assert re.findall(r'<a href="([^"]+)">', html) == [
        "00_start.html", "01_more.html", "01_more.pdf",
    ]  # fmt: skip
    assert "&lt;00_start&gt;" in html and html.count("NVIDIA H200") == 1
