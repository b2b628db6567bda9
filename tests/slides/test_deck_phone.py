"""A deck on a phone: held upright a page to read, turned the slides; and in a viewer's colours."""

from __future__ import annotations

from pathlib import Path

import axe_checks
import deck_checks
import pytest

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "notebooks" / "07_bank_conflicts.ipynb"
UPRIGHT, LYING = {"width": 390, "height": 844}, {"width": 844, "height": 390}

# All text that shows, and its size on the screen.
SMALL = """(except) => {
  const small = new Set();
  const walker = document.createTreeWalker(document.querySelector(".slides"), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, holder = node.parentElement;
    if (!node.data.trim() || holder.closest(`${except}, aside`)) continue;
    if (!holder.getClientRects().length) continue;
    let px = parseFloat(getComputedStyle(holder).fontSize);
    const ctm = holder.closest("svg") && holder.getScreenCTM?.();
    if (ctm) px *= Math.hypot(ctm.a, ctm.b);
    if (px < 15.95) small.add(`${px.toFixed(1)}: ${node.data.trim().slice(0, 30)}`);
  }
  return [...small];
}"""
# What sticks out of the page and is not in something that is moved sideways.
WIDE = """() => [...document.querySelectorAll(".slides *")].filter((node) => {
  const box = node.getBoundingClientRect();
  if (!box.width || !box.height || box.right <= innerWidth + 1) return false;
  for (let one = node.parentElement; one; one = one.parentElement) {
    if (getComputedStyle(one).overflowX !== "visible") return false;
  }
  return true;
}).map((node) => node.outerHTML.slice(0, 80))"""
TOPS = """() => Reveal.getHorizontalSlides().map(
  (one) => one.getBoundingClientRect().top)"""


@pytest.fixture(scope="module")
def phone(deck_of, browser):
    """The deck at its third slide, on a phone that is held upright."""
    context = browser.new_context(viewport=UPRIGHT, has_touch=True, is_mobile=True, offline=True)
    page = context.new_page()
    page.goto(deck_of(NOTEBOOK).as_uri() + "#/2")
    page.locator("html[data-ready]").wait_for(state="attached")
    yield page
    context.close()


def test_an_address_opens_its_slide_and_all_others_stand_around_it(phone):
    tops = phone.evaluate(TOPS)
    assert tops == sorted(tops) and tops[-1] > 10 * UPRIGHT["height"]
    assert 0 <= tops[2] < 60 and tops[1] < 0
    assert phone.locator(".slides > section[aria-hidden], .slides > section[hidden]").count() == 0


def test_everything_can_be_read_and_nothing_sticks_out(phone):
    assert phone.evaluate(SMALL, ", ".join(deck_checks.SMALLER)) == []
    assert phone.evaluate(WIDE) == []
    assert phone.evaluate("document.documentElement.scrollWidth") == UPRIGHT["width"]
    # What is fixed is a bar across the page: no word stands beside it, half hidden.
    bar = phone.locator(".tools-open").bounding_box()
    assert (bar["x"], bar["width"], bar["y"] + bar["height"]) == (0, *UPRIGHT.values())
    # Lines of code stay whole.
    lines = phone.locator(".kl-row:not(.kl-headings) > .kl-c").evaluate_all(
        "(all) => all.filter((one) => one.offsetHeight > 1.9 * parseFloat("
        "getComputedStyle(one).fontSize)).length"
    )
    assert lines == 0
    # A listing stands once, whole: its lines on the slide are among those of the whole.
    assert phone.locator(".kl-gap").count() > 0 and phone.locator(".kl-gap:visible").count() == 0
    assert phone.locator(".code-panel .kernel-listing:visible").count() == 0
    heads = phone.locator(".table th").evaluate_all(
        "(all) => all.map((one) => one.clientHeight / parseFloat(getComputedStyle(one).lineHeight))"
    )
    assert max(heads) < 3.7  # three lines and the space about them


def test_choices_of_a_bench_stay_whole_where_there_is_little_room(phone):
    found = phone.locator(".bench-control").evaluate_all(
        """(all) => all.map((one) => {
            one.style.width = "60px";
            const high = [...one.querySelectorAll("label > span")].map(
                (choice) => choice.offsetHeight / parseFloat(getComputedStyle(choice).lineHeight));
            one.style.width = "";
            return Math.max(...high);
        })"""
    )
    assert found and max(found) < 1.9


def test_figures_play_under_a_finger_and_answers_wait_for_one(phone):
    player = phone.locator(".figure-player").first
    player.locator(".figure-player-first").tap()
    player.locator(".figure-player-next").tap()
    assert player.locator(".figure-player-counter").inner_text().startswith("2 /")
    shows = phone.get_by_role("button", name="Show the answer")
    waiting = phone.locator(".answer:visible").count()
    before = shows.count()
    assert before > 0
    shows.first.tap()
    assert phone.locator(".answer:visible").count() > waiting
    if shows.count() == before:  # the first of two hints: a second touch shows the other
        shows.first.tap()
    assert shows.count() < before


def test_the_contents_lead_to_a_heading(phone):
    phone.get_by_role("button", name="Contents and tools").tap()
    link = phone.locator(".tools-list a").nth(8)
    number = int(link.get_attribute("href").removeprefix("#/"))
    link.tap()
    assert 0 <= phone.evaluate(TOPS)[number] < 60
    assert phone.locator(".tools").is_hidden()


def test_turned_it_shows_the_slide_that_was_read_and_back(phone):
    phone.evaluate("Reveal.getHorizontalSlides()[20].scrollIntoView()")
    phone.wait_for_function("() => location.hash === '#/20'")
    phone.set_viewport_size(LYING)
    phone.wait_for_function("() => !document.documentElement.classList.contains('reading')")
    assert phone.evaluate("Reveal.getIndices().h") == 20
    box = phone.locator(".present .sheet").bounding_box()
    assert box["height"] == pytest.approx(LYING["height"], abs=2)
    assert phone.locator(".slides > section:not([hidden])").count() == 1
    assert phone.locator(".body .kl-gap").count() > 0  # parts of listings again
    phone.keyboard.press("ArrowRight")
    here = phone.evaluate("Reveal.getIndices().h")
    phone.set_viewport_size(UPRIGHT)
    phone.wait_for_function("() => document.documentElement.classList.contains('reading')")
    assert 0 <= phone.evaluate(TOPS)[here] < 60


# Drawings name their colours, which are tested with them; in the dark, one of each kind.
ALL = {"include": [[".slides"]], "exclude": [[".slides svg"]]}
KINDS = (".opening", ".gaps", ".kernel-bench", ".kl-counted", ".answer", ".code", ".figure-player")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_any_slide_or_in_the_panel(phone, theme):
    phone.evaluate(
        """(dark) => {
            document.documentElement.classList.toggle("dark", dark);
            for (const one of document.querySelectorAll(".fragment")) one.classList.add("visible");
        }""",
        theme == "dark",
    )
    dark = {"include": [[kind] for kind in KINDS], "exclude": ALL["exclude"]}
    found = axe_checks.serious(phone, dark if theme == "dark" else ALL)
    phone.get_by_role("button", name="Contents and tools").tap()
    found += axe_checks.serious(phone, ".tools")
    phone.keyboard.press("Escape")
    assert not found, found
