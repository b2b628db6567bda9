"""The player in a real browser, in a page of its own with every request blocked."""

from __future__ import annotations

import re

import numpy as np
import pytest
from figure_pages import embed, standalone_html
from lumino import HEARD_FIRST

from helpers.figures.canvas import Canvas, Frame
from helpers.figures.ideas.dot_product import DotProduct, _texts
from helpers.figures.player import Player

pytestmark = pytest.mark.browser

# Longer than any animation here takes; a failure waits so long.
WAIT = 5000


def picture(number: int, width: int = 400, height: int = 100) -> Frame:
    canvas = Canvas(width, height, f"picture {number}")
    canvas.rect(0, 0, width, height, fill="faint", stroke="none")
    canvas.text(20, 50, f"picture {number}")
    return canvas.frame(f"caption {number}")


def player(count: int = 5, **options) -> Player:
    return Player([picture(i) for i in range(count)], **{"alt": "Test figure", **options})


@pytest.fixture
def show(browser, tmp_path):
    """Opens a page with figures; afterwards checks that nothing was asked for or went wrong."""
    opened, problems = [], []

    def open_page(*figures, html: str | None = None, viewport=(1280, 720), **context_options):
        context = browser.new_context(
            viewport=dict(zip(("width", "height"), viewport, strict=True)), **context_options
        )
        opened.append(context)
        page = context.new_page()
        page.set_default_timeout(WAIT)
        path = tmp_path / f"page{len(opened)}.html"
        path.write_text(html or standalone_html(figures, "Test"), encoding="utf-8")

        def watch(route):
            if route.request.url == path.as_uri():
                route.continue_()
            else:
                problems.append(f"asked for {route.request.url}")
                route.abort()

        context.route("**/*", watch)
        page.on("console", lambda m: problems.append(f"{m.type}: {m.text}"))
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        page.goto(path.as_uri())
        # The page's own policy forbids eval, which wait_for_function needs.
        assert page.evaluate("figuresReady") == page.locator("[data-figure]").count()
        return page

    open_page.problems = problems
    yield open_page
    for context in opened:
        context.close()
    assert problems == []


class Controls:
    """A player on the page, by what a viewer sees of it."""

    def __init__(self, page, number: int = 0):
        self.page, self.root = page, page.locator(".figure-player").nth(number)

    def press(self, name: str) -> None:
        self.root.get_by_role("button", name=re.compile(f"^{name}")).click(force=True)

    @property
    def step(self) -> int:
        return int(self.counter.split("/")[0])

    @property
    def counter(self) -> str:
        return self.root.locator(".figure-player-counter").inner_text()

    @property
    def caption(self) -> str:
        return self.root.locator(".figure-player-caption").inner_text()

    @property
    def drawn(self) -> str:
        return self.root.locator(".figure-player-stage text").text_content()

    @property
    def scrubber(self):
        return self.root.locator("input[type=range]")

    @property
    def status(self) -> str:
        return self.root.get_by_role("status").inner_text()

    def is_playing(self) -> bool:
        return self.root.get_by_role("button", name="Pause").count() == 1

    def expect(self, step: int) -> None:
        from playwright.sync_api import expect

        counter = self.root.locator(".figure-player-counter")
        expect(counter).to_have_text(re.compile(f"^{step} / "), timeout=WAIT)
        assert self.caption == f"caption {step - 1}"
        assert self.drawn == f"picture {step - 1}"
        assert self.scrubber.input_value() == str(step - 1)


def with_spy(*figures) -> str:
    """A page without a policy, whose models keep what is saved in `window.saved`."""
    parts = embed(figures)
    scripts = parts.scripts
    for old, new in (
        ("save_changes() {}", "save_changes() { window.saved.push(this.state.index); }"),
        (
            "await modules[figures[number].module].render("
            "{ model: models[number], el: place, models });",
            "const model = models[number]; window.models.push(model); window.cleanups.push("
            "await modules[figures[number].module].render({ model, el: place, models }));",
        ),
    ):
        assert old in scripts
        scripts = scripts.replace(old, new)
    start = "<script>window.saved = []; window.models = []; window.cleanups = [];</script>"
    return f"<!doctype html>{start}{parts.styles}{''.join(parts.elements)}{scripts}"


def saved(page) -> list:
    """The index at every save_changes so far (None from figures that have none)."""
    return page.evaluate("window.saved")


# Stepping


def test_buttons_step_and_stop_at_the_ends(show):
    controls = Controls(show(player()))
    controls.expect(1)
    assert controls.counter == "1 / 5"
    controls.press("Next")
    controls.expect(2)
    controls.press("Last")
    controls.expect(5)
    controls.press("Next")
    controls.expect(5)
    controls.press("Previous")
    controls.expect(4)
    controls.press("First")
    controls.press("Previous")
    controls.expect(1)


def test_keys_step(show):
    page = show(player())
    controls = Controls(page)
    controls.root.focus()
    for key, step in [("ArrowRight", 2), ("ArrowRight", 3), ("ArrowLeft", 2), ("End", 5),
                      ("ArrowRight", 5), ("Home", 1), ("ArrowLeft", 1)]:  # fmt: skip
        page.keyboard.press(key)
        controls.expect(step)


def test_one_key_on_the_scrubber_is_one_step(show):
    page = show(player())
    controls = Controls(page)
    controls.scrubber.focus()
    for key, step in [("ArrowRight", 2), ("ArrowUp", 3), ("ArrowDown", 2), ("End", 5), ("Home", 1)]:
        page.keyboard.press(key)
        controls.expect(step)


def test_the_scrubber_follows_the_mouse(show):
    page = show(html=with_spy(player(11)))
    controls = Controls(page)
    box = controls.scrubber.bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 8, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, y, steps=8)
    controls.expect(6)
    assert saved(page) == []  # not while it is held
    page.mouse.move(box["x"] + box["width"] - 2, y, steps=8)
    page.mouse.up()
    controls.expect(11)
    assert saved(page) == [10]


def test_the_viewer_starts_where_python_says(show):
    Controls(show(player(index=2))).expect(3)


# Playing


def test_playing_runs_to_the_end_and_starts_again(show):
    page = show(player(4, interval=300))
    controls = Controls(page)
    controls.press("Play")
    controls.expect(4)
    assert not controls.is_playing()
    controls.press("Play")
    assert controls.is_playing() and controls.step < 4
    controls.expect(4)


def test_pause_stops_at_once(show):
    page = show(player(200, interval=40))
    controls = Controls(page)
    controls.press("Play")
    page.wait_for_timeout(300)
    assert controls.is_playing()
    controls.press("Pause")
    step = controls.step
    assert step > 2
    page.wait_for_timeout(200)
    controls.expect(step)


def test_space_plays_and_pauses(show):
    page = show(player(200, interval=40))
    controls = Controls(page)
    controls.root.focus()
    page.keyboard.press("Space")
    assert controls.is_playing()
    page.keyboard.press("Space")
    assert not controls.is_playing()
    # On the button itself, space is a click: once, not twice.
    controls.root.get_by_role("button", name="Play").focus()
    page.keyboard.press("Space")
    assert controls.is_playing()


def test_the_kernel_hears_of_a_stop_and_not_of_every_frame(show):
    page = show(html=with_spy(player(200, interval=20)))
    controls = Controls(page)
    controls.press("Play")
    page.wait_for_timeout(400)
    assert saved(page) == []
    controls.press("Pause")
    assert saved(page) == [controls.step - 1]
    controls.press("Next")
    assert saved(page)[1:] == [controls.step - 1]


@pytest.mark.parametrize("speed, least, most", [("4", 10, 30), ("0.5", 1, 4)])
def test_speed(show, speed, least, most):
    page = show(player(200, interval=200))
    controls = Controls(page)
    controls.root.get_by_label("Speed").select_option(speed)
    controls.press("Play")
    page.wait_for_timeout(1000)
    controls.press("Pause")
    assert least <= controls.step - 1 <= most


def test_loop_goes_round(show):
    page = show(player(3, interval=50))
    controls = Controls(page)
    loop = controls.root.get_by_role("button", name="Loop")
    assert loop.get_attribute("aria-pressed") == "false"
    loop.click()
    assert loop.get_attribute("aria-pressed") == "true"
    controls.press("Previous")
    controls.expect(3)
    controls.press("Next")
    controls.expect(1)
    controls.press("Play")
    page.wait_for_timeout(500)
    assert controls.is_playing()


def test_thirty_frames_a_second(show):
    many = []
    rng = np.random.default_rng(0)
    for step in range(60):
        canvas = Canvas(800, 400, "busy")
        for x, y in rng.uniform(0, 380, (180, 2)):
            canvas.rect(2 * x, y, 12, 12, fill="blue-fill", stroke="blue")
        many.append(canvas.frame(f"caption {step}"))
    assert len(many[0].svg) > 20_000
    page = show(Player(many, interval=33))
    controls = Controls(page)
    controls.press("Play")
    page.wait_for_timeout(1000)
    controls.press("Pause")
    assert controls.step > 20


def test_autoplay_starts_when_seen(show):
    html = standalone_html([player(9, interval=60, autoplay=True)], "Test")
    spaced = html.replace("<h1>", '<div style="height:3000px"></div><h1>')
    page = show(html=spaced)
    page.wait_for_timeout(300)
    controls = Controls(page)
    assert controls.step == 1
    controls.root.scroll_into_view_if_needed()
    controls.expect(9)


def test_reduced_motion_starts_nothing_by_itself(show):
    page = show(player(9, interval=40, autoplay=True), reduced_motion="reduce")
    page.wait_for_timeout(400)
    controls = Controls(page)
    controls.expect(1)
    controls.press("Next")  # at once, not in a transition
    controls.expect(2)
    controls.press("Play")  # who asks for it gets it
    controls.expect(9)


# The page around it


def test_keys_do_not_leak(show):
    page = show(player(), DotProduct())
    page.evaluate(
        "() => { window.heard = []; for (const type of ['keydown', 'keyup', 'keypress'])"
        " document.addEventListener(type, (e) => window.heard.push(e.key)); }"
    )
    keys = ["ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown", "Home", "End", "Space", "x", "d",
            "a", "f", "o", "Enter", "Escape"]  # fmt: skip
    focusable = page.locator(
        ".figure-player:is([tabindex]), .figure-player :is(button, input, select), .figure-handle"
    )
    assert focusable.count() >= 10
    for number in range(focusable.count()):
        target = focusable.nth(number)
        for key in keys:
            target.focus()
            page.keyboard.press(key)
    assert page.evaluate("window.heard") == []
    # The deck's own keys and shortcuts with a modifier stay the page's.
    Controls(page).root.focus()
    for key in ("PageDown", "Control+s", "Shift+Enter"):
        page.keyboard.press(key)
    assert {"PageDown", "s", "Enter"} <= set(page.evaluate("window.heard"))


def test_pages_that_hear_keys_first_are_warned(show):
    """Notebook 7 listens on the way down and leaves alone what bears lumino's attribute."""
    page = show(player(), DotProduct())
    page.evaluate(HEARD_FIRST)
    mine = Controls(page)
    speed = mine.root.get_by_role("combobox")
    for target in (mine.root, mine.scrubber, speed, page.locator(".figure-handle")):
        target.focus()
        for key in ("x", "ArrowRight", "Home", "Space", "Escape"):
            page.keyboard.press(key)
    assert page.evaluate("window.heard") == []
    Controls(page).root.focus()
    page.keyboard.press("Control+s")
    page.keyboard.press("PageDown")
    assert page.evaluate("window.heard") == ["Control", "s", "PageDown"]
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("x")
    assert page.evaluate("window.heard.at(-1)") == "x"


def test_escape_gives_the_keys_back(show):
    page = show(player())
    Controls(page).scrubber.focus()
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement === document.body")


def test_arrow_keys_do_not_scroll_the_page(show):
    page = show(*[player() for _ in range(8)])
    Controls(page).root.focus()
    page.keyboard.press("Space")
    page.keyboard.press("End")
    assert page.evaluate("window.scrollY") == 0


def test_players_do_not_disturb_each_other(show):
    clip = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 40"><defs><clipPath id="c">'
        '<rect width="{w}" height="40"/></clipPath></defs><style>#c {{}} text {{ fill: red }}'
        '</style><g clip-path="url(#c)"><use href="#c"/>'
        '<text id="t" x="5" y="20">{w}</text></g></svg>'
    )
    page = show(
        Player([(clip.format(w=w), f"caption {w}") for w in (10, 20)], alt="one"),
        Player([(clip.format(w=w), f"caption {w}") for w in (30, 40)], alt="two"),
        player(),
    )
    first, second, third = (Controls(page, n) for n in range(3))
    first.press("Next")
    assert (first.counter, second.counter, third.counter) == ("2 / 2", "1 / 2", "1 / 5")
    ids = page.evaluate("[...document.querySelectorAll('.figure-player [id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids)) >= 4
    found = page.evaluate(
        "[...document.querySelectorAll('[clip-path]')].map((g) =>"
        " document.querySelector(g.getAttribute('clip-path').slice(4, -1))"
        ".firstElementChild.getAttribute('width'))"
    )
    assert found == ["20", "30"]
    # A style in one frame colours no other
    colour = "(e) => getComputedStyle(e).fill"
    assert first.root.locator("svg text").evaluate(colour) == "rgb(255, 0, 0)"
    assert third.root.locator("svg text").evaluate(colour) != "rgb(255, 0, 0)"


def test_nothing_runs_or_is_fetched_from_a_frame(show):
    evil = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        'viewBox="0 0 400 100" onload="window.ran=1"><script>window.ran=1</script>'
        '<style>@import "http://other.test/a.css";</style>'
        "<style>} body { display: none } x {</style>"
        '<a href="javascript:window.ran=1"><text x="5" y="20">link</text></a>'
        '<image href="http://other.test/a.png" width="9" height="9"/>'
        '<rect width="9" height="9" onclick="window.ran=1" fill="url(http://other.test/b.svg#g)"/>'
        '<foreignObject width="99" height="99"><body xmlns="http://www.w3.org/1999/xhtml">'
        '<img src="x" onerror="window.ran=1"/></body></foreignObject>'
        '<set attributeName="href" to="javascript:window.ran=1"/>'
        '<text x="20" y="50">picture 0</text></svg>'
    )
    # Without a policy that would stop it anyway
    page = show(html=with_spy(Player([(evil, "<b>caption</b> 0"), picture(1)])))
    controls = Controls(page)
    page.wait_for_timeout(100)
    assert controls.drawn == "picture 0" and controls.caption == "<b>caption</b> 0"
    assert page.evaluate("window.ran") is None
    left = page.evaluate(
        "[...document.querySelectorAll('.figure-player-stage *')].map((e) => e.localName)"
    )
    assert not {"script", "foreignObject", "a", "img", "set"} & set(left)
    assert page.locator("body").is_visible()


@pytest.mark.parametrize("bad", ["<svg><rect</svg>", "", "no svg", "<html/>", "<svg>&nbsp;</svg>"])
def test_a_frame_that_is_no_svg_says_so_and_the_others_play(show, bad):
    page = show(Player([picture(0), (bad, "caption 1"), picture(2)], alt="Test"))
    controls = Controls(page)
    controls.press("Next")
    message = controls.root.locator(".figure-player-message").inner_text()
    assert message.startswith("Step 2 cannot be drawn") and "\n" not in message
    controls.press("Next")
    controls.expect(3)


def test_svg_without_namespace_or_viewbox_is_drawn(show):
    page = show(Player(['<svg width="300" height="60"><text x="5" y="30">picture 0</text></svg>']))
    assert Controls(page).drawn == "picture 0"
    assert page.locator(".figure-player-stage svg").get_attribute("viewBox") == "0 0 300 60"


def test_no_frames_and_one_frame(show):
    page = show(Player([]), player(1))
    empty, single = Controls(page, 0), Controls(page, 1)
    assert empty.root.locator(".figure-player-message").inner_text() == "No steps to show."
    assert single.drawn == "picture 0" and single.caption == "caption 0"
    for controls in (empty, single):
        assert not controls.root.locator(".figure-player-controls").is_visible()
        controls.root.focus()
        for key in ("Space", "ArrowRight", "End", "Home"):
            page.keyboard.press(key)
    assert single.drawn == "picture 0"


def test_other_frames_appear_in_the_same_place(show):
    page = show(html=with_spy(player(5, index=3)))
    controls = Controls(page)
    set_frames = "(frames) => window.models[0].set('frames', frames)"
    other = [{"svg": picture(i + 10).svg, "caption": f"other {i}"} for i in range(4)]
    page.evaluate(set_frames, other)
    assert controls.counter == "4 / 4" and controls.caption == "other 3"
    assert controls.drawn == "picture 13"
    page.evaluate(set_frames, other[:2])
    assert controls.counter == "2 / 2" and controls.drawn == "picture 11"
    page.evaluate(set_frames, [])
    assert "No steps" in controls.root.inner_text()
    page.evaluate(set_frames, other)
    assert controls.counter == "1 / 4"
    page.evaluate("window.models[0].set('index', 2)")
    assert controls.caption == "other 2"


def test_a_player_that_is_taken_away_leaves_nothing_running(show):
    page = show(html=with_spy(player(200, interval=20), DotProduct()))
    controls = Controls(page)
    controls.press("Play")
    page.evaluate("window.cleanups.forEach((clean) => clean())")
    assert page.locator(".figure-player").count() == 0
    assert page.evaluate("window.models.map((m) => m.listeners.length)") == [0, 0]
    page.evaluate("window.models[0].set('index', 7)")
    page.wait_for_timeout(100)
    assert saved(page) == []


def test_a_player_may_be_rendered_where_nothing_is_laid_out(show):
    parts = embed([player()])
    page = show(
        html=f"<!doctype html>{parts.styles}<div id=hidden style='display:none'>{parts.elements[0]}"
        f"</div>{parts.scripts}"
    )
    page.evaluate("document.getElementById('hidden').style.display = ''")
    box = page.locator(".figure-player-stage").bounding_box()
    assert box["height"] == pytest.approx(box["width"] / 4, rel=0.02)
    Controls(page).expect(1)


def test_controls_keep_their_place(show):
    long = "A caption that is much longer than the others, so that it takes two lines. " * 3
    shown = [picture(0), Frame(picture(1, 400, 160).svg, long), picture(2)]
    page = show(Player(shown, alt="Test"), viewport=(800, 900))
    controls = Controls(page)
    tops = []
    for _ in shown:
        tops.append(controls.root.locator(".figure-player-controls").bounding_box()["y"])
        controls.press("Next")
    assert max(tops) - min(tops) < 1


# For everyone


def test_screen_readers_get_names_values_and_the_caption(show):
    page = show(player(name="Tiles"))
    controls = Controls(page)
    root = page.get_by_role("group", name="Tiles", exact=True)
    assert root.count() == 1
    assert page.get_by_role("img", name="Test figure. caption 0").count() == 1
    assert controls.scrubber.get_attribute("aria-valuetext") == "Step 1 of 5"
    assert controls.status == ""
    controls.press("Next")
    assert controls.status == "Step 2 of 5. caption 1"
    assert controls.scrubber.get_attribute("aria-valuetext") == "Step 2 of 5"
    assert page.get_by_role("img", name="Test figure. caption 1").count() == 1
    names = [b.get_attribute("aria-label") for b in page.get_by_role("button").all()]
    assert len(names) == 6 and all(names)


def test_the_live_region_is_silent_while_playing(show):
    page = show(player(200, interval=30))
    controls = Controls(page)
    page.evaluate(
        "() => { window.said = []; new MutationObserver(() => window.said.push("
        "document.querySelector('[role=status]').textContent)).observe("
        "document.querySelector('[role=status]'), {childList: true, characterData: true,"
        " subtree: true}); }"
    )
    controls.press("Play")
    page.wait_for_timeout(400)
    assert [text for text in page.evaluate("window.said") if text] == []
    controls.press("Pause")
    said = [text for text in page.evaluate("window.said") if text]
    assert said == [f"Step {controls.step} of 200. caption {controls.step - 1}"]


def test_focus_can_be_seen(show):
    page = show(player(), DotProduct())
    seen = 0
    for _ in range(11):
        page.keyboard.press("Tab")
        seen += page.evaluate(
            "() => { const s = getComputedStyle(document.activeElement);"
            " return s.outlineStyle !== 'none' || s.borderTopColor !== 'rgba(0, 0, 0, 0)'"
            " || parseFloat(s.strokeWidth) > 3; }"
        )
    assert seen == 11


@pytest.mark.parametrize(
    "scheme, theme, dark",
    [("light", "", False), ("dark", "", True), ("light", 'data-jp-theme-light="false"', True),
     ("dark", 'data-jp-theme-light="true"', False), ("light", 'class="vscode-dark"', True)],
)  # fmt: skip
def test_light_and_dark(show, scheme, theme, dark):
    html = standalone_html([player()], "Test").replace("<body>", f"<body {theme}>")
    page = show(html=html, color_scheme=scheme)
    look = page.locator(".figure-player").evaluate(
        "(e) => [getComputedStyle(e).backgroundColor,"
        " getComputedStyle(e.querySelector('svg text')).fill]"
    )
    paper, ink = (sum(map(int, re.findall(r"\d+", value)[:3])) for value in look)
    assert (paper < ink) == dark
    assert abs(paper - ink) > 500


def test_a_small_window_clips_nothing(show):
    page = show(player(), DotProduct(), viewport=(420, 800))
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 420
    for number in range(2):
        assert page.locator(".figure-player").nth(number).bounding_box()["width"] <= 420


# The dot product


def product(page) -> float:
    text = page.locator(".figure-dot-dot").text_content()
    return float(text.split("=")[1].replace("−", "-"))


def test_dragging_k_changes_the_number(show):
    figure = DotProduct((2.0, 1.0), (0.5, 1.5), extent=2.5)
    page = show(html=with_spy(figure))
    assert product(page) == 2.5
    handle = page.locator(".figure-handle")
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    area = page.locator(".figure-drag").bounding_box()
    unit = area["width"] / 5
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - unit, y, steps=5)  # k = (−0.5, 1.5)
    assert product(page) == pytest.approx(0.5)
    page.mouse.move(x - unit, y + 3 * unit, steps=5)  # k = (−0.5, −1.5)
    assert product(page) == pytest.approx(-2.5)
    assert saved(page) == []
    page.mouse.up()
    assert len(saved(page)) == 1
    assert page.evaluate("window.models[0].get('k')") == [-0.5, -1.5]
    page.mouse.move(x, y)
    assert product(page) == pytest.approx(-2.5)  # let go
    page.mouse.move(area["x"] + area["width"] / 2, area["y"] + area["height"] / 2)
    page.mouse.down()
    page.mouse.move(0, 0)  # far outside: the edge
    page.mouse.up()
    assert page.evaluate("window.models[0].get('k')") == [-2.5, 2.5]


def test_a_scaled_slide_drags_as_well(show):
    html = with_spy(DotProduct((2.0, 1.0), (0.5, 1.5), extent=2.5))
    page = show(html=html + "<style>body { transform: scale(0.6); transform-origin: 0 0 }</style>")
    area = page.locator(".figure-drag").bounding_box()
    page.mouse.click(area["x"] + 0.8 * area["width"], area["y"] + 0.3 * area["height"])
    assert page.evaluate("window.models[0].get('k')") == [1.5, 1.0]
    assert product(page) == 4.0


def test_arrow_keys_move_k(show):
    page = show(html=with_spy(DotProduct((2.0, 1.0), (0.5, 1.5))))
    handle = page.get_by_role("slider", name="k")
    handle.focus()
    page.keyboard.press("ArrowRight")
    assert product(page) == pytest.approx(2.7)
    page.keyboard.press("Shift+ArrowDown")
    assert product(page) == pytest.approx(2.2)
    assert handle.get_attribute("aria-valuetext") == "(0.60, 1.00), q·k = 2.20"
    assert page.evaluate("window.models[0].get('k')") == [0.6, 1.0]


@pytest.mark.parametrize(
    "q, k",
    [((2, 1), (0.5, 1.5)), ((2, 1), (-1, 2)), ((-1.25, 0.5), (2.4, -1)), ((0, -2), (0, 0)),
     ((1, 1), (-1.003, -1.0)), ((3, -1), (3, -1))],
)  # fmt: skip
def test_the_browser_writes_what_python_computes(show, q, k):
    page = show(DotProduct(q, k))
    for name, text in _texts(np.array(q, float), np.array(k, float)).items():
        assert page.locator(f".figure-dot-{name}").text_content() == text


def test_python_moves_both_arrows(show):
    page = show(html=with_spy(DotProduct((2.0, 1.0), (0.5, 1.5))))
    page.evaluate("window.models[0].set('k', [1, -1])")
    assert product(page) == 1.0
    scene = DotProduct((0.0, 3.0), extent=4.0).scene
    page.evaluate(
        "(s) => { window.models[0].set('q', [0, 3]); window.models[0].set('scene', s); }", scene
    )
    assert product(page) == -3.0
    assert page.get_by_text("q = (0.00, 3.00)").count() == 1


def test_key_frames_are_all_of_a_few_steps_some_of_many_or_those_chosen(show):
    page = show(
        player(8),
        player(31),
        player(10, index=4),
        player(31, key_frames=[9, 2, 40, 2, 30]),
        player(1),
        player(31, key_frames=[0, 4, 9, 30], start=5),
    )
    found = page.locator(".figure-player").evaluate_all(
        "all => all.map((o) => o.dataset.keyFrames)"
    )
    assert found[0] == "0 1 2 3 4 5 6 7"
    assert found[1] == "0 6 12 18 24 30"
    assert found[2] == "4 5 6 7 8 9"  # from where the figure begins
    assert found[3] == "0 2 9 30"
    assert found[4] == "0"
    assert found[5] == "5 9 30"


def test_key_frames_go_on_from_where_a_figure_opens_or_a_viewer_has_gone_back_to(show):
    page = show(player(9, start=-1))
    controls = Controls(page)
    controls.expect(9)
    assert controls.root.get_attribute("data-key-frames") == "8"
    controls.root.focus()
    page.keyboard.press("Home")
    controls.expect(1)
    assert controls.root.get_attribute("data-key-frames") == "0 2 3 5 6 8"
    page.keyboard.press("End")
    assert controls.root.get_attribute("data-key-frames") == "0 2 3 5 6 8"


def test_named_steps_are_a_switch(show):
    page = show(player(3, labels=["plain", "padded", "XOR"], start=1), player(3, labels=["a", "b"]))
    controls, other = Controls(page), Controls(page, 1)
    tabs = controls.root.locator(".figure-player-tabs button")
    assert tabs.all_inner_texts() == ["plain", "padded", "XOR"]
    assert controls.root.get_by_role("button", name="Play").count() == 0  # none that plays

    def pressed() -> list[str]:
        return [
            tab.inner_text() for tab in tabs.all() if tab.get_attribute("aria-pressed") == "true"
        ]

    assert pressed() == ["padded"]
    controls.press("XOR")
    assert pressed() == ["XOR"] and controls.caption == "caption 2"
    controls.root.focus()
    page.keyboard.press("Home")
    assert pressed() == ["plain"] and controls.drawn == "picture 0"
    assert other.root.get_by_role("button", name="Play").count() == 1  # not a name for each


def test_a_page_may_lead_a_player_and_hears_of_its_steps(show):
    page = show(player(5, interval=60_000))
    page.evaluate(
        """() => {
            window.heard = [];
            document.addEventListener("figure-step", (event) => heard.push(event.detail.step));
            window.go = (detail) => document.querySelector(".figure-player").dispatchEvent(
                new CustomEvent("figure-go", { detail }));
        }"""
    )
    controls = Controls(page)
    controls.press("Next")
    page.evaluate("go({ step: 3 })")
    assert page.evaluate("heard") == [1, 3] and controls.step == 4
    controls.press("Play")
    assert "figure-player-playing" in controls.root.get_attribute("class")
    page.evaluate("go({})")
    assert "figure-player-playing" not in controls.root.get_attribute("class")
    assert controls.step == 4
