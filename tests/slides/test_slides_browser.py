"""Decks in a browser without a network: they open, fit their sheets, play, answer and print."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import clicker
import deck_checks
import deck_measures
import nbformat
import paper_checks
import pointer_checks
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from helpers.slides import build
from helpers.slides.build import build as make
from helpers.slides.content.chapter import chapter
from helpers.slides.execute import execute, read
from helpers.slides.pages.page import reading_page

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LONG = "\n".join(f"value_{n} = {n} * 2  # {'a remark ' * (n % 9)}" for n in range(23))
FRAME = """def frame(n, size=40):
    dot = f'<circle cx="{200 * n + 80}" cy="240" r="{size}"/>'
    words = f'<text x="40" y="60" font-size="24">{n}</text>'
    return f'<svg viewBox="0 0 960 480">{dot}{words}</svg>', f'Step {n}.'"""
PROBLEM = """def problem(k, n=50, block=32):
    a, b = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
    args = {'a': a, 'b': b, 'c': np.empty(n, np.float32), 'n': n}
    return Problem.of(k, -(-n // block), block, args, {'c': a + 1.0})"""
DRAW = """dots = Player(name='Dot')


@interact(n=(0, 3), size=(10, 100))
def draw(n=1, size=40):
    dots.frames = [frame(n, size), frame(n, size // 2)]


dots"""
QUESTION = "1. Why?\n\n<details><summary>Answer</summary>\n\nBecause $a<b$.\n\n</details>"
ADD = "add = load_kernel('00_vector_add.cu')\na, b, c = (cp.zeros(100, cp.float32) for _ in 'abc')"
CELLS = [
    ("markdown", "# A chapter with $x^2$\n\nIts opening."),
    ("hidden", "import numpy as np\nfrom ipywidgets import interact\nfrom helpers import cp"),
    ("hidden", "from helpers.bench import Problem, bench"),
    ("hidden", "from helpers.figures.player import Player"),
    ("hidden", "from helpers.kernels import load_kernel\nfrom helpers.measure.tables import Table"),
    ("markdown", "## Read: long code"),
    ("code", LONG),
    ("markdown", "## See: a player"),
    ("code", FRAME),
    ("code", "Player([frame(n) for n in range(4)], name='Dots', interval=300)"),
    ("markdown", "What the speaker alone has: $k$.", "notes"),
    ("markdown", "What is said **after** it. " + 30 * "Words enough to take some lines. "),
    ("markdown", "## Read: a kernel\n\n<span class=\"on-screen\">Play it.</span> Kernels add."),
    ("code", ADD),
    ("code", "add.show(add.count(4, 32, (a, b, c, 100)), mark=['const int i', 'c[i] ='])"),
    ("markdown", "## Tweak: a setting"),
    ("code", DRAW),
    ("markdown", "## Tweak: text"),
    ("code", "@interact(word=['one', 'two', 'three'])\ndef say(word):\n    print(word * 3)"),
    ("markdown", "## Tweak: a bench"),
    ("code", PROBLEM, "hidden"),
    ("code", "bench('00_vector_add.cu', problem=problem, n=[20, 50, 1000], block=[32, 64])"),
    ("markdown", "## A long table\n\nWith words before it."),
    ("code", "Table(['n', 'n squared'], [(n, n * n) for n in range(25)])"),
    ("markdown", "## Words\n\n" + "\n\n".join(["Some words that fill a line. " * 8] * 7)),
    ("markdown", "## Try: a question\n\n" + QUESTION),
    ("code", "print('forty', 'two', sep='-')", "answer"),
    ("markdown", "## Next\n\nThe end. [More](91_more.ipynb)."),
]  # fmt: skip


def made_up():
    cells = []
    for kind, source, *tags in CELLS:
        hidden = kind == "hidden" or "hidden" in tags
        slide = "skip" if hidden else "slide" if source.startswith("#") else "-"
        labels = ["hide-input"] if hidden else [tag for tag in tags if tag in ("notes", "answer")]
        metadata = {"slideshow": {"slide_type": slide}, "tags": labels}
        new = new_markdown_cell if kind == "markdown" else new_code_cell
        cells.append(new(source, metadata=metadata))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel})


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The file of the made-up chapter, and what came of running it."""
    path = tmp_path_factory.mktemp("decks") / "90_made_up.ipynb"
    nbformat.write(made_up(), path)
    return path, execute(read(path), str(path), path.parent)


@pytest.fixture(scope="module")
def made(ran):
    """The made-up chapter as a deck, built as `make slides` does."""
    path, executed = ran
    said: list[str] = []
    run = lambda _: copy.deepcopy(executed)  # noqa: E731
    [deck] = make([path], path.parent / "slides", say=said.append, run=run, handouts=True)
    return deck, said


def test_a_deck_of_everything_stands_up(made, browser):
    deck, said = made
    counted = deck_checks.check(browser, deck)
    with deck_checks.opened(browser, deck) as page:
        press = lambda key, times: [page.keyboard.press(key) for _ in range(times)]  # noqa: E731
        assert clicker.keys(page, press) == list(clicker.HELD)
        assert clicker.rehearse(page, press) > 2 * counted["slides"]
        assert clicker.tab(page, press) >= 5
    assert counted["players"] == 2 and counted["settings"] == 6 and counted["turned"] >= 6
    assert "A chapter with" in counted["device"] and "simulator" in counted["device"]
    assert (
        said[0].startswith("[1/1] 90_made_up")
        and "1 PDFs are printed, and a handout of each." in said
    )


def test_a_deck_stands_up_in_firefox(made, firefox):
    if firefox is None:
        pytest.skip("needs Firefox: on Debian, apt install firefox-esr")
    deck_checks.check_in_firefox(firefox, made[0])


def test_what_stands_on_which_slide(made, browser):
    deck, _ = made
    with deck_checks.opened(browser, deck) as page:
        texts = {}
        for number in deck_checks.slides(page):
            sheet = page.locator(".slides > section.present .sheet")
            texts.setdefault(sheet.locator(".title").inner_text().split("\n")[0], []).append(
                (number, sheet.inner_text())
            )
        everything = "\n".join(text for parts in texts.values() for _, text in parts)
        # Long code is split, and all of it is there, in order and once.
        shown = re.findall(r"^\s*value_(\d+) = ", everything, re.M)
        assert shown == [str(n) for n in range(23)]
        assert everything.count("import numpy") == 0  # set-up
        assert everything.count("Play it.") == 1  # and not on paper, see below
        assert "What the speaker alone has" not in everything
        squares = re.findall(r"^(\d+)\t([\d,]+)$", everything, re.M)
        assert [(str(n), f"{n * n:,}") for n in range(25)] == squares[-25:]
        # The answer comes with the key that turns pages.
        page.evaluate("Reveal.slide(Reveal.getTotalSlides() - 2, 0, -1)")
        answer = page.locator(".present .answer")
        assert "visible" not in (answer.get_attribute("class") or "").split()
        page.keyboard.press("ArrowRight")
        assert "visible" in answer.get_attribute("class").split()
        assert page.locator(".present .sheet-number").inner_text().split(" / ")[1] == str(
            page.evaluate("Reveal.getTotalSlides()")
        )


# The lines of the listing in sight, by number.
IN_SIGHT = """[...document.querySelectorAll(".present .body .kl-row .kl-n")].filter(
  (cell) => /\\d/.test(cell.textContent) && cell.checkVisibility({ visibilityProperty: true })
).map((cell) => Number(cell.textContent))"""


def test_marked_lines_come_first_and_code_is_folded(made, browser):
    deck, _ = made
    source = (ROOT / "kernels/00_vector_add.cu").read_text().split("\n")
    marked = [next(n for n, line in enumerate(source, 1) if text in line)
              for text in ("const int i", "c[i] =")]  # fmt: skip
    with deck_checks.opened(browser, deck) as page:
        page.evaluate(
            """Reveal.slide([...document.querySelectorAll(".slides > section")].findIndex(
                (one) => one.querySelector(".body .kernel-listing")), 0, -1)"""
        )
        steps = [page.evaluate(IN_SIGHT)]
        place = page.evaluate("Reveal.getIndices().h")
        for _ in range(2):
            page.keyboard.press("ArrowRight")
            steps.append(page.evaluate(IN_SIGHT))
        assert page.evaluate("Reveal.getIndices().h") == place
        assert steps[:2] == [marked[:1], marked] and len(steps[2]) > 8
        # The call for the listing says nothing to the class: a key shows it, and hides it again.
        panel = page.locator(".present .code-panel")
        button = page.locator(".present .show-code")
        assert not panel.is_visible() and button.get_attribute("aria-expanded") == "false"
        page.keyboard.press("c")
        assert "add.show(" in panel.inner_text()
        assert button.get_attribute("aria-expanded") == "true"
        page.keyboard.press("Escape")
        assert not panel.is_visible() and not page.evaluate("Reveal.isOverview()")
        button.click()
        assert panel.is_visible()
        page.keyboard.press("PageDown")
        page.keyboard.press("PageUp")
        assert not page.locator(".code-panel:visible").count()


def turned_by_address(page, address: str, slide: int) -> None:
    """Type an address until the deck is at its slide and stays there.

    For a second after a slide has turned, reveal.js clears the address, and what the speaker's
    window says of the slide before may still be under way.
    """
    for _ in range(8):
        page.evaluate(f"location.hash = ''; location.hash = {address!r}")
        page.wait_for_timeout(1_200)
        if page.evaluate("Reveal.getIndices().h") == slide:
            return
    raise AssertionError(f"{address} does not turn the slide")


def test_the_speaker_sees_notes_and_what_comes_next(made, browser):
    deck, _ = made
    with deck_checks.opened(browser, deck) as page:
        number = page.evaluate(
            """[...document.querySelectorAll(".slides > section")].findIndex(
                (section) => section.querySelector(".figure-player"))"""
        )
        page.evaluate(f"Reveal.slide({number})")
        with page.context.expect_page() as opening:
            page.keyboard.press("s")
        speaker = opening.value
        speaker.locator(".speaker-controls-notes .value").get_by_text(
            "What the speaker alone has: k."
        ).wait_for(timeout=20_000)
        assert "enough to take" in speaker.locator(".speaker-controls-notes").inner_text()
        assert len(speaker.frames) == 3  # the slide on show, and the next one
        for frame in speaker.frames[1:]:
            frame.wait_for_function("document.documentElement.dataset.ready", timeout=30_000)
        told = speaker.locator(".speaker-controls-notes .value")
        words = told.inner_text()
        assert words.index("What the speaker alone has") < words.index("Code of this slide")
        assert told.locator("pre").evaluate("one => getComputedStyle(one).whiteSpace") == "pre-wrap"
        assert "See: a player" in speaker.locator("#next-title").inner_text()
        assert re.search(r"\d:\d\d", speaker.locator(".speaker-controls-time .timer").inner_text())
        assert not speaker.evaluate(
            """["default", "wide", "tall"].flatMap((layout) => {
                document.body.dataset.speakerLayout = layout;
                return [...document.querySelectorAll("#upcoming-slide .label, #speaker-layout")]
                    .filter((label) => [...document.querySelectorAll("iframe")].some((frame) => {
                        const [a, b] = [label, frame].map((one) => one.getBoundingClientRect());
                        return a.left < b.right && b.left < a.right
                            && a.top < b.bottom && b.top < a.bottom;
                    })).map((label) => `${layout}: ${label.textContent}`);
            })"""
        )
        # The clicker works there too, and a figure stands the same in the room and here.
        speaker.keyboard.press("PageDown")
        counter = ".present .figure-player-counter"
        page.locator(counter, has_text="2 / 4").wait_for()
        # The deck's own word comes by another way, and could overtake that of the click.
        speaker.frames[1].locator(counter, has_text="2 / 4").wait_for()
        page.locator(".present .figure-player-next").click()
        speaker.frames[1].locator(counter, has_text="3 / 4").wait_for()
        speaker.frames[1].locator(".present .figure-player-next").click()
        page.locator(counter, has_text="4 / 4").wait_for()
        turned_by_address(page, "#/0", 0)
        turned_by_address(page, f"#/{number}/step-3", number)
        speaker.frames[1].locator(counter, has_text="3 / 4").wait_for()
        assert page.locator(counter).inner_text() == "3 / 4"
        page.wait_for_function(f"location.hash === '#/{number}/step-3'")


def test_the_deck_is_printed_one_page_a_slide(made, browser):
    deck, _ = made
    pages = paper_checks.texts(deck.with_suffix(".pdf"))
    with deck_checks.opened(browser, deck, "?print-pdf") as page:
        assert (
            len(pages)
            == page.locator(".pdf-page").count()
            == page.evaluate("Reveal.getTotalSlides()")
        )
    everything = "\n".join(pages)
    # What asks to press something stands on the screen alone.
    assert "Kernels add." in everything and "Play it." not in everything
    # A player at its last step, an answer and what is long, each in its place and once.
    assert everything.count("Step 3.") == 1 and "Step 0." not in everything
    assert everything.count("Because") == everything.count("forty-two") == 1
    assert all(f"{n + 1} / {len(pages)}" in page for n, page in enumerate(pages))
    outline = paper_checks.outline(deck.with_suffix(".pdf"))
    # Each slide has an entry, under its title; a chapter's own comes first.
    assert [place for _, place in outline] == list(range(1, len(pages) + 1))
    titles = [title for title, _ in outline]
    assert titles[0].startswith("A chapter with") and "See: A player" in titles
    assert "A long table (2 / 3)" in titles
    assert paper_checks.links(deck.with_suffix(".pdf")) == {"91_more.pdf"}


def test_the_handout_has_two_slides_a_page_and_no_answers(made):
    deck, _ = made
    handout = deck.with_name(f"{deck.stem}-handout.pdf")
    slides, pages = paper_checks.texts(deck.with_suffix(".pdf")), paper_checks.texts(handout)
    assert len(pages) == -(-len(slides) // 2)
    everything = "\n".join(pages)
    assert "Why?" in everything and "print('forty', 'two'" in everything
    assert "Because" not in everything and "forty-two" not in everything
    assert everything.count("What the speaker alone has") == 1
    for number, page in enumerate(pages, 1):
        assert page.count("A chapter with") >= 1 and f"{number} / {len(pages)}" in page
    assert paper_checks.links(handout) == {"91_more-handout.pdf"}
    assert b"file://" not in handout.read_bytes()


def test_a_page_to_read_runs_its_figures_too(ran, browser, tmp_path):
    executed = copy.deepcopy(ran[1])
    path = tmp_path / "page.html"
    build.write(path, reading_page(chapter(executed, "90_made_up", tmp_path, whole=True)))
    context = browser.new_context(offline=True)
    page = context.new_page()
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", lambda m: m.type == "error" and troubles.append(m.text))
    page.goto(path.as_uri())
    assert page.evaluate("window.figuresReady") == 5
    player = page.locator(".figure-player").first
    player.locator("button.figure-player-next").click()
    assert player.locator(".figure-player-counter").inner_text() == "2 / 4"
    page.locator("summary", has_text="Set-up").first.click()
    assert page.get_by_text("import numpy as np").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    # On paper the figure goes to its last step, and what is folded is there.
    printed = path.with_suffix(".pdf")
    printed.write_bytes(page.pdf())
    everything = "\n".join(paper_checks.texts(printed))
    assert everything.count("Step 3.") == everything.count("Step 1.") == 1  # one each, of two
    assert "Because" in everything
    assert player.locator(".figure-player-counter").inner_text() == "2 / 4"  # and back
    context.close()
    assert not troubles


# Chapters whose decks have all kinds of controls between them: there each kind is used.
HANDS = {"01": {"handle", "slider"}, "07": set(pointer_checks.KINDS) - {"handle", "slider"}}
# Firefox gets these and those with the largest figures and tables: the rest is made of the same.
IN_FIREFOX = (*HANDS, "08", "11")


@pytest.mark.slow
@pytest.mark.parametrize("notebook", CHAPTERS, ids=lambda path: path.stem)
def test_every_chapter_makes_a_deck_that_stands_up(notebook, browser, deck_of):
    kinds = HANDS.get(notebook.stem[:2])
    counted = deck_checks.check(browser, deck_of(notebook), bool(kinds))
    assert counted["slides"] >= 15 and counted["kinds"] >= (kinds or set())
    deck_measures.judge_chapter(notebook, counted["measured"])


@pytest.mark.slow
@pytest.mark.xdist_group(Path(__file__).stem)  # one Firefox for all decks
@pytest.mark.parametrize(
    "notebook", [one for one in CHAPTERS if one.stem[:2] in IN_FIREFOX], ids=lambda path: path.stem
)
def test_chapters_stand_up_in_firefox(notebook, firefox, deck_of):
    if firefox is None:
        pytest.skip("needs Firefox: on Debian, apt install firefox-esr")
    deck_checks.check_in_firefox(firefox, deck_of(notebook), notebook.stem[:2] in HANDS)
