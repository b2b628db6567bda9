"""The player as Python sees it, its still picture, its page, and what figures are drawn with."""

from __future__ import annotations

import base64
import gzip
import html
import json
import random
import re
import xml.etree.ElementTree as ET

import ipywidgets
import numpy as np
import pytest
import traitlets
from figure_pages import embed, standalone_html
from IPython.core.formatters import DisplayFormatter

from helpers.figures import interacting, palette, parts
from helpers.figures.canvas import Canvas, Frame, literal, number, text_width, told
from helpers.figures.ideas.dot_product import DotProduct
from helpers.figures.player import Player, as_frames
from helpers.figures.player_page import ShownFigure, embed_shown

SVG = "{http://www.w3.org/2000/svg}"
WIDGET = "application/vnd.jupyter.widget-view+json"


def square(text: str) -> str:
    canvas = Canvas(100, 50, text)
    canvas.text(10, 30, text)
    return canvas.svg()


def frames(count: int) -> list[Frame]:
    return [Frame(square(f"picture {i}"), f"caption {i}") for i in range(count)]


def texts(svg: str) -> list[str]:
    return ["".join(element.itertext()) for element in ET.fromstring(svg).iter(f"{SVG}text")]


# Frames


def test_frames_are_taken_in_every_form():
    class Drawn:
        def svg(self):
            return "<svg/>"

    given = [Frame("<svg/>", "a"), ("<svg/>", "b"), "<svg/>", {"svg": "<svg/>"}, Drawn()]
    assert as_frames(iter(given)) == [
        {"svg": "<svg/>", "caption": caption} for caption in ("a", "b", "", "", "")
    ]


@pytest.mark.parametrize(
    "frame, kind",
    [(3, "int"), (None, "NoneType"), (("<svg/>", 2), "tuple"), (("a",) * 3, "tuple"), ({}, "dict")],
)  # fmt: skip
def test_what_is_no_frame_is_named(frame, kind):
    with pytest.raises(TypeError, match=f"^frame 1 is a {kind}; a frame is"):
        Player(["<svg/>", frame])


def test_a_lone_svg_is_not_taken_for_many_frames():
    with pytest.raises(TypeError, match="not a text"):
        Player("<svg/>")


@pytest.mark.parametrize("asked, got", [(0, 0), (2, 2), (3, 2), (99, 2), (-1, 0)])
def test_index_stays_within_the_frames(asked, got):
    assert Player(frames(3), index=asked).index == got
    player = Player(frames(3))
    player.index = asked
    assert player.index == got


def test_other_frames_keep_the_step_where_they_can():
    player = Player(frames(5), index=3)
    player.frames = [("<svg/>", "other")] * 4
    assert player.index == 3 and player.frames[3]["caption"] == "other"
    player.frames = frames(2)
    assert player.index == 1
    player.frames = []
    assert player.index == 0


def test_a_figure_opens_on_its_telling_step_or_the_one_that_is_asked_for():
    marked = told(frames(7), 4, -1)
    assert [one.telling for one in marked] == [n in (4, 6) for n in range(7)]
    assert Player(marked).index == 4 and Player(frames(7)).index == 0
    assert Player(marked, index=2).index == 2
    for start, step in ((0, 0), (5, 5), (-2, 5)):
        player = Player(marked, start=start)
        told_of = [n for n, frame in enumerate(player.frames) if frame.get("telling")]
        assert player.index == step and told_of == [step]  # on paper too
    with pytest.raises(IndexError):
        Player(marked, start=7)


def test_frames_that_come_later_open_as_well_and_keep_their_step_then():
    player = Player()
    player.frames = told(frames(5), 3)
    assert player.index == 3
    player.frames = frames(2)  # fewer, and then as many as before
    player.frames = told(frames(6), 4)
    assert player.index == 4
    player.index = 1
    player.frames = told(frames(6), 4)
    assert player.index == 1
    assert Player(told(frames(5), 3), index=0).index == 0


def test_the_still_shows_the_step_on_which_the_figure_opens():
    still = Player(told(frames(3), 1))._repr_html_()
    shown = base64.b64decode(re.search(r"base64,([^\"]+)", still)[1]).decode()
    assert texts(shown) == ["picture 1"] and still.count("<li>") == 3


def test_the_kernel_is_told_of_new_frames_as_mappings():
    player = Player(frames(1))
    seen = []
    player.observe(lambda change: seen.append(change["new"]), "frames")
    player.frames = (frame for frame in frames(2))
    assert seen == [as_frames(frames(2))]


@pytest.mark.parametrize("interval", [0, -5])
def test_interval_is_positive(interval):
    with pytest.raises(traitlets.TraitError, match="interval"):
        Player(frames(2), interval=interval)


def test_only_what_the_viewer_sees_is_sent():
    state = Player(frames(2), alt="A", name="B").get_state()
    own = {key for key in state if not key.startswith("_")}
    expected = {
        "frames",
        "labels",
        "key_frames",
        "index",
        "interval",
        "loop",
        "autoplay",
        "alt",
        "name",
    }
    assert own - {"layout", "tabbable", "tooltip"} == expected


# The still picture


def test_the_still_shows_the_first_frame_and_all_captions():
    bundle = Player(frames(3), alt='a "picture" & more')._repr_mimebundle_()[0]
    assert WIDGET in bundle and "text/plain" in bundle
    still = bundle["text/html"]
    shown = base64.b64decode(re.search(r"base64,([^\"]+)", still)[1]).decode()
    assert texts(shown) == ["picture 0"]
    assert re.findall("<li>(.*?)</li>", still) == ["caption 0", "caption 1", "caption 2"]
    assert 'alt="a &#34;picture&#34; &amp; more"' in still


def test_the_still_has_its_colours_where_there_are_no_variables():
    still = Player(frames(1))._repr_html_()
    shown = base64.b64decode(re.search(r"base64,([^\"]+)", still)[1]).decode()
    assert "var(" not in shown and palette.COLOURS["ink"][0] in shown
    assert "background:#fff" in still


def test_nothing_in_a_frame_runs_in_the_still():
    bad = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
    still = Player([(bad, "<img src=x onerror=alert(1)>")])._repr_html_()
    assert "<script" not in still and "<img src=x" not in still


def test_the_still_says_what_is_wrong():
    assert "No steps to show" in Player([])._repr_html_()
    still = Player([("<svg><rect</svg>", "caption")])._repr_html_()
    assert "not well-formed" in still and "<img" not in still and "caption" in still


def test_the_still_of_a_dot_product_has_its_number():
    still = DotProduct((2, 1), (0.5, 1.5))._repr_html_()
    assert "q·k = 2.50 for q = (2.00, 1.00) and k = (0.50, 1.50)." in still
    shown = base64.b64decode(re.search(r"base64,([^\"]+)", still)[1]).decode()
    assert "q·k = 2.50" in texts(shown)


# A page of its own


def states_of(page: str) -> list[dict]:
    packed = re.search(r'id="figure-states">([^<]+)<', page)[1]
    pieces, states = json.loads(gzip.decompress(base64.b64decode(packed)))
    return json.loads(json.dumps(states), object_hook=lambda one: _drawn(one, pieces))


def _drawn(one: dict, pieces: list[str]):
    """A drawing put together from its pieces; any other object as it is."""
    return "".join(pieces[number] for number in one["$"]) if "$" in one else one


def test_a_page_holds_what_frames_have_in_common_once():
    # Noise cannot be made smaller, and is longer than what gzip looks back.
    noise = random.Random(0).randbytes(60_000).hex()
    frames = [{"svg": f"<svg><text>{noise}</text><b>{n}</b></svg>"} for n in range(8)]
    one, all_ = (
        embed_shown([ShownFigure("P", "export default {};", "", {"frames": some}, "")]).scripts
        for some in (frames[:1], frames)
    )
    assert states_of(all_)[0]["state"]["frames"] == frames
    assert len(all_) < 1.05 * len(one)


def test_what_is_interact_is_saved_as_html_as_well():
    formatter = DisplayFormatter()
    interacting.add_to(formatter)
    made = ipywidgets.interactive(
        lambda size, way, of: Player([Frame(square(f"{way} {size * of}"), "A <caption>")]),
        size=(1, 9), way={"by rows": "rows", "by columns": "columns"}, of=ipywidgets.fixed(2),
    )  # fmt: skip
    for size, label, shows in ((5, "by rows", "rows 10"), (7, "by columns", "columns 14")):
        made.children[0].value = size
        made.children[1].label = label
        data = formatter.format(made)[0]
        assert data[WIDGET]["model_id"] == made.model_id
        settings, figure = data["text/html"].split("</p>", 1)
        assert (
            settings.endswith(f"size = {size} · way = {label}</small>") and "<script" not in figure
        )
        assert texts(base64.b64decode(re.search(r"base64,([^\"]+)", figure)[1]).decode()) == [shows]
        assert "A &lt;caption&gt;" in figure


def test_the_page_holds_every_player():
    page = standalone_html([Player(frames(2), index=1), DotProduct()], "Title <&>")
    assert [s["module"] for s in states_of(page)] == ["Player", "DotProduct"]
    state = states_of(page)[0]["state"]
    assert state["frames"] == as_frames(frames(2)) and state["index"] == 1
    assert "<title>Title &lt;&amp;&gt;</title>" in page
    assert [int(n) for n in re.findall(r'data-figure="(\d+)"', page)] == [0, 1]


def test_the_page_asks_no_host_and_allows_only_its_own_script():
    page = standalone_html([Player(frames(2))], "Title")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)[1]
    assert policy.startswith("default-src 'none'")
    assert re.search(r"script-src 'sha256-[\w+/=]+';", policy)
    assert "http" not in policy
    addresses = set(re.findall(r"https?://[^\s\"'`]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_nothing_in_a_frame_ends_the_page():
    evil = [("<svg></script><script>alert(1)</script></svg>", "</script><b>")]
    page = standalone_html([Player(evil)], "</title><script>alert(2)</script>")
    assert "alert(" not in page.replace(html.escape("<script>alert(2)</script>"), "")
    assert states_of(page)[0]["state"]["frames"] == as_frames(evil)


def test_the_same_figures_give_the_same_page():
    assert standalone_html([Player(frames(3))], "T") == standalone_html([Player(frames(3))], "T")


def test_a_page_of_many_frames_stays_small():
    rng = np.random.default_rng(0)
    many = []
    for step in range(24):
        canvas = Canvas(960, 420, "a matrix")
        parts.matrix(canvas, rng.normal(size=(9, 9)), 20, 40, shade=2)
        many.append(canvas.frame(f"step {step}"))
    page = standalone_html([Player(many)], "Many")
    assert sum(len(frame.svg) for frame in many) > 400_000
    assert len(page) < 150_000


def test_two_kinds_of_figures_need_two_names():
    class Other(Player):
        _esm = Player._esm + "// another"
        _css = ".other {}"

    parts = embed([Player(frames(1)), Other(frames(1)), Player(frames(2))])
    assert parts.styles.count("<style>") == 2 and ".other {}" in parts.styles
    Other.__name__ = "Player"
    with pytest.raises(ValueError, match="two kinds of figures .* called Player"):
        embed([Player(frames(1)), Other(frames(1))])


@pytest.mark.parametrize(
    "module", ["import x from 'y';\nexport default {};", "const a = 1;", "export const a = 1;"]
)
def test_a_module_that_a_page_cannot_run_is_refused(module):
    class Other(Player):
        _esm = module

    with pytest.raises(ValueError, match="a figure's module"):
        embed([Other(frames(1))])


# Colours


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast ratio (WCAG 2.2)."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def blend(over: str, under: str, share: float) -> str:
    pairs = [(int(over[i : i + 2], 16), int(under[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(share * a + (1 - share) * b):02x}" for a, b in pairs)


@pytest.mark.parametrize("dark", [0, 1])
@pytest.mark.parametrize("name", [*palette.HUES, "muted"])
def test_every_colour_reads_on_the_page_and_ink_on_every_fill(name, dark):
    scheme = {key: pair[dark] for key, pair in palette.COLOURS.items()}
    assert contrast(scheme[name], scheme["paper"]) >= 4.5
    if name != "muted":
        assert contrast(scheme["ink"], scheme[f"{name}-fill"]) >= 4.5
        tinted = blend(scheme[name], scheme["paper"], parts.STRONGEST)
        assert contrast(scheme["ink"], tinted) >= 4.5


def test_unknown_colours_are_named():
    with pytest.raises(ValueError, match="no colour 'pink'"):
        palette.colour("pink")


def test_css_defines_every_colour_that_a_drawing_names():
    css = palette.css(".x")
    assert set(re.findall(r"(--fig-[\w-]+):", css)) == {
        "--fig-mono",
        *(f"--fig-{name}" for name in palette.COLOURS),
    }


# Drawing


def test_text_is_escaped_and_lowered():
    canvas = Canvas(100, 50, 'a "b" <c>')
    canvas.text(0, 20, "W_Q & x_{12} < \\_")
    canvas.text(0, 40, "s_K[i]", mono=True)
    canvas.text(0, 40, literal("a_b"))
    root = ET.fromstring(canvas.svg())
    assert root.get("aria-label") == 'a "b" <c>'
    assert texts(canvas.svg()) == ["WQ & x12 < _", "s_K[i]", "a_b"]
    lowered = [t.text for t in root.iter(f"{SVG}tspan") if float(t.get("dy", 0)) > 0]
    assert lowered == ["Q", "12"]
    drops = [float(t.get("dy", 0)) for t in root.iter(f"{SVG}tspan")]
    assert sum(drops) == pytest.approx(0)


def test_small_text_is_refused():
    with pytest.raises(ValueError, match="cannot be read"):
        Canvas().text(0, 0, "x", size=11)
    with pytest.raises(ValueError, match="anchor"):
        Canvas().text(0, 0, "x", anchor="left")


@pytest.mark.parametrize(
    "value, text",
    [(0, "0.00"), (-0.001, "0.00"), (1.005, "1.00"), (-12.345, "−12.35"), (123.45, "123.5"),
     (-1234.56, "−1234.6"), (123456, "1.2e5"), (1e10, "1.0e10"), (float("-inf"), "−∞"),
     (float("nan"), "nan"), (np.float32(0.25), "0.25")],
)  # fmt: skip
def test_numbers_are_short(value, text):
    assert number(value) == text


def test_text_width_counts_what_is_seen():
    assert text_width("W_Q") == text_width("ab")
    assert text_width("a\\_b") == text_width("abc")
    assert text_width("a_{12}") == text_width("abc")
    assert text_width("s_K", 10, mono=True) == pytest.approx(18.06)


def test_an_arrow_ends_at_its_tip():
    canvas = Canvas(100, 100)
    canvas.arrow(10, 20, 40, 60, stroke="blue")
    canvas.arrow(5, 5, 5, 5)
    head = ET.fromstring(canvas.svg()).find(f"{SVG}polygon")
    assert head.get("points").split()[:2] == ["40", "60"]
    assert len(canvas._elements) == 2


# Parts


def test_matrix_shows_known_values_only():
    values = np.array([[1.5, -2.0, 3.0], [4.0, 5.0, -6.0]])
    canvas = Canvas()
    grid = parts.matrix(
        canvas, values, 30, 60, cell=(60, 20), title="M", shape="2 × 3", rows=["a", "b"],
        columns=["x", "y", "z"], shown=lambda i, j: i == 0, current=[(0, 1), (0, 2)],
    )  # fmt: skip
    assert texts(canvas.svg()) == ["1.50", "−2.00", "3.00", "a", "b", "x", "y", "z", "M", "2 × 3"]
    assert grid.box(1, 2) == (150, 80, 60, 20) and grid.centre(0, 0) == (60, 70)
    assert (grid.width, grid.height, grid.right, grid.bottom) == (180, 40, 210, 100)
    # One border around both current cells
    assert "M90 60h120v20h-120z" in canvas.svg()


def test_matrix_drops_digits_that_do_not_fit():
    canvas = Canvas()
    parts.matrix(canvas, np.array([[1.25, -12.25, -123.25]]), 0, 0, cell=(54, 30), size=15)
    assert texts(canvas.svg()) == ["1.25", "−12.2", "−123"]


def test_matrix_tints_by_size_and_tells_signs_apart():
    canvas = Canvas()
    parts.matrix(canvas, np.array([[1.0, -0.5, 0.0, np.inf]]), 0, 0, hue="blue", shade=2.0)
    tints = [
        (r.get("x"), r.get("fill"), float(r.get("fill-opacity")))
        for r in ET.fromstring(canvas.svg()).iter(f"{SVG}rect")
    ]
    assert tints == [
        ("0", palette.colour("blue"), pytest.approx(0.5 * parts.STRONGEST, abs=0.01)),
        ("56", palette.colour("vermillion"), pytest.approx(0.25 * parts.STRONGEST, abs=0.01)),
    ]


def test_elided_rows_keep_both_ends():
    values = np.arange(12).reshape(2, 6)
    assert parts.elided(values, 4) == [[0, 1, "…", 5], [6, 7, "…", 11]]
    assert parts.elided(values, 6) == values.tolist()


def test_a_row_of_lanes_numbers_them_and_sets_off_those_that_are_lit():
    canvas = Canvas(640, 40)
    parts.lane_row(
        canvas, 0, 4, 20, lambda lane: ({"stroke": "grid", "dash": "3 3"}, lane in (1, 3))
    )
    texts = [e for e in ET.fromstring(canvas.svg()).iter() if e.tag.endswith("text")]
    assert [e.text for e in texts] == [str(lane) for lane in range(32)]
    lit = [e.text for e in texts if "ink" in e.get("fill")]
    assert lit == ["1", "3"] and canvas.svg().count("stroke-dasharray") == 32


def test_a_legend_stands_side_by_side():
    canvas = Canvas()
    parts.legend(canvas, 10, 20, [("blue", "read"), ("orange", "written")])
    assert texts(canvas.svg()) == ["read", "written"]
    squares = ET.fromstring(canvas.svg()).findall(f"{SVG}rect")
    first, second = (float(square.get("x")) for square in squares)
    assert first == 10 and second > 10 + 23 + text_width("read")
