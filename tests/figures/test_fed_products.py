"""What a load feeds: by the trace of a run, against the sizes that the kernels declare."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.figures.warps.fed_products import fed, feeding
from helpers.problem.flash_inputs import make_inputs
from helpers.problem.ladder import rung


def run(name: str, rows: int):
    """The kernel and the report of blocks of two warps, which share so many rows."""
    one = rung(name).with_parameters(B_R=rows, B_C=32, WARPS=2)
    _, (report,) = one.simulate(*make_inputs(1, 1, 70, 64))
    return one.kernel("half", 64), report


@pytest.mark.parametrize("name, rows", [("flash_double_buffer", 32), ("flash_wide_warps", 64)])
def test_a_load_feeds_two_products_for_each_tile_of_sixteen_rows(name, rows):
    kernel, report = run(name, rows)
    tiles = rows // 2 // 16  # of 16 rows, of a warp
    found = fed(kernel, report, "ldmatrix_x4(r_K")
    assert found.rows == (2,) * tiles and found.products == 2 * tiles
    assert found.loads == 3 * (64 // 16) * (32 // 16)  # three tiles of keys
    assert fed(kernel, report, "_trans(r_V").loads == 3 * (32 // 16) * (64 // 16)
    mma = sum(one.kind == "mma" for one in report.issued())
    assert mma == 2 * found.loads * found.products  # as many for O


def test_the_picture_tells_both_and_loads_that_feed_nothing_are_refused():
    runs = {name: run(name, rows) for name, rows in (("flash_eager", 32), ("flash_rescale", 64))}
    canvas = feeding(runs)
    assert "flash_eager: 24 loads, 2 products each" in canvas.label
    assert canvas.svg().count(">mma ") == 2 + 4
    assert np.isfinite(canvas.height)
    with pytest.raises(ValueError, match="do not feed alike"):
        fed(*runs["flash_eager"], "s_O + place(row, j)")
