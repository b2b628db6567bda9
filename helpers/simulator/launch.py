"""launch(): checks what it is given, compiles, runs every batch, and returns the report."""

from contextlib import contextmanager
from functools import partial

import numpy as np

from .argument_checks import check_arguments, check_cooperative, check_geometry
from .compile.compiler import compile_ptx
from .compile.source_text import main_file
from .errors import Interrupted, SimulatorError
from .machine.batch import Batch
from .machine.faults import part_written
from .machine.layout import Layout, batches, sampled
from .machine.machine import Machine, running_line
from .machine.run import Run, prepare
from .machine.variables import ModuleState
from .observe.assembled import settle
from .observe.progress import Progress
from .observe.report import Report
from .observe.sanitizer import Sanitizer
from .observe.tally import TRACE_BYTES, Tally
from .observe.touched_sectors import Footprint
from .settings import check_settings, check_shared, check_source

BATCH_THREADS = 1 << 16
MAX_STEPS = 4_000_000


# long: most of it tells what its fifteen arguments are
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
    name_expressions: tuple[str, ...] = (),
    state: ModuleState | None = None,
    cooperative: bool = False,
    sample: int | None = None,
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
        filename, include_dirs, name_expressions: as for `compile_ptx`.
        state: the module's variables and heap (`ModuleState`), which the launch goes on with and
            changes; without it they have their initial values.
        cooperative: let all blocks run at once, so that `this_grid().sync()` works.
        sample: run no more than so many blocks, spread over the grid: results are then those of
            these blocks alone, and `report.bounds()` takes the others to be like them.

    Returns:
        Report: counters in total and per source line, and the trace.

    Raises:
        SimulatorError: its `kind` says what is wrong; the message names the kernel, the line and a
        mend.
        Interrupted: a KeyboardInterrupt came, which it is too.
    """
    with _source_of_errors(code, filename):
        check_source(entry, filename, include_dirs)
        check_settings(
            entry, schedule, shared_mem, max_dynamic_shared, max_steps=(max_steps, 1),
            batch_threads=(batch_threads, 1), trace_bytes=(trace_bytes, 0),
            sample=(1 if sample is None else sample, 1),
        )  # fmt: skip
        compiled = compile_ptx(
            code, options, filename=filename, include_dirs=include_dirs,
            name_expressions=name_expressions,
        )  # fmt: skip
        mangled = compiled.entry(entry)
        with _told_of(entry):
            run = Run(prepare(compiled), mangled, entry, count, Tally(trace_bytes), state)
            function = run.code.function
            if count:
                run.code.settle = partial(settle, run.code, compiled.request, entry)
            grid, block = check_geometry(entry, grid, block, function)
        arguments = check_arguments(entry, compiled.source, function, args, compiled.options)
        static = run.lay_out_shared(int(shared_mem))
        check_shared(entry, static, int(shared_mem), max_dynamic_shared)
        run.place_variables()
        run.place_arguments(arguments)
        run.arguments, run.schedule = arguments, schedule
        if sanitize:
            run.sanitizer = Sanitizer(run)
        threads, total = block[0] * block[1] * block[2], grid[0] * grid[1] * grid[2]
        at_once = run.threads_at_once(threads, int(batch_threads))
        if cooperative:
            if sample is not None:
                raise SimulatorError(
                    "launch",
                    f"{entry}: the blocks of a cooperative launch wait for each other, so a sample "
                    "of them cannot run; leave `sample` out.",
                )
            check_cooperative(entry, total, threads)
            run.place_grid_barrier()
            at_once = total * threads
        done, bar = 0, Progress(entry, min(total, sample or total), progress)
        with np.errstate(all="ignore"), _told_of(entry, run), _interrupts(entry, run, bar):
            chosen = sampled(grid, sample)
            if chosen and count:
                run.tally.footprint = Footprint(run.space)
            chosen = chosen or batches(grid, block, at_once)
            for number, (first, extent) in enumerate(chosen):
                S = Batch(run, Layout(grid, block, first, extent, run.specials), number)
                if run.sanitizer is not None:
                    run.sanitizer.begin(S)
                Machine(S, run.code, max_steps).run()
                if run.sanitizer is not None:
                    run.sanitizer.end(S)
                run.order = S.order
                run.blocks_run = done = done + S.layout.nblocks
                bar.show(done)
        return Report(compiled, run, grid, block, arguments)


@contextmanager
def _source_of_errors(code: str, filename: str):
    """What stops the launch, with the source in which its line counts."""
    try:
        yield
    except (SimulatorError, Interrupted) as error:
        if not error.code and isinstance(code, str):
            error.code, error.file = code, main_file(code, str(filename))
        raise


@contextmanager
def _interrupts(entry: str, run: Run, bar: Progress):
    """An interrupt told as one sentence, with the line that ran; the bar goes in any case."""
    try:
        yield
    except KeyboardInterrupt as error:
        line = running_line(error)
        at = f" at line {line}" if line else ""
        raise Interrupted(
            f"{entry} was interrupted{at}, after {bar.told()}.{part_written(run)}", line
        ) from None
    finally:
        bar.close()


@contextmanager
def _told_of(entry: str, space=None):
    """What the kernel asks for and the simulator lacks, told with the kernel and its arrays."""
    try:
        yield
    except SimulatorError as error:
        if error.kind != "unsupported" or str(error).startswith(entry):
            raise
        state = part_written(space) if space is not None else " No argument was changed."
        raise SimulatorError(error.kind, f"{entry}, {error}{state}", error.line) from None
