"""TFLOPS of the FlashAttention kernels beside what PyTorch offers, measured here or recorded.

A user would call PyTorch instead, so its FlashAttention-2 and cuDNN back ends are timed in the same
rounds where PyTorch and a GPU are there.
"""

import contextlib
import functools
import importlib.util
import statistics
import sys
import threading
from collections.abc import Callable, Sequence

import numpy as np

from ..gpu import device
from ..problem.flash_inputs import flops, make_inputs
from ..problem.ladder import ladder, rung
from ..problem.rungs import Rung
from . import timing
from .facts import load_facts
from .recorded import Recording, Shape, flash_recordings
from .tables import Table
from .times import Cell, Source, Times, recorded_source

LARGE: Shape = (4, 16, 4096, 128)  # batch, heads, n and d
REFERENCE = "FlashAttention-2"
_BUSY = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"
RIVALS = {REFERENCE: "FLASH_ATTENTION", "cuDNN": "CUDNN_ATTENTION"}
_SAMPLE_MS = 20.0  # long enough for the GPU to reach the clock that it can hold
PROTOCOL = (
    "median of {} samples in as many rounds over all of them, after a warm-up; a sample is the "
    f"time between two events around about {_SAMPLE_MS:.0f} ms of launches; fp16"
)


def flash_times(
    upto: str = "flash_swizzled",
    shape: Shape = LARGE,
    samples: int = 5,
    variants: Sequence[str] = (),
) -> Times:
    """TFLOPS of the kernels from the first to `upto`, and of PyTorch's.

    Without a GPU nothing is launched, and the recorded ones stand alone.

    Args:
        upto: name of the last rung to show.
        shape: batch, heads, n and d.
        samples: how many of each to take.
        variants: recorded variants to show as well, by their names there.

    Raises:
        KernelError: there is no such rung.
    """
    kind = "hopper" if rung(upto).kind == "hopper" else "flash"
    rungs = ladder(kind)
    rungs = rungs[: rungs.index(rung(upto, kind)) + 1]
    shown = [*(_short(one.name) for one in rungs), *variants, *RIVALS]
    recording, measured, notes = recording_of(upto), None, []
    recorded = _at(shape, recorded_source(recording, names=shown))
    refused = rungs[0].refused_here()
    if refused:
        notes = [refused]
    elif device.is_gpu:
        calls, notes = launches(rungs, shape)
        taken = timing.in_turn(calls, samples, _SAMPLE_MS, most=100)
        rates = {
            name: {shape: flops(*shape) / statistics.median(times) * 1e-9}
            for name, times in taken.items()
        }
        measured = Source(device.name(), rates, PROTOCOL.format(samples))
    if recorded and recording.note:
        notes.append(recording.note)
    b, h, n, d = shape
    return Times(
        "kernel", measured, recorded, functools.partial(_columns, shape), unit="TFLOPS",
        about=f"Batch {b}, {h} heads, n = {n:,}, d = {d}", notes=notes,
    )  # fmt: skip


def reach(upto: str = "flash_swizzled") -> Table:
    """Recorded TFLOPS at `LARGE` beside the most that `mma.sync` gave on the same GPU.

    A kernel of `mma.sync` that keeps the tensor cores busy for a share of the time has that share
    of those TFLOPS; Nsight Compute counted the time.

    Args:
        upto: name of the last rung to show.

    Raises:
        KernelError: there is no such rung.
        FileNotFoundError: nothing was recorded.
    """
    rungs, recording, facts = ladder("flash"), recording_of(upto), load_facts()
    if recording is None:
        raise FileNotFoundError("No FlashAttention kernels were recorded.")
    most, rates = facts.mma_tflops, recording.tflops[LARGE]
    names = [one.name for one in rungs[: rungs.index(rung(upto, "flash")) + 1]] + [*RIVALS]
    rows = [("data sheet, by wgmma", f"{facts.data_sheet['tensor_fp16_TFLOPS']:.0f}", "", "")]
    rows.append(("mma.sync alone, measured", f"{most:.0f}", "100 %", ""))
    for name in names:
        if _short(name) not in rates:
            continue
        rate, profile = rates[_short(name)], recording.profile(name)
        busy = f"{profile.metrics[_BUSY]:.1f} %" if profile else ""
        rows.append((_short(name), f"{rate:.0f}", f"{100 * rate / most:.1f} %", busy))
    headings = (f"{facts.device}, recorded", "TFLOPS", "of mma.sync's", "tensor cores busy")
    note = f"mma.sync alone: {facts.date}, {facts.protocol.split(';')[0]}. Busy: Nsight Compute."
    return Table(headings, rows, note)


def recording_of(name: str) -> Recording | None:
    """The recording that has the times of a rung, of a variant or of a rival; None if none has."""
    return next((one for one in flash_recordings() if _short(name) in one.times()), None)


def _at(shape: Shape, source: Source | None) -> Source | None:
    """What a source has at one size; None if that is nothing."""
    if source is None:
        return None
    times = {name: {shape: own[shape]} for name, own in source.times.items() if shape in own}
    return source._replace(times=times) if times else None


def _columns(shape: Shape, _) -> dict[str, Cell]:
    """TFLOPS at one size, their share of PyTorch's, and the time of a launch."""

    def share(own, times) -> str:
        return f"{own[shape] / times[REFERENCE][shape]:.2f}" if REFERENCE in times else ""

    return {
        "TFLOPS": lambda own, _: f"{own[shape]:.0f}",
        f"of {REFERENCE}": share,
        "milliseconds": lambda own, _: f"{flops(*shape) / own[shape] * 1e-9:.2f}",
    }


def launches(
    rungs: Sequence[Rung], shape: Shape = LARGE
) -> tuple[dict[str, Callable[[], object]], list[str]]:
    """Kernels and PyTorch's back ends on one GPU, to be timed in turn.

    Args:
        rungs: kernels that this GPU can run.
        shape: batch, heads, n and d.

    Returns:
        What to call by name, and sentences about what cannot be timed.
    """
    # The heads of a time may be alike: so many random numbers take longer than all launches.
    arrays = [np.tile(x, (*shape[:2], 1, 1)) for x in make_inputs(1, 1, *shape[2:])]
    calls: dict[str, Callable[[], object]] = {
        _short(one.name): one.prepare(*arrays).run for one in rungs
    }
    try:
        import torch  # late: an optional package
        from torch.nn.attention import SDPBackend, sdpa_kernel  # late: as above

        tensors = [torch.from_numpy(x).cuda() for x in arrays]
    except Exception as error:  # not installed, or without CUDA
        return calls, [f"PyTorch cannot be timed here ({type(error).__name__})."]
    notes = []
    for name, backend in RIVALS.items():
        call = functools.partial(_attend, torch, sdpa_kernel, getattr(SDPBackend, backend), tensors)
        try:
            call()
            calls[name] = call
        except Exception as error:  # PyTorch was built without it, or it does not run here
            notes.append(f"PyTorch's {name} cannot be timed here ({type(error).__name__}).")
    return calls, notes


def import_ahead(module: str = "torch.nn.attention") -> threading.Thread | None:
    """Begin to import PyTorch where a notebook on a GPU will need it, behind the cells before.

    It takes up to ten seconds on a machine where nobody has used it yet.

    Returns:
        What imports it, or None where nothing is to be imported.
    """
    if "ipykernel" not in sys.modules or not device.is_gpu:
        return None
    if importlib.util.find_spec(module.partition(".")[0]) is None:
        return None

    def work() -> None:
        with contextlib.suppress(Exception):  # said where it is needed
            importlib.import_module(module)  # late: what the thread is for

    thread = threading.Thread(target=work, name=f"import {module}")
    thread.start()
    return thread


def _attend(torch, sdpa_kernel, backend, tensors) -> None:
    """Attention by one of PyTorch's back ends."""
    with sdpa_kernel(backend), torch.no_grad():
        torch.nn.functional.scaled_dot_product_attention(*tensors)


def _short(rung: str) -> str:
    """The name of a rung in recordings: `baseline` of `flash_baseline`."""
    return rung.removeprefix("flash_")


import_ahead()
