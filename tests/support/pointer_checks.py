"""Whether a pointer reaches every control: the DOM's `click` does not notice what lies over one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

# Width and height of what decks are looked at on: a laptop, a projector, an old one, a phone.
SIZES = [(1920, 1080), (1024, 768), (844, 390), (390, 844), (1280, 720)]
# Those of them with less room around a sheet than the last: an old projector leaves more.
SHAPES = [(844, 390), (390, 844)]

# The functions that run in the page.
SCRIPT = Path(__file__).with_suffix(".js").read_text("utf-8")

# One of each kind of control that a deck may have; what does nothing where it stands is left out.
KINDS = {
    "step": ":is(.figure-player-previous, .figure-player-next)[aria-disabled=false]",
    "play": ".figure-player-play",
    "loop": ".figure-player-loop",
    "scrubber": ".figure-player-controls input[type=range]",
    "speed": ".figure-player-controls select",
    "setting": ".bench-control label:not(:has(:checked))",
    "source": ".bench-tabs button[aria-pressed=false]",
    "view": ".bench-view button[aria-pressed=false]",
    "choice": ".choices-bar fieldset label:not(:has(:checked))",
    "slider": ".choices-slider input",
    "handle": ".figure-drag",
    "link": ".body a[href]",
    "answer": ".body summary",
    "turn": ".controls :is(.navigate-right, .navigate-left).enabled",
}


def covered(page) -> list[str]:
    """The controls of a page that a pointer does not reach, and what lies over each.

    `page` is Playwright's or a `Firefox`, with any page in it.
    """
    return page.evaluate(_call("covered().bad"))


def covered_slides(page) -> dict:
    """The same of all slides of a deck, as `bad`, and how many controls were tried, as `count`."""
    return page.evaluate(_call("coveredSlides()"))


def dead(page, click: Callable[[float, float], None]) -> tuple[list[str], list[str]]:
    """The kinds of controls that a deck has, and those of them where `click` changes nothing.

    `page` is Playwright's or a `Firefox`; `click` does at a place of its window what a hand does.
    """
    page.evaluate(_call("takeAim()"))
    had, still = [], []
    for kind, selector in KINDS.items():
        place = page.evaluate(f"window.aim({selector!r})")
        if place is None:
            continue
        had.append(kind)
        click(*place)
        if not page.evaluate("window.changed()"):
            still.append(kind)
    return had, still


def tapper(page) -> Callable[[float, float], None]:
    """What taps a page of Playwright's Chromium with a finger."""
    session = page.context.new_cdp_session(page)

    def tap(x: float, y: float) -> None:
        touch = {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]}
        session.send("Input.dispatchTouchEvent", touch)
        session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    return tap


def kinds(page) -> set[str]:
    """The kinds of controls that a deck has anywhere."""
    selectors = json.dumps(list(KINDS.values()))
    found = page.evaluate(f"{selectors}.map((one) => !!document.querySelector(one))")
    return {kind for kind, there in zip(KINDS, found, strict=True) if there}


def _call(expression: str) -> str:
    return f"(() => {{ {SCRIPT}; return {expression}; }})()"
