"""How many multiprocessors a launch can keep busy."""

from collections.abc import Mapping

import numpy as np

from helpers.simulator.limits import MULTIPROCESSORS, SIMULATED

from ..canvas import Canvas, counted
from ..palette import hue


def multiprocessors(launches: Mapping[str, tuple], count: int = MULTIPROCESSORS) -> Canvas:
    """A GPU's multiprocessors (SMs), one square each, filled where a launch has a block for it.

    Blocks are spread over the SMs as widely as they go, so a launch with fewer blocks than SMs
    leaves the others without work.

    Args:
        launches: (grid, block) of each launch by the name to show; numbers or tuples of them.
        count: SMs of the GPU, which hold as many threads each as those of an H200.
    """
    across, cell = -(-count // 6), 15.0
    panel_height = 6 * cell + 30
    sizes = {name: tuple(int(np.prod(size)) for size in one) for name, one in launches.items()}
    said = {name: _sentence(*size, count) for name, size in sizes.items()}
    right = across * cell + 28
    label = "; ".join(f"{name}: {words}" for name, words in said.items())
    canvas = Canvas(right + 410, panel_height * len(sizes) - 22, label)
    for n, (name, (blocks, _)) in enumerate(sizes.items()):
        top, colour = n * panel_height + 4, hue(n)
        boxes = [
            (4 + i % across * cell, top + i // across * cell, cell - 3, cell - 3)
            for i in range(count)
        ]
        canvas.text(right, top + 16, name, bold=True, mono=True)
        canvas.cells(boxes[:blocks], fill=colour, stroke=colour)
        canvas.cells(boxes[blocks:], stroke="gray")
        lines = said[name].replace(": ", ":\n").replace(", ", ",\n").split("\n")
        canvas.lines(right, top + 40, lines)
    return canvas


def _sentence(blocks: int, threads: int, count: int) -> str:
    share = blocks * threads / (count * SIMULATED.multiprocessor_threads)
    return (
        f"{counted(blocks, 'block')} of {threads:,} threads: work for "
        f"{min(blocks, count)} of {count} SMs, {_share(share)} the threads they can hold"
    )


def _share(share: float) -> str:
    if share >= 1:
        return f"{share:.1f} times"
    return f"{100 * share:.2g} % of" if share < 0.1 else f"{100 * share:.0f} % of"
