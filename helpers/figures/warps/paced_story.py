"""How a FlashAttention kernel's copies and math lie along one line: by instructions, or by a model.

The trace has an order and no times. By instructions, bars are as long as the warp issues some
meanwhile. With a GPU's facts a model gives lengths in cycles, of one warp alone on its scheduler:
each instruction takes one, an `mma` what it takes the tensor core at least, and a copy is there the
latency of L2, or of DRAM, after its last `cp.async`. It leaves out whatever else a warp waits for:
shared memory, results of instructions, other warps. So it is short, and of the waits alone right.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from helpers.kernels.kernel import Kernel, load_kernel
from helpers.kernels.launches import Launch
from helpers.kernels.source import KernelError, Value
from helpers.measure.facts import GpuFacts
from helpers.problem.flash import FlashRung
from helpers.problem.flash_inputs import make_inputs
from helpers.simulator.bounds.gpus import gpu
from helpers.simulator.limits import SIMULATED

from .copy_story import Copy, CopyStory, copy_story, counts

_SLOT = 90.0  # of a wait whose length the trace does not tell, in instructions
_FLOPS = 2 * 16 * 8 * 16  # of an mma m16n8k16


class Pace(NamedTuple):
    """How long things take.

    Attributes:
        unit: of the axis.
        mma: of an `mma`; any other instruction takes 1.
        latency: from a copy's last instruction to its arrival; None where that is not known.
        note: what is assumed, in a sentence.
    """

    unit: str
    mma: float
    latency: float | None
    note: str


BY_INSTRUCTIONS = Pace(
    "instructions", 1.0, None,
    "Along the line: PTX instructions that the warp issues, no time. "
    "They do not say how long waits last.",
)  # fmt: skip


def pace_of(facts: GpuFacts, level: str = "L2") -> Pace:
    """The model's pace on a GPU: the latency as measured, an `mma` as the tensor cores' rate.

    Args:
        facts: of the GPU.
        level: "L2" or "DRAM", where copies come from.
    """
    chip = gpu(facts.device)
    mma = 4 * _FLOPS / chip.tensor["fp16"]  # a multiprocessor has four schedulers
    latency = facts.latency[level]
    return Pace(
        "cycles", mma, latency,
        f"Model of one warp alone, with no other waits: a PTX instruction takes 1 cycle, an mma "
        f"{mma:.0f}, a copy {latency:.0f} from {level} ({chip.name}).",
    )  # fmt: skip


# ---------------------------------------------------------------- the run


@dataclass(frozen=True)
class _Run:
    """What a story depends on."""

    code: str
    options: tuple[str, ...]
    blocks: int
    kernel: Kernel = field(compare=False)


def _kernel(given: str | Kernel | FlashRung, values: dict[str, Value]) -> Kernel:
    if isinstance(given, FlashRung):
        return load_kernel(given.file, given.entry, **{**given.settings, **values})
    if isinstance(given, Kernel):
        return given.altered(**values) if values else given
    return load_kernel(name_of(given), **values)


def name_of(given: str | Kernel | FlashRung) -> str:
    """The file's name, for a title."""
    if isinstance(given, Kernel):
        return given.file.name
    if isinstance(given, FlashRung):
        return given.file
    return given if given.endswith(".cu") else f"{given}.cu"


def story_of(kernel: str | Kernel | FlashRung, blocks: int = 3, **values: Value) -> CopyStory:
    """What warp 0 of a FlashAttention kernel did in a launch of one block.

    Args:
        kernel: the file's name in `kernels/`, a kernel of the same arguments, or a rung.
        blocks: tiles of keys that it walks along.
        **values: parameters of the kernel, such as HEAD_DIM=64.

    Raises:
        KernelError: the kernel lacks an argument or parameter of the family, or a value is wrong.
        ValueError: it copies nothing by cp.async, or multiplies nothing by mma.
    """
    if blocks < 1:
        raise ValueError(f"There is at least one tile of keys, not {blocks}.")
    k = _kernel(kernel, values)
    return _story(_Run(k.code, k.options, blocks, k))


@functools.lru_cache(maxsize=16)
def _story(run: _Run) -> CopyStory:
    k = run.kernel
    lacking = [name for name in ("HEAD_DIM", "B_R", "B_C", "WARPS") if name not in k.parameters]
    if lacking:
        raise KernelError(
            f"{k.file.name} has no parameter {lacking[0]}: the timeline is for kernels that have "
            "those of 08_flash_baseline.cu."
        )
    d, b_c, warps = (int(k.parameters[name].value) for name in ("HEAD_DIM", "B_C", "WARPS"))
    n = run.blocks * b_c
    element = str(k.parameters["ELEMENT"].value) if "ELEMENT" in k.parameters else "half"
    Q, K, V = make_inputs(1, 1, n, d, element)
    strides = {"batch_stride": n * d, "head_stride": n * d, "row_stride": d}
    given = {"Q": Q, "K": K, "V": V, "O": np.empty_like(Q), "n": n} | strides
    # With CAUSAL the first block has the last rows, which see all keys, if the grid is whole.
    causal = "CAUSAL" in k.parameters and k.parameters["CAUSAL"].value
    grid = -(-n // int(k.parameters["B_R"].value)) if causal else 1
    # All the shared memory that a block can have: how many tiles it holds is the kernel's matter.
    shared = SIMULATED.opt_in_shared - k.static_shared
    launch = Launch.of(k, grid, 32 * warps, given, shared)
    return copy_story(launch.count(progress=False), d, b_c)


# ---------------------------------------------------------------- from a story to bars


class PacedStory:
    """A story with lengths: where each instruction begins, and what waits leave empty.

    Attributes:
        at: where each instruction begins; 0 is where the first copy of K or V does.
        arrival: copy → when it is there; empty where that is not known.
        exposed: wait → (start, end) in which the warp has nothing to do.
    """

    def __init__(self, story: CopyStory, pace: Pace):
        self.story, self.pace = story, pace
        self.arrival: dict[Copy, float] = {}
        self.exposed: dict[int, tuple[float, float]] = {}
        first = story.copies[0].first
        last = {copy.last: copy for copy in story.copies}
        self.at = np.zeros(story.end + 1)
        now = 0.0
        for number in range(first, story.end):
            self.at[number] = now
            now += self._takes(number, now)
            if number in last and pace.latency is not None:
                self.arrival[last[number]] = now + pace.latency
        self.at[story.end] = now
        self._begin_at(next(copy for copy in story.copies if copy.tile.array != "Q"))

    def _begin_at(self, copy: Copy) -> None:
        """Let the line begin with a copy; what is before it has negative places."""
        zero = float(self.at[copy.first])
        self.at -= zero
        self.arrival = {one: there - zero for one, there in self.arrival.items()}
        spans = {wait: (start - zero, end - zero) for wait, (start, end) in self.exposed.items()}
        self.exposed = {wait: span for wait, span in spans.items() if span[0] >= 0}

    def _takes(self, number: int, now: float) -> float:
        one = self.story.issued[number]
        if one.kind == "wait":
            empty = self._empty(number, now)
            if empty > 0:
                self.exposed[number] = now, now + empty
            return max(empty, 1.0)
        if one.kind == "mma":
            return self.pace.mma
        return float(counts(one))

    def _empty(self, wait: int, now: float) -> float:
        """How long nothing is to do at a wait."""
        copies = self.story.waits.get(wait, [])
        if self.pace.latency is not None:
            return max([self.arrival[copy] - now for copy in copies], default=0.0)
        bare = [copy for copy in copies if not self.story.work(copy.last, wait)]
        return _SLOT if bare else 0.0

    @property
    def end(self) -> float:
        return float(self.at[-1])

    @property
    def waited(self) -> float:
        """All that waits leave empty."""
        return sum(end - start for start, end in self.exposed.values())

    def there(self, copy: Copy) -> float:
        """When the wait for a copy is over; the end, where nothing waits for it."""
        if copy.wait is None:
            return self.end
        return self.exposed.get(copy.wait, (0.0, float(self.at[copy.wait])))[1]
