"""A class rehearsed with the clicker's two keys alone, and what else a lecturer's keys must do."""

from __future__ import annotations

# What is on show, as its reader sees it: the slide's number, the figure's step, how many answers.
_SHOWN = """
const counterOf = (section) => section.querySelector(
  ".figure-player:not(.figure-player-still) .figure-player-counter")?.textContent ?? "";
const shown = () => {
  const section = document.querySelector(".slides > .present");
  const answers = [...section.querySelectorAll(".fragment:not(.key-frame)")];
  return [
    Number(section.querySelector(".sheet-number").textContent.split(" / ")[0]),
    counterOf(section),
    answers.filter((one) => one.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true })
      || one.matches(".visible")).length,
  ];
};"""

# Begin at the first slide and write down what each key that comes up leaves on show. Gives what
# has to come by: of each slide its figure's key frames and its answers, as they stand there.
_BEGIN = f"""(() => {{
  {_SHOWN}
  Reveal.slide(0, 0, -1);
  window.rehearsed = [shown()];
  window.addEventListener("keyup", () => window.rehearsed.push(shown()));
  const expected = [];
  [...document.querySelectorAll(".slides > section")].forEach((section, number) => {{
    const player = section.querySelector(".figure-player:not(.figure-player-still)");
    const total = counterOf(section).split(" / ")[1];
    const steps = player?.dataset.keyFrames?.split(" ") ?? [null];
    const at = (step) => step === null ? "" : `${{Number(step) + 1}} / ${{total}}`;
    const answers = [...section.querySelectorAll(".fragment:not(.key-frame)")];
    // What has one number comes in one step, as the lines of a listing do.
    const numbers = [...new Set(answers.map((one) => Number(one.dataset.fragmentIndex)))];
    const till = numbers.sort((a, b) => a - b).map((last) =>
      answers.filter((one) => Number(one.dataset.fragmentIndex) <= last));
    const before = till.filter((group) => player &&
      (group.at(-1).compareDocumentPosition(player) & Node.DOCUMENT_POSITION_FOLLOWING)).length;
    const count = (n) => (n ? till[n - 1].length : 0);
    for (let n = 0; n < before; n++) expected.push([number + 1, at(steps[0]), count(n)]);
    for (const step of steps) expected.push([number + 1, at(step), count(before)]);
    const last = at(steps.at(-1));
    for (let n = before; n < till.length; n++) expected.push([number + 1, last, count(n + 1)]);
  }});
  return expected;
}})()"""


# Whatever takes keys of its own; the first slide but the last that has it, to its last step.
HELD = {
    "figure": ".figure-player-play",
    "scrubber": ".figure-player-controls input[type=range]",
    "list": ".figure-player-controls select",
    "bench": ".bench-control input:checked",
    "bench's view": ".bench-view button",
    "choice": ".choices-bar input[type=radio]",
    "slider": ".choices-slider input",
}
_FOCUS = """(selector) => {
  const sections = [...document.querySelectorAll(".slides > section")].slice(0, -1);
  const number = sections.findIndex((one) => one.querySelector(selector));
  if (number < 0) return null;
  Reveal.slide(number, 0, 99);
  sections[number].querySelector(selector).focus();
  return document.activeElement.matches(selector) ? number : -1;
}"""
_PLACE = "[Reveal.getIndices().h, Reveal.isPaused()]"

# What sends a key to where the focus is, without waiting for each slide to be painted.
_SEND = """([key, times]) => {
  for (let n = 0; n < times; n++) {
    for (const type of ["keydown", "keyup"]) {
      const event = new KeyboardEvent(type, { key, bubbles: true, cancelable: true });
      (document.activeElement ?? document.body).dispatchEvent(event);
    }
  }
}"""


def sender(page):
    """What presses a key often and soon in a page of Playwright's, by its scripts."""
    return lambda key, times: page.evaluate(_SEND, [key, times])


def rehearse(page, press) -> int:
    """Lead a class there and back with two keys; returns how many times one is pressed.

    `page` is Playwright's or a `Firefox`, and `press` presses a key as often as it is told to.
    """
    expected = page.evaluate(_BEGIN)
    presses = len(expected) - 1
    press("PageDown", presses + 1)  # the last one finds nothing more
    press("PageUp", presses + 1)
    forth = [*expected, expected[-1]]
    back = [*expected[-2::-1], expected[0]]
    found = page.evaluate("window.rehearsed")
    for number, (got, wanted) in enumerate(zip(found, [*forth, *back], strict=True)):
        assert got == wanted, (number, got, wanted)
    return 2 * presses + 2


def keys(page, press) -> list[str]:
    """The clicker's keys work wherever the focus is; other keys are a widget's own until Escape.

    Returns what of `HELD` the deck has. `page` and `press` are as for `rehearse`.
    """
    had = []
    for name, selector in HELD.items():
        at = page.evaluate(f"({_FOCUS})({selector!r})")
        if at is None:
            continue
        had.append(name)
        for key, place in [
            ("b", [at, True]),
            ("PageDown", [at, True]),  # black stays black
            (".", [at, False]),
            ("ArrowRight", [at, False]),
            ("PageDown", [at + 1, False]),
            ("PageUp", [at, False]),
        ]:
            press(key, 1)
            found = page.evaluate(_PLACE)
            assert found == place, (name, key, found, place)
        assert page.evaluate(f"({_FOCUS})({selector!r})") == at, name
        press("Escape", 1)
        assert not page.evaluate("Reveal.isOverview()"), name
        press("ArrowRight", 1)
        assert page.evaluate(_PLACE) == [at + 1, False], name
    return had


def tab(page, press) -> int:
    """Tab goes through a slide's controls in their order and to no other slide's.

    Returns how many places on the slide it came to; `page` and `press` are as for `rehearse`.
    """
    at = page.evaluate(f"({_FOCUS})({', '.join(HELD.values())!r})")
    if at is None:
        return 0
    page.evaluate(
        """(() => {
            const listed = [...document.querySelectorAll("*")];
            window.tabbed = [];
            const within = (node, selector) => Boolean(node.closest(selector));
            window.addEventListener("focusin", ({ target: to }) => window.tabbed.push(
                [listed.indexOf(to), within(to, ".slides"), within(to, ".present")]));
        })()"""
    )
    press("Tab", 12)
    inside = []
    for place, in_slides, present in page.evaluate("window.tabbed"):
        assert present or not in_slides, (place, "another slide")
        if not present:
            break
        inside.append(place)
    assert inside == sorted(inside), inside
    return len(inside)
