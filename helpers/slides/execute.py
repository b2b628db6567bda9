"""Running a notebook for an export, and saying in one message what went wrong in it."""

from __future__ import annotations

import copy
import json
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from .export_error import ExportError
from .waking_client import WakingClient

WIDGETS = "application/vnd.jupyter.widget-state+json"
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_TELL_EVERY = 15.0  # seconds
_SHOWN_LINES = 12  # of a cell that fails


class _Progress:
    """Tells which cell is running, every now and then.

    Args:
        cells: how many the notebook has.
        tell: is told.
    """

    def __init__(self, cells: int, tell: Callable[[str], None] | None):
        self.running = -1  # the first cell is the exporter's own
        self._cells, self._tell = cells, tell
        self._began = self._told = time.monotonic()

    def __call__(self, cell_index: int | None = None, **_) -> None:
        if cell_index is not None:
            self.running = cell_index
        now = time.monotonic()
        if self._tell is None or now - self._told < _TELL_EVERY:
            return
        self._told = now
        where = f"cell {self.running} of {self._cells}"
        if self.running > self._cells:
            where = "the settings of its controls"
        self._tell(f"{where}, after {now - self._began:.0f} s")


class Executed(NamedTuple):
    """A notebook that has run.

    Attributes:
        notebook: with its outputs.
        widgets: states of its widgets, by id.
        device: what ran its kernels.
        choices: for an `interact`, the widget with the results of all its settings; by id.
    """

    notebook: NotebookNode
    widgets: dict[str, dict]
    device: str
    choices: dict[str, str]


def read(path: Path) -> NotebookNode:
    """The notebook in a file.

    Raises:
        ExportError: there is none, or it is no notebook.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ExportError(f"{path}: cannot be read: {error}") from error
    try:
        notebook = nbformat.reads(text, as_version=4)
        nbformat.validate(notebook)
    except Exception as error:  # of JSON, of a schema, of a version
        first = str(error).strip().split("\n")[0]
        raise ExportError(f"{path}: this is no notebook: {first}") from error
    return notebook


def execute(
    notebook: NotebookNode,
    name: str,
    folder: Path,
    timeout: int = 300,
    tell: Callable[[str], None] | None = None,
) -> Executed:
    """Run all cells of a copy of `notebook` in a fresh kernel.

    Args:
        name: of the notebook, for messages.
        folder: where the kernel works.
        timeout: seconds that a cell may take.
        tell: told how far it is, if it takes long.

    Raises:
        ExportError: a cell fails, or the kernel does.
    """
    notebook = copy.deepcopy(notebook)
    cells = notebook.cells
    before, after = map(_own_cell, ("prepare", "finish"))
    notebook.cells = [before, *cells, after]
    kernel = notebook.metadata.get("kernelspec", {}).get("name", "python3")
    client = WakingClient(
        notebook,
        timeout=timeout,
        kernel_name=kernel,
        resources={"metadata": {"path": str(folder)}},
        # An ipykernel warns of its local connection, once for each notebook.
        extra_arguments=["--log-level=ERROR"] if kernel == "python3" else [],
    )
    client.on_cell_start = client.meanwhile = progress = _Progress(len(cells), tell)
    try:
        client.execute()
    except CellExecutionError as error:
        said = f"{error.ename}: {error.evalue}"
        if error.ename == "NoneType":  # of what cannot be shown only the traceback tells
            said = error.traceback.strip().split("\n")[-1]
        raise _failed(cells, progress.running - 1, name, _plain(said)) from error
    except (CellTimeoutError, DeadKernelError) as error:
        late = isinstance(error, CellTimeoutError)
        said = f"it took longer than {timeout} s" if late else "the kernel died"
        raise _failed(cells, progress.running - 1, name, said) from error
    except Exception as error:  # no such kernel, or none that starts
        raise ExportError(f"{name}: the kernel {kernel} cannot be used: {error}") from error
    widgets = notebook.metadata.pop("widgets", {}).get(WIDGETS, {}).get("state", {})
    widgets = {key: model["state"] | {"_model_name": model["model_name"]}
               for key, model in widgets.items()}  # fmt: skip
    said = "".join(output.get("text", "") for output in after.outputs)
    told = json.loads(said.strip().split("\n")[-1])
    notebook.cells = cells
    for number, cell in enumerate(cells):
        if fault := _fault_inside(cell, widgets):
            raise _failed(cells, number, name, fault)
    return Executed(notebook, widgets, told["device"], told["choices"])


def _own_cell(call: str) -> NotebookNode:
    """A cell of the exporter's, which leaves no name in the notebook's kernel."""
    return nbformat.v4.new_code_cell(
        f"__import__('helpers.slides.content.live').slides.content.live.{call}()"
    )


def where(cells: Sequence[NotebookNode], number: int, name: str) -> str:
    """A cell in words: `notebooks/x.ipynb, cell 7 (id 02-06)`."""
    identity = cells[number].get("id", "")
    return f"{name}, cell {number + 1}" + (f" (id {identity})" if identity else "")


def _failed(cells: Sequence[NotebookNode], number: int, name: str, fault: str) -> ExportError:
    """The error of a cell, or of the exporter's own before and behind them."""
    if not 0 <= number < len(cells):
        return ExportError(f"{name}, in the exporter's own part: {fault}")
    lines = cells[number].source.split("\n")
    more = [f"... ({len(lines) - _SHOWN_LINES} more lines)"] if len(lines) > _SHOWN_LINES else []
    source = "\n".join(f"    {line}" for line in [*lines[:_SHOWN_LINES], *more])
    return ExportError(f"{where(cells, number, name)}: {fault}\n{source}")


def _fault_inside(cell: NotebookNode, widgets: dict[str, dict]) -> str | None:
    """An error that was caught by a widget, which raises nothing in the kernel."""
    if cell.cell_type != "code":
        return None
    for output in cell.outputs:
        view = output.get("data", {}).get("application/vnd.jupyter.widget-view+json")
        waiting = [view["model_id"]] if view else []
        while waiting:
            state = widgets.get(waiting.pop(), {})
            waiting += [child.removeprefix("IPY_MODEL_") for child in state.get("children", [])]
            for inner in state.get("outputs", []):
                if inner.get("output_type") == "error":
                    return f"{inner['ename']}: {_plain(inner['evalue'])}"
    return None


def _plain(text: str) -> str:
    return _ANSI.sub("", text)
