"""What lecturers reach for in a deck: contents, search, drawing, a pointer, zoom, a dark room."""

from __future__ import annotations

import re
from pathlib import Path

import deck_checks
import pytest

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "notebooks" / "07_bank_conflicts.ipynb"


@pytest.fixture(scope="module")
def made(deck_of):
    """A chapter's deck, as `make slides` makes it."""
    return deck_of(NOTEBOOK)


@pytest.fixture(scope="module")
def deck(made, browser):
    """The deck, opened once; each test puts it back."""
    with deck_checks.opened(browser, made) as page:
        yield page


@pytest.fixture(autouse=True)
def from_the_start(deck):
    deck.evaluate("Reveal.slide(0)")


def where(page) -> int:
    return page.evaluate("Reveal.getIndices().h")


def ink(page) -> int:
    return page.locator(".present .ink path").count()


def stroke(page, *points: tuple[float, float]) -> None:
    page.mouse.move(*points[0])
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*point, steps=4)
    page.mouse.up()


def test_the_contents_name_every_slide_and_lead_there_and_to_the_index(deck):
    deck.keyboard.press("m")
    panel = deck.get_by_role("navigation", name="Contents and tools")
    parts = [re.findall(r"\d+", words) for words in panel.locator("li b").all_inner_texts()]
    covered = [n for part in parts for n in range(int(part[0]), int(part[-1]) + 1)]
    assert covered == list(range(1, deck.evaluate("Reveal.getTotalSlides()") + 1))
    assert panel.locator("[aria-current]").inner_text().endswith("Bank conflicts")
    # Arrows go through the list, and not through the deck.
    deck.keyboard.press("ArrowDown")
    deck.keyboard.press("ArrowDown")
    assert where(deck) == 0
    deck.keyboard.press("Enter")
    assert where(deck) == int(parts[2][0]) - 1 and panel.is_hidden()
    deck.get_by_role("button", name="Contents and tools").click()
    assert int(panel.locator("[aria-current] b").inner_text().split("–")[0]) == int(parts[2][0])
    index = panel.get_by_role("link", name="All chapters").get_attribute("href")
    assert index == "index.html"
    deck.keyboard.press("Escape")
    assert panel.is_hidden() and not deck.evaluate("Reveal.isOverview()")
    deck.keyboard.press("ArrowRight")
    assert where(deck) >= int(parts[2][0]) - 1


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ("s_K[tx][k]", "code"),
        ("__syncthreads()", ".kl-c"),
        ("#pragma UNROLL", ".kl-c"),
        ("gcd(stride, 32)", "th"),
    ],
)
def test_search_finds_text_wherever_it_stands(deck, words, place):
    deck.keyboard.press("Control+Shift+F")
    deck.keyboard.type(words)
    said = deck.get_by_role("status").filter(has_text="slide")
    said.wait_for()
    expected = deck.evaluate(
        """([words, place]) => {
            const has = (node) => node.textContent.toLowerCase().includes(words.toLowerCase());
            const all = [...document.querySelectorAll(".slides > section")];
            return all.map((one, n) => [...one.querySelectorAll(place)].some(has) ? n + 1 : 0)
              .filter(Boolean);
        }""",
        [words, f":is(.body, .title) {place}"],
    )
    found = [int(number) for number in deck.locator(".tools-list b").all_inner_texts()]
    assert expected and set(expected) <= set(found)
    assert words.lower() in deck.locator(".tools-list mark").first.inner_text().lower()
    deck.keyboard.press("Enter")
    assert where(deck) == found[0] - 1
    assert deck.evaluate("CSS.highlights.get('found').size") >= len(expected)
    deck.keyboard.press("Escape")
    assert deck.evaluate("CSS.highlights.get('found').size") == 0
    assert not deck.evaluate("Reveal.isOverview()")


def test_search_finds_what_a_figure_says_at_a_later_step(deck):
    caption, number = deck.evaluate(
        """() => {
            const player = document.querySelector(".slides .figure-player");
            const said = () => player.querySelector(".figure-player-caption").textContent;
            player.querySelector(".figure-player-last").click(); // where some figures open
            const last = said();
            player.querySelector(".figure-player-first").click();
            const first = said();
            if (first === last) throw Error("one caption");
            const all = [...document.querySelectorAll(".slides > section")];
            return [last, all.indexOf(player.closest("section"))];
        }"""
    )
    deck.keyboard.press("Control+Shift+F")
    deck.keyboard.type(caption[:60])
    deck.get_by_role("status").filter(has_text="slide").wait_for()
    assert str(number + 1) in deck.locator(".tools-list b").all_inner_texts()
    deck.keyboard.press("Escape")
    deck.keyboard.press("Escape")


def test_drawings_stay_with_their_slide_and_off_the_controls(deck):
    deck.keyboard.press("d")
    stroke(deck, (300, 300), (500, 320), (700, 500))
    assert ink(deck) == 1
    box = deck.locator(".present .ink path").evaluate(
        "(one) => { const { x, y, width, height } = one.getBBox(); return [x, y, width, height]; }"
    )
    assert box == pytest.approx([300, 300, 400, 200], abs=3)
    deck.get_by_role("button", name="Marker").click()
    deck.get_by_role("button", name="Blue").click()
    stroke(deck, (300, 600), (800, 600))
    assert deck.locator(".present .ink-blue").get_attribute("stroke-opacity") == "0.4"
    # Slides turn while one draws, and each keeps its own.
    deck.keyboard.press("ArrowRight")
    assert where(deck) == 1 and ink(deck) == 0
    deck.keyboard.press("ArrowLeft")
    assert ink(deck) == 2
    deck.get_by_role("button", name="Eraser").click()
    stroke(deck, (550, 560), (550, 640))
    assert ink(deck) == 1
    deck.get_by_role("button", name="Pen", exact=True).click()
    stroke(deck, (400, 100), (500, 100))
    deck.keyboard.press("Control+z")
    assert ink(deck) == 1
    deck.keyboard.press("Escape")
    assert not deck.evaluate("Reveal.isOverview()")
    # What lies under a drawing can be clicked again.
    deck.evaluate(
        """Reveal.slide(Reveal.getHorizontalSlides().findIndex(
            (section) => section.querySelector(".kernel-bench")))"""
    )
    control = deck.locator(".present .kernel-bench label").first
    target = control.bounding_box()
    deck.keyboard.press("d")
    middle = (target["x"] + target["width"] / 2, target["y"] + target["height"] / 2)
    stroke(deck, middle, (middle[0] + 8, middle[1]))
    assert ink(deck) == 1
    deck.keyboard.press("d")
    control.click(trial=True)
    deck.evaluate("document.querySelectorAll('.ink').forEach((one) => one.remove())")


def test_touch_and_stylus_draw_and_a_turned_stylus_erases(deck):
    deck.keyboard.press("d")
    draw = """([kind, buttons, x]) => {
      const glass = document.querySelector(".ink-glass");
      const at = (type, clientX, held) => glass.dispatchEvent(new PointerEvent(type, {
        pointerType: kind, isPrimary: true, pointerId: 7, buttons: held, clientX, clientY: 200,
        bubbles: true }));
      at("pointerdown", x, buttons);
      at("pointermove", x + 80, buttons);
      at("pointerup", x + 80, 0);
    }"""
    for n, kind in enumerate(("touch", "pen")):
        deck.evaluate(draw, [kind, 1, 200 + 200 * n])
    assert ink(deck) == 2
    deck.evaluate(draw, ["pen", 32, 420])
    assert ink(deck) == 1
    deck.get_by_role("button", name="Clear").click()
    assert ink(deck) == 0
    deck.get_by_role("button", name="Stop drawing").click()
    assert deck.locator(".ink-glass").is_hidden()


def test_the_pointer_follows_the_mouse_and_takes_no_clicks(deck):
    deck.keyboard.press("q")
    deck.mouse.move(640, 300)
    box = deck.locator(".laser").bounding_box()
    assert (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2) == pytest.approx((640, 300))
    deck.get_by_role("button", name="Contents and tools").click()
    deck.get_by_role("button", name="Pointer (Q)").click()
    assert deck.locator(".laser").is_hidden()


def test_zoom_is_where_the_mouse_is_and_escape_ends_it(deck):
    deck.mouse.move(1000, 500)
    # The place under the mouse comes to the middle of the window, twice as large.
    box = "document.querySelector('.present .sheet').getBoundingClientRect()"
    deck.keyboard.press("z")
    deck.wait_for_function(f"() => Math.hypot({box}.left + 1360, {box}.width - 2560) < 3")
    deck.keyboard.press("Escape")
    deck.wait_for_function(f"() => Math.hypot({box}.left, {box}.width - 1280) < 1")
    assert not deck.evaluate("Reveal.isOverview()")


def test_the_keys_are_listed_legibly_ours_with_reveals(deck):
    deck.keyboard.press("?")
    panel = deck.locator(".r-overlay-help")
    words = panel.inner_text()
    for said in ("Draw on the slide", "Search the slides", "Pause", "arrow keys back to the deck"):
        assert said in words
    deck.keyboard.press("Escape")
    assert panel.count() == 0 and not deck.evaluate("Reveal.isOverview()")


def test_a_speakers_frame_and_a_printed_deck_have_no_tools(made, browser):
    for query in ("?receiver", "?print-pdf"):
        with deck_checks.opened(browser, made, query) as page:
            assert page.locator(".tools-open, .tools, .ink-glass").count() == 0
