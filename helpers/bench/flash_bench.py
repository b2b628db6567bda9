"""The bench of a FlashAttention kernel: one head on the simulator, more on a GPU."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..kernels.kernel import Kernel
from ..kernels.source import KernelError
from ..problem.flash import FlashRung
from ..problem.flash_inputs import TOLERANCE, make_inputs, reference
from .entry import Launch, bench

__all__ = ["flash_bench", "flash_problem"]


def flash_problem(rung: FlashRung):
    """`problem(k, n)` for `helpers.bench.bench`: one head of n tokens, in fp16.

    Args:
        rung: whose launch geometry is used.
    """

    def problem(k: Kernel, n: int = 128) -> Launch:
        values = {name: parameter.value for name, parameter in k.parameters.items()}
        d = values.pop("HEAD_DIM")
        if values.pop("ELEMENT") != "half":
            raise KernelError("The bench compares fp16 numbers; take half for ELEMENT.")
        Q, K, V = make_inputs(1, 1, n, d)
        out = np.empty_like(Q)
        launch = rung.with_parameters(**values).launch_of(Q, K, V, out)
        names = [argument.name for argument in k.arguments]
        return Launch(
            launch.grid,
            launch.block,
            dict(zip(names, launch.args, strict=True)),
            {"O": lambda: reference(Q, K, V)},
            launch.shared_mem,
            TOLERANCE["half"],
        )

    return problem


def flash_bench(rung: FlashRung, n: Sequence[int] = (64, 100, 128, 256), timed=(1024, 4096)):
    """A bench of a rung to show at the end of a notebook's cell.

    Args:
        rung: of `helpers.problem.flash.FLASH`.
        n: choices of the number of tokens.
        timed: the same when a GPU is timed.
    """
    return bench(rung.file, rung.entry, flash_problem(rung), n=list(n), timed={"n": list(timed)})
