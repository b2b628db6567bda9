"""Times of the ladder so far, rung by rung: of attention as a whole, or of one of its kernels."""

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from ..gpu import device
from ..kernels.launches import Launch
from ..kernels.source import KernelError, Value
from ..problem.attention import make_inputs, memory
from ..problem.ladder import ladder, rung
from ..problem.rungs import Rung
from . import recorded, timing
from .times import Source, Times, by_size, recorded_source

SIZES = (256, 512, 1024, 4096, 16384)
D = 64  # columns of Q, K and V in every time of the ladder
_SHARE = 0.8  # of a GPU's memory that Q, K, V, S, P and O may take together

Bars = Mapping[str, tuple[Rung, Mapping[str, Value]]]


def bars(upto: str) -> Bars:
    """A rung, or each of its variants, by the name of its bar; from the first rung to `upto`.

    Raises:
        KernelError: there is no such rung.
    """
    rungs, last = ladder("fp32"), rung(upto, "fp32")
    return {
        f"{one.name}, {variant}" if variant else one.name: (one, settings)
        for one in rungs[: rungs.index(last) + 1]
        for variant, settings in (one.variants or {"": {}}).items()
    }


def ladder_times(upto: str, sizes: Sequence[int] = SIZES) -> Times:
    """Times of the ladder's rungs from naive to `upto`, each variant on its own.

    Without a GPU nothing is launched, and the recorded times stand alone. With a rung that is
    compared with a library come the recorded times of PyTorch as well.

    Args:
        upto: name of the last rung to show.
        sizes: values of N to measure on a GPU; those that do not fit into its memory are left out.

    Raises:
        KernelError: there is no such rung.
    """
    return _times(upto, "attention", sizes)


def attention_time(one: Rung, settings: Mapping[str, Value], n: int) -> float:
    """Milliseconds of a rung's attention at N = `n`, d = 64 on this machine's GPU.

    Raises:
        KernelError: the settings do not go together.
        RuntimeError, GpuBusy: as for `timing.measure`.
    """
    return _measured(one, settings, "attention", n)


def kernel_times(upto: str, kernel: str, sizes: Sequence[int] = SIZES) -> Times:
    """The same for one of the three kernels.

    Rungs that share a kernel share a row, which names them all: `tiled and reduction`. How times
    are taken is not said, since the table of the whole ladder says it.

    Args:
        kernel: of the rung `upto`, such as `scaled_dot_product`, `softmax` or `pv_multiply`.

    Raises:
        KernelError: there is no such rung or kernel.
    """
    known = [entry for _, entry in rung(upto, "fp32").kernels]
    if kernel not in known:
        raise KernelError(f"No rung has a kernel {kernel!r}; they have {', '.join(known)}.")

    return _times(upto, kernel, sizes)


def _times(upto: str, what: str, sizes: Sequence[int]) -> Times:
    """The table of a kernel or of `attention`, and the recorded one."""
    rungs = {
        name: (one, settings)
        for name, (one, settings) in bars(upto).items()
        if what in ("attention", *(entry for _, entry in one.kernels))
    }
    names, recording = list(rungs), recorded.load(recorded.LADDER)
    if recording and rung(upto, "fp32").compared:
        known = bars(ladder("fp32")[-1].name)
        names += [name for name in recording.times(what) if name not in known]
    measured: dict[str, dict[int, float]] = {}
    for n, name in itertools.product(_fitting(sizes) if device.is_gpu else (), rungs):
        measured.setdefault(name, {})[n] = _measured(*rungs[name], what, n)
    sources = [
        Source(device.name(), measured, timing.PROTOCOL) if device.is_gpu else None,
        recorded_source(recording, what, names),
    ]
    if what != "attention":
        sources = [one and _once(one, of_one_kernel(upto, what), rungs) for one in sources]
    about = f"Milliseconds, d = {D}"
    return Times("rung", *sources, functools.partial(by_size, short=True), about=about)


def of_one_kernel(upto: str, kernel: str) -> dict[str, str]:
    """{bar: label}: the first of the bars that have a kernel in common, and the names of all.

    Raises:
        KernelError: there is no such rung.
    """
    alike: dict[tuple, list[str]] = {}
    for name, (one, settings) in bars(upto).items():
        launches = one.launches(SIZES[0], D, **settings)
        for launch in launches:
            if launch.kernel.entry == kernel:
                alike.setdefault(_key(launch), []).append(name)
    return {
        names[0]: f"{names[0]} to {names[-1]}" if len(names) > 2 else " and ".join(names)
        for names in alike.values()
    }


def _once(source: Source, labels: Mapping[str, str], rungs: Bars) -> Source:
    """A kernel's times under one label, and no word on how they were taken."""
    shown = [name for name in source.times if name in labels or name not in rungs]
    return Source(source.gpu, {labels.get(name, name): source.times[name] for name in shown}, "")


def _measured(one: Rung, settings: Mapping[str, Value], what: str, n: int) -> float:
    """Milliseconds of a rung's kernel or of its `attention`.

    Launches are measured once: rungs share kernels, cells show the same rungs again, and so does a
    bench.
    """

    def wanted(launches: Iterable[Launch]) -> list[Launch]:
        return [launch for launch in launches if what in ("attention", launch.kernel.entry)]

    def prepare() -> Callable[[], object]:
        prepared = one.prepare(*_inputs(n), **settings)
        if what == "attention":
            return prepared.run
        prepared.run()  # S and P get values, for the kernels that read them
        (launch,) = wanted(prepared.launches)
        return launch.run

    return timing.measure_once((n, *map(_key, wanted(one.launches(n, D, **settings)))), prepare)


def _key(launch: Launch) -> tuple:
    """All of a launch that its time at one size follows from."""
    k = launch.kernel
    return k.code, k.entry, k.options, launch.grid, launch.block, launch.shared_mem


@functools.lru_cache(1)
def _inputs(n: int) -> tuple[np.ndarray, ...]:
    return make_inputs(n, D)


def _fitting(sizes: Sequence[int]) -> list[int]:
    """The sizes whose matrices the GPU has room for."""
    _, total = device.cp.cuda.Device().mem_info
    return [n for n in sizes if sum(memory(n, D).values()) <= _SHARE * total]
