"""What every deck has to stand up to in a browser: a made-up chapter's, and all real ones."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import clicker
import deck_measures
import paper_checks
import pointer_checks

LEAST = 18  # pixels of text in a frame of 1280 x 720, in figures too
# What may be smaller, and why: every other text is measured, wherever it stands.
SMALLER = {
    "sub, sup": "indices and exponents in text, set smaller as in any book",
    "tspan[dy]": "the same in drawings",
    "style, noscript": "no text",
    ".bench-spoken, .figure-player-status": "for screen readers, never seen",
}

# One sheet: what reaches over its edge, small text, and how much stands on it.
MEASURE = """function measure() {
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
  const lead = title?.querySelector(".lead")?.getBoundingClientRect();
  if (lead && (lead.bottom > body.getBoundingClientRect().top + 1 || lead.top < outer.top)) {
    found.over.push("the sentence beside the title");
  }
  const tall = body.scrollHeight > body.clientHeight + 1;
  if (tall || body.scrollWidth > body.clientWidth + 1) found.over.push("body");
  const scrolls = (node) => node.closest(".bench-source, .scrolls");
  for (const node of body.querySelectorAll("*")) {
    const box = node.getBoundingClientRect();
    if (!box.width || !box.height || scrolls(node)) continue;
    if (node.closest(".maths, .bench-spoken, .figure-player-status")) continue;
    if (node.closest("details:not([open]) > :not(summary)")) continue;  // has a box all the same
    if (node.closest("svg") && !node.matches("svg")) continue;
    // The controls of a player lie in the foot.
    const foot = node.closest(".figure-player-controls");
    const inner = foot ? outer : body.getBoundingClientRect();
    const [across, down] = [
      Math.max(outer.left - box.left, box.right - outer.right) / scale,
      Math.max(inner.top - box.top, box.bottom - inner.bottom) / scale,
    ];
    const name = `${node.localName}.${node.className.baseVal ?? node.className}`;
    if (Math.max(across, down) > 1.5) found.over.push(`${name} by ${across} and ${down}`);
  }
  // Lines that a bench shows are whole.
  for (const source of body.querySelectorAll(".bench-source")) {
    const { top, bottom } = source.getBoundingClientRect();
    const heads = [...source.querySelectorAll(".kl-headings > .kl-c")]
      .map((one) => one.getBoundingClientRect()).filter((one) => one.top < top + 2);
    const under = Math.max(top, ...heads.map((one) => one.bottom).filter((y) => y < bottom));
    for (const row of source.querySelectorAll(".kl-row:not(.kl-headings)")) {
      const box = row.getBoundingClientRect();
      const cut = (edge) => Math.min(edge - box.top, box.bottom - edge) / scale;
      if (Math.max(cut(under), cut(bottom)) > 1.5) {
        found.over.push(`line ${row.firstChild.textContent} of a bench, cut`);
      }
    }
  }
  const walker = document.createTreeWalker(sheet, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, holder = node.parentElement;
    if (!node.data.trim() || holder.closest(SMALLER) || !holder.getClientRects().length) continue;
    let px = parseFloat(getComputedStyle(holder).fontSize);
    const ctm = holder.closest("svg") && holder.getScreenCTM?.();
    if (ctm) px *= Math.hypot(ctm.a, ctm.b) / scale;
    if (px < LEAST - 0.05) {
      found.small.push(`${px.toFixed(1)} px: ${node.data.trim().slice(0, 40)}`);
    }
  }
  found.small = [...new Set(found.small)].slice(0, 8);
  found.scrolls = body.matches(".scrolls");
  found.figures = [...body.querySelectorAll(":scope .figure, :scope .bench")].length;
  // A line with nothing but brackets on it is not one of code.
  const lines = ".code pre.lines > span, .listing .kl-row:not(.kl-headings, .kl-sums) > .kl-c";
  const counts = (line) => /\\w/.test(line.textContent);
  found.lines = [...body.querySelectorAll(lines)].filter(counts).length;
  found.device = sheet.querySelector(".sheet-foot").textContent;
  found.covered = covered(sheet).bad;
  return found;
}""".replace("SMALLER", f"{', '.join(SMALLER)!r}").replace("LEAST", str(LEAST))

# Every choice of every control of the benches on show, in all combinations: the counters,
# the source with those of each line and the charts have to change, and what ran has a figure.
TURN_BENCHES = """function turnBenches(measured) {
  return [...document.querySelectorAll(".present .kernel-bench")].map((bench) => {
    const inputs = [...bench.querySelectorAll(":scope > .bench-controls input")];
    const names = [...new Set(inputs.map((input) => input.dataset.name))];
    const seen = { head: new Set(), source: new Set(), sweep: new Set(), figure: new Set() };
    const bad = [];
    let count = 0;
    const html = (name) => bench.querySelector(`.bench-${name}`)?.innerHTML ?? "";
    const turn = (rest, chosen) => {
      if (!rest.length) {
        count += 1;
        const panel = bench.querySelector(".bench-panel");
        const words = ` ${bench.querySelector(".bench-of")?.textContent} `;
        if (panel.getAttribute("aria-busy") !== "false") bad.push(chosen.join(" "));
        for (const one of chosen) if (!words.includes(` ${one} `)) bad.push(`${one} in ${words}`);
        const ran = bench.querySelector(".bench-verdict.bench-right, .bench-verdict.bench-wrong");
        if (ran && !html("figure")) bad.push(`no figure: ${chosen.join(" ")}`);
        for (const [name, found] of Object.entries(seen)) found.add(html(name));
        return;
      }
      const [name, ...others] = rest;
      for (const input of inputs.filter((one) => one.dataset.name === name)) {
        input.click();
        turn(others, [...chosen, `${name}=${input.dataset.value}`]);
      }
    };
    turn(names, []);
    const views = [...bench.querySelectorAll(".bench-view button")];
    for (const view of [...views.slice(1), views[0]]) {
      view.click();
      measured.push(measure());
    }
    const sizes = Object.entries(seen).map(([name, found]) => [name, found.size]);
    return { names, count, bad, views: views.length, different: Object.fromEntries(sizes) };
  });
}"""

# The choices of what was `interact`: each shows something, and nothing grows over its sheet.
TURN_CHOICES = """function turnChoices(measured) {
  const shown = () => document.querySelector(".present .body").innerHTML;
  const seen = new Set();
  let count = 0;
  const look = () => {
    measured.push(measure());
    seen.add(shown());
    count += 1;
  };
  const radios = [...document.querySelectorAll(".present .choices-bar input[type=radio]")];
  const first = radios.filter((radio) => radio.checked);
  for (const radio of radios) {
    radio.click();
    look();
  }
  for (const radio of first) radio.click();
  for (const slider of document.querySelectorAll(".present .choices-bar input[type=range]")) {
    for (const end of ["min", "max"]) {
      slider.value = slider[end];
      slider.dispatchEvent(new Event("input", { bubbles: true }));
      look();
    }
  }
  return { count, different: seen.size };
}"""

# All slides one after the other, everything on each revealed, players at three of their steps.
ALL = f"""() => {{
  {pointer_checks.SCRIPT}
  {MEASURE}
  {TURN_BENCHES}
  {TURN_CHOICES}
  return Array.from({{ length: Reveal.getTotalSlides() }}, (_, number) => {{
    Reveal.slide(number, 0, 99);
    const measured = [measure()];
    const scrubber = document.querySelector(".present .figure-player-controls input[type=range]");
    const to = (value) => {{
      scrubber.value = value;
      scrubber.dispatchEvent(new Event("input", {{ bubbles: true }}));
      measured.push(measure());
    }};
    if (scrubber) [scrubber.max >> 1, scrubber.max, 0].forEach(to);
    const playable = document.querySelector(".present .figure-player-play")?.offsetHeight > 0;
    const benches = turnBenches(measured);
    const choices = turnChoices(measured);
    return {{ number, measured, playable, benches, choices }};
  }});
}}"""

# All players at once: which of them do not come to another step.
PLAY = """async () => {
  const players = [...document.querySelectorAll(".slides .figure-player")].filter(
    (one) => one.querySelector(".figure-player-play") && !one.matches(".figure-player-still"));
  const step = (one) => one.querySelector(".figure-player-counter").textContent.split(" / ")[0];
  for (const one of players) {
    one.querySelector(".figure-player-first").click();
    const speed = one.querySelector("select");
    speed.value = "4";
    speed.dispatchEvent(new Event("change"));
    one.querySelector(".figure-player-play").click();
  }
  const end = performance.now() + 10000;
  let waiting = players;
  while (waiting.length && performance.now() < end) {
    await new Promise((done) => setTimeout(done, 50));
    waiting = waiting.filter((one) => step(one) === "1");
  }
  for (const one of players) one.querySelector(".figure-player-first").click(); // which stops it
  return waiting.map((one) => one.getAttribute("aria-label"));
}"""


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
    page.locator("html[data-ready]").wait_for(state="attached", timeout=30_000)
    yield page
    context.close()
    assert not troubles, troubles


def slides(page) -> Iterator[int]:
    """Go through the slides, everything on each revealed."""
    for number in range(page.evaluate("Reveal.getTotalSlides()")):
        page.evaluate(f"Reveal.slide({number}, 0, 99)")
        yield number


def check(browser, path: Path, hands: bool = True) -> dict:
    """Everything that holds of any deck; returns what was counted.

    All slides are measured, rehearsed, printed, and hit-tested at a laptop's and a phone's sizes.
    With `hands`, controls of each kind are used as well, at all sizes: their code is the same in
    every deck.
    """
    assert path.stat().st_size <= 2.5 * 2**20
    counted = {"slides": 0, "players": 0, "settings": 0, "turned": 0, "device": ""}
    with opened(browser, path) as page:
        # About a second of a processor; by the clock it would be the machine that is judged.
        assert 0 < processor_seconds(page) < 4
        slides_of = page.evaluate(ALL)
        judge(path, slides_of, counted)
        counted["measured"] = deck_measures.judged(page.evaluate(deck_measures.MEASURES))
        counted["kinds"] = pointer_checks.kinds(page)
        assert not (still := page.evaluate(PLAY)), still
        counted["players"] = sum(slide["playable"] for slide in slides_of)
        clicker.rehearse(page, clicker.sender(page))
        # As the first size all sheets were hit-tested above.
        reached(page, pointer_checks.SIZES if hands else pointer_checks.SHAPES)
        if hands:
            for slide in slides_of:
                if slide["playable"]:
                    scrub(page, slide["number"])
            clicker.keys(page, lambda key, times: page.keyboard.press(key))
            for click in (page.mouse.click, pointer_checks.tapper(page)):
                kinds, dead = pointer_checks.dead(page, click)
                assert "turn" in kinds and not dead, dead
                assert not counted["players"] or {"step", "play", "scrubber"} <= set(kinds), kinds
        assert paper_checks.check(page) == counted["slides"]
    return counted


def processor_seconds(page) -> float:
    """What the process that draws one of Playwright's pages has taken of a processor so far."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(one["value"] for one in metrics if one["name"] == "ProcessTime")


def reached(page, sizes: list[tuple[int, int]]) -> None:
    """A pointer reaches every control at these sizes; the page then has its own again."""
    for width, height in sizes:
        page.set_viewport_size({"width": width, "height": height})
        found = pointer_checks.covered_slides(page)
        assert found["count"] and not found["bad"], (width, height, found["bad"])
    page.set_viewport_size({"width": 1280, "height": 720})


def judge(path: Path, slides_of: list[dict], counted: dict) -> None:
    """What has been measured on all slides, and what their benches and controls have shown."""
    for slide in slides_of:
        said = f"slide {slide['number'] + 1} of {path.name}: {slide['measured'][0]}"
        for found in slide["measured"]:
            whole = f"slide {slide['number'] + 1} of {path.name}: {found}"
            assert (round(found["width"]), round(found["height"])) == (1280, 720), whole
            assert not found["over"] and not found["small"] and not found["scrolls"], whole
            assert not found["covered"], whole
            assert found["figures"] <= 1 and found["lines"] <= 24, whole
        for bench in slide["benches"]:
            assert bench["names"] and not bench["bad"] and bench["views"] == 3, (said, bench)
            assert bench["different"]["head"] == bench["count"] > 1, (said, bench)
            # A kernel may ask its banks for the same whatever it is set to.
            seen = [n for name, n in bench["different"].items() if name != "figure"]
            assert min(seen) > 1 <= bench["different"]["figure"], (said, bench)
            counted["settings"] += bench["count"]
        if slide["choices"]["count"]:
            assert slide["choices"]["different"] > 1, said
            counted["turned"] += slide["choices"]["count"]
    counted["slides"] = len(slides_of)
    counted["device"] = slides_of[0]["measured"][0]["device"]


def check_in_firefox(firefox, path: Path, hands: bool = True) -> None:
    """The same in Firefox: it opens, fits its sheets, and with `hands` plays and answers."""
    firefox.troubles.clear()
    firefox.open(path.as_uri())
    firefox.wait_for("document.documentElement.dataset.ready")
    judge(path, firefox.evaluate(f"({ALL})()"), {"settings": 0, "turned": 0})
    found = pointer_checks.covered_slides(firefox)
    assert found["count"] and not found["bad"], (path.name, found["bad"])
    if hands:
        assert not (still := firefox.evaluate(f"({PLAY})()")), still
        for click in (firefox.click, firefox.tap):
            kinds, dead = pointer_checks.dead(firefox, click)
            assert "turn" in kinds and not dead, (path.name, dead)
        clicker.keys(firefox, firefox.press)
    assert not firefox.troubles, firefox.troubles


def scrub(page, number: int) -> None:
    """A player scrubs and steps; its keys are its own, and the deck stays where it is."""
    page.evaluate(f"Reveal.slide({number}, 0, 99)")
    scrubber = page.locator(".present .figure-player-controls input[type=range]").first
    total = 1 + int(scrubber.get_attribute("max"))
    scrubber.fill(str(total - 1))
    scrubber.press("ArrowLeft")
    found = page.evaluate(
        """() => [
            document.querySelector(".present .figure-player-counter").textContent,
            Reveal.getIndices().h,
            document.querySelectorAll(".present .figure-player-stage > svg").length,
        ]"""
    )
    assert found == [f"{total - 1} / {total}", number, 1]
