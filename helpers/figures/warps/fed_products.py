"""What one load of a fragment feeds: the products of a warp that take it as their operand B."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...kernels.kernel import Kernel
from ...simulator import Report
from ..canvas import Canvas, counted
from ..palette import MATRIX_HUES

_TOP, _CELL, _LEFT = 76.0, (104.0, 62.0), 132.0
_PANEL = 480.0


class Fed(NamedTuple):
    """Products that take B from the same load of a run.

    Attributes:
        loads: how often the warp made such a load.
        rows: of the products of one load, for each fragment of A how many there are.
    """

    loads: int
    rows: tuple[int, ...]

    @property
    def products(self) -> int:
        """Products for each load."""
        return sum(self.rows)


def fed(kernel: Kernel, report: Report, text: str) -> Fed:
    """What a warp's loads in a line feed, counted in a run.

    Args:
        kernel: what ran.
        report: of the run, with its trace.
        text: in the line of the load, such as `ldmatrix_x4(r_K`.

    Raises:
        KernelError: no line holds the text.
        ValueError: loads of the line feed different numbers of products, or none.
    """
    lines = set(kernel.lines(text, whole=True))
    issued = report.issued()
    uses: dict[int, dict[frozenset, int]] = {
        one.number: {} for one in issued if one.kind == "load" and one.line in lines
    }
    for one in issued:
        a, b = one.operands
        for load in b & uses.keys():
            uses[load][a] = uses[load].get(a, 0) + 1
    shapes = {tuple(by_a.values()) for by_a in uses.values()}
    if len(shapes) != 1 or not (rows := shapes.pop()):
        raise ValueError(f"The loads of {text!r} in {kernel.file.name} do not feed alike: {shapes}")
    return Fed(len(uses), rows)


def feeding(runs: Mapping[str, tuple[Kernel, Report]], text: str = "ldmatrix_x4(r_K") -> Canvas:
    """A load of K with the products that it feeds, of several kernels side by side.

    Args:
        runs: kernels and their runs, by the name to show.
        text: as for `fed`; of a load that brings 16 keys.

    Raises:
        ValueError: as `fed` does.
    """
    found = {name: fed(*run, text) for name, run in runs.items()}
    most = max(len(one.rows) for one in found.values())
    said = "; ".join(
        f"{name}: {counted(one.loads, 'load')}, {one.products} products each"
        for name, one in found.items()
    )
    width, height = _CELL
    bottom = _TOP + 58 + most * (height + 8)
    canvas = Canvas(_PANEL * len(found), bottom + 40, f"What a load of K feeds. {said}.")
    for number, (name, one) in enumerate(found.items()):
        _panel(canvas, number * _PANEL, name, one, bottom)
    return canvas


def _panel(canvas: Canvas, x: float, name: str, one: Fed, bottom: float) -> None:
    width, height = _CELL
    hues = {what: MATRIX_HUES[what] for what in "QKS"}
    canvas.text(x + 8, 26, name, size=18, bold=True, mono=True)
    left = x + _LEFT
    columns = max(one.rows)
    span = columns * (width + 8) - 8
    canvas.text(left, _TOP - 12, "one ldmatrix: 16 keys of K", fill=hues["K"])
    canvas.rect(left, _TOP, span, 38, fill=f"{hues['K']}-fill", stroke=hues["K"], weight=2)
    for column in range(columns):
        middle = left + column * (width + 8) + width / 2
        canvas.text(middle, _TOP + 25, f"keys {8 * column}–{8 * column + 7}", anchor="middle")
    nth = 0
    for row, products in enumerate(one.rows):
        top = _TOP + 58 + row * (height + 8)
        canvas.rect(x + 8, top, 106, height, fill=f"{hues['Q']}-fill", stroke=hues["Q"])
        canvas.text(x + 61, top + 26, "Q, rows", anchor="middle")
        canvas.text(x + 61, top + 46, f"{16 * row}–{16 * row + 15}", anchor="middle")
        for column in range(products):
            nth += 1
            at = left + column * (width + 8)
            canvas.rect(at, top, width, height, fill=f"{hues['S']}-fill", stroke=hues["S"])
            canvas.text(at + width / 2, top + height / 2 + 6, f"mma {nth}", anchor="middle")
    times = counted(one.loads, "such load")
    canvas.text(x + 8, bottom + 26, f"{times} of a warp, {one.products} products each", size=18)
