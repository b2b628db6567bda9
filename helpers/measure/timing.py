"""Times of kernels: measured with events on a GPU, recorded ones where there is none.

A simulated run has no milliseconds and is never timed. Of several processes that measure on one GPU
each waits for its turn.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..gpu import lock as gpu_lock
from . import recorded as recordings
from .recorded import Recorded
from .tables import Table

__all__ = ["PROTOCOL", "Times", "measure", "sweep"]

PROTOCOL = (
    "median of 21 samples after a warm-up, each between two events around enough launches to take "
    "about a millisecond; compilation and allocation are outside"
)
NO_TIMES = (
    "A simulated run has no milliseconds: it counts what a kernel does, and only a GPU can be "
    "timed."
)

# Keeps the GPU busy while the host queues the launches behind it, so that the events enclose the
# kernels and not the host's work between them.
_WAIT = r"""
extern "C" __global__ void wait(long long cycles) {
    const long long start = clock64();
    while (clock64() - start < cycles) {
    }
}
"""
_SAMPLE_MS = 1.0
_MOST_LAUNCHES = 200  # a stream queues about a thousand before the host has to wait
_wait = None


def measure(launch: Callable[[], object], samples: int = 21) -> float:
    """Milliseconds of one call of `launch` on the GPU: the median of `samples`.

    While another process measures on the same GPU, this waits, and says so.

    Args:
        launch: queues the work, such as `lambda: k(grid, block, args)`; allocates nothing.
        samples: how many to take.

    Raises:
        RuntimeError: there is no GPU.
        GpuBusy: others have been measuring for minutes.
    """
    from helpers import cp, device

    if not device.is_gpu:
        raise RuntimeError(NO_TIMES)
    with gpu_lock.one_at_a_time(gpu_lock.gpu_uuid(cp)):
        return _median(cp, launch, samples)


def _median(cp, launch: Callable[[], object], samples: int) -> float:
    launch()  # compiles, and fills the caches
    cp.cuda.Device().synchronize()
    host = time.perf_counter()
    launch()
    host = time.perf_counter() - host  # seconds to queue one launch
    cp.cuda.Device().synchronize()
    once = _between_events(cp, launch, 1, host)
    launches = max(1, min(_MOST_LAUNCHES, round(_SAMPLE_MS / max(once, 1e-4))))
    _between_events(cp, launch, launches, host)
    return statistics.median(_between_events(cp, launch, launches, host) for _ in range(samples))


def _between_events(cp, launch: Callable[[], object], launches: int, host: float) -> float:
    """Milliseconds of one launch out of `launches` in a row; `host` seconds to queue one."""
    global _wait
    import numpy as np

    if _wait is None:
        _wait = cp.RawKernel(_WAIT, "wait")
    start, end = cp.cuda.Event(), cp.cuda.Event()
    # Two cycles a nanosecond is more than any GPU makes; the second is that of the host's luck.
    _wait((1,), (1,), (np.int64(min(2 * host * launches, 0.05) * 2e9),))
    start.record()
    for _ in range(launches):
        launch()
    end.record()
    end.synchronize()
    return cp.cuda.get_elapsed_time(start, end) / launches


class Times(Table):
    """Milliseconds by launch and N, the GPU's name beside them.

    Attributes:
        measured: {launch: {N: milliseconds}} of this machine; empty without a GPU.
        recorded: the recorded ones, or None.
    """

    def __init__(
        self,
        device: str | None,
        measured: Mapping[str, Mapping[int, float]],
        recorded: Recorded | None,
    ):
        self.measured = {launch: dict(times) for launch, times in measured.items()}
        self.recorded = recorded
        rows, sizes = [], set()
        sources = [(device, self.measured)] if device else []
        if recorded:
            sources.append((f"{recorded.device}, recorded", recorded.milliseconds))
        for _, by_launch in sources:
            sizes.update(n for times in by_launch.values() for n in times)
        columns = sorted(sizes)
        for name, by_launch in sources:
            for launch, times in by_launch.items():
                rows.append((name, launch, *(_milliseconds(times.get(n)) for n in columns)))
            if len(by_launch) > 1:
                sums = [
                    sum(times[n] for times in by_launch.values())
                    if all(n in times for times in by_launch.values())
                    else None
                    for n in columns
                ]
                rows.append((name, "all", *map(_milliseconds, sums)))
        notes = []
        if not device:
            notes.append(NO_TIMES)
        if rows:
            notes.append(f"Milliseconds: {PROTOCOL if device else recorded.protocol}.")
        elif not device:
            notes.append("No recorded times of a GPU are here either.")
        super().__init__(("GPU", "kernel", *(f"N = {n:,}" for n in columns)), rows, " ".join(notes))


def sweep(
    launches: Callable[[int], Mapping[str, Callable[[], object]]],
    sizes: Sequence[int],
    recorded: str | None = None,
    folder: Path = recordings.FOLDER,
) -> Times:
    """Time some launches at several sizes on this machine's GPU, next to recorded times.

    Without a GPU nothing is launched, and the recorded times stand alone.

    Args:
        launches: `launches(N)` makes the arrays and returns {name: launch}; only what a returned
            launch does is timed.
        sizes: values of N to measure.
        recorded: name of a file in `helpers/measure/recorded/`, without `.json`; a missing one is
            no error.
        folder: where that file is.
    """
    from helpers import device

    stored = recordings.load(recorded, folder) if recorded else None
    if not device.is_gpu:
        return Times(None, {}, stored)
    return Times(device.name(), _measured(launches, sizes), stored)


def _measured(launches, sizes: Sequence[int]) -> dict[str, dict[int, float]]:
    measured: dict[str, dict[int, float]] = {}
    for n in sizes:
        made = launches(n)
        for name, launch in made.items():
            measured.setdefault(name, {})[n] = measure(launch)
        del made  # its arrays, before those of the next size
    return measured


def _milliseconds(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.4f}" if value < 0.1 else f"{value:.3f}" if value < 10 else f"{value:.1f}"
