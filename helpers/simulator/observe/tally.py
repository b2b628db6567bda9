"""Counts what a launch does, per instruction, as it runs; and keeps the trace of its accesses.

Nothing here changes a result. The rules of what an access costs are in `counters`.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from ..limits import LANES
from ..machine.elements import generic_spaces
from ..ptx.syntax import Instruction
from . import counters

TRACE_BYTES = 64 << 20
_RAN_BYTES = 4 << 20  # that `Tally.ran` may use
SECTOR, LINE = 32, 128  # bytes
LINES = 1 << 12  # more than the lines of a block's shared memory


class Access:
    """One access of a batch in a trace: addresses in lanes, compressed over blocks."""

    __slots__ = ("instruction", "kind", "space", "size", "lanes", "active", "layout", "order")

    def __init__(self, instruction, kind, space, size, lanes, active, layout, order):
        self.instruction, self.kind, self.space, self.size = instruction, kind, space, size
        self.lanes, self.active, self.layout, self.order = lanes, active, layout, order


def _total(layout, each: np.ndarray) -> int:
    """The sum over the warps of a batch, of numbers (block axes (may be 1)…, warps)."""
    return int(each.sum()) * layout.copies(each[..., None])


def _add_cost(counts: dict, layout, kind: str, wavefronts: np.ndarray, phases: np.ndarray) -> None:
    taken, least = _total(layout, wavefronts), _total(layout, phases)
    counts[f"shared_{kind}_wavefronts"] += taken
    counts[f"shared_{kind}_bank_conflicts"] += taken - least
    counts[f"shared_{kind}_ideal_wavefronts"] += least


class Arrived(NamedTuple):
    """Threads of a batch that came to a barrier of their block; `order` is the last access's."""

    order: int
    instruction: Instruction
    active: np.ndarray | None
    layout: object


class Ran(NamedTuple):
    """One execution of a basic block of `code`; `order` is that of the last access before."""

    order: int
    code: object
    block: int
    active: np.ndarray | None
    layout: object


class Tally:
    """The counts of one launch: `counts[serial][name]`, `trace`, and `arrived` at barriers.

    `ran` are the basic blocks in the order of their execution, as long as they are few.
    """

    def __init__(self, trace_bytes: int = TRACE_BYTES):
        self.counts: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.trace: list[Access] = []
        self.boxes: list[Access] = []  # sectors of copies by TMA, in a row, kept as the trace is
        self.arrived: list[Arrived] = []
        self.ran: list[Ran] = []
        self.trace_left, self.ran_left = trace_bytes, _RAN_BYTES
        self.trace_cut = self.ran_cut = False
        self.footprint = None  # where a sample of the blocks runs, what they touch
        self.block_warps: dict[tuple, list[int]] = {}  # (code, block) -> [warps, threads]

    # ------------------------------------------------------------------ accesses

    def access(
        self, S, i: Instruction, space: str, kind: str, address, size: int, mask,
        named: bool = True,
    ) -> None:  # fmt: skip
        """Count one load, store or atomic of `size` bytes a lane.

        A load through a generic address is no instruction of shared memory, though its wavefronts
        are (Nsight Compute on an H200): there the state space is not `named`.
        """
        if space == "generic":
            for name, here, sub in generic_spaces(S, address, mask):
                self.access(S, i, name, kind, here, size, sub, named=False)
            return
        counts = self.counts[i.serial]
        layout = S.layout
        lanes = layout.lanes(address)
        active = S.active_lanes(mask)
        warps, threads = S.active_numbers(mask)
        if space in ("global", "shared"):
            self._record(S, i, kind, space, size, lanes, active)
        counts[f"{space}_{kind}_bytes"] += threads * size
        if space == "global":
            for offset, width in i.plan or ((0, size),):
                counts[f"global_{kind}_requests"] += warps
                shifted = lanes + offset if offset else lanes
                sectors = counters.global_sectors(shifted, width, active)
                counts[f"global_{kind}_sectors"] += _total(layout, sectors)
        elif space == "shared":
            if kind == "atomic":
                counts["shared_atomic_instructions"] += warps
                return
            loads = kind == "load"
            plan = i.plan if i.plan is not None else ((0, size),)
            executed = warps if i.predicate is None else S.active_numbers(S.mask)[0]
            for offset, width in plan:
                if not i.predicated_off and (named or not loads):
                    counts[f"shared_{kind}_instructions"] += executed
                shifted = lanes + offset if offset else lanes
                cost = counters.shared_wavefronts(shifted, width, active, load=loads)
                _add_cost(counts, layout, kind, *cost)
        else:
            counts[f"{space}_{kind}_requests"] += warps

    def idle(self, S, i: Instruction, space: str) -> None:
        """A guarded load or store that no thread executes: it is issued all the same."""
        if space == "shared" and not i.predicated_off:
            self._issue(i, S.active_numbers(S.mask)[0])

    def copy_async(self, S, i: Instruction, source, target, size: int, read, mask) -> None:
        """cp.async: its global side counts as a load, its shared side as neither."""
        counts = self.counts[i.serial]
        lanes = S.layout.lanes(source)
        warps, _ = S.active_numbers(mask)
        counts["cp_async_instructions"] += warps
        if i.plan is not None:  # the loads of nothing that ptxas puts in front
            counts["shared_load_instructions"] += len(i.plan) * warps
        if read is None or read.any():
            active = S.active_lanes(read)
            warps, threads = S.active_numbers(read)
            counts["global_load_bytes"] += threads * size
            counts["global_load_requests"] += warps
            fetched = lanes
            if "cg" in i.modifiers:
                # Past L1, a sector is fetched once for each 128-byte line of shared memory that
                # it goes to. `fetched` is the pair's number, in units of a sector.
                lines = S.layout.lanes(target) // LINE % LINES
                fetched = (lanes // SECTOR * LINES + lines) * SECTOR
            sectors = counters.global_sectors(fetched, size, active)
            counts["global_load_sectors"] += _total(S.layout, sectors)
            self._record(S, i, "load", "global", size, lanes, active)
        self._record(S, i, "copy", "shared", size, S.layout.lanes(target), S.active_lanes(mask))

    def bulk(self, S, i: Instruction, kind: str, addresses: np.ndarray) -> None:
        """A copy by TMA of the bytes at global addresses: of use for what DRAM has to move."""
        self.counts[i.serial][f"bulk_{kind}_bytes"] += len(addresses)
        sectors = np.unique(addresses // SECTOR) * SECTOR
        access = Access(i, kind, "global", SECTOR, sectors[None], None, S.layout, S.order)
        if self.footprint is not None:
            self.footprint.add(access)
        self.trace_left -= sectors.nbytes
        if not self.trace_cut:
            self.boxes.append(access)

    def matrix(self, S, i: Instruction, address, count: int, kind: str, mask) -> None:
        """ldmatrix and stmatrix."""
        counts = self.counts[i.serial]
        lanes = S.layout.lanes(address)
        active = S.active_lanes(mask)
        warps, _ = S.active_numbers(mask)
        if active is not None:
            lanes, _ = np.broadcast_arrays(lanes, active)
        wavefronts, phases = counters.ldmatrix_wavefronts(lanes, count)
        if active is not None:
            some = active.any(axis=-1)
            wavefronts, phases = wavefronts * some, phases * some
        name = "ldmatrix" if kind == "load" else "stmatrix"
        counts[f"{name}_instructions"] += warps
        _add_cost(counts, S.layout, kind, wavefronts, phases)
        counts[f"shared_{kind}_bytes"] += warps * count * 8 * 16
        used = S.active_lanes(S.layout.thread_index % LANES < 8 * count)
        if active is not None:
            used = active if used is None else active & used
        self._record(S, i, kind, "shared", 16, lanes, used)

    def _record(self, S, i, kind, space, size, lanes, active) -> None:
        if self.footprint is not None:
            self.footprint.add(Access(i, kind, space, size, lanes, active, S.layout, 0))
        if self.trace_cut:
            return
        self.trace_left -= lanes.nbytes + 256
        if self.trace_left < 0:
            self.trace_cut = True
            self.trace.clear()
            self.arrived.clear()
            return
        S.order += 1
        self.trace.append(Access(i, kind, space, size, lanes, active, S.layout, S.order))

    def arrives(self, S, i: Instruction, mask) -> None:
        """Threads come to a barrier: kept as long as the trace is."""
        if not self.trace_cut:
            self.arrived.append(Arrived(S.order, i, S.active_lanes(mask), S.layout))

    # ------------------------------------------------------------------ instructions

    def converted(self, S, accesses: list, mask) -> None:
        """Accesses in a small `if`, issued for every warp that comes to the branch."""
        warps, _ = S.active_numbers(mask)
        for i in accesses:
            self._issue(i, warps)

    def _issue(self, i: Instruction, warps: int) -> None:
        plan = i.plan if i.plan is not None else ((0, 0),)
        kind = "load" if i.opcode == "ld" else "store"
        self.counts[i.serial][f"shared_{kind}_instructions"] += warps * len(plan)

    def diverged(self, S, i: Instruction, taken, stay) -> None:
        """A branch that some lanes of a warp take and others do not."""
        lanes = S.layout.lanes
        a, b = lanes(taken, fill=False).any(axis=-1), lanes(stay, fill=False).any(axis=-1)
        both = a & b
        self.counts[i.serial]["divergent_branches"] += _total(S.layout, both)

    def runs(self, S, code, block: int, mask) -> None:
        """Threads come to a basic block: counted, and kept in `ran`."""
        self.block((id(code), block), *S.active_numbers(mask))
        if self.ran_cut or self.trace_cut:
            return
        active = S.active_lanes(mask)
        self.ran_left -= 128 + (0 if active is None else active.nbytes)
        if self.ran_left < 0:
            self.ran_cut = True
            self.ran.clear()
            return
        self.ran.append(Ran(S.order, code, block, active, S.layout))

    def block(self, key: tuple, warps: int, threads: int) -> None:
        """One execution of a basic block by so many warps and threads."""
        entry = self.block_warps.get(key)
        if entry is None:
            self.block_warps[key] = [warps, threads]
        else:
            entry[0] += warps
            entry[1] += threads
