"""What trials of chapter 11's kernels are made of: tensor maps, warpgroups, blocks that stay."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator

import numpy as np

from helpers.gpu.tensor_map import tensor_map
from helpers.problem.ladder import ladder
from helpers.problem.problem import Problem

from .targets import Trial, flash_problem, ramp, settings

# Three tiles of keys and more: both stages are filled again, and the parity of a phase turns.
# Half of a block's last rows are not there, and a warpgroup has none; peaks move the maximum.
_SIZES = (
    ({"HEAD_DIM": 64, "B_C": 64, "B_R": 128}, (1, 2, 150), "bhnd", "half", False),
    (
        {"HEAD_DIM": 128, "B_C": 64, "B_R": 128, "CAUSAL": 1},
        (1, 2, 201), "bnhd", "nv_bfloat16", True,
    ),
    ({"HEAD_DIM": 64, "B_C": 64, "B_R": 192}, (1, 1, 70), "bhnd", "half", True),
    # Ten tiles, and five pieces of work: a count that is off by one has time to run ahead.
    # The last one: it takes longest, and without tensor maps nothing is counted.
    ({"HEAD_DIM": 64, "B_C": 64, "B_R": 128}, (1, 1, 580), "bhnd", "half", False),
)  # fmt: skip


def hopper(file: str, entry: str) -> Iterator[Trial]:
    """Trials of a kernel of chapter 11: both head dimensions, layouts and types, and causal.

    Of blocks that stay there is one for each head, so that it takes several pieces of work.
    """
    one = next(r for r in ladder("hopper") if r.file == file)
    for number, (given, (b, h, n), layout, element, peak) in enumerate(
        _SIZES[: None if one.maps else -1]
    ):
        if "SLACK" in one.values:
            given = {**given, "SLACK": (8, 0, -1, 0)[number]}
        d, causal = given["HEAD_DIM"], bool(given.get("CAUSAL", 0))
        make = functools.partial(flash_problem, b, h, n, d, layout, element, peak, causal)
        changed = one.with_parameters(**{k: v for k, v in given.items() if k != "HEAD_DIM"})
        arrays = [make().inputs[name] for name in "QKVO"]
        launch = changed.launch_of(*arrays, layout)
        grid = (b * h, 1, 1) if one.stays else launch.grid
        label = f"{element}, {settings(given)}, {b} x {h} heads, n={n}, {layout}"
        yield Trial(
            file, entry, {**given, "ELEMENT": element}, label, grid, launch.block,
            launch.shared_mem, functools.partial(_as_given, make, changed, layout),
        )  # fmt: skip


def _as_given(make: Callable[[], Problem], one, layout: str) -> Problem:
    """A problem whose arguments are those that a rung makes: tensor maps in place of arrays."""
    made = make()
    launch = one.launch_of(*(made.inputs[name] for name in "QKVO"), layout)
    expected = made.exact("O")
    if one.maps and layout == "bnhd":  # a map is of the view whose heads come before its rows
        expected = expected.transpose(0, 2, 1, 3)
    return dataclasses.replace(made, inputs=launch.by_name, expected={"O": expected})


def boxes(file: str, entry: str) -> Iterator[Trial]:
    """Trials of the toy of chapter 11, with one box and with two side by side."""
    for count in (1, 2):
        make = functools.partial(_boxes, count)
        parameters = {"BOXES": count}
        yield Trial(file, entry, parameters, settings(parameters), (1,), (32,), 0, make)


def _boxes(count: int) -> Problem:
    """What lies in boxes, swizzled by chapter 09's XOR."""
    X = (ramp(16, 64 * count) * 100).astype(np.float16)[None, None]
    shared = np.zeros((count, 16, 8, 8), np.float16)
    row, chunk = np.ix_(range(16), range(8))
    shared[:, row, chunk ^ row % 8] = X[0, 0].reshape(16, count, 8, 8).swapaxes(0, 1)
    expected = shared.reshape(count, 16, 64).astype(np.float64)
    inputs = {"X": tensor_map(X, (1, 1, 16, 64), 128), "shared": shared.reshape(expected.shape)}
    return Problem((), inputs, {"shared": expected}, 1e-6)
