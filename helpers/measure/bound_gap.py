"""What a bound leaves of a kernel's time, by what Nsight Compute read in that very launch."""

from __future__ import annotations

from ..simulator import gpu
from .flash_times import LARGE
from .hopper_steps import CLOCK, GPU, METRICS, hopper_recording, profile_of, short
from .rung_bounds import rung_bounds
from .tables import Table, milliseconds

__all__ = ["explained"]


def explained(*rungs: str) -> Table:
    """What lies between a kernel's least time and its time: the clock, and idle tensor cores.

    Time is operations by the rate of a clock, the clocks of a second, and the share of clocks in
    which tensor cores work; the least time has the highest clock and no idle ones. Both shares are
    Nsight Compute's, of the same launch as the time.

    Args:
        rungs: names of rungs that were profiled at batch 4, 16 heads, n = 4,096 and d = 128.

    Raises:
        KeyError: there is no profile of that name.
    """
    chip, rows = gpu(GPU), []
    for name in rungs:
        metrics = profile_of(name).metrics
        least = rung_bounds(f"{name}, d = {LARGE[-1]}", LARGE[2], GPU)["flash_attention"]
        seconds = 1e-9 * metrics["gpu__time_duration.sum"]
        clock, busy = metrics[CLOCK], metrics[METRICS["tensor cores, busy"]] / 100
        shares = (least.seconds / seconds, clock / chip.clock, busy, busy * clock / chip.clock)
        times = (milliseconds(1e3 * least.seconds), milliseconds(1e3 * seconds))
        rows.append((short(name), *times, *(f"{share:.0%}" for share in shares)))
    headings = (
        f"{hopper_recording().device}, recorded", "least time, ms", "time, ms", "least, of that",
        f"clock, of {chip.clock / 1e9:.2f} GHz", "tensor cores busy", "both",
    )  # fmt: skip
    return Table(headings, rows, "Nsight Compute, one launch: its time, its clock, busy clocks.")
