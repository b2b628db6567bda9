"""TFLOPS of the FlashAttention kernels beside what PyTorch offers, measured here or recorded.

A user would call PyTorch instead, so its FlashAttention-2 and cuDNN back ends are timed in the same
rounds where PyTorch and a GPU are there.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

from ..gpu import lock as gpu_lock
from ..problem.flash import FLASH
from ..problem.flash_inputs import flops, make_inputs
from . import timing
from .charts import rate_chart
from .recorded.flash_recording import Shape, load_flash
from .tables import Table

__all__ = ["LARGE", "FlashTimes", "flash_times"]

LARGE: Shape = (4, 16, 4096, 128)  # batch, heads, n and d
REFERENCE = "FlashAttention-2"
RIVALS = {REFERENCE: "FLASH_ATTENTION", "cuDNN": "CUDNN_ATTENTION"}
_SAMPLE_MS = 20.0  # long enough for the GPU to reach the clock that it can hold
PROTOCOL = (
    "median of {} samples in as many rounds over all of them, after a warm-up; a sample is the "
    f"time between two events around about {_SAMPLE_MS:.0f} ms of launches; fp16"
)


class FlashTimes(Table):
    """TFLOPS by kernel at one size, with the GPU's name beside them.

    Attributes:
        shape: batch, heads, n and d.
        device: this machine's GPU; None without one.
        measured: {kernel: TFLOPS} of it; empty without a GPU.
        recorded: {kernel: TFLOPS} of the GPU of the recording; empty without one.
    """

    def __init__(
        self,
        shape: Shape,
        device: str | None,
        measured: Mapping[str, float],
        recorded: tuple[str, Mapping[str, float], str] | None,
        notes: Sequence[str] = (),
        samples: int = 0,
    ):
        self.shape, self.device = shape, device
        self.measured = dict(measured)
        self.recorded = dict(recorded[1]) if recorded else {}
        sources = [(device, self.measured, PROTOCOL.format(samples))] if device else []
        if recorded:
            sources.append((f"{recorded[0]}, recorded", self.recorded, recorded[2]))
        self._sources = [(str(gpu), rates) for gpu, rates, _ in sources if rates]
        rows = [
            (gpu, name, f"{rate:.0f}", self._share(rate, rates), _milliseconds(shape, rate))
            for gpu, rates in self._sources
            for name, rate in rates.items()
        ]
        said = [] if device else [timing.NO_TIMES]
        if self._sources:
            b, h, n, d = shape
            said.append(f"Batch {b}, {h} heads, n = {n:,}, d = {d}: {sources[0][2]}.")
        headings = ("GPU", "kernel", "TFLOPS", f"of {REFERENCE}", "milliseconds")
        super().__init__(headings, rows, " ".join([*said, *notes]))

    @staticmethod
    def _share(rate: float, rates: Mapping[str, float]) -> str:
        return f"{rate / rates[REFERENCE]:.2f}" if REFERENCE in rates else ""

    def rates(self) -> tuple[str, dict[str, float]]:
        """The GPU's name and TFLOPS by kernel, the measured ones first.

        Raises:
            ValueError: there are none.
        """
        if not self._sources:
            raise ValueError("There are no times: neither a GPU nor a recording.")
        gpu, rates = self._sources[0]
        return gpu, dict(rates)

    def chart(self):
        """The TFLOPS as bars."""
        return rate_chart(*self.rates())


def flash_times(
    upto: str = "flash_swizzled",
    shape: Shape = LARGE,
    samples: int = 9,
    variants: Sequence[str] = (),
) -> FlashTimes:
    """TFLOPS of the kernels from the first to `upto`, and of PyTorch's.

    Without a GPU nothing is launched, and the recorded ones stand alone.

    Args:
        upto: name of the last rung of `helpers.problem.flash.FLASH` to show.
        shape: batch, heads, n and d.
        samples: how many of each to take.
        variants: recorded variants to show as well, by their names there.

    Raises:
        ValueError: there is no such rung.
    """
    from helpers import device

    names = [rung.name for rung in FLASH]
    if upto not in names:
        raise ValueError(f"There is no rung {upto!r}; there are {', '.join(names)}.")
    rungs = FLASH[: names.index(upto) + 1]
    shown = [*(_short(rung.name) for rung in rungs), *variants, *RIVALS]
    recording, recorded = load_flash(), None
    if recording and shape in recording.tflops:
        rates = recording.tflops[shape]
        kept = {name: rates[name] for name in shown if name in rates}
        recorded = recording.device, kept, recording.protocol
    said = [recording.note] if recording and recorded and recording.note else []
    if not device.is_gpu:
        return FlashTimes(shape, None, {}, recorded, said)
    launches, notes = _launches(rungs, shape)
    times = _interleaved(launches, samples)
    rates = {name: flops(*shape) / ms * 1e-9 for name, ms in times.items()}
    return FlashTimes(shape, device.name(), rates, recorded, [*notes, *said], samples)


def _launches(rungs, shape: Shape) -> tuple[dict[str, Callable[[], object]], list[str]]:
    """What to time by name, and sentences about what cannot be."""
    arrays = make_inputs(*shape)
    launches: dict[str, Callable[[], object]] = {
        _short(rung.name): rung.prepare(*arrays).launch for rung in rungs
    }
    try:
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel

        tensors = [torch.from_numpy(x).cuda() for x in arrays]
    except Exception as error:  # not installed, or without CUDA
        return launches, [f"PyTorch cannot be timed here ({type(error).__name__})."]
    notes = []
    for name, backend in RIVALS.items():
        call = functools.partial(_attend, torch, sdpa_kernel, getattr(SDPBackend, backend), tensors)
        try:
            call()
            launches[name] = call
        except Exception as error:  # PyTorch was built without it, or it does not run here
            notes.append(f"PyTorch's {name} cannot be timed here ({type(error).__name__}).")
    return launches, notes


def _attend(torch, sdpa_kernel, backend, tensors) -> None:
    """Attention by one of PyTorch's back ends."""
    with sdpa_kernel(backend), torch.no_grad():
        torch.nn.functional.scaled_dot_product_attention(*tensors)


def _interleaved(launches: Mapping[str, Callable[[], object]], samples: int) -> dict[str, float]:
    """Milliseconds of one launch: medians of samples that are taken in rounds."""
    from helpers import cp

    with gpu_lock.one_at_a_time(gpu_lock.gpu_uuid(cp)):
        return _in_rounds(cp, launches, samples)


def _in_rounds(cp, launches, samples: int) -> dict[str, float]:
    counts, hosts = {}, {}
    for name, launch in launches.items():
        launch()
        cp.cuda.Device().synchronize()
        start = time.perf_counter()
        launch()
        hosts[name] = time.perf_counter() - start  # seconds to queue one launch
        cp.cuda.Device().synchronize()
        once = timing._between_events(cp, launch, 1, hosts[name])
        counts[name] = max(1, min(100, round(_SAMPLE_MS / once)))
    taken: dict[str, list[float]] = {name: [] for name in launches}
    for warm_up in (True, *[False] * samples):
        for name, launch in launches.items():
            one = timing._between_events(cp, launch, counts[name], hosts[name])
            if not warm_up:
                taken[name].append(one)
    return {name: statistics.median(times) for name, times in taken.items()}


def _short(rung: str) -> str:
    """The name of a rung in recordings: `baseline` of `flash_baseline`."""
    return rung.removeprefix("flash_")


def _milliseconds(shape: Shape, rate: float) -> str:
    return f"{flops(*shape) / rate * 1e-9:.2f}"
