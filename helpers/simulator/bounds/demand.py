"""What a launch has to do, in the units that the parts of a GPU are measured in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace

from ..compile.machine_code import MachineCode
from ..limits import LANES
from .chains import least_cycles
from .issue import FP32, SPECIAL, TENSOR, least_issued

WGMMA = "wgmma "  # in front of a kind of numbers that a warpgroup multiplies
_OF_A_BLOCK = ("counted", "threads", "cycles")


@dataclass(frozen=True)
class Traffic:
    """Bytes of global memory that cannot be less, in whole sectors of 32 bytes.

    Attributes:
        read: distinct bytes that the launch reads before it has written them.
        written: distinct bytes that it writes.
        estimated: whether they follow from some of the blocks.
    """

    read: float
    written: float
    estimated: bool = False


@dataclass(frozen=True)
class Work:
    """The work of all blocks of a launch. Instructions are those of warps.

    Attributes:
        blocks: of the grid.
        counted: of them that were counted; the rest are taken to be like them.
        threads: of a block.
        instructions: that have to be issued, whatever the assembler makes of addresses and loops.
        issued_as: `SASS` or `PTX`, which they were found in.
        fp32: FFMA, FADD and FMUL.
        special: special functions.
        tensor: floating-point operations of `mma`, by the kind of numbers; those of `wgmma` have
            `WGMMA` in front of it.
        products: instructions of `mma`.
        shared_wavefronts: of shared memory, loads and stores.
        conflicts: of these, what bank conflicts add.
        global_wavefronts: of L1, for requests of global memory: at least so many as there are
            words in the same bank. What `cp.async` copies takes none.
        requests: of global memory.
        store_bytes: that go to L2, for L1 keeps no stores back; those of atomics and of TMA too.
        bypass_bytes: that are loaded past L1, by TMA among others.
        traffic: of DRAM; None where there is no trace to find it in.
        cycles: that a warp takes at least for its machine code, if nobody is in its way; 0 where
            that is not at hand.
    """

    blocks: int
    counted: int
    threads: int
    instructions: float = 0
    issued_as: str = "PTX"
    fp32: float = 0
    special: float = 0
    tensor: Mapping[str, float] = field(default_factory=dict)
    products: float = 0
    shared_wavefronts: float = 0
    conflicts: float = 0
    global_wavefronts: float = 0
    requests: float = 0
    store_bytes: float = 0
    bypass_bytes: float = 0
    traffic: Traffic | None = None
    cycles: float = 0


def on_machine(work: Work, code: MachineCode) -> Work:
    """The same work with what its machine code makes sure: instructions, and cycles of a warp."""
    run = {FP32: work.fp32, SPECIAL: work.special, TENSOR: work.products}
    warps = work.blocks * -(-work.threads // LANES)
    a_warp = {kind: number / warps for kind, number in run.items()}
    work = replace(work, cycles=least_cycles(code.instructions, a_warp))
    issued = least_issued(code.instructions, run)
    if issued <= work.instructions:
        return work
    return replace(work, instructions=issued, issued_as="SASS")


def repeated(work: Work, factor: float) -> Work:
    """The work of so many times as many blocks, each with data of its own: of more heads, say."""
    numbers = {
        f.name: factor * getattr(work, f.name)
        for f in fields(Work)
        if f.name not in _OF_A_BLOCK and isinstance(getattr(work, f.name), (int, float))
    }
    moved = work.traffic
    return replace(
        work,
        **{**numbers, "blocks": round(numbers["blocks"])},
        tensor={kind: factor * flops for kind, flops in work.tensor.items()},
        traffic=moved and Traffic(factor * moved.read, factor * moved.written, moved.estimated),
    )


def extrapolated(works: Mapping[int, Work], size: int) -> Work:
    """The work at a size, out of that at smaller ones: every number is a polynomial of the size.

    With three sizes, of the second degree: that is what kernels have whose blocks are alike, such
    as those of a product of matrices, at sizes that whole tiles cover.

    Args:
        works: by size.
        size: the one that is wanted.
    """
    sizes = list(works)
    weights = {
        n: math.prod((size - other) / (n - other) for other in sizes if other != n) for n in sizes
    }

    def at(value) -> float:
        return sum(weight * value(works[n]) for n, weight in weights.items())

    first = works[sizes[0]]
    numbers = {
        f.name: at(lambda w, name=f.name: getattr(w, name))
        for f in fields(Work)
        if isinstance(getattr(first, f.name), (int, float))
    }
    moved = [works[n].traffic for n in sizes]
    traffic = None
    if all(moved):
        traffic = Traffic(at(lambda w: w.traffic.read), at(lambda w: w.traffic.written), True)
    kept = {name: getattr(first, name) for name in _OF_A_BLOCK}
    return Work(
        **{**numbers, **kept, "blocks": round(numbers["blocks"])},
        issued_as=first.issued_as,
        tensor={kind: at(lambda w, kind=kind: w.tensor[kind]) for kind in first.tensor},
        traffic=traffic,
    )


def work_from(data: Mapping) -> Work:
    """Work out of the plain data that JSON keeps of it; what is not there was 0."""
    traffic = data.get("traffic")
    return Work(**{**data, "traffic": None if traffic is None else Traffic(**traffic)})


def as_data(work: Work) -> dict:
    """The plain data that `work_from` reads: what is 0 left out."""
    return {name: value for name, value in asdict(work).items() if value}
