"""The least time that a launch can take on a GPU: for each part of it, and of all of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..limits import LANES
from .demand import WGMMA, Work
from .gpus import Gpu
from .least_table import least_table, notebook_html, unit_of
from .occupancy import Occupancy

if TYPE_CHECKING:
    from markupsafe import Markup

DRAM, L2, L1, SHARED = "DRAM", "L2", "L1", "shared memory"
ISSUE, FP32, SPECIAL = "issue slots", "FP32", "special functions"
TENSOR, LATENCY = "tensor cores", "latency"
_INTO_SM = 64  # bytes a clock from L2 to a multiprocessor
_TIGHT = 0.85  # of a measured time, from where on a bound explains it
RESOURCES = (DRAM, L2, L1, SHARED, ISSUE, FP32, SPECIAL, TENSOR, LATENCY)


@dataclass(frozen=True)
class Bounds:
    """For each part of a GPU the least time that a launch keeps it busy.

    Attributes:
        gpu: which.
        entry: the kernel's name.
        by_resource: seconds by the part's name, those that have nothing to do left out.
        why: what the seconds come from, by the part's name.
        notes: what else is to be known of the numbers, in sentences.
        held: gives the occupancy when it is asked for, as the machine code takes a while.
    """

    gpu: Gpu
    entry: str
    by_resource: Mapping[str, float]
    why: Mapping[str, str]
    notes: tuple[str, ...] = ()
    held: Callable[[], Occupancy | None] = field(default=lambda: None, repr=False, compare=False)

    @functools.cached_property
    def occupancy(self) -> Occupancy | None:
        """Blocks that a multiprocessor holds; None where the kernel has no machine code for it."""
        return self.held()

    @property
    def limit(self) -> str:
        """The part that takes longest; empty if there is nothing to do."""
        return max(self.by_resource, key=self.by_resource.get, default="")

    @property
    def seconds(self) -> float:
        """No launch is faster."""
        return max(self.by_resource.values(), default=0.0)

    @property
    def ranked(self) -> tuple[tuple[str, float], ...]:
        """(part, seconds), the longest first."""
        return tuple(sorted(self.by_resource.items(), key=lambda pair: -pair[1]))

    def fraction(self, seconds: float) -> float:
        """What share of a measured time the bound explains."""
        return self.seconds / seconds

    def explains(self, seconds: float) -> str:
        """What the bounds say of a measured time, in words: its limit, the next one, the rest."""
        share = self.fraction(seconds)
        said = f"Of {duration(seconds)}, {share:.0%} is the least time of {self.limit}"
        if share >= _TIGHT:
            return f"{said}."
        if len(self.ranked) > 1:
            name, least = self.ranked[1]
            said += f", {least / seconds:.0%} that of {name}"
        held = self.occupancy
        if held is None or not held.blocks:
            return f"{said}; the rest is waiting that too few warps hide."
        here = held.blocks
        if held.grid_blocks:
            here = min(here, -(-held.grid_blocks // held.gpu.multiprocessors))
        return (
            f"{said}; the rest is waiting, and a multiprocessor has {here * held.block_warps} of "
            f"{held.gpu.warps} warps to hide it."
        )

    @property
    def sentence(self) -> str:
        """The bound in words."""
        if not self.limit:
            return f"{self.entry} does nothing that takes time."
        gpu = self.gpu.name
        why = self.why[self.limit]
        return (
            f"{self.entry} cannot be faster than {duration(self.seconds)} on "
            f"{'an' if gpu[0] in 'AHR' else 'a'} {gpu}: {self.limit}; {why}."
        )

    def rows(self) -> list[tuple[str, str, str]]:
        """(part, least time, what it comes from), the longest first."""
        return [(name, duration(s), self.why[name]) for name, s in self.ranked]

    def __repr__(self) -> str:
        rows = self.rows()
        widths = [max((len(row[n]) for row in rows), default=0) for n in (0, 1)]
        lines = [self.sentence]
        lines += [f"  {a:<{widths[0]}}  {b:>{widths[1]}}  {c}" for a, b, c in rows]
        return "\n".join([*lines, *self.notes])

    def html(self) -> Markup:
        """As a table, with a bar for each part."""
        return least_table(self)

    def _repr_html_(self) -> str | None:
        return notebook_html(self)


def duration(seconds: float) -> str:
    """A time in words: 3.1 ms, 12 µs."""
    unit, size = unit_of(seconds)
    value = seconds / size
    return f"{value:.3g} {unit}" if value < 1000 else f"{value:,.0f} {unit}"


def bounds(
    entry: str,
    work: Work,
    gpu: Gpu,
    clock: float | None = None,
    held: Callable[[], Occupancy | None] = lambda: None,
) -> Bounds:
    """The least time that some work takes on a GPU.

    Args:
        entry: the kernel's name.
        work: of all its blocks.
        gpu: where.
        clock: in Hz, of the multiprocessors; the data sheet's highest if left out.
        held: gives the occupancy of its multiprocessors.
    """
    at_most = clock is None
    clock = gpu.clock if clock is None else clock
    busy = min(gpu.multiprocessors, work.blocks)
    found: dict[str, tuple[float, str]] = {}

    def per_clock(name: str, amount: float, rate: float, why: str) -> None:
        """Work that multiprocessors share, so much a clock and multiprocessor."""
        if amount:
            few = f", on {busy} of {gpu.multiprocessors} multiprocessors"
            why += few if busy < gpu.multiprocessors else ""
            found[name] = max(found.get(name, (0.0, "")), (amount / (busy * rate * clock), why))

    _memory(found, work, gpu)
    # Both go through one pipe. The part that fills it most is told with what both need.
    both = work.shared_wavefronts + work.global_wavefronts
    first = work.shared_wavefronts >= work.global_wavefronts
    per_clock(SHARED, both if first else work.shared_wavefronts, 1, _wavefronts(work, first))
    per_clock(L1, work.global_wavefronts if first else both, 1, _global(work, first))
    per_clock(L2, work.bypass_bytes, _INTO_SM, f"{_bytes(work.bypass_bytes)} past L1")
    per_clock(ISSUE, work.instructions, gpu.issue, _count(work.instructions, work.issued_as))
    per_clock(FP32, work.fp32, gpu.fp32 / LANES, f"{_big(LANES * work.fp32)} FFMA, FADD and FMUL")
    per_clock(
        SPECIAL, work.special, gpu.special / LANES,
        f"{_big(LANES * work.special)} special functions",
    )  # fmt: skip
    per_clock(TENSOR, *_tensor(work, gpu))
    if at_most and busy == gpu.multiprocessors:
        _at_full_power(found, work, gpu)
    if work.cycles:
        _waiting(found, work, clock, held())
    named = {name: found[name] for name in RESOURCES if name in found}
    return Bounds(
        gpu,
        entry,
        {name: seconds for name, (seconds, _) in named.items()},
        {name: why for name, (_, why) in named.items()},
        _notes(work),
        held,
    )


def _memory(found: dict, work: Work, gpu: Gpu) -> None:
    """DRAM and L2: what has to move, however well the caches work."""
    traffic = work.traffic
    if traffic is not None and (moved := traffic.read + traffic.written):
        # The cache may hold as much from the launch before, and keep as much for the next.
        held = [min(amount, gpu.l2_bytes) for amount in (traffic.read, traffic.written)]
        if (left := moved - sum(held)) > 0:
            why = f"{_bytes(moved)} to read and write, of which L2 can hold {_bytes(sum(held))}"
            found[DRAM] = (left / gpu.dram_rate, why)
    moved = (traffic.read if traffic else 0.0) + work.store_bytes
    if moved:
        found[L2] = (moved / gpu.l2_rate, f"{_bytes(moved)} through it at least")


def _at_full_power(found: dict, work: Work, gpu: Gpu) -> None:
    """Tensor cores on the whole chip, which then does not keep its highest clock."""
    limits = {kind: gpu.tensor_limit(kind) for kind in work.tensor}
    if work.tensor and all(limits.values()):
        seconds = sum(flops / limits[kind] for kind, flops in work.tensor.items())
        found[TENSOR] = max(found[TENSOR], (seconds, found[TENSOR][1]))


def _waiting(found: dict, work: Work, clock: float, held: Occupancy | None) -> None:
    """Latency: blocks that come in waves, each as long as a warp takes alone."""
    waves = max(1.0, work.blocks / held.at_once) if held is not None and held.blocks else 1.0
    count = "1 wave" if waves == 1 else f"{waves:,.3g} waves"
    why = f"{count} of blocks, in which a warp by itself takes {work.cycles:,.0f} cycles"
    found[LATENCY] = (waves * work.cycles / clock, why)


def _tensor(work: Work, gpu: Gpu) -> tuple[float, float, str]:
    """Clocks of a multiprocessor that its tensor cores need, 1, and what for."""
    clocks, kinds = 0.0, []
    for kind, flops in work.tensor.items():
        numbers = kind.removeprefix(WGMMA)
        by, rates = ("wgmma", gpu.wgmma) if numbers != kind else ("mma.sync", gpu.tensor)
        if rate := rates.get(numbers):
            clocks += flops / rate
            kinds.append(f"{_big(flops)} operations on {numbers} by {by}, {rate:,.0f} a clock")
    return clocks, 1, ", ".join(kinds)


def _global(work: Work, shared_first: bool) -> str:
    own, shared = work.global_wavefronts, work.shared_wavefronts
    each = own / work.requests if work.requests else 0
    said = f"{_big(work.requests)} requests of {each:.1f} wavefronts each"
    more = 0 if shared_first else shared / (shared + own)
    return said + (f"; shared memory adds {more:.0%} of its wavefronts" if more >= 0.01 else "")


def _wavefronts(work: Work, shared_first: bool) -> str:
    shared = work.shared_wavefronts
    both = shared + work.global_wavefronts if shared_first else shared
    if work.conflicts:
        return f"{work.conflicts / both:.0%} of its wavefronts are conflicts"
    return f"{_big(both)} wavefronts, none of them a conflict"


def _count(instructions: float, kind: str) -> str:
    return f"{_big(instructions)} instructions of warps at least ({kind})"


def _notes(work: Work) -> tuple[str, ...]:
    notes = []
    if work.counted < work.blocks:
        notes.append(
            f"Counted on {work.counted} of {work.blocks:,} blocks; the others count as like them."
        )
    if work.traffic is None:
        notes.append("What DRAM moves is not known: the trace was dropped; count fewer blocks.")
    else:
        notes.append(
            "DRAM and L2: what has to move at least, each sector once; caches may do worse."
        )
    return tuple(notes)


def _big(value: float) -> str:
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:,.0f}"


def _bytes(value: float) -> str:
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:,.0f} bytes"
