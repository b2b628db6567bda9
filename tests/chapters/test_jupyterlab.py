"""The chapters in JupyterLab, in a real browser: run all cells, and look at what the page shows."""

from __future__ import annotations

import pytest
from jupyter_lab import run_all, saved, shoot
from noise import noise

pytestmark = pytest.mark.browser

# All chapters are executed for their decks already. Between them these have each kind of figure,
# control, chart and answer, and a bench in both themes; no chapter is longer than the first.
RUNS = [("08_flash_attention", "light"), ("02_naive_kernels", "dark"), ("10_overlap", "dark")]


@pytest.mark.parametrize(("chapter", "theme"), RUNS)
def test_run_all(lab, screenshots, chapter, theme):
    page, path = lab.page, f"notebooks/{chapter}.ipynb"
    page.set_viewport_size({"width": 1280, "height": 720})
    run_all(lab, path, theme)
    shoot(page, screenshots, f"{chapter}-{theme}")

    assert page.evaluate("document.body.dataset.jpThemeLight") == str(theme == "light").lower()
    assert page.locator(".jp-OutputArea [data-mime-type*=error]").count() == 0
    said = page.locator(".jp-OutputArea [data-mime-type*=stderr]").all_text_contents()
    assert not any(map(noise, said)), said
    answers_wait_until_they_are_asked_for(page)
    folded = page.locator(".jp-MarkdownOutput details > summary").filter(has_text="Notes, ")
    assert folded.count() > 5
    assert not any(one.evaluate("one => one.parentElement.open") for one in folded.all())
    counters = page.locator(".jp-OutputArea .kernel-listing.kl-counted")
    assert counters.count() >= 1
    heads = counters.first.locator("[role=columnheader]").all_inner_texts()
    known = ("sectors", "wavefronts", "instructions")
    assert any(one in head for head in heads for one in known), heads
    # The picture of each: a player's controls are SVG as well.
    figures = page.locator(
        ".jp-OutputArea .kernel-figure svg, .jp-OutputArea .figure-player svg[role=img]"
    )
    assert figures.count() >= 3
    for n in range(figures.count()):
        box = figures.nth(n).bounding_box()
        assert box and box["width"] > 200 and box["height"] > 60
    controls = page.locator(".jp-OutputArea .widget-dropdown select, .jp-OutputArea .kernel-bench")
    assert controls.count() >= 1
    for cell in saved(lab, path):
        for output in cell.outputs:
            assert output.output_type != "error", output.get("evalue")
            assert output.get("name") != "stderr" or not noise(output.text), output.text
    if chapter == "02_naive_kernels":
        a_control_draws_the_figure_anew(page)


def answers_wait_until_they_are_asked_for(page) -> None:
    """What cells with the tag `answer` show is hidden until a click on the line above it."""
    folds = page.locator(".jp-OutputArea .answer-fold")
    assert folds.count() >= 2
    for n in range(folds.count()):
        area = folds.nth(n).locator("xpath=ancestor::*[contains(@class, 'jp-OutputArea ')][1]")
        results = area.locator("> .jp-OutputArea-child + .jp-OutputArea-child")
        assert results.count() >= 1 and not any(one.is_visible() for one in results.all())
        folds.nth(n).locator("summary").click()
        assert all(one.is_visible() for one in results.all())


def a_control_draws_the_figure_anew(page) -> None:
    interact = page.locator(".jp-OutputArea .widget-interact").filter(has_text="TILE")
    figure = interact.locator(".kernel-figure svg")
    assert "16 elements, 16 sectors" in figure.text_content()
    interact.locator("select").select_option("32")
    figure.filter(has_text="32 elements, 32 sectors").wait_for(timeout=30_000)
