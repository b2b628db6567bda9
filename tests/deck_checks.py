"""What every deck has to stand up to in a browser: a made-up chapter's, and all real ones."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

# One sheet: what reaches over its edge, small text, and how much stands on it. Text in figures is
# drawn, and measured apart: its size follows from the figure's.
MEASURE = """() => {
  const sheet = document.querySelector(".slides > section.present .sheet");
  const outer = sheet.getBoundingClientRect();
  const scale = outer.width / 1280;
  const found = { width: outer.width / scale, height: outer.height / scale, over: [], small: [] };
  const body = sheet.querySelector(".body");
  const title = sheet.querySelector(".title");
  if (title && title.scrollWidth > title.clientWidth + 1) found.over.push("title");
  if (title && title.getBoundingClientRect().bottom > body.getBoundingClientRect().top + 1) {
    found.over.push("the title over the text");
  }
  const tall = body.scrollHeight > body.clientHeight + 1;
  if (tall || body.scrollWidth > body.clientWidth + 1) found.over.push("body");
  const inner = body.getBoundingClientRect();
  const scrolls = (node) => node.closest(".bench-source, .scrolls");
  for (const node of body.querySelectorAll("*")) {
    const box = node.getBoundingClientRect();
    if (!box.width || !box.height || scrolls(node)) continue;
    if (node.closest(".maths, .bench-spoken, .figure-player-status")) continue;
    if (node.closest("svg") && !node.matches("svg")) continue;
    const [across, down] = [
      Math.max(outer.left - box.left, box.right - outer.right) / scale,
      Math.max(inner.top - box.top, box.bottom - inner.bottom) / scale,
    ];
    const name = `${node.localName}.${node.className.baseVal ?? node.className}`;
    if (Math.max(across, down) > 1.5) found.over.push(`${name} by ${across} and ${down}`);
  }
  const walker = document.createTreeWalker(sheet, NodeFilter.SHOW_TEXT);
  const unseen = "sub, sup, style, noscript, .bench-spoken, .figure-player-status";
  let drawn = Infinity;
  while (walker.nextNode()) {
    const node = walker.currentNode, holder = node.parentElement;
    if (!node.data.trim() || !holder.getClientRects().length) continue;
    const px = parseFloat(getComputedStyle(holder).fontSize);
    if (holder.closest("svg")) {
      const ctm = holder.getScreenCTM?.();
      if (ctm) drawn = Math.min(drawn, px * Math.hypot(ctm.a, ctm.b) / scale);
    } else if (px < 17.99 && !holder.closest(unseen)) {
      found.small.push(`${px} px: ${node.data.trim().slice(0, 40)}`);
    }
  }
  found.drawn = drawn === Infinity ? null : drawn;
  found.scrolls = body.matches(".scrolls");
  found.figures = [...body.querySelectorAll(":scope .figure, :scope .bench")].length;
  // A line with nothing but brackets on it is not one of code.
  const lines = ".code pre.lines > span, .listing .kl-row:not(.kl-headings, .kl-sums) > .kl-c";
  const counts = (line) => /\\w/.test(line.textContent);
  found.lines = [...body.querySelectorAll(lines)].filter(counts).length;
  found.device = sheet.querySelector(".sheet-foot").textContent;
  return found;
}"""

# Every choice of every control of the benches on the slide on show, in all combinations.
TURN_BENCHES = """() => [...document.querySelectorAll(".present .kernel-bench")].map((bench) => {
  const inputs = [...bench.querySelectorAll(":scope > .bench-controls input")];
  const names = [...new Set(inputs.map((input) => input.dataset.name))];
  const seen = new Set(), bad = [];
  let count = 0;
  const turn = (rest, chosen) => {
    if (!rest.length) {
      count += 1;
      const panel = bench.querySelector(".bench-panel");
      const words = ` ${bench.querySelector(".bench-of")?.textContent} `;
      if (panel.getAttribute("aria-busy") !== "false") bad.push(chosen.join(" "));
      for (const one of chosen) if (!words.includes(` ${one} `)) bad.push(`${one} in ${words}`);
      seen.add(panel.querySelector(".bench-head").textContent + panel.innerText);
      return;
    }
    const [name, ...others] = rest;
    for (const input of inputs.filter((one) => one.dataset.name === name)) {
      input.click();
      turn(others, [...chosen, `${name}=${input.dataset.value}`]);
    }
  };
  turn(names, []);
  return { names, count, different: seen.size, bad };
})"""

# Printed pages that have another height than a slide, or a figure that is not there.
EMPTY_PAGES = """() => [...document.querySelectorAll(".pdf-page")].map((page, n) => {
  const figures = [...page.querySelectorAll(".figure, .bench")];
  const drawn = (figure) => {
    const widths = [...figure.querySelectorAll("svg, img, .kl-row")].map((one) => one.clientWidth);
    return figure.offsetHeight > 60 && Math.max(0, ...widths) > 40;
  };
  return [n + 1, page.getBoundingClientRect().height, figures.every(drawn)];
}).filter(([, height, whole]) => !whole || Math.abs(height - 720) > 2)"""


@contextlib.contextmanager
def opened(browser, path: Path, query: str = "") -> Iterator:
    """A deck in a browser that has no network; nothing may be asked of it or go wrong."""
    context = browser.new_context(viewport={"width": 1280, "height": 720}, offline=True)
    troubles: list[str] = []

    def watch(page) -> None:
        page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        page.on(
            "console",
            lambda m: troubles.append(m.text) if m.type in ("error", "warning") else None,
        )
        page.on(
            "request",
            lambda r: (
                r.url.startswith(("file:", "data:", "blob:", "about:"))
                or troubles.append(f"request: {r.url}")
            ),
        )

    context.on("page", watch)
    page = context.new_page()
    page.goto(path.as_uri() + query)
    page.wait_for_function("document.documentElement.dataset.ready", timeout=30_000)
    yield page
    context.close()
    assert not troubles, troubles


def slides(page) -> Iterator[int]:
    """Go through the slides, everything on each revealed."""
    for number in range(page.evaluate("Reveal.getTotalSlides()")):
        page.evaluate(f"Reveal.slide({number}, 0, 99)")
        yield number


def check(browser, path: Path) -> dict:
    """Everything that holds of any deck; returns what was counted."""
    assert path.stat().st_size <= 2.5 * 2**20
    counted = {"slides": 0, "players": 0, "settings": 0, "turned": 0, "drawn": [], "device": ""}
    with opened(browser, path) as page:
        # A second on a machine of its own; tests share theirs.
        counted["ready"] = int(page.evaluate("document.documentElement.dataset.ready"))
        assert counted["ready"] < 5000
        for number in slides(page):
            found = page.evaluate(MEASURE)
            said = f"slide {number + 1} of {path.name}: {found}"
            assert (round(found["width"]), round(found["height"])) == (1280, 720), said
            assert not found["over"] and not found["small"] and not found["scrolls"], said
            assert found["figures"] <= 1 and found["lines"] <= 10, said
            counted["slides"] += 1
            counted["device"] = found["device"]
            if found["drawn"]:
                counted["drawn"].append((round(found["drawn"], 1), number + 1))
            if page.locator(".present .figure-player-play:visible").count():
                play(page, number)
                counted["players"] += 1
            for bench in page.evaluate(TURN_BENCHES):
                assert bench["names"] and not bench["bad"], (said, bench)
                assert bench["different"] == bench["count"] > 1, (said, bench)
                counted["settings"] += bench["count"]
            if page.locator(".present .choices").count():
                counted["turned"] += turn(page, said)
        keys(page)
    with opened(browser, path, "?print-pdf") as page:
        pages = page.locator(".pdf-page")
        assert pages.count() == counted["slides"]
        empty = page.evaluate(EMPTY_PAGES)
        assert not empty, empty
    return counted


def play(page, number: int) -> None:
    """A player plays, steps and scrubs; its keys are its own, and the deck stays where it is."""
    player = page.locator(".present .figure-player").first
    counter = player.locator(".figure-player-counter")
    back = player.locator("button.figure-player-first")
    back.evaluate("button => button.click()")
    total = int(counter.inner_text().split("/")[1])
    player.locator("select").select_option("4")
    player.locator("button.figure-player-play").click()
    player.locator(".figure-player-counter", has_not_text="1 /").or_(
        player.locator(".figure-player-counter", has_text="1 / 1")
    ).first.wait_for()
    back.evaluate("button => button.click()")  # which also stops it
    scrubber = player.locator("input[type=range]")
    scrubber.fill(str(total - 1))
    assert counter.inner_text() == f"{total} / {total}"
    scrubber.press("ArrowLeft")
    assert counter.inner_text() == f"{total - 1} / {total}"
    assert page.evaluate("Reveal.getIndices().h") == number
    assert player.locator(".figure-player-stage svg").count() == 1


def keys(page) -> None:
    """Escape gives the keys of a figure back to the deck."""
    held = page.evaluate(
        """() => [...document.querySelectorAll(".slides > section")].slice(0, -1).findIndex(
            (one) => one.querySelector(".figure-player-play, .kernel-bench, .choices"))"""
    )
    if held < 0:
        return
    page.evaluate(f"Reveal.slide({held}, 0, 99)")
    page.evaluate(
        """() => document.querySelector(".present").querySelector(
            ".figure-player-play, .kernel-bench input, .choices input").focus()"""
    )
    page.keyboard.press("ArrowRight")
    assert page.evaluate("Reveal.getIndices().h") == held
    page.keyboard.press("Escape")
    assert not page.evaluate("Reveal.isOverview()")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("Reveal.getIndices().h") == held + 1


def turn(page, said: str) -> int:
    """Each choice of what was `interact` shows something, and nothing grows over its sheet."""
    shown = "() => document.querySelector('.present .body').innerHTML"
    count = 0
    seen = set()
    for radio in page.locator(".present .choices input[type=radio]").all():
        radio.evaluate("input => input.click()")
        seen.add(page.evaluate(shown))
        assert not (over := page.evaluate(MEASURE)["over"]), (said, over)
        count += 1
    for slider in page.locator(".present .choices input[type=range]").all():
        for value in ("min", "max"):
            slider.evaluate(
                "(one, end) => { one.value = one[end]; one.dispatchEvent(new Event('input')); }",
                value,
            )
            seen.add(page.evaluate(shown))
            assert not (over := page.evaluate(MEASURE)["over"]), (said, over)
            count += 1
    assert len(seen) > 1, said
    return count
