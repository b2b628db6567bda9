"""Times of kernels: measured with events on a GPU, recorded ones where there is none.

A simulated run has no milliseconds and is never timed. Of several processes that measure on one GPU
each waits for its turn.
"""

import functools
import statistics
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future, wait
from pathlib import Path

import numpy as np

from ..gpu import device
from ..gpu import lock as gpu_lock
from . import recorded as recordings
from .times import NO_TIMES, Source, Times

SAMPLES = 21
FEWEST = 3  # samples of a launch that takes long
_SECONDS = 0.05  # that the samples of one launch may take together
_SAMPLE_MS, _MOST_LAUNCHES = 0.3, 30  # of a sample; hundreds of launches keep the host busy


def protocol(samples: str, milliseconds: float) -> str:
    """How times are taken, in words.

    Args:
        samples: how many, such as `21 samples`.
        milliseconds: that a sample takes about.
    """
    return (
        f"median of {samples} after a warm-up, each between two events around enough launches to "
        f"take about {milliseconds:g} ms; compilation and allocation are outside"
    )


PROTOCOL = protocol(f"{SAMPLES} samples ({FEWEST} of a launch that takes long)", _SAMPLE_MS)
Launches = Mapping[str, Callable[[], object]]

# What this process has begun on the GPU behind its cells: nothing is timed while it is under way.
begun: list[Future] = []

# Milliseconds that this process has measured, by GPU and key.
_measured: dict[tuple[str | None, Hashable], float] = {}

# Keeps the GPU busy while the host queues the launches behind it, so that the events enclose the
# kernels and not the host's work between them.
_WAIT = r"""
extern "C" __global__ void wait(long long cycles) {
    const long long start = clock64();
    while (clock64() - start < cycles) {
    }
}
"""


def measure(launch: Callable[[], object], samples: int | None = None) -> float:
    """Milliseconds of one call of `launch` on the GPU: the median of `samples`.

    While another process measures on the same GPU, this waits, and says so.

    Args:
        launch: queues the work, such as `lambda: k(grid, block, args)`; allocates nothing.
        samples: how many to take; by default 21, fewer if they would take long.

    Raises:
        RuntimeError: there is no GPU.
        GpuBusy: others have been measuring for minutes.
    """
    return statistics.median(in_turn({"": launch}, samples, _SAMPLE_MS, _MOST_LAUNCHES)[""])


def measure_once(key: Hashable, prepare: Callable[[], Callable[[], object]]) -> float:
    """The same as `measure`; what this process has measured under the key already, if it has.

    Args:
        key: all that the time follows from: the code, the size, the geometry.
        prepare: makes the launch; called only if there is something to measure.

    Raises:
        RuntimeError, GpuBusy: as for `measure`.
    """
    gpu = gpu_lock.gpu_uuid(device.cp) if device.is_gpu else None
    if (gpu, key) not in _measured:
        _measured[gpu, key] = measure(prepare())
    return _measured[gpu, key]


def in_turn(
    launches: Launches, samples: int | None, milliseconds: float = 1.0, most: int = 200
) -> dict[str, list[float]]:
    """Milliseconds of one call of each launch: samples that are taken in turn.

    A GPU's clock changes as it warms up; in turn, all have the same share of it.

    Args:
        launches: what queues the work, by name; each allocates nothing.
        samples: how many of each; None for as many as `measure` takes.
        milliseconds: that a sample takes about.
        most: launches in a sample; a stream queues about a thousand before the host has to wait.

    Raises:
        RuntimeError, GpuBusy: as for `measure`.
    """
    if not device.is_gpu:
        raise RuntimeError(NO_TIMES)
    cp = device.cp
    wait(begun)
    begun.clear()
    plans, taken, warm_up = {}, {name: [] for name in launches}, 0.0
    with gpu_lock.one_at_a_time(gpu_lock.gpu_uuid(cp)):
        for name, launch in launches.items():
            launch()  # compiles, and fills the caches
            cp.cuda.Device().synchronize()
            start = time.perf_counter()
            launch()
            host = time.perf_counter() - start  # seconds to queue one launch
            cp.cuda.Device().synchronize()
            start = time.perf_counter()
            once = between_events(cp, launch, 1, host)
            count = max(1, min(most, round(milliseconds / max(once, 1e-4))))
            if count > 1:
                start = time.perf_counter()
                between_events(cp, launch, count, host)
            warm_up += time.perf_counter() - start
            plans[name] = count, host
        if samples is None:
            samples = max(FEWEST, min(SAMPLES, int(_SECONDS / max(warm_up, 1e-6))))
            if len(launches) == 1 and once * FEWEST > _SECONDS * 1000:
                taken[name].append(once)  # a launch of this length has warmed the GPU up by itself
                samples -= 1
        for _ in range(samples):
            for name, launch in launches.items():
                taken[name].append(between_events(cp, launch, *plans[name]))
    return taken


def between_events(cp, launch: Callable[[], object], launches: int, host: float) -> float:
    """Milliseconds of one launch out of `launches` in a row; `host` seconds to queue one."""
    start, end = cp.cuda.Event(), cp.cuda.Event()
    # Two cycles a nanosecond is more than any GPU makes; the second is that of the host's luck.
    _wait(cp)((1,), (1,), (np.int64(min(2 * host * launches, 0.05) * 2e9),))
    start.record()
    for _ in range(launches):
        launch()
    end.record()
    end.synchronize()
    return cp.cuda.get_elapsed_time(start, end) / launches


@functools.cache
def _wait(cp):
    return cp.RawKernel(_WAIT, "wait")


def sweep(
    launches: Callable[[int], Launches],
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
        recorded: a rung of the ladder, whose kernels' recorded times stand beside; if they are not
            there, that is no error.
        folder: where the ladder's recording is.
    """
    measured: dict[str, dict[int, float]] = {}
    for n in sizes if device.is_gpu else ():
        made = launches(n)
        for name, launch in made.items():
            measured.setdefault(name, {})[n] = measure(launch)
        del made  # its arrays, before those of the next size
    here = Source(device.name(), measured, PROTOCOL) if device.is_gpu else None
    return Times("kernel", here, _recorded_kernels(recorded, folder), total=True)


def _recorded_kernels(rung: str | None, folder: Path) -> Source | None:
    """The recorded times of a rung's kernels, each by its name."""
    recording = recordings.load(recordings.LADDER, folder)
    if rung is None or recording is None:
        return None
    by_kernel = {what: recording.times(what).get(rung, {}) for what in recording.tables}
    by_kernel.pop("attention", None)  # all of them together
    return Source(recording.device, by_kernel, recording.protocol)
