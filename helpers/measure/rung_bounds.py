"""The least time of every rung at any size, out of work that was counted once at small ones.

    from helpers.measure.rung_bounds import rung_bounds
    rung_bounds("tiled", 16384)["scaled_dot_product"].sentence

A rung's blocks are alike, so all that they do is a polynomial of N: `tools/record/record_bounds.py`
keeps it at three sizes, in `counted/rung_work.json`.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path

from ..kernels.source import KernelError
from ..simulator import Bounds, Gpu, gpu
from ..simulator.bounds.demand import Work, extrapolated, repeated, work_from
from ..simulator.bounds.least import bounds

__all__ = ["FILE", "rung_bounds", "rung_work"]

FILE = Path(__file__).with_name("counted") / "rung_work.json"
HEADS = 64  # of the FlashAttention rungs' work, 16 in each batch of 4
_MULTIPLE = 64  # of which a size has to be one, for whole tiles


@functools.cache
def rung_work() -> Mapping[str, Mapping[str, Mapping[int, Work]]]:
    """Work by the rung's bar (`coalesced, transpose on load`), kernel and N.

    The FlashAttention rungs are there by their name and d, for HEADS heads.
    """
    data = json.loads(FILE.read_text("utf-8"))
    return {
        name: {
            entry: {int(size): work_from(found) for size, found in by_size.items()}
            for entry, by_size in kernels.items()
        }
        for name, kernels in data["rungs"].items()
    }


def rung_bounds(
    name: str, N: int, on: str | Gpu = "H200", *, heads: int = HEADS
) -> dict[str, Bounds]:
    """The least time of each kernel of a rung on a GPU.

    Args:
        name: of the rung's bar, such as `tiled`, `coalesced, transpose on store`, or
            `flash_swizzled, d = 128`.
        N: rows of Q, K and V; a multiple of 64.
        on: the GPU's name.
        heads: of a FlashAttention rung, in all batches together.

    Raises:
        KernelError: there is no such bar, or N is no multiple of 64.
        SimulatorError: there is no such GPU.
    """
    known = rung_work()
    if name not in known:
        raise KernelError(f"No work of {name!r} was counted; there are {'; '.join(known)}.")
    if N < _MULTIPLE or N % _MULTIPLE:
        raise KernelError(f"N is a multiple of {_MULTIPLE} here, for whole tiles, not {N!r}.")
    chip = gpu(on)
    factor = heads / HEADS if "flash_attention" in known[name] else 1
    return {
        entry: bounds(entry, repeated(extrapolated(works, N), factor), chip)
        for entry, works in known[name].items()
    }
