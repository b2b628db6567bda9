"""The chapters: they run from top to bottom without a complaint, and are cut for a class."""

from __future__ import annotations

import os
import re
import statistics
from collections.abc import Iterable
from pathlib import Path

import nbformat
import pytest
from noise import noise

from helpers.kernels import KERNELS
from helpers.slides.waking_client import WakingClient

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
# What the outputs of a chapter with kernels of its own hold: figures, and counters by the source.
SHOWN = ('class="kernel-figure"', 'class="kernel-listing kl-counted"')
KERNEL_CELL = "%%kernel "  # an exercise
SOLUTION = "<details><summary>Solution"
SLIDE_TYPES = {"slide", "subslide", "fragment", "skip", "notes", "-"}

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path: Path):
    return nbformat.read(path, as_version=4)


def code_cells(notebook) -> list:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def widget_states(notebook) -> list[dict]:
    widgets = notebook.metadata.get("widgets", {})
    models = widgets.get("application/vnd.jupyter.widget-state+json", {}).get("state", {})
    return [model["state"] for model in models.values()]


def all_outputs(notebook, states: Iterable[dict]) -> list:
    """Outputs of the cells, and those inside the widgets that `interact` makes."""
    outputs = [output for cell in code_cells(notebook) for output in cell.outputs]
    return outputs + [nbformat.from_dict(o) for s in states for o in s.get("outputs", [])]


def assert_clean(outputs: list) -> None:
    for output in outputs:
        assert output.output_type != "error", output.get("evalue")
        if output.output_type == "stream":
            assert output.name == "stdout" or not noise(output.text), output.text


def has_kernels(path: Path) -> bool:
    return any(KERNELS.glob(f"{path.name[:2]}*.cu"))


def test_all_chapters_have_kernels_but_the_one_on_attention():
    assert [path.stem for path in NOTEBOOKS if not has_kernels(path)] == ["01_attention"]


@each_notebook
def test_runs_without_error_or_noise(path, executed):
    done = executed(path)
    outputs = all_outputs(done.notebook, done.widgets.values())
    assert_clean(outputs)
    shown = "".join(o.data.get("text/html", "") for o in outputs if "data" in o)
    for what in SHOWN if has_kernels(path) else ():
        assert what in shown


@each_notebook
def test_each_control_changes_what_is_shown(path, executed):
    """Of every `interact`: two settings that differ in that control alone show different things."""
    done = executed(path)
    for held in done.choices.values():
        shown = {}
        for result in done.widgets[held]["results"]:
            settings = tuple(sorted(result["settings"].items()))
            shown[settings] = repr({k: v for k, v in result.items() if k != "settings"})
        for control in done.widgets[held]["controls"]:
            name, by_others = control["name"], {}
            for settings, content in shown.items():
                others = tuple(pair for pair in settings if pair[0] != name)
                by_others.setdefault(others, set()).add(content)
            assert max(map(len, by_others.values())) > 1 or len(control["choices"]) < 2, name


@pytest.mark.gpu
@pytest.mark.xdist_group("timing")  # chapters side by side would say that they wait for the GPU
@each_notebook
def test_runs_through_cupy(path):
    notebook = read(path)
    client = WakingClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(FOLDER)}}
    )
    client.execute(env={**os.environ, "HELPERS_DEVICE": "gpu"})
    assert_clean(all_outputs(notebook, widget_states(notebook)))


def test_an_error_inside_a_widget_is_seen():
    """The checks above rest on this: an exception under `interact` raises nothing in the kernel."""
    source = "from ipywidgets import interact\ninteract(lambda x: 1 / (x - 1), x=(0, 2))"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    WakingClient(notebook, timeout=60, kernel_name="python3").execute()
    with pytest.raises(AssertionError):
        assert_clean(all_outputs(notebook, widget_states(notebook)))


@each_notebook
def test_carries_no_outputs(path):
    notebook = read(path)
    for cell in code_cells(notebook):
        assert not cell.outputs and cell.execution_count is None, cell.id
        assert "execution" not in cell.metadata, cell.id
    assert "widgets" not in notebook.metadata
    assert notebook.metadata.kernelspec.name == "python3"
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)


@each_notebook
def test_only_a_draft_has_words_to_write(path):
    notebook = read(path)
    assert notebook.metadata.course.get("draft") or "to write:" not in str(notebook).lower()


@each_notebook
def test_every_cell_has_its_place_in_the_slides(path):
    for cell in read(path).cells:
        kind = cell.metadata.get("slideshow", {}).get("slide_type")
        assert kind in SLIDE_TYPES, cell.id
        heads = re.findall(r"^#+ ", cell.source, re.M) if cell.cell_type == "markdown" else []
        assert (kind == "slide") == bool(heads), cell.id
        if heads:
            assert len(heads) == 1 and cell.source.startswith("#"), cell.id


@each_notebook
def test_cells_are_short(path):
    notebook = read(path)
    lengths = [len(cell.source.splitlines()) for cell in code_cells(notebook)]
    # An exercise's kernel and solution are folded away; another test bounds what is to be written.
    own = [cell for cell in notebook.cells if not cell.source.startswith((KERNEL_CELL, SOLUTION))]
    assert max(len(cell.source.splitlines()) for cell in own) <= 25
    assert statistics.median(lengths) <= 5
    assert (
        max(len(line) for cell in code_cells(notebook) for line in cell.source.split("\n")) <= 100
    )


@each_notebook
def test_set_up_is_tucked_away(path):
    """Cells of nothing but imports, and no others, are hidden and skipped on slides."""
    for cell in code_cells(read(path)):
        lines = [line for line in cell.source.splitlines() if line and not line.startswith("#")]
        only_imports = all(line.startswith(("import ", "from ")) for line in lines)
        tagged = "hide-input" in cell.metadata.get("tags", [])
        assert only_imports == tagged == bool(cell.metadata.get("jupyter", {}).get("source_hidden"))
        assert not tagged or cell.metadata.slideshow.slide_type == "skip"


@each_notebook
def test_links_lead_somewhere(path):
    for cell in read(path).cells:
        if cell.cell_type == "markdown":
            for target in re.findall(r"\]\(([^)#]+)", cell.source):
                assert (FOLDER / target).exists(), f"{cell.id}: {target}"


@each_notebook
def test_holds_no_kernel(path):
    """Kernels live in kernels/, those of the exercises as well: tests compare their cells."""
    for cell in code_cells(read(path)):
        assert "__global__" not in cell.source or cell.source.startswith(KERNEL_CELL), cell.id
