"""Times of one of the three kernels, rung by rung: what `ladder_times` gives for all three."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Sequence
from pathlib import Path

from ..bench.ladder_bars import D, bars
from ..kernels.source import KernelError
from ..problem.attention import make_inputs
from ..problem.ladder import rung
from . import recorded as recordings
from . import timing
from .ladder_times import SIZES, LadderTimes, _fitting
from .recorded import Recorded

__all__ = ["kernel_times"]

_NAME = "h200_ladder"


def kernel_times(upto: str, kernel: str, sizes: Sequence[int] = SIZES) -> LadderTimes:
    """Times of one kernel in the ladder's rungs from naive to `upto`, at d = 64.

    Without a GPU nothing is launched, and the recorded times stand alone.

    Args:
        upto: name of the last rung to show.
        kernel: `scaled_dot_product`, `softmax` or `pv_multiply`.
        sizes: values of N to measure on a GPU; those that do not fit into its memory are left out.

    Raises:
        KernelError: there is no such rung or kernel.
    """
    from helpers import device

    rungs = bars(rung(upto).name)
    known = [step.entry for step in rung(upto).steps]
    if kernel not in known:
        raise KernelError(f"No rung has a kernel {kernel!r}; they have {', '.join(known)}.")
    recorded = _recorded(kernel)
    if not device.is_gpu:
        return LadderTimes(None, {}, recorded, list(rungs))
    measured: dict[str, dict[int, float]] = {}
    for n, (name, (one, settings)) in itertools.product(_fitting(sizes), rungs.items()):
        prepared = one.prepare(*make_inputs(n, D), **settings)
        prepared.launch()  # S and P get values, for the kernels that read them
        launch = next(x for x in prepared.launches if x.kernel.entry == kernel)
        measured.setdefault(name, {})[n] = timing.measure(
            functools.partial(prepared.launch_one, launch)
        )
        del prepared  # its arrays, before those of the next
    return LadderTimes(device.name(), measured, recorded, list(rungs))


def _recorded(kernel: str, folder: Path = recordings.FOLDER) -> Recorded | None:
    """The recorded times of one kernel of each rung; None if there are none."""
    recorded = recordings.load(_NAME, folder)
    if recorded is None:
        return None
    data = json.loads((folder / f"{_NAME}.json").read_text(encoding="utf-8"))
    times = {
        rung: {int(n): float(time) for n, time in kernels[kernel].items()}
        for rung, kernels in data.get("kernels", {}).items()
        if kernel in kernels
    }
    return Recorded(recorded.device, recorded.protocol, times) if times else None
