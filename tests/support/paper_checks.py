"""What a deck is like on paper: nothing cut, nothing to click, and what its PDFs hold."""

from __future__ import annotations

import re
from pathlib import Path

from pypdf import PdfReader

# What of the slides as pages is cut off, or offers to be clicked, and figures that are not there.
_BAD = r"""() => {
  const bad = [];
  const shows = (one) => one.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const parts = "p, li, tr, figcaption, pre.lines > span, .kl-row, " +
    ".figure svg:not(.maths), .bench-figure > svg";
  const unseen = ".bench-spoken, .figure-player-status";
  // How far something reaches over the first thing around it that may cut it off.
  const over = (one, sheet) => {
    const box = one.getBoundingClientRect();
    for (let up = one; box.width && up !== sheet;) {
      up = up.parentElement;
      const cuts = getComputedStyle(up).overflow !== "visible";
      if (!cuts && !up.matches(".sheet, .body, .bench-source")) continue;
      const room = up.getBoundingClientRect();
      const most = Math.max(box.bottom - room.bottom, room.top - box.top,
                            box.right - room.right, room.left - box.left);
      if (most > 2) return `${Math.round(most)} pixels over ${up.className}`;
    }
    return null;
  };
  for (const sheet of [...document.querySelectorAll(".slides .sheet")].filter(shows)) {
    const number = sheet.querySelector(".sheet-number").textContent;
    const say = (...what) => bad.push(`${number}: ${what.join(" ")}`);
    const controls = [...sheet.querySelectorAll("button, input, select, textarea")];
    for (const one of controls.filter(shows)) {
      // The name of the kernel whose source is shown is a button, too.
      if (!one.matches(".bench-tabs button[aria-pressed=true]")) say(one.outerHTML.slice(0, 80));
    }
    for (const one of [...sheet.querySelectorAll(parts)].filter(shows)) {
      const far = one.closest(unseen) ? null : over(one, sheet);
      if (far) say(far, one.localName, one.textContent.slice(0, 50));
    }
    for (const one of [...sheet.querySelectorAll(".figure, .bench")].filter(shows)) {
      const drawn = [...one.querySelectorAll("svg, img, .kl-row")].map((part) => part.clientWidth);
      if (!(one.offsetHeight > 60 && Math.max(0, ...drawn) > 40)) say("a figure is not there");
    }
  }
  return bad;
}"""
_CUT_NOTES = """[...document.querySelectorAll(".handout-notes :is(pre, p)")]
  .filter((note) => note.scrollWidth > note.clientWidth + 1)
  .map((note) => note.textContent.slice(0, 60))"""
_TURN = """(name) => {
  window.dispatchEvent(new Event("afterprint"));
  document.documentElement.classList.toggle("handout", name === "handout");
  if (name) window.dispatchEvent(new Event("beforeprint"));
  return [...document.querySelectorAll(".slides > section")].map((one) => one.offsetHeight);
}"""


def check(page) -> int:
    """Nothing is cut off or offers to be clicked where an open deck is printed; how many pages."""
    heights = page.evaluate(_TURN, "slides")
    assert set(heights) == {720}
    assert not (bad := page.evaluate(_BAD)), bad
    handed = page.evaluate(_TURN, "handout")
    assert not (bad := page.evaluate(_BAD)), bad
    assert not (cut := page.evaluate(_CUT_NOTES)), cut
    # Half a page of A4 or US Letter, of which 30 mm are margins; none for an answer alone.
    assert max(handed) <= (279 - 30) / 2 / 25.4 * 96 or page.locator(".handout-notes").count()
    page.evaluate(_TURN, "")
    return len(heights)


def texts(pdf: Path) -> list[str]:
    """The words of each page."""
    return [re.sub(r"\s+", " ", page.extract_text()) for page in PdfReader(pdf).pages]


def outline(pdf: Path) -> list[tuple[str, int]]:
    """Titles in the outline, each with its page."""
    reader = PdfReader(pdf)

    def walk(entries):
        for entry in entries:
            if isinstance(entry, list):
                yield from walk(entry)
            else:
                yield entry.title.strip(), reader.get_destination_page_number(entry) + 1

    return list(walk(reader.outline))


def links(pdf: Path) -> set[str]:
    """Addresses that lead out of it."""
    found = [
        annotation.get_object().get("/A", {}).get("/URI")
        for page in PdfReader(pdf).pages
        for annotation in page.get("/Annots") or []
    ]
    return {address for address in found if address}
