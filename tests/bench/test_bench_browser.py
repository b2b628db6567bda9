"""The bench in a real browser: in JupyterLab with a kernel, and in a page that has none."""

from __future__ import annotations

import json

import nbformat
import pytest
from bench_problems import TRANSPOSE
from jupyter_lab import THEMES, run_all, shoot
from lumino import HEARD_FIRST
from noise import noise

from helpers.bench import html as bench_html
from helpers.bench import sweep
from helpers.bench import view as bench_view

pytestmark = pytest.mark.browser

SETUP = """
import numpy as np
from helpers.bench import Problem, bench

def transposed(k, rows=21, cols=37):
    tile = k.parameters["TILE"].value
    a = np.random.default_rng(rows).normal(size=(rows, cols)).astype(np.float32)
    args = {"a": a, "b": np.empty((cols, rows), np.float32), "rows": rows, "cols": cols}
    grid = (-(-cols // tile), -(-rows // tile))
    return Problem.of(k, grid, (tile, tile), args, {"b": a.T})
"""
CELLS = [
    SETUP,
    'padded = bench("padded")\npadded',
    'other = bench("transpose.cu", problem=transposed, rows=[21, 64], cols=[37, 64])\nother',
]


@pytest.fixture
def opened(lab, request):
    """A notebook with two benches, run; afterwards nothing on the page may say that it failed."""
    page, theme = lab.page, getattr(request, "param", "light")
    page.set_viewport_size({"width": 1280, "height": 900})
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(notebook, lab.chapters / "bench.ipynb")
    (lab.chapters / "transpose.cu").write_text(TRANSPOSE)
    run_all(lab, "notebooks/bench.ipynb", theme)
    page.locator(".kernel-bench").nth(1).wait_for()
    yield page
    assert page.locator(".jp-OutputArea [data-mime-type*=error]").count() == 0
    said = page.locator(".jp-OutputArea [data-mime-type*=stderr]").all_text_contents()
    assert not any(map(noise, said)), said


class Bench:
    """One bench on a page."""

    def __init__(self, page, number=0):
        self.page, self.root = page, page.locator(".kernel-bench").nth(number)

    def choice(self, control, value):
        return self.root.locator(f"input[data-name='{control}'][data-value='{value}']")

    def turn(self, control, value) -> dict:
        """Choose a value; what the page shows before anything else can have happened."""
        return self.choice(control, value).evaluate(
            """input => {
                const bench = input.closest(".kernel-bench");
                input.click();
                const spinner = getComputedStyle(bench.querySelector(".bench-spinner"));
                return {
                    grey: getComputedStyle(bench.querySelector(".bench-panel")).opacity < 0.5,
                    busy: bench.querySelector(".bench-panel").getAttribute("aria-busy"),
                    spinner: spinner.display !== "none" && spinner.animationName !== "none",
                    status: bench.querySelector(".bench-status").textContent,
                };
            }"""
        )

    def wait(self):
        self.root.locator(".bench-panel[aria-busy=false]").wait_for(timeout=60_000)

    @property
    def settings(self) -> str:
        return self.root.locator(".bench-of").first.inner_text()

    @property
    def totals(self) -> list[str]:
        return self.root.locator(".bench-panel .bench-table tr").last.inner_text().split("\t")

    @property
    def verdict(self) -> str:
        return self.root.locator(".bench-verdict").inner_text()

    @property
    def source(self) -> str:
        return self.root.locator(".bench-source").inner_text()


TURNS = [
    ("TILE", 32), ("COARSE", 2), ("PAD", 0), ("TRANSPOSE_ON_STORE", 1), ("BLOCK_SIZE", 64),
    ("N", 100), ("d", 32),
]  # fmt: skip


def test_each_control_changes_the_result(opened):
    bench = Bench(opened)
    names = bench.root.locator(".bench-controls").first.locator("legend").all_inner_texts()
    assert names == [name for name in ("TILE", "COARSE", "TRANSPOSE_ON_STORE", "PAD", "BLOCK_SIZE",
                                       "N", "d")]  # fmt: skip
    seen = {tuple(bench.totals)}
    for control, value in TURNS:
        before = bench.settings
        now = bench.turn(control, value)
        assert now["grey"] and now["busy"] == "true" and now["spinner"], now
        assert now["status"].startswith(f"{control}={value}: ")
        assert bench.settings == before  # what is grey still says what it belongs to
        bench.wait()
        assert f"{control}={value} " in bench.settings + " " and "Right." in bench.verdict
        assert tuple(bench.totals) not in seen, (control, value)
        seen.add(tuple(bench.totals))
    rows = bench.root.locator(".bench-past tbody tr")
    assert rows.count() == len(TURNS) + 1
    assert "d=32" in rows.first.inner_text() and "%" in rows.first.inner_text()


def test_answers_stay_those_of_the_last_change(opened):
    """On one page, one after another: opening a page takes longer than all of them."""
    keeps_the_chosen_source(opened)
    moves_by_keyboard(opened)
    ends_at_the_last_of_many_changes(opened)
    shows_no_result_while_the_kernel_is_busy(opened)


def ends_at_the_last_of_many_changes(opened):
    bench = Bench(opened)
    before = bench.root.locator(".bench-past tbody tr").count()
    for control, value in (("TILE", 8), ("TILE", 32), ("PAD", 0), ("TILE", 16), ("d", 16)):
        bench.turn(control, value)
    bench.wait()
    assert "TILE=16 " in bench.settings and "PAD=0 " in bench.settings and "d=16 " in bench.settings
    # Those that were overtaken have left nothing behind.
    opened.wait_for_timeout(1500)
    assert "TILE=16 " in bench.settings and not bench.root.locator(".bench-stale").count()
    assert 1 <= bench.root.locator(".bench-past tbody tr").count() - before <= 2


def shows_no_result_while_the_kernel_is_busy(opened):
    """Python does not even know of the change, and the page greys the result all the same."""
    bench = Bench(opened)
    opened.locator(".jp-Cell").first.locator(".cm-content").fill("import time; time.sleep(7)")
    opened.keyboard.press("Control+Enter")
    assert bench.turn("TILE", 8)["grey"]
    bench.root.get_by_text("TILE=8: no answer yet.").wait_for(timeout=6000)
    assert bench.root.locator(".bench-panel[aria-busy=true]").count() == 1
    bench.wait()
    assert "TILE=8 " in bench.settings


def keeps_the_chosen_source(opened):
    bench = Bench(opened)
    assert "scaled_dot_product" in bench.source and "row_max" not in bench.source
    bench.root.get_by_role("button", name="softmax").click()
    assert "row_max" in bench.source and "BLOCK_SIZE=256" in bench.source
    bench.turn("BLOCK_SIZE", 512)
    bench.wait()
    assert "row_max" in bench.source and "BLOCK_SIZE=512" in bench.source


def moves_by_keyboard(opened):
    """Arrows move within a control and stay in the bench; Escape gives the keys back."""
    bench = Bench(opened)
    bench.choice("TILE", 16).focus()
    opened.keyboard.press("ArrowRight")
    bench.wait()
    assert "TILE=32 " in bench.settings and bench.choice("TILE", 32).is_checked()
    assert opened.evaluate("document.activeElement.dataset.value") == "32"
    cells = opened.locator(".jp-Cell").count()
    for key in ("x", "d", "d", "b"):  # with a cell selected, these cut, delete and add cells
        opened.keyboard.press(key)
    assert opened.locator(".jp-Cell").count() == cells
    opened.keyboard.press("Escape")
    assert opened.evaluate("document.activeElement.tagName") != "INPUT"


@pytest.mark.parametrize("opened", THEMES, indirect=True)
def test_what_goes_wrong_is_told(opened, screenshots, request):  # noqa: F811
    theme = request.node.callspec.params["opened"]
    bench = Bench(opened, 1)
    lines = TRANSPOSE.split("\n")
    reads, colum = (
        next(str(n) for n, line in enumerate(lines, 1) if text in line)
        for text in ("a[row * cols + col]", "colum;")
    )
    for fault, verdict, line in (
        (1, "Wrong. 21 of 777 elements of b were never written, in row 36 and columns 0 to", None),
        (2, f"Error. transpose, line {reads}: out-of-bounds", reads),
        (3, "Cannot run. transpose.cu line 9 says: FAULT 3 needs TILE 8.", None),
        (4, f'Error. transpose.cu:{colum}: error: identifier "colum" is undefined.', colum),
        (0, "Right.", None),
    ):
        bench.turn("FAULT", fault)
        bench.wait()
        assert verdict in bench.verdict
        marked = bench.root.locator(".kl-marked .kl-n")
        assert marked.all_inner_texts() == ([line] if line else [])
        if screenshots:
            bench.root.screenshot(path=screenshots / f"bench-fault-{fault}-{theme}.png")
    reasons = bench.root.locator(".bench-refusals")
    reasons.get_by_text("TILE=64").wait_for(timeout=60_000)
    assert "4,096 threads, and a GPU allows at most 1,024" in reasons.inner_text()
    assert "FAULT=3" in reasons.inner_text() and "TILE=33" not in bench.root.inner_html()
    assert "Cannot run" in bench.choice("TILE", 64).get_attribute("aria-description")
    assert bench.choice("TILE", 8).get_attribute("aria-description") is None
    bench.turn("TILE", 64)
    bench.wait()
    assert "Cannot run." in bench.verdict and not bench.root.locator(".bench-source").inner_text()
    shoot(opened, screenshots, f"bench-{theme}")
    _nothing_is_cut_off(opened)


def _nothing_is_cut_off(page):
    """No table and no control reaches over the edge of its bench."""
    for number in range(page.locator(".kernel-bench").count()):
        root = page.locator(".kernel-bench").nth(number)
        box = root.bounding_box()
        for part in root.locator(".bench-table, .bench-control, .bench-bars, .bench-verdict").all():
            inside = part.bounding_box()
            if inside is not None:
                assert inside["x"] >= box["x"] - 1, part.inner_text()
                assert inside["x"] + inside["width"] <= box["x"] + box["width"] + 1, (
                    part.inner_text()
                )


def test_a_file_that_is_edited(opened, lab):
    bench = Bench(opened, 1)
    path = lab.chapters / "transpose.cu"
    path.write_text(TRANSPOSE.replace("a[row * cols + col]", "a[row * cols + col] + 1"))
    bench.root.get_by_role("button", name="Run again").click()
    bench.wait()
    assert "Wrong. 777 of 777 elements of b are wrong" in bench.verdict
    path.write_text(TRANSPOSE.replace("[8, 16, 32, 64]", "[4, 16]"))
    bench.root.get_by_role("button", name="Run again").click()
    bench.wait()
    assert "Right." in bench.verdict
    assert bench.choice("TILE", 4).count() == 1 and bench.choice("TILE", 8).count() == 0
    bench.turn("TILE", 4)
    bench.wait()
    assert "TILE=4 " in bench.settings


# ------------------------------------------------------------------ without Python

PAGE = """<!doctype html><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'">
<style>{css}</style><div id="here"></div>
<script type="module">
const state = {state};
const model = {{ get: (name) => state[name], on() {{}}, off() {{}} }};
{code}
render({{ model, el: document.querySelector("#here") }});
</script>"""


def test_a_sweep_in_a_page_without_python(page, tmp_path):
    results = sweep("padded", {"PAD": [0, 1], "TILE": [16, 32]}, start={"N": 64, "d": 16})
    code = bench_view.Bench._esm.replace("export default { render };", "")
    state = json.dumps(bench_html.model(json.loads(json.dumps(results)))).replace("</", "<\\/")
    path = tmp_path / "page.html"
    path.write_text(PAGE.format(css=bench_view.CSS, state=state, code=code), encoding="utf-8")
    problems = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(path.as_uri())
    bench = Bench(page)
    legends = bench.root.locator("legend").all_inner_texts()
    assert legends == ["TILE", "PAD"] and not bench.root.get_by_text("Run again").count()
    for result in reversed(results):
        for control in ("PAD", "TILE"):
            bench.choice(control, result["settings"][control]).evaluate("input => input.click()")
        assert bench.root.locator(".bench-panel").get_attribute("aria-busy") == "false"
        assert bench_html.settings_text(result["settings"]) in bench.settings
        load = f"{result['totals']['shared_load_wavefronts']:,}"
        assert load in bench.totals
        assert f"PAD={result['settings']['PAD']}" in bench.source
    bench.choice("PAD", 0).focus()
    page.evaluate(HEARD_FIRST)
    for key in ("x", "ArrowRight", "d"):
        page.keyboard.press(key)
    assert page.evaluate("window.heard") == [] and bench.choice("PAD", 1).is_checked()
    page.keyboard.press("Control+s")
    assert page.evaluate("window.heard") == ["Control", "s"]
    assert not problems, problems
