"""How full the slides of decks are, and which of their lines of code are broken.

`python tests/support/deck_measures.py FOLDER [--slides]` prints a table of the decks in a folder.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

# Of each slide, everything on it revealed: the share of the room below the title that lies above
# the last thing on it, lines of code and how many of them are broken, and whether code is alone.
MEASURES = r"""() => [...document.querySelectorAll(".slides > section")].map((section, number) => {
  Reveal.slide(number, 0, 99);
  const sheet = section.querySelector(".sheet");
  const body = sheet.querySelector(".body");
  const outer = sheet.getBoundingClientRect();
  const scale = outer.width / 1280;
  const [top, bottom] = sheet.matches(".opening") ? [236, 670] : [84, 670];
  const seen = body.querySelectorAll(
    "p, li, table, pre, svg, img, summary, .kernel-listing, .kernel-bench, .choices-bar");
  const boxes = [...seen].map((one) => one.getBoundingClientRect())
    .filter((box) => box.width && box.height);
  const last = Math.max(0, ...boxes.map((box) => (box.bottom - outer.top) / scale));
  const rows = ".kl-row:not(.kl-headings, .kl-sums) > .kl-c";
  const lines = [...body.querySelectorAll(`pre.lines > span, ${rows}`)]
    .filter((line) => line.offsetHeight && !line.closest(".text"));
  const one = (line) => parseFloat(getComputedStyle(line).lineHeight);
  // Of the text alone: machine code beside it makes a row tall, too.
  const tall = (line) => {
    const text = document.createRange();
    text.selectNodeContents(line);
    return text.getBoundingClientRect().height / scale;
  };
  const broken = lines.filter((line) => tall(line) > 1.6 * one(line));
  const kinds = [...body.children].map((one) => one.classList[1] ?? one.classList[0]);
  return {
    title: (sheet.querySelector(".title")?.innerText ?? "").replace(/\s+/g, " ").slice(0, 60),
    opening: sheet.matches(".opening"),
    fill: Math.min(1, Math.max(0, (Math.min(last, bottom) - top) / (bottom - top))),
    lines: lines.length,
    broken: broken.map((line) => line.textContent),
    kinds,
    codeAlone: kinds.length > 0 && kinds.every((kind) => kind === "code"),
    scrolls: body.matches(".scrolls"),
    sizes: [...sheet.classList].slice(1).join(" "),
  };
})"""
FULL = 0.4  # what fills less of its slide is no slide


class Measured(NamedTuple):
    """What a deck's slides come to.

    Attributes:
        slides: how many.
        sparse: numbers of those that are less than `FULL` full, from 1.
        lines: of code, in cells and listings.
        broken: those that are set in two lines.
        alone: numbers of slides with nothing but code.
    """

    slides: int
    sparse: list[int]
    lines: int
    broken: list[str]
    alone: list[int]


def judged(found: list[dict]) -> Measured:
    """What `MEASURES` has found, in one."""
    return Measured(
        len(found),
        [n for n, one in enumerate(found, 1) if one["fill"] < FULL and not one["opening"]],
        sum(one["lines"] for one in found),
        [line for one in found for line in one["broken"]],
        [n for n, one in enumerate(found, 1) if one["codeAlone"]],
    )


# Of each chapter's deck, at most so many slides that are hardly filled, and broken lines of code.
SPARSE = 1  # so no more than 15 of all decks
BROKEN = {"03": 2, "04": 2, "05": 2, "06": 2, "07": 2}  # in the sources of benches
assert sum(BROKEN.values()) <= 10


def judge_chapter(notebook: Path, found: Measured) -> None:
    """A chapter's deck is well filled; its minutes are those of its speaker notes."""
    number = notebook.stem[:2]
    assert len(found.sparse) <= SPARSE, found.sparse
    assert len(found.broken) <= BROKEN.get(number, 0), found.broken
    assert not found.alone, found.alone


def main(folder: Path, each: bool) -> None:
    import deck_checks
    from chromium import CHROMIUM_OPTIONS, chromium_path
    from playwright.sync_api import sync_playwright

    total = [0, 0, 0, 0, 0]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=CHROMIUM_OPTIONS)
        for path in sorted(folder.glob("[0-9]*.html")):
            with deck_checks.opened(browser, path) as page:
                found = page.evaluate(MEASURES)
            deck = judged(found)
            if each:
                for n, one in enumerate(found, 1):
                    print(
                        f"{n:3} {one['fill']:4.0%} {'*' if n in deck.sparse else ' '}"
                        f"{'c' if n in deck.alone else ' '} {one['title']:62}"
                        f"{'+'.join(one['kinds'])} {one['sizes']}"
                    )
                    for line in one["broken"]:
                        print(f"        broken: {line}")
            counts = [len(x) if isinstance(x, list) else x for x in deck]
            total = [a + b for a, b in zip(total, counts, strict=True)]
            print(
                f"{path.stem:24} slides {counts[0]:3}  sparse {counts[1]:2}  lines {counts[2]:3}  "
                f"broken {counts[3]:2}  code alone {counts[4]}"
            )
        browser.close()
    print("total                    slides {} sparse {} lines {} broken {} alone {}".format(*total))


if __name__ == "__main__":
    main(Path(sys.argv[1]), "--slides" in sys.argv)
