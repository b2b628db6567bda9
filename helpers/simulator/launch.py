"""launch(): checks the arguments, compiles, runs every batch, and returns the report."""

from __future__ import annotations

import sys
import time
from collections import OrderedDict

import numpy as np

from . import program, ptx, ptxas
from .arguments import Argument, check_arguments, check_geometry
from .code import Code
from .compiler import Compiled, compile_ptx
from .errors import SimulatorError
from .layout import Layout, batches
from .machine import Machine
from .memory import FUNCTION_WINDOW, SHARED_BASE, AddressSpace, Buffer
from .ptx import Imm, Module, Variable
from .report import Report
from .sanitizer import Sanitizer
from .tally import TRACE_BYTES, Tally

BATCH_THREADS = 1 << 16
MAX_STEPS = 4_000_000
DEFAULT_SHARED = 48 * 1024
MAX_SHARED = 227 * 1024
ELEMENT_DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16}


class Prepared:
    """A compiled module, and the code of its functions: made when first needed, for many "
    "launches."""

    def __init__(self, compiled: Compiled):
        self.compiled = compiled
        self.module: Module = ptx.parse(compiled.ptx, compiled.filename)
        self.codes: dict[str, Code] = {}

    def need(self, name: str) -> None:
        """Make a function and all that it may call ready to run."""
        if name in self.codes or name not in self.module.functions:
            return
        function = self.module.functions[name]
        graph = program.build(function)
        converted = ptxas.annotate(graph, self.module)
        self.codes[name] = code = Code(graph)
        code.converted = converted
        for i in function.instructions:
            for operand in i.operands:
                if isinstance(operand, ptx.Sym):  # called, or its address taken
                    self.need(operand.name)
        for variable in self.module.variables.values():
            for item in variable.initial:
                if isinstance(item, ptx.Sym):
                    self.need(item.name)


_prepared: OrderedDict[int, Prepared] = OrderedDict()


def prepare(compiled: Compiled) -> Prepared:
    """The prepared form of a compiled source, remembered for the most recent ones."""
    key = id(compiled)
    got = _prepared.get(key)
    if got is None or got.compiled is not compiled:
        got = _prepared[key] = Prepared(compiled)
        while len(_prepared) > 64:
            _prepared.popitem(last=False)
    return got


class Batch:
    """What the steps of a running batch share (the S of step(S, R))."""

    def __init__(self, run: Run, layout: Layout, number: int):
        self.layout, self.number = layout, number
        self.entry = run.entry
        self.space = run.space
        self.functions = run.prepared.codes
        self.function_addresses = run.function_addresses
        self.addresses = run.addresses
        self.shared_variables = run.shared_variables
        self.parameters = run.parameters
        self.counting = run.counting
        self.tally = run.tally
        self.print = run.print
        self.shared = Buffer(layout.nblocks, run.shared_bytes, layout.block_index, SHARED_BASE)
        self._local = None
        self._local_bytes = run.code.depot
        self.sanitizer = run.sanitizer
        self.schedule = run.schedule
        self.mask = None
        self.keep = 0
        self.frame = None
        self.writes = 0
        self.order = run.order
        self.exited = False
        self.arrived: list = []
        self._lanes_of: tuple = (None, None)
        self._numbers_of: tuple = (None, (layout.warps * layout.nblocks,
                                          layout.nthreads * layout.nblocks))  # fmt: skip

    @property
    def local(self) -> Buffer:
        """Local memory, made when first touched."""
        if self._local is None:
            layout = self.layout
            row = layout.block_index * layout.nthreads + layout.thread_index
            self._local = Buffer(layout.nblocks * layout.nthreads, self._local_bytes, row, 0)
        return self._local

    def reserve_local(self, nbytes: int, i) -> None:
        """Make room on every thread's stack for a call."""
        if nbytes > 512 * 1024:
            raise SimulatorError(
                "launch", f"{self.entry}, line {i.line}: a thread needs more than 512 KB of stack; "
                "shorten the recursion or its local arrays.", i.line,
            )  # fmt: skip
        self._local_bytes = max(self._local_bytes, nbytes)
        if self._local is not None:
            self._local.grow(self.layout.nblocks * self.layout.nthreads, nbytes)

    def parameter(self, name: str, offset: int, dtype: np.dtype) -> np.ndarray:
        """A value of the kernel's parameters."""
        data, start = self.parameters[name]
        return data[start + offset : start + offset + dtype.itemsize].view(dtype)

    def address_of(self, name: str, i) -> int:
        """The address of a variable, a parameter or a function."""
        if name in self.frame.code.local_addresses:
            return self.frame.depot + self.frame.code.local_addresses[name]
        address = self.addresses.get(name)
        if address is None:
            address = self.function_addresses.get(name)
        if address is None:
            raise SimulatorError(
                "unsupported",
                f"{self.entry}, line {i.line}: the simulator does not have `{name}` (in "
                f"`{i.text}`); use a GPU for this kernel.",
                i.line,
            )
        return address

    def active_lanes(self, mask) -> np.ndarray | None:
        """`Layout.active_lanes`, remembered for the mask in force."""
        if self._lanes_of[0] is mask and mask is not None:
            return self._lanes_of[1]
        lanes = self.layout.active_lanes(mask)
        if mask is not None:
            self._lanes_of = (mask, lanes)
        return lanes

    def active_numbers(self, mask) -> tuple[int, int]:
        """(warps with an active thread, active threads) in the whole batch."""
        layout = self.layout
        if mask is None:
            return layout.warps * layout.nblocks, layout.nthreads * layout.nblocks
        if self._numbers_of[0] is mask:
            return self._numbers_of[1]
        lanes = self.active_lanes(mask)
        copies = layout.copies(lanes)
        numbers = (
            int(np.count_nonzero(lanes.any(axis=-1))) * copies,
            int(np.count_nonzero(lanes)) * copies,
        )
        self._numbers_of = (mask, numbers)
        return numbers


class Run:
    """One launch."""

    def __init__(self, prepared: Prepared, mangled: str, entry: str, counting: bool, tally: Tally):
        self.prepared, self.entry, self.counting, self.tally = prepared, entry, counting, tally
        prepared.need(mangled)
        self.code = prepared.codes[mangled]
        self.space = AddressSpace()
        self.addresses: dict[str, int] = {}
        self.parameters: dict[str, tuple[np.ndarray, int]] = {}
        self.shared_variables: list[tuple[int, Variable]] = []
        self.shared_bytes = 0
        self.output: list[str] = []
        self.order = 0
        self.sanitizer: Sanitizer | None = None
        self.schedule = "lockstep"
        self.arguments: list[Argument] = []
        self.function_addresses = {
            name: FUNCTION_WINDOW + 256 * n for n, name in enumerate(prepared.module.functions)
        }
        self._lay_out_locals()

    def print(self, text: str) -> None:
        """A kernel's printf."""
        self.output.append(text)
        sys.stdout.write(text)

    def _lay_out_locals(self) -> None:
        for code in self.prepared.codes.values():
            code.local_addresses = {}
            at = 0
            for v in code.function.variables.values():
                if v.space == "local":
                    at = -(-at // v.align) * v.align
                    code.local_addresses[v.name] = at
                    at += v.size
            code.depot = -(-at // 16) * 16

    def lay_out_shared(self, dynamic: int) -> int:
        """Place the shared variables; returns the static bytes."""
        self.shared_variables, static, before = ptxas.shared_places(
            self.prepared.module, self.code.function.name
        )
        self.addresses.update({v.name: at for at, v in self.shared_variables})
        self.shared_bytes = before + dynamic
        return static

    def place_variables(self) -> None:
        """Give __device__ and __constant__ variables memory, with their initial values."""
        variables = [
            v for v in self.prepared.module.variables.values() if v.space in ("global", "const")
        ]
        for f in self.prepared.module.functions.values():
            variables += [v for v in f.variables.values() if v.space in ("global", "const")]
        data = {}
        for v in variables:
            data[v.name] = np.zeros(max(v.size, 1), np.uint8)
            dtype = ELEMENT_DTYPES.get(v.element, np.dtype(f"u{ptx.TYPE_SIZES[v.element]}"))
            from .faults import plain_name

            kind = "constant" if v.space == "const" else "device"
            self.addresses[v.name] = self.space.add_bytes(
                data[v.name], plain_name(v.name), kind, v.space == "global", dtype
            )
        for v in variables:
            size = ptx.TYPE_SIZES[v.element]
            for n, item in enumerate(v.initial):
                if isinstance(item, Imm):
                    bits = item.bits if item.bits is not None and item.bits_size == size else None
                    number = int(item.value) if bits is None else bits
                else:
                    number = self.addresses.get(
                        item.name, self.function_addresses.get(item.name, 0)
                    )
                    number += item.offset
                raw = (number & ((1 << 8 * size) - 1)).to_bytes(size, "little")
                data[v.name][n * size : (n + 1) * size] = np.frombuffer(raw, np.uint8)

    def place_arguments(self, arguments: list[Argument]) -> None:
        """Fill the parameter buffer."""
        params = self.code.function.params
        at, places = 0, []
        for p in params:
            at = -(-at // p.align) * p.align
            places.append(at)
            at += p.size
        data = np.zeros(max(at, 1), np.uint8)
        for p, place, argument in zip(params, places, arguments, strict=True):
            if argument.array is not None:
                address = self.space.add_array(argument.array, argument.name)
                raw = np.array([address], np.int64).view(np.uint8)
            else:
                raw = np.frombuffer(argument.value, np.uint8)
            data[place : place + len(raw)] = raw
            self.parameters[p.name] = (data, place)
        base = self.space.add_bytes(data, "the parameters", "parameter", False, np.uint8)
        for p, place in zip(params, places, strict=True):
            self.addresses[p.name] = base + place


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
    arguments = check_arguments(entry, compiled.source, function, args)
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


class Progress:
    """A text bar on stderr for launches of more than a second."""

    def __init__(self, entry: str, total: int, wanted: bool):
        self.entry, self.total, self.wanted = entry, total, wanted
        self.start = self.last = time.monotonic()
        self.shown = False

    def show(self, done: int) -> None:
        """Redraw, at most five times a second."""
        now = time.monotonic()
        if not self.wanted or now - self.start < 1 or now - self.last < 0.2:
            return
        if done >= self.total and not self.shown:
            return
        self.last, self.shown = now, True
        filled = 30 * done // self.total
        left = (now - self.start) / done * (self.total - done)
        sys.stderr.write(
            f"\rsimulating {self.entry}: [{'#' * filled}{'.' * (30 - filled)}] "
            f"{done:,}/{self.total:,} blocks, {left:.0f} s left "
        )
        sys.stderr.flush()

    def close(self) -> None:
        """Wipe the bar."""
        if self.shown:
            sys.stderr.write("\r" + " " * 100 + "\r")
            sys.stderr.flush()
