"""How many blocks of a launch a multiprocessor holds at once, and what keeps it from more.

As NVIDIA's `cuda_occupancy.h` has it: registers go to warps, in multiples of 256, out of the share
of a quarter of the multiprocessor; a thread has 16 at least. Shared memory goes to blocks, with
what the system keeps of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import SimulatorError
from ..limits import LANES
from .gpus import Gpu, gpu

WARPS, BLOCKS, REGISTERS, SHARED = "warps", "blocks", "registers", "shared memory"
LEAST_REGISTERS = 16  # that a thread is given (Nsight Compute on an H200)
_WHY = {
    WARPS: "it holds no more warps",
    BLOCKS: "it holds no more blocks",
    REGISTERS: "it has no more registers",
    SHARED: "it has no more shared memory",
}


@dataclass(frozen=True)
class Occupancy:
    """What a multiprocessor (SM) holds of a kernel at once.

    Attributes:
        gpu: whose multiprocessor.
        threads: of a block.
        registers: of a thread.
        shared: bytes of shared memory of a block, static and dynamic.
        limits: the blocks that each resource has room for: `registers`, `shared memory`, `warps`
            (threads, in whole warps) and `blocks`.
        grid_blocks: blocks of the launch, if that is known; 0 if not.
    """

    gpu: Gpu
    threads: int
    registers: int
    shared: int
    limits: dict[str, int]
    grid_blocks: int = 0

    @property
    def blocks(self) -> int:
        """Blocks that a multiprocessor holds at once."""
        return min(self.limits.values())

    @property
    def limit(self) -> str:
        """The resource that has room for the fewest; of several, the one that a kernel decides."""
        order = (REGISTERS, SHARED, WARPS, BLOCKS)
        return min(order, key=lambda name: (self.limits[name], order.index(name)))

    @property
    def block_warps(self) -> int:
        """Warps of a block."""
        return -(-self.threads // LANES)

    @property
    def warps(self) -> int:
        """Warps that a multiprocessor holds at once."""
        return self.blocks * self.block_warps

    @property
    def fraction(self) -> float:
        """Of the warps that a multiprocessor can hold."""
        return self.warps / self.gpu.warps

    @property
    def at_once(self) -> int:
        """Blocks that the whole GPU holds at once: a wave of them."""
        return self.blocks * self.gpu.multiprocessors

    def waves(self, blocks: int | None = None) -> float:
        """How often a grid of so many blocks fills the GPU; the launch's own if left out."""
        return self._grid(blocks) / self.at_once

    def tail(self, blocks: int | None = None) -> float:
        """The share of places for blocks that stay empty in the last wave."""
        number = self._grid(blocks)
        return (-number % self.at_once) / self.at_once

    def busy(self, blocks: int | None = None) -> int:
        """Multiprocessors that get a block at all."""
        return min(self._grid(blocks), self.gpu.multiprocessors)

    def _grid(self, blocks: int | None) -> int:
        number = self.grid_blocks if blocks is None else blocks
        if not isinstance(number, int) or number < 1:
            raise SimulatorError("argument", "Say how many blocks the grid has, such as 1024.")
        return number

    @property
    def sentence(self) -> str:
        """All of it in words."""
        name = self.gpu.name
        if not self.blocks:
            return f"A block does not fit on a multiprocessor of {_a(name)}: {self.limit}."
        blocks = f"{self.blocks} block{'s' * (self.blocks != 1)}"
        said = (
            f"A multiprocessor of {_a(name)} holds {blocks} of it at once, {self.warps} of "
            f"{self.gpu.warps} warps ({self.fraction:.0%}): {_WHY[self.limit]}."
        )
        if not self.grid_blocks:
            return said
        if self.grid_blocks < self.gpu.multiprocessors:
            number = f"{self.grid_blocks} blocks keep" if self.grid_blocks > 1 else "1 block keeps"
            return f"{said} {number} {self.busy()} of {self.gpu.multiprocessors} busy."
        tail = f", and the last leaves {self.tail():.0%} of the places empty" if self.tail() else ""
        return f"{said} {self.grid_blocks:,} blocks are {_number(self.waves())} waves{tail}."

    def __repr__(self) -> str:
        rows = [f"{resource:<13}  {blocks:>5}" for resource, blocks in self.limits.items()]
        return "\n".join([f"blocks a multiprocessor of {_a(self.gpu.name)} has room for",
                          *rows, self.sentence])  # fmt: skip


def occupancy(
    threads: int,
    registers: int,
    shared: int = 0,
    gpu: str | Gpu = "H200",
    *,
    blocks: int = 0,
    configured: int | None = None,
) -> Occupancy:
    """How many blocks a multiprocessor of a GPU holds at once.

    Args:
        threads: of a block.
        registers: of a thread.
        shared: bytes of shared memory of a block, static and dynamic.
        gpu: its name.
        blocks: of the grid, if that is known.
        configured: bytes of shared memory that the driver gave a multiprocessor; the most there
            can be if left out, which is what it does when that decides.

    Raises:
        SimulatorError: of kind `argument`, if a number is none that a launch can have.
    """
    chip = _gpu(gpu)
    most = chip.limits
    asked = (("threads", threads, 1, most.threads), ("registers", registers, 0, 255),
             ("shared", shared, 0, most.opt_in_shared))  # fmt: skip
    for name, value, low, high in asked:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise SimulatorError(
                "argument",
                f"{name} is a whole number from {low} to {high:,} on {_a(chip.name)}, not "
                f"{value!r}.",
            )
    warps = -(-threads // LANES)
    limits = {
        REGISTERS: _by_registers(warps, registers, chip),
        SHARED: _by_shared(shared, chip, configured),
        WARPS: chip.warps // warps,
        BLOCKS: most.multiprocessor_blocks,
    }
    return Occupancy(chip, threads, registers, shared, limits, blocks)


def _by_registers(warps: int, registers: int, chip: Gpu) -> int:
    limits = chip.limits
    if not registers:
        return limits.multiprocessor_blocks
    a_warp = _up(max(registers, LEAST_REGISTERS) * LANES, limits.register_unit)
    # The check of a launch takes it that every quarter holds as many warps as the fullest.
    if a_warp * _up(warps, limits.partitions) > limits.registers:
        return 0
    a_quarter = limits.registers // limits.partitions // a_warp
    return a_quarter * limits.partitions // warps


def _by_shared(shared: int, chip: Gpu, configured: int | None) -> int:
    limits = chip.limits
    there = limits.multiprocessor_shared if configured is None else configured
    a_block = _up(shared + limits.reserved_shared, limits.shared_unit)
    return there // a_block if a_block else limits.multiprocessor_blocks


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _a(name: str) -> str:
    """A GPU's name behind its article."""
    return f"{'an' if name[0] in 'AHR' else 'a'} {name}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


_gpu = gpu  # what the argument of that name hides
