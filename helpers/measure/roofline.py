"""Where the rungs stand under the roofline: their least time beside the time that they take.

The least time of a rung is the sum of its kernels' bounds, which rest on what the simulator counts;
the times are recorded ones, of the GPU whose bounds they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..kernels.source import KernelError
from ..problem import flash_inputs
from ..problem.ladder import ladder, rung
from ..simulator import gpu
from . import recorded
from .charts import Markup
from .facts import load_facts
from .flash_times import LARGE, recording_of
from .ladder_times import D, bars, of_one_kernel
from .roofline_chart import RungPoint, roofline_chart
from .rung_bounds import rung_bounds
from .tables import Table, milliseconds

__all__ = ["LEVELS", "Roofline", "kernel_bounds", "least", "parts", "roofline"]

GPU = "H200"
SIZE = 16384  # N of the fp32 rungs
FP32, FLASH, HOPPER = "fp32", "flash", "hopper"  # kinds of rungs, each over the one before
UNITS = {FP32: "fp32", FLASH: "mma.sync", HOPPER: "wgmma"}  # that multiply
DRAM, L2, NEAR = "DRAM", "L2", "L1, shared"
_WAVEFRONT = 128  # bytes
LEVELS = {DRAM: ("DRAM",), L2: ("L2",), NEAR: ("L1", "shared memory")}

Seconds = Mapping[str, float]  # {part of the GPU: least seconds}


class Standing(NamedTuple):
    """A rung: operations of the two products, seconds measured, least seconds of each kernel."""

    operations: float
    seconds: float
    kernels: Sequence[Seconds]

    @property
    def least(self) -> float:
        """No run is faster: each kernel's largest bound, added up."""
        return sum(max(kernel.values()) for kernel in self.kernels)

    def of(self, level: str) -> float:
        """Least seconds at a level of memory."""
        return sum(max(k.get(part, 0.0) for part in LEVELS[level]) for k in self.kernels)

    @property
    def limit(self) -> str:
        """The part of the GPU that most of the least time is for."""
        parts: dict[str, float] = {}
        for kernel in self.kernels:
            part = max(kernel, key=kernel.get)
            parts[part] = parts.get(part, 0.0) + kernel[part]
        return max(parts, key=parts.get)


class Roofline(Table):
    """The rungs' least times beside the recorded ones, as a table; `chart` draws them.

    Attributes:
        standings: {rung: Standing}.
    """

    def __init__(self, gpu: str, standings: Mapping[str, Standing]):
        self.gpu, self.standings = gpu, standings
        self._kinds = {rung(_of(name)).kind for name in standings}
        rows = [(name, *_beside(one)) for name, one in standings.items()]
        super().__init__(_headings("rung", gpu), rows, self._note())

    def _note(self) -> str:
        b, h, n, d = LARGE
        large = f"batch {b}, {h} heads, n = {n:,}, d = {d}"
        sizes = [f"N = {SIZE:,}, d = {D}"] if FP32 in self._kinds else []
        if self._kinds - {FP32}:
            sizes.append(f"flash kernels: {large}" if sizes else large.capitalize())
        return (
            f"{'; '.join(sizes)}. Least time: what the simulator counts, by the most that an "
            f"{GPU} does in a second; of DRAM and L2 each sector once, of DRAM less what L2 can "
            "hold."
        )

    def chart(self) -> Markup:
        """A panel for each level of memory, with a point for each rung."""
        chip = gpu(GPU)
        clocks = chip.multiprocessors * chip.clock
        rates = {DRAM: chip.dram_rate, L2: chip.l2_rate, NEAR: _WAVEFRONT * clocks}
        rates = {level: rate / 1e12 for level, rate in rates.items()}
        most = {
            FP32: 2 * chip.fp32 * clocks / 1e12,
            FLASH: load_facts().mma_tflops,
            HOPPER: chip.wgmma["fp16"] * clocks / 1e12,
        }
        ceilings = {UNITS[kind]: most[kind] for kind in UNITS if kind in self._kinds}
        points = []
        for name, one in self.standings.items():
            levels = {level: one.of(level) for level in LEVELS}
            points.append(
                RungPoint(
                    name,
                    one.operations / one.seconds / 1e12,
                    {x: one.operations / s / rates[x] / 1e12 for x, s in levels.items() if s},
                    next((x for x, parts in LEVELS.items() if one.limit in parts), one.limit),
                    one.least / one.seconds,
                )
            )
        return roofline_chart(self.gpu, rates, ceilings, points)


def roofline(
    upto: str, seconds: Seconds | None = None, gpu_name: str = "", since: str = ""
) -> Roofline:
    """The ladder from the first rung to `upto`, each variant on its own, on an H200.

    Args:
        upto: name of the last rung to show.
        seconds: what rungs and variants take at the sizes shown, by name; recorded times stand for
            those that are not there.
        gpu_name: of the H200 on which `seconds` were taken.
        since: name of the first rung to show, if it is not the ladder's first.

    Raises:
        KernelError: there is no such rung, or `upto` comes before `since`.
        FileNotFoundError: nothing was recorded.
    """
    names = _names(upto)
    if since:
        first = rung(since).name
        names = names[next((n for n, name in enumerate(names) if _of(name) == first), len(names)) :]
    if not names:
        raise KernelError(f"The rung {upto!r} comes before {since!r}: name a later one.")
    taken = seconds or {}
    found = {name: _standing(name, taken.get(name)) for name in names}
    where = gpu_name if taken else f"{_recorded().device}, recorded"
    return Roofline(where, found)


def _names(upto: str) -> list[str]:
    """Bars of the ladder's rungs to `upto`: FlashAttention's come after all in fp32."""
    kinds = list(UNITS)
    names = list(bars(ladder(FP32)[-1].name if rung(upto).kind != FP32 else upto))
    for kind in kinds[1 : kinds.index(rung(upto).kind) + 1]:
        names += [one.name for one in ladder(kind)]
    return names[: names.index(upto) + 1] if upto in names else names


def _of(name: str) -> str:
    """The rung whose bar has this name."""
    return name.partition(",")[0]


def kernel_bounds(upto: str, kernel: str) -> Table:
    """The same for one kernel of the fp32 rungs, as a table; rungs that share it share a row.

    Args:
        upto: name of the last rung to show.
        kernel: `scaled_dot_product`, `softmax` or `pv_multiply`.

    Raises:
        KernelError: there is no such rung.
        FileNotFoundError: nothing was recorded.
    """
    times = _recorded().times(kernel)
    rows = []
    for name, label in of_one_kernel(upto, kernel).items():
        one = Standing(0.0, times[name][SIZE] / 1e3, [least(name)[kernel]])
        rows.append((label, *_beside(one)))
    return Table(
        _headings(kernel, f"{_recorded().device}, recorded"), rows, f"N = {SIZE:,}, d = {D}."
    )


def parts(name: str) -> Table:
    """How long a rung keeps each part of the GPU busy at least, as a share of its time.

    Args:
        name: as `roofline` shows it.

    Raises:
        KeyError: there is no such rung.
        FileNotFoundError: nothing was recorded.
    """
    one = _standing(name)
    busy: dict[str, float] = {}
    for kernel in one.kernels:
        for part, seconds in kernel.items():
            busy[part] = busy.get(part, 0.0) + seconds
    rows = [
        (part, milliseconds(1e3 * busy[part]), f"{busy[part] / one.seconds:.0%}")
        for part in sorted(busy, key=busy.get, reverse=True)
    ]
    note = f"{_recorded().device}, recorded: {milliseconds(1e3 * one.seconds)} ms."
    return Table((name, "least time, ms", "of the measured time"), rows, note)


def least(name: str) -> dict[str, Seconds]:
    """{kernel: least seconds of each part of an H200}, at the sizes of `roofline`.

    Args:
        name: of a rung or a variant, as `roofline` shows it.

    Raises:
        KeyError: there is no such rung.
    """
    if name.startswith("flash_"):
        _, _, n, d = LARGE
        found = rung_bounds(f"{name}, d = {d}", n, GPU)
    else:
        found = rung_bounds(name, SIZE, GPU)
    return {kernel: bounds.by_resource for kernel, bounds in found.items()}


def _standing(name: str, seconds: float | None = None) -> Standing:
    """A rung at the size that is drawn, with its recorded time if no other is given."""
    if name in bars(ladder("fp32")[-1].name):
        seconds = seconds or _recorded().times()[name][SIZE] / 1e3
        return Standing(4.0 * SIZE**2 * D, seconds, list(least(name).values()))
    operations = float(flash_inputs.flops(*LARGE))
    if seconds is None:
        rate = recording_of(name).tflops[LARGE][name.removeprefix("flash_")]
        seconds = operations / rate / 1e12
    return Standing(operations, seconds, list(least(name).values()))


def _recorded() -> recorded.Recording:
    found = recorded.load(recorded.LADDER)
    if found is None or recorded.load_flash() is None:
        raise FileNotFoundError("No times of the ladder were recorded.")
    return found


def _headings(of: str, gpu: str) -> tuple[str, ...]:
    return of, "limited by", "least time, ms", f"{gpu}, ms", "least, of that"


def _beside(one: Standing) -> tuple[str, ...]:
    """What limits, the least and the measured time, and the share of it."""
    times = (milliseconds(1e3 * one.least), milliseconds(1e3 * one.seconds))
    return one.limit, *times, f"{one.least / one.seconds:.0%}"
