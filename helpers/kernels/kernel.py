"""Kernel files: `load_kernel` makes one of `kernels/*.cu` ready to launch, to count and to show."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import operator
import os
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from ..gpu import device
from ..simulator.compile.compile_errors import compile_error
from ..simulator.compile.compiler import compile_ptx
from ..simulator.compile.signature import Argument, signature
from ..simulator.compile.source_text import mask
from ..simulator.launch import prepare
from ..simulator.limits import SIMULATED
from ..simulator.ptx.ptxas import shared_places
from ..simulator.ptx.syntax import Module
from .arguments import shared_memory
from .kernel_code import KernelCode, code_to_show, kernel_code
from .launches import Launch
from .listing import Listing, listing
from .lookup import find_file, find_function, name_of, set_parameters
from .source import (
    KernelError,
    KernelFunction,
    Parameter,
    Value,
    expand_includes,
    kernel_functions,
    parameters,
    read,
)

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
STANDARD = "-std=c++17"
_ARCHITECTURE = re.compile(r"^// Architecture: (sm_\w+)$", re.MULTILINE)

Marks = int | str | range | Iterable[int | str]


def load_kernel(
    file: str | os.PathLike,
    entry: str | None = None,
    *,
    kernels_dir: str | os.PathLike | None = None,
    **values: Value,
) -> Kernel:
    """Read a kernel from a .cu file and set the parameters that the file declares.

    Nothing is compiled before the first launch. The file is read again on every call.

    Args:
        file: its name in `kernels/`, or a path.
        entry: the kernel's name; may be left out if the file has one kernel.
        kernels_dir: a folder to use in place of `kernels/`; its `include/` holds the headers.
        **values: parameters, such as `TILE=8`; the others keep their defaults.

    Raises:
        KernelError: if there is no such file, kernel or parameter, if a value is not among the
            choices, or if an include is missing.
    """
    folder = KERNELS if kernels_dir is None else Path(name_of("kernels_dir", kernels_dir))
    path = find_file(file, folder)
    source = read(path)
    declared = set_parameters(parameters(source, path.name), values, path.name)
    function = find_function(kernel_functions(source, path.name), entry, path.name)
    code = expand_includes(path, [folder / "include", path.parent / "include"])
    return Kernel(path, source, code, function, declared)


def cached_kernel(path: Path, entry: str | None = None, **values: Value) -> Kernel:
    """As `load_kernel`; the same object again while the file is the same.

    Raises:
        KernelError: as for `load_kernel`.
        OSError: there is no such file.
    """
    return _cached(path, path.stat().st_mtime_ns, entry, tuple(values.items()))


@functools.lru_cache(512)
def _cached(path: Path, changed: int, entry: str | None, values: tuple) -> Kernel:
    return load_kernel(path, entry, **dict(values))


class Kernel:
    """A kernel with its parameters set: call it to launch it.

    Attributes:
        file: path of the .cu file.
        entry: name of the kernel.
        source: text of the file.
        code: what the compiler gets, with the included files in place.
        options: the compiler options, a `-D` for every parameter among them.
        architecture: the one that it needs, such as sm_90a, if its source says
            `// Architecture: sm_90a`; else empty.
        parameters: the file's parameters by name, each with value, default, choices and
            description.
        arguments: the arguments that the kernel declares.
    """

    def __init__(
        self,
        file: Path,
        source: str,
        code: str,
        function: KernelFunction,
        declared: Mapping[str, Parameter],
    ):
        self.file = file
        self.entry = function.name
        self.source = source
        self.code = code
        self.parameters = MappingProxyType(dict(declared))
        named = _ARCHITECTURE.search(code)
        self.architecture = named[1] if named else ""
        architecture = (f"-arch={self.architecture}",) if named else ()
        self.options = (STANDARD, *architecture, *(p.option for p in declared.values()))
        self._function = function
        macros = dict(p.option[2:].split("=", 1) for p in declared.values())
        self.arguments: tuple[Argument, ...] = signature(function.parameters, code, macros)
        self._raw: Any = None
        self._static: int | None = None
        self._opted_in = SIMULATED.shared

    def altered(self, code: str | None = None, **values: Value) -> Kernel:
        """The same kernel with parameters at any values, whatever the file's choices are.

        Args:
            code: what the compiler gets in place of the file's text, for a kernel that is changed.
            **values: of the file's parameters.

        Raises:
            KernelError: there is no such parameter.
        """
        free = {
            name: dataclasses.replace(p, choices=(values[name],), spellings=(str(values[name]),))
            for name, p in self.parameters.items()
            if name in values
        }
        declared = set_parameters({**self.parameters, **free}, values, self.file.name)
        return Kernel(self.file, self.source, code or self.code, self._function, declared)

    @property
    def raw(self):
        """The `cp.RawKernel` beneath, which checks nothing."""
        if self._raw is None:
            self._raw = device.cp.RawKernel(self.code, self.entry, options=self.options)
        return self._raw

    def __call__(self, grid, block, args, shared_mem: int = 0) -> None:
        """Launch the kernel; `args` are arrays of `cp` and numbers, converted to the C types.

        More than 48 KB of shared memory are asked for as the hardware requires.

        Args:
            grid: blocks along x, y and z: an integer or up to three.
            block: threads of a block along x, y and z, likewise.
            args: a tuple with an array for each pointer and a number for each value.
            shared_mem: bytes of dynamic shared memory.

        Raises:
            KernelError: if an argument does not fit the signature, or the launch the hardware.
            SimulatorError: of kind `compile`, if the source does not compile.
        """
        Launch.of(self, grid, block, args, shared_mem, on_device=True).run()

    def compile(self) -> Kernel:
        """Compile now rather than at the first launch; returns the kernel itself.

        Raises:
            SimulatorError: of kind `compile`, with the compiler's log, on a GPU as well.
        """
        if self._static is None:
            try:
                self.raw.compile()
            except Exception as error:
                if type(error).__name__ != "CompileException":
                    raise
                raise compile_error(str(error), self.code, self.file.name) from None
            self._static = int(getattr(self.raw, "shared_size_bytes", 0) or 0)
        return self

    def count(self, grid, block, args, shared_mem: int = 0, **launch_options):
        """Run the kernel on the simulator, on any machine, and return its report.

        The arrays stay as they are: the run writes to copies of them.

        Args:
            grid, block, args, shared_mem: as for a launch; NumPy arrays will do as well.
            **launch_options: handed on to `helpers.simulator.launch`.

        Raises:
            KernelError: as for a launch.
            SimulatorError: if the kernel does not compile or does something wrong.
        """
        return Launch.of(self, grid, block, args, shared_mem).count(**launch_options)

    @property
    def static_shared(self) -> int:
        """Bytes of shared memory that a block has by declaration, on any machine.

        Raises:
            SimulatorError: of kind `compile`.
        """
        module, mangled = self.ptx()
        return shared_places(module, mangled)[1]

    @property
    def most_threads(self) -> int:
        """The threads that a block may have by its `__launch_bounds__`, or 1,024.

        Raises:
            SimulatorError: of kind `compile`.
        """
        module, mangled = self.ptx()
        return module.functions[mangled].bounds.get("maxntid", SIMULATED.threads)

    def ptx(self) -> tuple[Module, str]:
        """The PTX that NVRTC makes of it, parsed, and the kernel's name there.

        Raises:
            SimulatorError: of kind `compile`, with the compiler's log.
        """
        made = compile_ptx(self.code, self.options)
        mangled = made.entry(self.entry)
        prepared = prepare(made)
        prepared.need(mangled)  # a run needs it: one that was only asked about begins sooner
        return prepared.module, mangled

    def machine_code(self, architecture: str = "sm_90") -> KernelCode:
        """The machine code that the assembler makes of it for a GPU, which need not be here.

        Args:
            architecture: the GPU's, such as sm_80 (A100), sm_90 (H100, H200), sm_120.

        Raises:
            SimulatorError: it does not compile, there is no such architecture, or no nvdisasm.
        """
        return kernel_code(self, architecture)

    def lines(self, text: str, whole: bool = False) -> list[int]:
        """Return the numbers of the lines that hold `text`, or match it as a regular expression.

        Looks in the kernel function alone unless `whole` is set, and at comments only if no
        code holds the text.

        Raises:
            KernelError: if there is none.
        """
        if not isinstance(text, str):
            raise KernelError(
                f'lines() takes the text to look for, such as "__syncthreads", not {text!r}.'
            )
        first, last = self._extent(whole)
        lines, code = self.source.split("\n"), mask(self.source).split("\n")
        numbers = range(first, last + 1)
        found = [n for n in numbers if text in code[n - 1]]
        found = found or [n for n in numbers if text in lines[n - 1]]
        if not found:
            with contextlib.suppress(re.error):
                found = [n for n in numbers if re.search(text, lines[n - 1])]
        if not found:
            place = self.file.name if whole else f"{self.entry} of {self.file.name}"
            raise KernelError(f"No line of {place} (lines {first} to {last}) holds {text!r}.")
        return found

    def show(
        self,
        report=None,
        *,
        lines: tuple[int, int] | range | None = None,
        mark: Marks = (),
        start: int | None = None,
        end: int | None = None,
        columns: Iterable[str] | None = None,
        whole: bool = False,
        machine_code: KernelCode | str | None = None,
        kinds: Collection[str] | None = None,
        bound_on: str | None = None,
    ) -> Listing:
        """Show the kernel's source, highlighted, with the file's own line numbers.

        Args:
            report: a report of `count`, whose counters then stand beside each line.
            lines: first and last line to show; the kernel function otherwise.
            mark: lines to mark: numbers, or texts as for `lines()`.
            start: first line to show.
            end: last line to show.
            columns: names of counters; otherwise those of memory that are not zero.
            whole: show the whole file.
            machine_code: what `machine_code()` gives, or an architecture such as sm_90, to stand
                beside the lines that it is of; a sentence says why where it cannot be made.
            kinds: of its instructions those to tell, such as ("fp32", "shared loads").
            bound_on: a GPU's name, such as H200: the report's bound on it then stands below.

        Raises:
            KernelError: if a line, a counter or a kind is not there.
            SimulatorError: the machine code of a kernel that does not compile.
        """
        first, last = self._shown(lines, start, end, whole)
        marked = self._marked(mark)
        if outside := sorted(number for number in marked if not first <= number <= last):
            raise KernelError(
                f"Line {outside[0]} of {self.file.name} cannot be marked: the lines shown are "
                f"{first} to {last}."
            )
        settings = ", ".join(f"{p.name}={p.value}" for p in self.parameters.values())
        code, lacks = code_to_show(self, machine_code)
        return listing(
            self.source,
            first,
            last,
            title=f"{self.file.name} · {self.entry}",
            detail=settings,
            marked=marked,
            report=report,
            columns=_names(columns),
            machine_code=code,
            kinds=kinds,
            lacks=lacks,
            bound=report.bounds(bound_on).sentence if bound_on else "",
        )

    def __repr__(self) -> str:
        settings = "".join(f", {p.name}={p.value}" for p in self.parameters.values())
        return f"<Kernel {self.entry} of {self.file.name}{settings}>"

    def _shown(self, lines, start, end, whole: bool) -> tuple[int, int]:
        """First and last line to show, from the arguments of `show`."""
        first, last = self._extent(whole)
        if lines is not None:
            if not isinstance(lines, (tuple, list, range)) or not len(lines):
                raise KernelError(
                    f"lines is a first and a last line, such as (10, 20), not {lines!r}."
                )
            first, last = _line("lines", lines[0]), _line("lines", lines[-1])
        first = first if start is None else _line("start", start)
        last = last if end is None else _line("end", end)
        total = len(self.source.rstrip("\n").split("\n"))
        if not 1 <= first <= last <= total:
            raise KernelError(
                f"{self.file.name} has the lines 1 to {total}; {first} to {last} cannot be shown."
            )
        return first, last

    def _extent(self, whole: bool) -> tuple[int, int]:
        if whole:
            return 1, len(self.source.rstrip("\n").split("\n"))
        return self._function.first, self._function.last

    def _marked(self, mark: Marks) -> frozenset[int]:
        several = not isinstance(mark, str) and isinstance(mark, Iterable)
        marks = mark if several else [mark]
        found: set[int] = set()
        for one in marks:
            found.update(self.lines(one) if isinstance(one, str) else [_line("mark", one)])
        return frozenset(found)

    def opt_in(self, dynamic: int) -> int:
        """Ask the hardware for more than 48 KB of shared memory, if a launch needs that.

        Args:
            dynamic: bytes of dynamic shared memory.

        Returns:
            The same number as an int.

        Raises:
            KernelError: it is no number of bytes, or more than a block can have.
        """
        static = self._static or 0
        size = shared_memory(self.entry, dynamic, static)
        if size + static > self._opted_in:
            size = shared_memory(self.entry, dynamic, static, _device_limit())
            self.raw.max_dynamic_shared_size_bytes = size
            self._opted_in = size + static
        return size


def _line(what: str, given) -> int:
    """The number of a line, from whatever the caller passes as one."""
    with contextlib.suppress(TypeError):
        if not isinstance(given, (bool, np.bool_)):
            return operator.index(given)
    also = " or the text of a line" if what == "mark" else ""
    raise KernelError(f"{what} takes the number of a line{also}, not {given!r}.")


def _names(columns) -> tuple[str, ...] | None:
    """Names of counters, from whatever the caller passes as some."""
    if columns is None:
        return None
    several = not isinstance(columns, str) and isinstance(columns, Iterable)
    names = tuple(columns) if several else (None,)
    if not all(isinstance(name, str) for name in names):
        raise KernelError(
            "columns takes the names of counters in a tuple, such as "
            f'("shared_load_wavefronts",), not {columns!r}.'
        )
    return names


def _device_limit() -> int:
    """Bytes of shared memory that a block can have on this machine's GPU, at most 227 KB."""
    try:
        limit = int(device.cp.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"])
    except (AttributeError, KeyError, TypeError):
        return SIMULATED.opt_in_shared
    return min(limit, SIMULATED.opt_in_shared)
