"""The machine code of a kernel, with no GPU: what it takes, and what becomes of each line."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from ..errors import SimulatorError
from .compiler import Compiled, compiled_of, request_of
from .kept_nvrtc import KeptNvrtc
from .providers import VERBOSE, Request, has_unread_include, own_names
from .sass import IN_SASS, MachineInstruction, disassemble, instructions, nvdisasm

_REMEMBERED = 128
_REAL = re.compile(r"sm_(\d+)[af]?")
_USED = re.compile(r"Used (\d+) registers(?:.*?, (\d+) bytes smem)?")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REFUSED = re.compile(r"\bptxas .*?(?:error|fatal)\s*: (.*)")
_NOT_ON_MACOS = "There is no machine code on macOS: NVIDIA has no CUDA compiler for it."

_nvrtc = KeptNvrtc()
_cache: OrderedDict[tuple, tuple[Compiled, bytes, Callable[[str], str]]] = OrderedDict()


@dataclass(frozen=True, eq=False, repr=False)
class MachineCode:
    """What the assembler made of one kernel for one GPU.

    Attributes:
        entry: the kernel's name in the source.
        architecture: the GPU's, such as `sm_90`.
        registers: 32-bit registers of a thread.
        spill_stores, spill_loads: bytes that a thread's instructions move to and from local
            memory because the registers do not suffice, each instruction counted once.
        local_bytes: bytes of local memory of a thread: spilled registers, and arrays that are no
            registers.
        static_shared: bytes of shared memory that a block has by declaration.
        filename: what the source is called.
        cubin: the machine code itself, in an ELF file.
    """

    entry: str
    architecture: str
    registers: int
    spill_stores: int
    spill_loads: int
    local_bytes: int
    static_shared: int
    filename: str
    cubin: bytes = field(repr=False)
    symbol: str = field(repr=False)
    named: Callable[[str], str] = field(repr=False)

    @property
    def spilled_bytes(self) -> int:
        """Bytes of registers that a thread writes to local memory because it has too few."""
        return self.spill_stores

    @functools.cached_property
    def instructions(self) -> tuple[MachineInstruction, ...]:
        """The instructions in order, without the padding behind the last.

        Raises:
            SimulatorError: of kind `compile`, if there is no nvdisasm.
        """
        text = self.named(disassemble(self.cubin))
        return instructions(text, self.symbol, self.filename)

    @functools.cached_property
    def by_line(self) -> dict[int, tuple[MachineInstruction, ...]]:
        """The instructions that come from each line of the file, lines in order."""
        found = defaultdict(list)
        for one in self.instructions:
            if one.line is not None:
                found[one.line].append(one)
        return {line: tuple(found[line]) for line in sorted(found)}

    @property
    def opcodes(self) -> dict[str, int]:
        """How many instructions there are of each opcode, such as `LDG.E.128`."""
        return dict(Counter(one.opcode for one in self.instructions).most_common())

    @property
    def kinds(self) -> dict[str, int]:
        """How many instructions there are of each kind, such as `fp32` or `shared loads`."""
        return dict(Counter(one.kind for one in self.instructions).most_common())

    @property
    def summary(self) -> str:
        """What a thread and a block take, in a line."""
        local = f" ({self.local_bytes:,} bytes of local memory)" if self.local_bytes else ""
        return (
            f"{self.architecture}: {self.registers} registers, "
            f"{self.spilled_bytes:,} bytes spilled{local}, "
            f"{self.static_shared:,} bytes of static shared memory, "
            f"{len(self.instructions):,} instructions"
        )

    def __repr__(self) -> str:
        return f"<MachineCode of {self.entry}, {self.architecture}, {self.registers} registers>"

    def __str__(self) -> str:
        rows = [f"{self.entry}, {self.summary}"]
        for one in self.instructions:
            rows += [f"{one.label}:"] if one.label else []
            line = f"{self.filename}:{one.line}" if one.line else ""
            rows.append(f"  {one.address:04x}  {one.text:<60}  {line}".rstrip())
        return "\n".join(rows)


def machine_code(
    code: str,
    entry: str,
    options: tuple[str, ...] | list[str] = (),
    architecture: str = "sm_90",
    *,
    filename: str = "kernel.cu",
    include_dirs: Iterable[str | os.PathLike] = (),
    name_expressions: tuple[str, ...] = (),
) -> MachineCode:
    """Compile CUDA C to machine code for a GPU that need not be here.

    Args:
        code: the source text.
        entry: the kernel's name, as for `compile_ptx(...).entry`.
        options: NVRTC's options, such as `("-DTILE=8",)`; `architecture` stands for `-arch`.
        architecture: a GPU's, such as `sm_80` (A100), `sm_90` (H100, H200), `sm_120`.
        filename, include_dirs, name_expressions: as for `compile_ptx`.

    Raises:
        SimulatorError: of kind `compile` (the source, an option or a missing compiler is at
            fault), `launch` (there is no such kernel) or `argument`.
    """
    if not isinstance(entry, str):
        raise SimulatorError("argument", f"entry is the name of a kernel, not {entry!r}.")
    request = request_of(code, options, filename, include_dirs, name_expressions)
    if given := [option for option in request.options[1:] if option.startswith("-arch=")]:
        raise SimulatorError(
            "argument",
            f"Leave {given[0]} out of the options: the architecture is an argument, here "
            f"{architecture!r}.",
        )
    return machine_code_of(request, entry, architecture)


def machine_code_of(request: Request, entry: str, architecture: str) -> MachineCode:
    """The machine code of a kernel out of what was asked of the compiler before.

    Raises:
        SimulatorError: as for `machine_code`.
    """
    request = _for_chip(request, architecture)
    made, cubin, named = _remembered(request)
    symbol = made.entry(entry)
    log = made.log.split(f"Compiling entry function '{symbol}'", 1)[-1]
    used, spills = _USED.search(log), _SPILLS.search(log)
    if used is None or spills is None:
        raise SimulatorError("compile", f"NVRTC does not say what {entry} takes: {made.log}")
    local, stores, loads = map(int, spills.groups())
    return MachineCode(
        entry=made.entries[symbol],
        architecture=_architecture(request),
        registers=int(used[1]),
        spill_stores=stores,
        spill_loads=loads,
        local_bytes=local,
        static_shared=int(used[2] or 0),
        filename=made.filename,
        cubin=cubin,
        symbol=symbol,
        named=named,
    )


def _architecture(request: Request) -> str:
    """The architecture that a request is for."""
    return request.options[0].removeprefix("-arch=")


def is_remembered(request: Request, architecture: str) -> bool:
    """Whether the machine code for a GPU has been made already."""
    return not lacking() and _for_chip(request, architecture) in _cache


@functools.cache
def lacking() -> str:
    """What this machine lacks to make machine code and read it, in a sentence; or nothing."""
    if sys.platform == "darwin":
        return _NOT_ON_MACOS
    try:
        _nvrtc.architectures()
        nvdisasm()
    except SimulatorError as error:
        return str(error)
    return ""


def _for_chip(request: Request, architecture: str) -> Request:
    """`request` for the machine code of one GPU.

    Raises:
        SimulatorError: of kind `compile` or `argument`.
    """
    if sys.platform == "darwin":
        raise SimulatorError("compile", _NOT_ON_MACOS)
    real = _REAL.fullmatch(architecture) if isinstance(architecture, str) else None
    known = _nvrtc.architectures()
    if real is None or int(real[1]) not in known:
        raise SimulatorError(
            "argument",
            f"There is no architecture {architecture!r} to make machine code for; there are "
            f"{', '.join(f'sm_{number}' for number in known)}.",
        )
    asked = [option for option in request.options if option.startswith("-arch=")]
    rest = tuple(option for option in request.options if option not in asked)
    if any(option.endswith(f"_{real[1]}a") for option in asked):
        architecture = f"sm_{real[1]}a"  # what the source needs, and the same chip
    return replace(request, options=(f"-arch={architecture}", VERBOSE, *rest))


def _remembered(request: Request) -> tuple[Compiled, bytes, Callable[[str], str]]:
    """(what came of compiling, the cubin, what gives its files the names of the source)."""
    if request in _cache:
        _cache.move_to_end(request)
        return _cache[request]
    try:
        answer, cubin = _nvrtc.machine_code(request)
    except SimulatorError as error:
        if refused := _REFUSED.search(str(error)):
            message = f"{request.filename}: the assembler refuses it: {refused[1].rstrip('.')}."
            raise SimulatorError("compile", message) from error
        raise
    found = compiled_of(request, answer), cubin, own_names(request, IN_SASS, answer.folder)
    if not has_unread_include(request):
        _cache[request] = found
        if len(_cache) > _REMEMBERED:
            _cache.popitem(last=False)
    return found
