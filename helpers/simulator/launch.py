"""launch(): checks what it is given, compiles, runs every batch, and returns the report."""

from __future__ import annotations

import numpy as np

from .arguments import check_arguments, check_geometry
from .batch import Batch
from .compiler import compile_ptx
from .errors import SimulatorError
from .layout import Layout, batches
from .machine import Machine
from .progress import Progress
from .report import Report
from .run import Run, prepare
from .sanitizer import Sanitizer
from .tally import TRACE_BYTES, Tally

BATCH_THREADS = 1 << 16
MAX_STEPS = 4_000_000
DEFAULT_SHARED = 48 * 1024
MAX_SHARED = 227 * 1024


def launch(
    code: str,
    entry: str,
    grid,
    block,
    args=(),
    options: tuple[str, ...] = (),
    shared_mem: int = 0,
    count: bool = True,
    *,
    sanitize: bool = False,
    schedule: str = "lockstep",
    max_dynamic_shared: int | None = None,
    max_steps: int = MAX_STEPS,
    batch_threads: int = BATCH_THREADS,
    trace_bytes: int = TRACE_BYTES,
    progress: bool = True,
    filename: str = "kernel.cu",
    include_dirs=(),
) -> Report:
    """Run a CUDA C kernel on the simulator and return what it did.

    Args:
        code: CUDA C source text.
        entry: name of the kernel in it.
        grid: blocks along (x, y, z); an int or a tuple of up to three.
        block: threads along (x, y, z); at most 1024 in all.
        args: C-contiguous NumPy arrays, read and written in place, and NumPy scalars.
        options: compiler options such as ("-DTILE=8",); CuPy's own (-std=c++17, -ftz=true) are
        added.
        shared_mem: bytes of dynamic shared memory.
        count: count and trace accesses; the results are the same without, and come sooner.
        sanitize: look for races, reads of shared memory that nothing wrote, copies that were not
            waited for and barriers that differ; `report.findings` lists what was found.
        schedule: "lockstep" runs all threads together; "warps" one warp after another between
            barriers, "warps_reversed" the last warp first: there, a missing barrier shows in the
            results.
        max_dynamic_shared: bytes of dynamic shared memory that the kernel was opted in to; without
            it static and dynamic shared memory together end at 48 KB.
        max_steps: instructions a batch may take before a loop counts as endless.
        batch_threads: about how many threads run at once.
        trace_bytes: how much memory `report.accesses` may use; a longer trace is dropped.
        progress: show a bar once a launch takes more than a second.
        filename, include_dirs: as for `compile_ptx`.

    Returns:
        Report: counters in total and per source line, and the trace.

    Raises:
        SimulatorError: its `kind` says what is wrong; the message names the kernel, the line and a
        mend.
    """
    compiled = compile_ptx(code, options, filename=filename, include_dirs=include_dirs)
    prepared = prepare(compiled)
    mangled = compiled.entry(entry)
    tally = Tally(trace_bytes)
    run = Run(prepared, mangled, entry, count, tally)
    function = run.code.function
    grid, block = check_geometry(entry, grid, block, function)
    arguments = check_arguments(entry, compiled.source, function, args, compiled.options)
    static = run.lay_out_shared(_checked_shared(entry, shared_mem))
    _check_shared(entry, static, shared_mem, max_dynamic_shared)
    run.place_variables()
    run.place_arguments(arguments)
    run.arguments, run.schedule = arguments, _checked_schedule(schedule)
    if sanitize:
        run.sanitizer = Sanitizer(run)
    total = grid[0] * grid[1] * grid[2]
    done, bar = 0, Progress(entry, total, progress)
    with np.errstate(all="ignore"):
        for number, (first, extent) in enumerate(batches(grid, block, batch_threads)):
            S = Batch(run, Layout(grid, block, first, extent), number)
            if run.sanitizer is not None:
                run.sanitizer.begin(S)
            Machine(S, run.code, max_steps).run()
            run.order = S.order
            done += S.layout.nblocks
            bar.show(done)
    bar.close()
    return Report(compiled, run, grid, block, arguments)


SCHEDULES = ("lockstep", "warps", "warps_reversed")


def _checked_schedule(schedule: str) -> str:
    if schedule not in SCHEDULES:
        raise SimulatorError(
            "launch", f"schedule is one of {', '.join(SCHEDULES)}, not {schedule!r}."
        )
    return schedule


def _checked_shared(entry: str, shared_mem) -> int:
    if (
        not isinstance(shared_mem, (int, np.integer))
        or isinstance(shared_mem, bool)
        or shared_mem < 0
    ):
        raise SimulatorError(
            "launch",
            f"{entry}: shared_mem is a number of bytes of 0 or more, not {shared_mem!r}.",
        )
    return int(shared_mem)


def _check_shared(entry: str, static: int, dynamic: int, opted: int | None) -> None:
    if static > DEFAULT_SHARED:
        raise SimulatorError(
            "launch",
            f"{entry}: {static:,} bytes of static __shared__ memory are more than the 48 KB "
            f"({DEFAULT_SHARED:,} bytes) a block may have: use smaller tiles, or extern "
            "__shared__ with shared_mem= and an opt-in.",
        )
    if opted is None:
        if static + dynamic > DEFAULT_SHARED:
            raise SimulatorError(
                "launch",
                f"{entry}: {static + dynamic:,} bytes of shared memory ({static:,} static and "
                f"{dynamic:,} dynamic) are more than the 48 KB ({DEFAULT_SHARED:,} bytes) a "
                "block may have without an opt-in: set kernel.max_dynamic_shared_size_bytes "
                "first (at most 232,448), or use smaller tiles.",
            )
    elif dynamic > opted or static + dynamic > MAX_SHARED:
        raise SimulatorError(
            "launch",
            f"{entry}: {static + dynamic:,} bytes of shared memory ({static:,} static and "
            f"{dynamic:,} dynamic) are more than this kernel may have ({opted:,} dynamic bytes "
            "by its opt-in, 232,448 in all): raise max_dynamic_shared_size_bytes or use "
            "smaller tiles.",
        )
