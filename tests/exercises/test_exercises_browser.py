"""An exercise in JupyterLab: a student fills a gap, sees green, breaks it, and sees the line."""

from __future__ import annotations

import re

import nbformat
import pytest
from playwright.sync_api import expect

from helpers.exercises import solution

pytestmark = pytest.mark.browser

NAME = "04_rows_in_turn"
DIVIDES = (
    "        for (int j = tid; j < N; j += BLOCK_SIZE) p[j] = expf(s[j] - row_max) / row_sum;\n"
)
GAP = DIVIDES + "        __syncwarp();\n"
FILLED = DIVIDES + "        __syncthreads();\n"
CELLS = [
    "from helpers.exercises import check",
    f"%%kernel {NAME}.cu\n{solution(NAME).replace(FILLED, GAP).rstrip()}",
    f'check("{NAME}")',
]


@pytest.fixture
def notebook(lab) -> str:
    """Where the cells lie as a notebook, in a folder with nothing else."""
    (lab.folder / "exercise").mkdir()
    kernel = {"display_name": "Python 3 (ipykernel)", "name": "python3", "language": "python"}
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    written = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(written, lab.folder / "exercise" / "exercise.ipynb")
    return "exercise/exercise.ipynb"


def run(page, number: int):
    """Run a cell by its editor; gives its outputs once they are there."""
    cell = page.locator(".jp-CodeCell").nth(number)
    before = cell.locator(".jp-InputPrompt").inner_text()
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    prompt = cell.locator(".jp-InputPrompt")
    expect(prompt).to_have_text(_another(before), timeout=60_000)
    return cell.locator(".jp-OutputArea-output")


def _another(before: str):
    return re.compile(rf"^(?!{re.escape(before.strip())}$)\[\d+\]:$")


def write(page, number: int, text: str) -> None:
    """Put another text into a cell, as if pasted."""
    page.locator(".jp-CodeCell").nth(number).locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def marked(output) -> list[str]:
    """Numbers of the marked lines."""
    return output.locator(".kl-marked .kl-n").all_inner_texts()


def test_a_student_fills_a_gap_and_breaks_it(lab, notebook, screenshots, tmp_path):
    page, pictures = lab.page, screenshots or tmp_path
    page.set_viewport_size({"width": 1280, "height": 1500})
    lab.open(notebook, "dark")

    # The kernel's cell is coloured as C++, and its neighbours as Python
    cell = page.locator(".jp-CodeCell").nth(1).locator(".cm-content")
    expect(cell).to_have_attribute("data-language", "cpp")
    other = page.locator(".jp-CodeCell").nth(2).locator(".cm-content")
    expect(other).to_have_attribute("data-language", "python")

    run(page, 0)
    expect(run(page, 1)).to_contain_text("compiles")
    verdict = run(page, 2).locator(".kernel-verdict")
    expect(verdict.locator(".kv-step-failed")).to_contain_text("race on s_data[0]")
    lines = CELLS[1].split("\n")
    # The numbers are those of the cell's lines, the first of which names the file
    assert [lines[int(n) - 1].strip() for n in marked(verdict)] == ["__syncwarp();"]
    page.screenshot(path=pictures / "exercise-race.png")

    write(page, 1, CELLS[1].replace(GAP, FILLED))
    run(page, 1)
    verdict = run(page, 2).locator(".kernel-verdict")
    expect(verdict).to_contain_text("solved")
    expect(verdict.locator(".kv-step-passed")).to_have_count(4)
    assert not marked(verdict)
    colour = verdict.locator(".kv-sign").first.evaluate("(e) => getComputedStyle(e).color")
    red, green, blue = (int(n) for n in colour.removeprefix("rgb(").rstrip(")").split(","))
    assert green > 1.3 * max(red, blue)
    page.screenshot(path=pictures / "exercise-solved.png")

    write(page, 1, CELLS[1].replace(GAP, FILLED).replace("s_data[tid] = local_max;", "s_data[0];"))
    run(page, 1)
    verdict = run(page, 2).locator(".kernel-verdict")
    expect(verdict.locator(".kv-step-failed")).to_contain_text("right")
    assert marked(verdict)
    page.screenshot(path=pictures / "exercise-broken.png")

    write(page, 1, CELLS[1].replace("= s_data[0];", "= s_data[0]"))
    panel = run(page, 1).locator(".kernel-panel")
    expect(panel).to_contain_text("expected a")
    assert marked(panel)
    page.screenshot(path=pictures / "exercise-compile.png")

    # What the student wrote is the student's, and the course's files are as they were
    written = (lab.folder / "exercise" / "my_kernels" / f"{NAME}.cu").read_text()
    assert written.startswith(f"// {CELLS[1][:20]}") and "= s_data[0]\n" in written
