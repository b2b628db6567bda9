"""The course's site: where its links lead, its search, and whether everybody can use its pages."""

from __future__ import annotations

import contextlib
import functools
import http.server
import json
import re
import threading
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import axe_checks
import nbformat
import pointer_checks
import pytest
from playwright.sync_api import expect
from site_pages import Tags

from helpers.slides.pages.site import build_site

pytestmark = pytest.mark.browser

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
BUILT = [NOTEBOOKS[0], NOTEBOOKS[3]]
MOST = 1.2 * 2**20


@pytest.fixture(scope="module")
def site(tmp_path_factory, executed):
    """The site of two chapters, in a folder whose name needs care, with a PDF as if printed."""
    folder = tmp_path_factory.mktemp("sites") / "the course #1"
    (folder / "slides").mkdir(parents=True)
    (folder / "slides" / f"{BUILT[1].stem}.pdf").write_bytes(b"%PDF")
    build_site(BUILT, folder, pdf=False, say=lambda text: None, run=executed)
    return folder


def test_every_link_of_the_site_leads_to_something_in_it(site):
    pages = {path: Tags(path.read_text("utf-8")) for path in site.glob("*.html")}
    assert sorted(path.stem for path in pages) == [
        *(one.stem for one in BUILT), "glossary", "index",
    ]  # fmt: skip
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
    *found, (_, glossary, explained) = found
    ids = Tags((site / glossary).read_text("utf-8")).ids
    assert explained and all(anchor in ids for anchor, _, _ in explained)
    assert [address for _, address, _ in found] == [f"{one.stem}.html" for one in BUILT]
    for path, (_, address, parts) in zip(BUILT, found, strict=True):
        ids = Tags((site / address).read_text("utf-8")).ids
        assert all(anchor in ids for anchor, _, _ in parts[1:])
        said = " ".join(text for _, _, text in parts)
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "code" and not cell.source.startswith("check("):
                assert " ".join(cell.source.split()) in said


# In a browser, from a disk and from a sub-folder of a server


@contextlib.contextmanager
def offered(folder: Path):
    """The address of a folder on a web server that lives as long as this context."""
    quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(quiet, directory=str(folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


@contextlib.contextmanager
def opened(browser, **options):
    """A page that notes what goes wrong, and every address that is asked for."""
    context = browser.new_context(**options)
    page = context.new_page()
    asked: list[str] = []
    troubles: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", lambda m: m.type in ("error", "warning") and troubles.append(m.text))
    yield page, asked
    context.close()
    assert not troubles, troubles


def search(page, start: str) -> None:
    """From a chapter's page to a section of another, by keys alone."""
    page.goto(f"{start}{BUILT[0].stem}.html")
    page.get_by_role("searchbox", name="Search the course").focus()
    page.keyboard.type("missing barriers")
    page.keyboard.press("Enter")
    page.locator(".results a").first.wait_for()
    status = page.locator(".found").inner_text()
    assert page.locator(".results li").count() == int(status.split()[0]) > 0
    for text in page.locator(".results li").all_inner_texts():
        assert re.search(r"barrier|miss", text, re.I), text
    box = page.get_by_role("searchbox", name="Search all chapters")
    box.fill("no such words")
    page.get_by_text("Nothing has “no such words” in it").wait_for()
    # In code, in the middle of a name, and with another ending.
    box.fill("synctiles")
    page.get_by_text("Nothing has").wait_for()
    box.fill("rows s_Q[tx][ty]")
    page.locator(".results mark").first.wait_for()
    box.press("Enter")
    name = page.evaluate("document.activeElement.textContent")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(rf"{BUILT[1].stem}.html#"))
    anchor = page.evaluate("decodeURIComponent(location.hash.slice(1))")
    place = page.locator(f"[id='{anchor}']")
    assert place.evaluate("node => Math.abs(node.getBoundingClientRect().top)") < 200
    assert place.inner_text().split()[-1] == name.split()[-1]


def test_the_search_leads_to_a_section_and_nothing_else_is_asked_for(site, browser):
    with offered(site.parent) as server:
        for start in (f"{site.as_uri()}/", f"{server}{quote(site.name)}/"):
            with opened(browser) as (page, asked):
                search(page, start)
            own = [one for one in asked if one.startswith(start) or one.startswith("data:")]
            assert own == asked and len(own) >= 3


# What of a page is used, and what shows that it was.
USED = {
    ".figure-player-next": ".figure-player-counter",
    ".figure-player-loop": ".figure-player-controls",
    ".bench-control label:not(:has(:checked))": ".bench-verdict ~ *",
    ".bench-tabs button:not([aria-pressed=true])": ".bench-source",
    ".choices-bar label:not(:has(:checked))": ".choices-bar",
    ".block summary": ".block:has(> details)",
    "button.theme": "button.theme",
}
# The state of everything that a selector finds.
STATE = """selector => [...document.querySelectorAll(selector)].map((one) => one.outerHTML
  + [one, ...one.querySelectorAll("*")].map((each) => [each.checked, each.open]))"""


def use(page, how: str) -> None:
    """Every kind of control by a hand, a mouse's or a finger, and by keys."""
    for control, shows in USED.items():
        found = page.locator(control).first
        before = page.evaluate(STATE, shows)
        getattr(found, how)()
        assert page.evaluate(STATE, shows) != before, (how, control)
    for control, key, shows in (
        (".figure-player", "ArrowRight", ".figure-player-counter"),
        (".figure-player-last", "Enter", ".figure-player-counter"),
        (".bench-control input:checked", "ArrowRight", ".bench-verdict ~ *"),
        (".choices-bar input:checked", "ArrowRight", ".choices-bar"),
        (".block summary", "Enter", ".block:has(> details)"),
        ("button.theme", "Enter", "button.theme"),
    ):
        before = page.evaluate(STATE, shows)
        page.locator(control).first.press(key)
        assert page.evaluate(STATE, shows) != before, ("keys", control)


SIZES = {"light": (1280, 720), "dark": (390, 844)}


@pytest.mark.parametrize("theme", SIZES)
def test_pages_are_for_everybody(site, browser, theme):
    width, height = SIZES[theme]
    options = {"color_scheme": theme, "has_touch": theme == "dark"}
    with opened(browser, viewport={"width": width, "height": height}, **options) as (page, _):
        for name in ("index", BUILT[1].stem, "slides/index"):
            page.goto((site / f"{name}.html").as_uri())
            page.evaluate("window.figuresReady")
            page.wait_for_timeout(50)  # what scrolls is marked then
            assert not (found := axe_checks.serious(page)), (name, found)
            # The first link is seen when it has the focus.
            covered = [one for one in pointer_checks.covered(page) if "a.skip" not in one]
            assert not covered, (name, covered)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        page.goto((site / f"{BUILT[1].stem}.html").as_uri())
        use(page, "tap" if theme == "dark" else "click")
        page.goto((site / "index.html").as_uri())
        page.keyboard.press("Tab")
        assert not pointer_checks.covered(page)
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "text"
        page.evaluate("document.querySelector('.search label').remove()")
        assert any("label" in one for one in axe_checks.serious(page))


def test_a_page_answers_to_a_hand_and_remembers_its_theme(site, browser):
    with opened(browser, viewport={"width": 1280, "height": 720}) as (page, _):
        page.goto((site / f"{BUILT[1].stem}.html").as_uri())
        player = page.locator(".figure-player").first
        counter = player.locator(".figure-player-counter")
        at, steps = map(int, counter.inner_text().split("/"))  # it opens on a telling step
        player.locator(".figure-player-next").click()
        assert counter.inner_text().split("/")[0].strip() == str(min(at + 1, steps))
        bench = page.locator(".kernel-bench").first
        before = bench.locator(".bench-of").first.inner_text()
        bench.locator(".bench-control label:not(:has(:checked))").first.click()
        assert bench.locator(".bench-of").first.inner_text() != before
        before = page.locator(".contents [aria-current]").inner_text()
        page.locator(".contents a").nth(3).click()
        expect(page.locator(".contents [aria-current]")).not_to_have_text(before)
        paper = "getComputedStyle(document.documentElement).backgroundColor"
        light = page.evaluate(paper)
        page.get_by_role("button", name="Dark page").click()
        dark = page.evaluate(paper)
        assert dark != light
        page.goto((site / "index.html").as_uri())
        page.wait_for_function(f"dark => {paper} === dark", arg=dark)
        other = page.context.new_page()  # two pages side by side stay alike
        other.goto((site / "index.html").as_uri())
        other.get_by_role("button", name="Light page").click()
        page.wait_for_function(f"light => {paper} === light", arg=light)
        page.emulate_media(media="print")
        assert page.evaluate(paper) == light and not page.locator(".bar").is_visible()


def test_pages_stand_up_in_firefox(site, firefox):
    if firefox is None:
        pytest.skip("needs Firefox: on Debian, apt install firefox-esr")
    firefox.troubles.clear()
    for name in (f"{BUILT[1].stem}.html", "index.html?q=barrier"):
        firefox.open(f"{site.as_uri()}/{name}")
        firefox.evaluate("window.figuresReady")
        covered = [one for one in pointer_checks.covered(firefox) if "a.skip" not in one]
        assert not covered, (name, covered)
    assert firefox.evaluate("document.querySelectorAll('.results a').length") > 3
    assert not firefox.troubles, firefox.troubles
