"""One launch: its code, its memory, its parameters."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import numpy as np

from ..argument_checks import Passed
from ..compile.compiler import Compiled
from ..compile.declared_elements import declared_element
from ..errors import SimulatorError
from ..limits import SIMULATED
from ..ptx import ptxas
from ..ptx.contraction import contract
from ..ptx.ptx_parser import parse
from ..ptx.sinking import sink_loads
from ..ptx.syntax import Function, Module, Sym, Variable
from .code import Code
from .faults import plain_name
from .memory import AddressSpace
from .variables import ModuleState, element_dtype

BATCH_BYTES = 1 << 28  # of shared and local memory of the blocks that run at once
SHARED_UNIT = 128  # bytes: a block's shared memory is handed out in multiples of it
FRAMES = 32  # that a function which calls itself is expected to need on a thread's stack


class Prepared:
    """A compiled module, and the code of its functions, each made when it is first needed."""

    def __init__(self, compiled: Compiled):
        self.compiled = compiled
        with _no_collection():
            self.module: Module = parse(compiled.ptx, compiled.filename)
        self.codes: dict[str, Code] = {}
        self._contracts = not {"-fmad=false", "--fmad=false"} & set(compiled.options)

    def need(self, name: str) -> None:
        """Make a function and all that it may call ready to run.

        Raises:
            SimulatorError: its PTX cannot be read.
        """
        if name in self.codes or name not in self.module.functions:
            return
        function = self.module.functions[name]
        if function.fault is not None:
            raise function.fault
        self._check_architecture(function)
        with _no_collection():
            if self._contracts:
                contract(function)
            graph = sink_loads(function)
            code = Code(graph, ptxas.annotate(graph, self.module))
        self.codes[name] = code
        for symbol in sorted(code.symbols):  # called, or its address taken
            self.need(symbol)
        for variable in self.module.variables.values():
            for item in variable.initial:
                if isinstance(item, Sym):
                    self.need(item.name)

    def _check_architecture(self, function: Function) -> None:
        """Refuse what only `sm_90a` has in PTX that was made for another architecture."""
        if self.module.target == "sm_90a":
            return
        for i in function.instructions:
            if i.opcode in ("wgmma", "setmaxnreg"):
                raise SimulatorError(
                    "unsupported",
                    f"line {i.line}: {i.opcode} is an instruction of sm_90a alone, and this was "
                    f"compiled for {self.module.target}: pass options=('-arch=sm_90a',).",
                    i.line,
                )


@contextmanager
def _no_collection() -> Iterator[None]:
    """Let nobody look for garbage while many objects are made that all stay."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects and not gc.get_freeze_count():
            # Into the oldest generation at once: the next collection of young ones is a short one.
            gc.freeze()
            gc.unfreeze()
        if collects:
            gc.enable()


@lru_cache(maxsize=64)
def prepare(compiled: Compiled) -> Prepared:
    """The prepared form of a compiled source, remembered for the most recent ones."""
    return Prepared(compiled)


class Run:
    """One launch. What observes it (`tally`, and `sanitizer` if there is one) is handed in.

    Without a `state` the module's variables have their initial values.
    """

    def __init__(
        self, prepared: Prepared, mangled: str, entry: str, counting: bool, tally,
        state: ModuleState | None = None,
    ):  # fmt: skip
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
        self.blocks_run = 0
        self.sanitizer = None
        self.schedule = "lockstep"
        self.arguments: list[Passed] = []
        self.state = ModuleState(prepared.module) if state is None else state
        self.space.keeps_variables = state is not None
        self.function_addresses = self.state.functions
        self.specials: dict[str, int] = {}

    def threads_at_once(self, threads: int, wanted: int) -> int:
        """How many threads a batch may have, so that the memory of its blocks stays bounded.

        Args:
            threads: of a block.
            wanted: how many there would be if memory were no matter.
        """
        stack = sum(code.depot * frames for code, frames in self._frames())
        nbytes = self.shared_bytes + threads * stack
        if self.sanitizer is not None:
            nbytes += self.sanitizer.shadow_bytes(self.shared_bytes)
        return min(wanted, max(1, BATCH_BYTES // max(1, nbytes)) * threads)

    def _frames(self) -> list[tuple[Code, int]]:
        """The functions that the kernel may call, each with how many frames it is given."""
        codes = self.prepared.codes
        reach = {name: code.symbols & codes.keys() for name, code in codes.items()}
        for _ in codes:
            for called in reach.values():
                called |= set().union(*(reach[name] for name in called))
        mine = {self.code.function.name} | reach[self.code.function.name]
        return [(codes[name], FRAMES if name in reach[name] else 1) for name in mine]

    def print(self, text: str) -> None:
        """A kernel's printf."""
        self.output.append(text)
        sys.stdout.write(text)

    def lay_out_shared(self, dynamic: int) -> int:
        """Place the shared variables; returns the static bytes."""
        self.shared_variables, static, before = ptxas.shared_places(
            self.prepared.module, self.code.function.name
        )
        self.addresses.update({v.name: at for at, v in self.shared_variables})
        self.shared_bytes = before + dynamic
        total = -(-self.shared_bytes // SHARED_UNIT) * SHARED_UNIT
        self.specials["dynamic_smem_size"] = dynamic
        self.specials["total_smem_size"] = total
        self.specials["aggr_smem_size"] = total + SIMULATED.reserved_shared
        return static

    def place_variables(self) -> None:
        """Give the variables that the kernel may reach their places in the address space."""
        variables = self.state.variables
        waiting = set().union(*(code.symbols for code in self.prepared.codes.values()))
        waiting &= variables.keys()
        while waiting:
            v = variables[waiting.pop()]
            waiting |= {
                item.name
                for item in v.initial
                if isinstance(item, Sym) and item.name in variables.keys() - self.addresses.keys()
            }
            kind = "constant" if v.space == "const" else "device"
            name, element, dtype = plain_name(v.name), "", element_dtype(v)
            if found := declared_element(name, v.space, self.prepared.compiled.source):
                element, dtype = found[0], np.dtype(f"V{found[1]}")
            self.addresses[v.name] = self.space.add_bytes(
                self.state.bytes_of(v.name), name, kind, v.space == "global",
                dtype, element,
            )  # fmt: skip

    def place_grid_barrier(self) -> None:
        """Give a cooperative launch what `this_grid().sync()` counts the blocks in."""
        workspace = np.zeros(32, np.uint8)
        address = self.space.add_bytes(
            workspace, "the grid's barrier", "workspace", True, np.uint32
        )
        self.specials |= {"envreg1": address >> 32, "envreg2": address & 0xFFFFFFFF}

    def heap(self):
        """The device's heap, put into the address space when it is first asked for."""
        if not any(r.kind == "heap" for r in self.space.regions):
            self.space.add_bytes(self.state.heap.data, "the heap", "heap", True, np.uint8)
        return self.state.heap

    def place_arguments(self, arguments: list[Passed]) -> None:
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
