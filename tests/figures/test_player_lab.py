"""The player in JupyterLab: it talks to the kernel, and JupyterLab's own keys leave it alone."""

from __future__ import annotations

import contextlib

import nbformat
import pytest
from jupyter_lab import run_all
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

CELLS = [
    """\
from helpers.figures.ideas.dot_product import DotProduct
from helpers.figures.canvas import Canvas
from helpers.figures.player import Player

def picture(text):
    canvas = Canvas(400, 100, text)
    canvas.text(20, 50, text)
    return canvas.frame(f"caption of {text}")

player = Player([picture(f"first {n}") for n in range(6)], alt="Test", interval=50)
player""",
    "arrows = DotProduct((2, 1), (0.5, 1.5), extent=2.5)\narrows",
    "player",  # the same player twice on the page
    'print("step", player.index, "product", round(arrows.value, 2))',
    'player.frames = [picture(f"second {n}") for n in range(4)]; print("changed")',
    "player.index = 1; arrows.k = [1, 1]; print('moved')",
]


@pytest.fixture
def notebook(lab) -> str:
    """Where the cells lie as a notebook."""
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    kernel = {"display_name": "Python 3 (ipykernel)", "name": "python3", "language": "python"}
    written = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(written, lab.folder / "player.ipynb")
    return "player.ipynb"


def run_cell(page, number: int, output: str) -> str:
    """Runs a cell by its editor until it prints `output`, and gives all that it prints.

    Until: ipywidgets holds a change back while the kernel works off the one before, so that a cell
    that is run at once can come first.
    """
    cell = page.locator(".jp-CodeCell").nth(number)
    prompt, printed = cell.locator(".jp-InputPrompt"), cell.locator(".jp-OutputArea-output")
    for patience in (1_000, 2_000, 5_000):
        cell.locator(".cm-content").click()
        before = prompt.inner_text()
        page.keyboard.press("Control+Enter")
        expect(prompt).not_to_have_text(before)
        expect(prompt).not_to_have_text("[*]:", timeout=10_000)
        with contextlib.suppress(AssertionError):
            expect(printed).to_contain_text(output, timeout=patience)
            break
    expect(printed).to_contain_text(output)
    return printed.inner_text()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_player_in_jupyterlab(lab, notebook, theme):
    page = lab.page
    page.set_viewport_size({"width": 1400, "height": 1000})
    run_all(lab, notebook, theme)
    players = page.locator(".figure-player:has(.figure-player-controls)")
    player, twin = players.nth(0), players.nth(1)
    counter = player.locator(".figure-player-counter")
    # Running all cells changed the frames and the step: both views follow
    expect(counter).to_have_text("2 / 4")
    expect(twin.locator(".figure-player-counter")).to_have_text("2 / 4")
    expect(player.locator("svg text").first).to_have_text("second 1")

    cells = page.locator(".jp-CodeCell")
    assert cells.count() == len(CELLS)
    player.locator(".figure-player-stage").click()
    assert player.evaluate("(e) => e.contains(document.activeElement)")
    active = page.locator(".jp-Cell.jp-mod-active").evaluate_all(
        "(found) => found.map((e) => [...e.parentElement.children].indexOf(e))"
    )
    for key in ("ArrowRight", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "x", "a", "b", "d",
                "d", "Home", "End", "ArrowLeft"):  # fmt: skip
        page.keyboard.press(key)
    expect(counter).to_have_text("3 / 4")
    expect(twin.locator(".figure-player-counter")).to_have_text("3 / 4")
    assert cells.count() == len(CELLS)
    assert active == page.locator(".jp-Cell.jp-mod-active").evaluate_all(
        "(found) => found.map((e) => [...e.parentElement.children].indexOf(e))"
    )
    assert run_cell(page, 3, "step 2").startswith("step 2 product 3")

    player.get_by_role("button", name="First").click()
    player.get_by_role("button", name="Play").click()
    expect(counter).to_have_text("4 / 4")
    expect(player.get_by_role("button", name="Play")).to_be_visible()
    run_cell(page, 3, "step 3")

    page.locator(".figure-drag").scroll_into_view_if_needed()
    box = page.locator(".figure-drag").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + box["height"] * 0.3)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + box["height"] * 0.3, steps=4)
    expect(page.locator(".figure-dot-dot")).to_have_text("q·k = 5.00")  # k = (2, 1)
    page.mouse.up()
    run_cell(page, 3, "product 5.0")

    look = player.evaluate(
        "(e) => [getComputedStyle(e).backgroundColor,"
        " getComputedStyle(e.querySelector('svg text')).fill]"
    )
    shade = [sum(int(n) for n in value.strip("rgba()").split(",")[:3]) for value in look]
    assert (shade[0] < shade[1]) == (theme == "dark")
