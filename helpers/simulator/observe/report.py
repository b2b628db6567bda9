"""What a launch did: counters in total and per source line, and the trace of its accesses."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..bounds.demand import Work, on_machine
from ..bounds.gpus import Gpu
from ..bounds.gpus import gpu as gpu_named
from ..bounds.least import Bounds, bounds
from ..bounds.occupancy import Occupancy, occupancy
from ..compile.declared_elements import element_size
from ..compile.machine_code import MachineCode, is_remembered, machine_code_of
from ..errors import SimulatorError
from ..limits import LANES
from ..machine.faults import plain_name
from ..ptx.ptxas import SHARED_BASE
from .assembled import ARCHITECTURE, differences
from .findings import Finding
from .marks import not_counted
from .work_done import flops_of, work_of

# The counters that Nsight Compute has too come first, under the names of its metrics in
# `NCU_METRICS`; they are always present in `Report.counters`.
NCU_METRICS = {
    "global_load_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "global_load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global_store_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "global_store_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "shared_load_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared_store_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "shared_load_bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "shared_store_bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "shared_load_instructions": "smsp__inst_executed_op_shared_ld.sum",
    "ldmatrix_instructions": "smsp__inst_executed_op_ldsm.sum",
    "cp_async_instructions": "smsp__inst_executed_op_ldgsts.sum",
}
KINDS = ("load", "store", "atomic", "copy")
SPACES = ("global", "shared")
COUNTERS = (
    *NCU_METRICS,
    "shared_store_instructions",
    "shared_load_ideal_wavefronts",
    "shared_store_ideal_wavefronts",
    "global_load_bytes",
    "global_store_bytes",
    "shared_load_bytes",
    "shared_store_bytes",
    "global_atomic_requests",
    "global_atomic_sectors",
    "global_atomic_bytes",
    "shared_atomic_instructions",
    "shared_atomic_bytes",
    "local_load_requests",
    "local_store_requests",
    "local_load_bytes",
    "local_store_bytes",
    "stmatrix_instructions",
    "instructions",
    "thread_instructions",
    "flops",
    "barriers",
    "divergent_branches",
)


class AccessRecord(NamedTuple):
    """One access of one lane, in the order in which the warps made them.

    `order` numbers the warp-wide accesses, `block` and `thread` are (x, y, z), `array` is the
    name of the array or shared variable, and `index` the flat index of its element.
    `bytes` is how much the lane moved, `address` its byte address (for shared memory: the
    offset from the start of the block's shared memory).
    """

    order: int
    line: int
    kind: str
    space: str
    block: tuple[int, int, int]
    warp: int
    lane: int
    thread: tuple[int, int, int]
    array: str
    index: int
    bytes: int
    address: int


class BlockAccess(NamedTuple):
    """One access of all warps of a block, as arrays of (warps, 32) lanes.

    `addresses` and `indices` (flat, of the first element) are meaningless where `active` is not.
    """

    order: int
    line: int
    kind: str
    space: str
    array: str
    bytes: int
    addresses: np.ndarray
    indices: np.ndarray
    active: np.ndarray


class Arrival(NamedTuple):
    """Warps of a block that came to a barrier at the same time.

    `order` is the number of the last access before, of `BlockAccess.order`.
    """

    order: int
    line: int
    warps: tuple[int, ...]


class Report:
    """The outcome of a launch. `counters` and `by_line` hold 0 for what did not happen."""

    def __init__(self, compiled, run, grid, block, arguments):
        self.entry = run.entry
        self.grid, self.block = grid, block
        self.blocks: int = grid[0] * grid[1] * grid[2]
        self.source = compiled.source
        self.shared_bytes: int = run.shared_bytes  # a block's, static and dynamic
        self.counted = run.counting
        # Blocks that ran: all of the grid, or as many as `launch(sample=...)` asked for.
        self.counted_blocks: int = run.blocks_run
        self.output = "".join(run.output)
        sanitizer = run.sanitizer
        self.findings: list[Finding] = sanitizer.findings if sanitizer is not None else []
        self._run = run
        self.by_line: dict[int, dict[str, int]] = {}
        self.counters: dict[str, int] = dict.fromkeys(COUNTERS, 0)
        if run.counting:
            self._add_up()

    def _add_up(self) -> None:
        tally = self._run.tally
        lines: dict[int, dict[str, int]] = defaultdict(lambda: dict.fromkeys(COUNTERS, 0))
        instructions = {}
        for code in self._run.prepared.codes.values():
            for n, block in enumerate(code.graph.blocks):
                warps, threads = tally.block_warps.get((id(code), n), (0, 0))
                for i in code.function.instructions[block.start : block.end]:
                    instructions[i.serial] = i
                    if not warps or i.line is None:
                        continue
                    line = lines[i.line]
                    line["instructions"] += warps
                    line["thread_instructions"] += threads
                    flops = flops_of(i)
                    if flops:
                        line["flops"] += flops * (warps if i.opcode in ("mma", "wmma") else threads)
                    if i.opcode in ("bar", "barrier") and "warp" not in i.modifiers:
                        line["barriers"] += warps
        for serial, counts in tally.counts.items():
            line = lines[instructions[serial].line]
            for name, value in counts.items():
                line[name] = line.get(name, 0) + value
        self.by_line = {n: lines[n] for n in sorted(lines, key=lambda n: n or 0)}
        for counts in self.by_line.values():
            for name, value in counts.items():
                self.counters[name] = self.counters.get(name, 0) + value

    @cached_property
    def marks(self) -> dict[int, str]:
        """A sentence for each line whose counters are not those of a GPU.

        The first look takes as long as compiling the kernel to machine code. Where that cannot be
        done (on macOS), only what the source shows is told.
        """
        try:
            found = differences(self._run.code, self.machine_code()) if self.counted else {}
        except SimulatorError:
            found = {}
        return self._marks(found)

    @property
    def marks_at_hand(self) -> dict[int, str]:
        """As `marks`, without compiling anything: what is known at once."""
        request = self._run.prepared.compiled.request
        at_once = self.counted and is_remembered(request, ARCHITECTURE)
        return self.marks if at_once else self._marks({})

    def _marks(self, others: dict[int, str]) -> dict[int, str]:
        prepared = self._run.prepared
        functions = [code.function for code in prepared.codes.values()]
        found = others | not_counted(prepared.module, functions)
        return {line: found[line] for line in sorted(found) if line in self.by_line}

    # ------------------------------------------------------------------ time and place

    def machine_code(self, gpu: str | Gpu = "H200") -> MachineCode:
        """The machine code of the kernel for a GPU that need not be here.

        Raises:
            SimulatorError: there is no such GPU, or the kernel does not compile for it.
        """
        request = self._run.prepared.compiled.request
        return machine_code_of(request, self.entry, gpu_named(gpu).architecture)

    def occupancy(self, gpu: str | Gpu = "H200") -> Occupancy:
        """How many blocks of this launch a multiprocessor of a GPU holds at once.

        Raises:
            SimulatorError: as for `machine_code`.
        """
        threads = self.block[0] * self.block[1] * self.block[2]
        code = self.machine_code(gpu)
        dynamic = self._run.specials["dynamic_smem_size"]
        return occupancy(
            threads, code.registers, code.static_shared + dynamic, gpu, blocks=self.blocks
        )

    def bounds(
        self,
        gpu: str | Gpu = "H200",
        *,
        clock: float | None = None,
        assembled: bool = True,
    ) -> Bounds:
        """The least time that this launch can take on a GPU, for each part of it.

        Args:
            gpu: its name.
            clock: in Hz, of its multiprocessors; the data sheet's highest if left out.
            assembled: look at the launch's machine code, where it can be made: instructions are
                then those of the machine, as far as they are sure, and latency is a bound as well.
                The first look takes as long as compiling; without it, only PTX counts.

        Raises:
            SimulatorError: there is no such GPU, or the run was not counted.
        """
        chip = gpu_named(gpu)

        def held() -> Occupancy | None:
            with contextlib.suppress(SimulatorError):  # a GPU that lacks what the kernel asks for
                return self.occupancy(chip)
            return None

        work = self.work
        if assembled:
            with contextlib.suppress(SimulatorError):  # no nvdisasm, or as above
                work = on_machine(work, self.machine_code(chip))
        return bounds(self.entry, work, chip, clock, held)

    @cached_property
    def work(self) -> Work:
        """What all blocks have to do, in the units that the parts of a GPU are measured in.

        Raises:
            SimulatorError: the run was not counted.
        """
        if not self.counted:
            raise SimulatorError(
                "launch", f"{self.entry} ran with count=False, so its work is not known."
            )
        return work_of(self)

    # ------------------------------------------------------------------ trace

    def accesses(
        self, line: int | None = None, *, kind: str | None = None, space: str | None = None
    ) -> list[AccessRecord]:
        """Every access of every lane, in order; of one source line, kind or space if given.

        Raises SimulatorError ("launch") where there is no trace (a run with count=False, or one
        whose trace grew too long) and for a kind or space that no access has.
        """
        return list(self.iterate(line, kind=kind, space=space))

    def iterate(
        self,
        line: int | None = None,
        *,
        kind: str | None = None,
        space: str | None = None,
        block: tuple[int, int, int] | None = None,
        warp: int | None = None,
    ) -> Iterator[AccessRecord]:
        """Like `accesses`, one at a time; of one block (x, y, z) and one of its warps if given."""
        for access in self._trace(line, kind, space):
            yield from self._lanes(access, block, warp)

    def of_block(
        self,
        block: tuple[int, int, int] = (0, 0, 0),
        *,
        warp: int | None = None,
        kind: str | None = None,
        space: str | None = None,
        line: int | None = None,
    ) -> Iterator[BlockAccess]:
        """The accesses of one block, or one of its warps, in order: faster than lane by lane.

        Raises SimulatorError as `accesses` does.
        """
        places: dict[object, tuple[int, ...] | None] = {}  # of the block, by layout
        for access in self._trace(line, kind, space):
            layout = access.layout
            if layout not in places:
                places[layout] = _place(layout, block)
            at = places[layout]
            if at is None:
                continue
            active = np.True_ if access.active is None else access.active
            active = _of_block(active, layout, at)
            if warp is not None:
                active = active & (np.arange(layout.warps) == warp)[:, None]
            if not active.any():
                continue
            addresses = _of_block(access.lanes, layout, at).astype(np.int64)
            first = int(addresses[active][0])
            name, start, unit = self._array_at(access.space, first, access.size)
            indices = (addresses - start) // unit
            if access.space == "shared":
                addresses = addresses - SHARED_BASE
            i = access.instruction
            yield BlockAccess(
                access.order, i.line, access.kind, access.space, name, access.size,
                addresses, indices, active,
            )  # fmt: skip

    def arrivals(self, block: tuple[int, int, int] = (0, 0, 0)) -> list[Arrival]:
        """When the warps of a block came to each `__syncthreads()` or other barrier of a block.

        Raises SimulatorError as `accesses` does.
        """
        next(self._trace(None, None, None), None)  # says where there is none
        found = []
        for order, i, active, layout in self._run.tally.arrived:
            at = _place(layout, block)
            if at is not None:
                active = _of_block(np.True_ if active is None else active, layout, at)
                warps = tuple(np.flatnonzero(active.any(axis=-1)).tolist())
                if warps:
                    found.append(Arrival(order, i.line, warps))
        return found

    def warp_accesses(
        self, line: int | None = None, *, kind: str | None = None, space: str | None = None
    ) -> int:
        """How many accesses the warps made, as the compiler wrote them: of 32 lanes each, or fewer.

        Raises SimulatorError as `accesses` does.
        """
        return sum(
            a.layout.nblocks * a.layout.warps
            if a.active is None
            else int(_active(a).any(axis=-1).sum())
            for a in self._trace(line, kind, space)
        )

    def _trace(self, line: int | None, kind: str | None, space: str | None) -> Iterator:
        for name, asked, known in (("kind", kind, KINDS), ("space", space, SPACES)):
            if asked is not None and asked not in known:
                raise SimulatorError(
                    "launch",
                    f"{self.entry}: {name} is one of {', '.join(known)}, or None for all, not "
                    f"{asked!r}.",
                )
        if not self.counted:
            raise SimulatorError(
                "launch",
                f"{self.entry} ran with count=False, so there is no trace: use count=True.",
            )
        tally = self._run.tally
        if tally.trace_cut:
            raise SimulatorError(
                "launch",
                f"{self.entry}: the trace of this launch was dropped, since it grew beyond its "
                "memory: trace a smaller grid, or pass a larger trace_bytes to launch().",
            )
        for access in tally.trace:
            found = (access.instruction.line, access.kind, access.space)
            if all(a is None or a == b for a, b in zip((line, kind, space), found, strict=True)):
                yield access

    def _lanes(self, access, wanted_block=None, wanted_warp=None) -> Iterator[AccessRecord]:
        layout = access.layout
        active = _active(access)
        addresses = np.broadcast_to(access.lanes, layout.lanes_shape)
        addresses = addresses.reshape(active.shape)
        if wanted_warp is not None:
            active = active & (np.arange(layout.warps) == wanted_warp)[:, None]
        i = access.instruction
        for block, warp, lane in np.argwhere(active):
            place = layout.block_at(int(block))
            if wanted_block is not None and place != wanted_block:
                continue
            address = int(addresses[block, warp, lane])
            array, start, unit = self._array_at(access.space, address, access.size)
            thread = int(warp) * LANES + int(lane)
            yield AccessRecord(
                access.order, i.line, access.kind, access.space, place,
                int(warp), int(lane), layout.thread_at(thread), array, (address - start) // unit,
                access.size,
                address - SHARED_BASE if access.space == "shared" else address,
            )  # fmt: skip

    @cached_property
    def _shared_names(self) -> list[tuple[int, str, int | None]]:
        """Where each shared variable begins, its name, bytes of an element; the last one first."""
        variables = sorted(self._run.shared_variables, key=lambda pair: pair[0], reverse=True)
        return [
            (start, name, element_size(name, "shared", self.source))
            for start, variable in variables
            for name in (plain_name(variable.name),)
        ]

    def _array_at(self, space: str, address: int, size: int) -> tuple[str, int, int]:
        """The array or shared variable at an address, where it begins, bytes of an element."""
        if space == "shared":
            for start, name, bytes_each in self._shared_names:
                if start <= address:
                    return name, start, bytes_each or min(size, 4)
            return "shared", SHARED_BASE, 4
        region = self._run.space.find(address, address + size)
        if region is None:
            return "?", 0, 1
        return region.name, region.start, region.dtype.itemsize

    def __repr__(self) -> str:
        c = self.counters
        shown = {n: c[n] for n in NCU_METRICS if c[n]}
        return f"<Report of {self.entry}: {shown}>"


def _place(layout, block: tuple[int, int, int]) -> tuple[int, ...] | None:
    """Where a block (x, y, z) lies in arrays of a layout; None if it is not among its blocks."""
    for n in range(layout.nblocks):
        if layout.block_at(n) == block:
            return tuple(map(int, np.unravel_index(n, layout.bshape))) if layout.bshape else ()
    return None


def _of_block(values: np.ndarray, layout, at: tuple[int, ...]) -> np.ndarray:
    """(warps, 32) of one block, out of values that fit the layout's lanes; nothing is copied."""
    if values.ndim == len(at) + 2:
        values = values[tuple(i if n > 1 else 0 for i, n in zip(at, values.shape, strict=False))]
    elif values.ndim > 2:
        values = np.broadcast_to(values, layout.lanes_shape)[at]
    shape = (layout.warps, LANES)
    return values if values.shape == shape else np.broadcast_to(values, shape)


def _active(access) -> np.ndarray:
    """bool (blocks, warps, 32): the lanes that took part."""
    layout = access.layout
    shape = layout.lanes_shape
    active = np.True_ if access.active is None else access.active
    return np.broadcast_to(active, shape).reshape(-1, layout.warps, LANES)
