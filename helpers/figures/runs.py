"""Small runs of the kernels in `kernels/`, for figures that are drawn from what they did.

The sizes of a figure (a tile of 4 elements, a block of 4 threads) are below those that a kernel
offers for use.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from helpers.kernels.kernel import load_kernel
from helpers.kernels.launches import Launch
from helpers.simulator.observe.report import Report


class SmallRun(NamedTuple):
    """A counted launch: its report, and the arrays as the kernel left them, by argument name.

    `defines` are the values that the source was compiled with, `sizes` its other arguments.
    """

    report: Report
    arrays: dict[str, np.ndarray]
    defines: dict[str, int]
    sizes: dict[str, int]


def launch(
    file: str,
    entry: str,
    grid,
    block,
    arrays: Mapping[str, np.ndarray],
    sizes: Mapping[str, int],
    *,
    without: int | None = None,
    options: Mapping[str, Any] = MappingProxyType({}),
    **defines: int,
) -> SmallRun:
    """Run a kernel of `kernels/` on the simulator with any values of its parameters.

    Args:
        file, entry: as for `load_kernel`.
        grid, block: blocks and threads along x, y and z.
        arrays: the kernel's arrays by name, in its own order; they are copied.
        sizes: its 32-bit integers by name, in its own order, after the arrays.
        without: a line of the source that is taken out.
        options: for the simulator's `launch`, such as a schedule.
        **defines: values of its parameters, such as `TILE=4`.

    Raises:
        KernelError: there is no such file or kernel.
        SimulatorError: the kernel does not compile, or does something wrong.
    """
    k = load_kernel(file, entry).altered(**defines)
    if without is not None:
        lines = k.code.split("\n")
        ahead = lines[0].startswith("#line 1 ")  # the code's own first line, of no source
        lines[without - 1 + ahead] = ""
        k = k.altered("\n".join(lines), **defines)
    mine = {name: np.array(array) for name, array in arrays.items()}
    one = Launch.of(k, grid, block, (*mine.values(), *sizes.values()))
    report, _ = one.simulate(copy=False, filename=file, progress=False, **options)
    return SmallRun(report, mine, dict(defines), dict(sizes))


def small_integers(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """An fp32 array of whole numbers from -2 to 2: sums of products stay whole."""
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(np.float32)
