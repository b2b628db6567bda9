"""Results that answer a question stay folded in a notebook until the student asks for them.

JupyterLab sends a cell's metadata along when it runs the cell. Where the tag `answer` is among its
tags, the first output is a line to click on, and a rule of style hides the outputs beside it until
that line is open. So *Run All Cells* gives nothing away. Whatever sends no tags, nbclient for one,
shows results as always.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from ..show import Shows, in_notebook, render, shell

TAG = "answer"


class Fold(Shows):
    """The line that shows the outputs below it when it is clicked on."""

    def html(self):
        return render("fold.html")

    def __repr__(self) -> str:
        return "The result:"


def install() -> None:
    """Have IPython fold what cells with the tag show; a second call changes nothing."""
    ipython = shell()
    if ipython is None or not in_notebook():
        return
    with contextlib.suppress(ValueError):
        ipython.events.unregister("pre_run_cell", fold_answers)
    ipython.events.register("pre_run_cell", fold_answers)


def fold_answers(info: object = None) -> None:
    """Show the line before a cell with the tag runs."""
    kernel = getattr(shell(), "kernel", None)
    message = kernel.get_parent() if kernel is not None else None
    if is_answer((message or {}).get("metadata")):
        from IPython.display import display  # late: there is none on a bare machine

        display(Fold())


def is_answer(metadata: object) -> bool:
    """Whether the metadata that came with a cell hold the tag."""
    tags = metadata.get("tags") if isinstance(metadata, Mapping) else None
    return isinstance(tags, (list, tuple)) and TAG in tags
