"""What a launch did: counters in total and per source line, and the trace of its accesses."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from functools import cached_property

from ..bounds.demand import Work, on_machine
from ..bounds.gpus import Gpu
from ..bounds.gpus import gpu as gpu_named
from ..bounds.least import Bounds, bounds
from ..bounds.occupancy import Occupancy, occupancy
from ..compile.machine_code import MachineCode, is_remembered, machine_code_of
from ..errors import SimulatorError
from .assembled import ARCHITECTURE, differences
from .findings import Finding
from .instruction_trace import InstructionTrace
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
_WARPS = ("mma", "wmma", "wgmma")  # of which `flops_of` tells for a warp
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
    "bulk_load_bytes",
    "bulk_store_bytes",
    "instructions",
    "thread_instructions",
    "flops",
    "barriers",
    "divergent_branches",
)


class Report(InstructionTrace):
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
                        line["flops"] += flops * (warps if i.opcode in _WARPS else threads)
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

    def __repr__(self) -> str:
        c = self.counters
        shown = {n: c[n] for n in NCU_METRICS if c[n]}
        return f"<Report of {self.entry}: {shown}>"
