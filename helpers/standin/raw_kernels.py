"""`RawKernel` and `RawModule` on the simulator, called as CuPy's are."""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import simulator
from ..simulator.compile.compiler import compile_ptx
from ..simulator.errors import SimulatorError
from ..simulator.limits import CAPABILITY, SIMULATED
from ..simulator.machine.faults import plain_name
from ..simulator.machine.run import prepare
from ..simulator.machine.variables import ModuleState
from . import missing
from .arrays import ndarray
from .pointers import MemoryPointer

_counting = False
# What each source's variables hold. As in CuPy, one source with one set of options is one module.
_states: dict[tuple, ModuleState] = {}


@contextlib.contextmanager
def counting(on: bool = True) -> Iterator[None]:
    """Whether kernels launched inside the block are counted; they are not by default.

    A counted launch takes a few times as long. Its counts are in `kernel.report` afterwards.
    """
    global _counting
    before, _counting = _counting, on
    try:
        yield
    finally:
        _counting = before


class RawKernel:
    """A kernel from CUDA C, compiled when it is first needed.

    `report` is what the simulator says about the last launch, or None before the first; it has
    counters only for a launch under `helpers.device.counting()`. CuPy's kernels have no `report`.

    Args:
        code: the source.
        name: the kernel's name in it.
        options: NVRTC's options, a tuple of strings.
        backend: `nvrtc`.
        enable_cooperative_groups: let all blocks run at once, for `this_grid().sync()`.

    Raises:
        TypeError: an argument of another type.
        ValueError: another backend, which the simulator does not have.
    """

    # As in CuPy, a mistyped attribute cannot be set.
    __slots__ = tuple(
        "__name__ _carveout _max_dynamic _name_expressions backend code enable_cooperative_groups "
        "name options report".split()
    )

    def __init__(
        self,
        code: str,
        name: str,
        options: tuple[str, ...] = (),
        backend: str = "nvrtc",
        *,
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        jitify: bool | None = None,
    ):
        _check_source(code, options, backend)
        if not isinstance(name, str):
            raise TypeError(f"name must be a string, not {type(name).__name__}")
        _check_settings(translate_cucomplex, jitify)
        self.code = code
        self.name = self.__name__ = name
        self.options = options
        self.backend = backend
        self.enable_cooperative_groups = bool(enable_cooperative_groups)
        self._name_expressions: tuple[str, ...] = ()
        self.report = None
        self._max_dynamic: int | None = None  # None: what is left of 48 KB
        self._carveout = -1

    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        args: tuple,
        *,
        shared_mem: int = 0,
        stream=None,
    ) -> None:
        """Run the kernel.

        Args:
            grid, block: blocks, and threads of a block, along x, y and z. As in CuPy, missing and
                non-positive entries count as 1.
            args: device arrays and scalars. A Python int becomes the integer that the kernel
                declares, if it fits; a float goes in as a double, so say `np.float32(x)` where the
                kernel has a float.
            shared_mem: bytes of dynamic shared memory a block.
            stream: accepted as in CuPy; the launch has ended on return.

        Raises:
            TypeError: args, a grid or a block of another type, or an argument that is neither a
                device array nor a scalar.
            OverflowError: a whole number beyond 64 bits.
            SimulatorError: the source does not compile, or the launch is refused or stopped.
        """
        if not isinstance(args, (tuple, list)):
            raise TypeError(
                f"args of {self.name} must be a tuple such as (a, n), or (a,) for one, not of type "
                f"{type(args).__name__}."
            )
        self.report = simulator.launch(
            self.code,
            self.name,
            _extent("grid", grid),
            _extent("block", block),
            tuple(_argument(self.name, n, a) for n, a in enumerate(args)),
            options=self.options,
            shared_mem=shared_mem,
            count=_counting,
            max_dynamic_shared=self._max_dynamic,
            name_expressions=self._name_expressions,
            state=_state(self._compiled(), self.enable_cooperative_groups),
            cooperative=self.enable_cooperative_groups,
        )

    def compile(self, log_stream=None) -> None:
        """Compile now; `log_stream.write` gets the compiler's messages."""
        compiled = self._compiled()
        compiled.entry(self.name)
        if log_stream is not None:
            log_stream.write(compiled.log)

    def _compiled(self):
        return compile_ptx(self.code, self.options, name_expressions=self._name_expressions)

    def _function(self):
        """(this kernel's function in the parsed PTX, the module that it is in)."""
        compiled = self._compiled()
        module = prepare(compiled).module
        return module.functions[compiled.entry(self.name)], module

    @property
    def attributes(self) -> dict[str, int]:
        """All attributes below by name; -1 where only a GPU's assembler knows the value."""
        names = (
            "max_threads_per_block shared_size_bytes const_size_bytes local_size_bytes num_regs "
            "ptx_version binary_version cache_mode_ca max_dynamic_shared_size_bytes "
            "preferred_shared_memory_carveout"
        )
        return {name: getattr(self, name) for name in names.split()}

    @property
    def max_threads_per_block(self) -> int:
        """Threads a block may have: 1,024 or what `__launch_bounds__` says."""
        function, _ = self._function()
        return function.bounds.get("maxntid", SIMULATED.threads)

    @property
    def shared_size_bytes(self) -> int:
        """Static shared memory of a block, in bytes."""
        return self._bytes_in("shared")

    @property
    def const_size_bytes(self) -> int:
        """Constant memory of the module, in bytes."""
        return self._bytes_in("const")

    @property
    def local_size_bytes(self) -> int:
        """Local memory of a thread as the PTX has it, in bytes; spilled registers come on top."""
        return self._bytes_in("local")

    def _bytes_in(self, space: str) -> int:
        """Bytes of the variables of a state space, each at a multiple of its alignment."""
        function, module = self._function()
        size = 0
        for variable in (*module.variables.values(), *function.variables.values()):
            if variable.space == space:
                size = -(-size // variable.align) * variable.align + variable.size
        return size

    num_regs = -1  # `ptxas` decides on registers, and only a GPU's driver runs it
    ptx_version = binary_version = CAPABILITY  # what is compiled for, and what the counts are for
    cache_mode_ca = 0  # whether `-Xptxas -dlcm=ca` was given

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        """Dynamic shared memory that a launch may ask for, in bytes.

        It starts as what static shared memory leaves of 48 KB; set it for more, up to 227 KB.

        Raises:
            TypeError: on setting it to anything but a whole number.
            SimulatorError: of kind `launch`, on setting it above what a block can have.
        """
        if self._max_dynamic is not None:
            return self._max_dynamic
        return SIMULATED.shared - self.shared_size_bytes

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size: int) -> None:
        static = self.shared_size_bytes
        most = SIMULATED.opt_in_shared - static
        if not isinstance(size, (int, np.integer)):
            raise TypeError(
                f"max_dynamic_shared_size_bytes of {self.name} is a whole number of bytes, not "
                f"{size!r}."
            )
        if not 0 <= size <= most:
            raise SimulatorError(
                "launch",
                f"max_dynamic_shared_size_bytes of {self.name} can be 0 to {most:,} bytes "
                f"({static:,} of a block's {most + static:,} are static), not {size:,}.",
            )
        self._max_dynamic = int(size)

    @property
    def preferred_shared_memory_carveout(self) -> int:
        """Percentage of L1 to use as shared memory, -1 for the driver's choice; no effect here."""
        return self._carveout

    @preferred_shared_memory_carveout.setter
    def preferred_shared_memory_carveout(self, percentage: int) -> None:
        if not isinstance(percentage, (int, np.integer)) or not -1 <= percentage <= 100:
            raise ValueError(
                f"preferred_shared_memory_carveout of {self.name} is -1 or 0 to 100, not "
                f"{percentage!r}."
            )
        self._carveout = int(percentage)

    def __getattr__(self, name):
        found = getattr(type(self), name, None)
        if isinstance(found, property):  # which has raised an AttributeError itself
            return found.fget(self)
        raise missing.unknown("RawKernel", name, dir(type(self)))


class RawModule:
    """Several kernels from one source.

    Args:
        code: the source. `path`, CuPy's way to load a compiled file, is not simulated.
        options: NVRTC's options, a tuple of strings.
        backend: `nvrtc`.
        name_expressions: instances of template kernels to make, such as `["scale<float, 4>"]`;
            `get_function` takes the same strings.
        enable_cooperative_groups: let all blocks run at once, for `this_grid().sync()`.
    """

    def __init__(
        self,
        *,
        code: str | None = None,
        path: str | None = None,
        options: tuple[str, ...] = (),
        backend: str = "nvrtc",
        name_expressions=None,
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        jitify: bool | None = None,
    ):
        if (code is None) == (path is None):
            raise TypeError("Exactly one of code and path must be given.")
        if code is None:
            raise ValueError("the simulator compiles CUDA C; it cannot load a cubin or PTX file")
        _check_settings(translate_cucomplex, jitify)
        _check_source(code, options, backend)
        self._cooperative = enable_cooperative_groups
        self.code = code
        self.options = options
        self.backend = backend
        if isinstance(name_expressions, str):
            raise TypeError(
                f"name_expressions must be a list of strings such as [{name_expressions!r}]"
            )
        self.name_expressions = tuple(name_expressions or ())

    def get_function(self, name: str) -> RawKernel:
        """The kernel with this name, or of this name expression.

        Raises:
            SimulatorError: the source does not compile or has no such kernel.
        """
        kernel = RawKernel(
            self.code, name, self.options, enable_cooperative_groups=self._cooperative
        )
        kernel._name_expressions = self.name_expressions
        kernel.compile()
        return kernel

    def get_global(self, name: str) -> MemoryPointer:
        """Where a `__device__` or `__constant__` variable lies: what is written there is its value.

        `cp.ndarray(shape, dtype, memptr=...)` is an array over it.

        Raises:
            SimulatorError: the source does not compile.
            ValueError: it has no such variable, or none that a kernel uses.
        """
        compiled = self._compiled()
        state = _state(compiled, self._cooperative)
        found = [v for v in state.variables if name in (v, plain_name(v))]
        found = [compiled.names[name]] if name in compiled.names else found
        if len(found) != 1 or found[0] not in state.variables:
            known = ", ".join(sorted({plain_name(v) for v in state.variables})) or "none"
            raise ValueError(
                f"{compiled.filename} has no __device__ or __constant__ variable {name}; it has "
                f"{known} (a variable that no kernel uses is left out by the compiler)."
            )
        return MemoryPointer(state.bytes_of(found[0]), 0)

    def _compiled(self):
        return compile_ptx(self.code, self.options, name_expressions=self.name_expressions)

    def compile(self, log_stream=None) -> None:
        """Compile now; `log_stream.write` gets the compiler's messages."""
        compiled = self._compiled()
        if log_stream is not None:
            log_stream.write(compiled.log)

    def __getattr__(self, name):
        raise missing.unknown("RawModule", name, dir(type(self)))


def _state(compiled, cooperative: bool) -> ModuleState:
    key = (compiled.request, compiled.ptx, cooperative)
    if key not in _states:
        _states[key] = ModuleState(prepare(compiled).module)
    return _states[key]


def _check_source(code: str, options: tuple[str, ...], backend: str) -> None:
    if not isinstance(code, str):
        raise TypeError(f"code must be a string of CUDA C, not {type(code).__name__}")
    if not isinstance(options, tuple):
        kind = type(options).__name__
        raise TypeError(f"options must be a tuple of strings such as ('-DTILE=8',), not a {kind}")
    for option in options:
        if not isinstance(option, str):
            kind = type(option).__name__
            raise TypeError(f"options must be strings; {option!r} is of type {kind}")
    if backend != "nvrtc":
        raise ValueError(
            f"the simulator compiles with nvrtc alone, not with {backend}: leave backend out, and "
            "the source's host code too"
        )


def _check_settings(translate_cucomplex: bool, jitify: bool | None) -> None:
    if translate_cucomplex:
        raise ValueError(
            "the simulator has no translate_cucomplex: leave it out, and #include <cuComplex.h> "
            "works as it is"
        )
    if jitify:
        raise ValueError(
            "the simulator has no jitify: leave it out, and cuda/std/... takes the place of the "
            "host's headers"
        )


def _extent(what: str, given: tuple[int, ...]) -> tuple[int, int, int]:
    if not isinstance(given, tuple):
        raise TypeError(
            f"{what} must be a tuple such as (4, 1), not {given!r} of type {type(given).__name__}"
        )
    if not all(isinstance(n, (int, np.integer)) for n in given):
        raise TypeError(f"{what} must be a tuple of whole numbers, not {given!r}: divide with //.")
    x, y, z = (max(1, int(n)) for n in (*given, 1, 1, 1)[:3])
    return x, y, z


def _argument(kernel: str, position: int, value: Any) -> Any:
    """One argument as the simulator takes it: a NumPy array for a pointer, a NumPy scalar."""
    if isinstance(value, ndarray):
        host = value.view(np.ndarray)  # a pointer, be it to a single number
        return host.reshape(1) if host.ndim == 0 else host
    if isinstance(value, np.generic):
        return value
    if isinstance(value, np.ndarray):
        if value.size == 1:  # a struct, say, passed by value
            return value.reshape(-1)[0]
        raise TypeError(
            f"argument {position} of {kernel} is a NumPy array of shape {value.shape}, and a "
            "kernel reads device memory: pass cp.asarray(x)."
        )
    if isinstance(value, bool):
        return np.bool_(value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise OverflowError(f"argument {position} of {kernel} does not fit into 64 bits.")
        return value
    if isinstance(value, float):
        return np.float64(value)
    if isinstance(value, complex):
        return np.complex128(value)
    if value is None:
        return np.uint64(0)  # a null pointer
    raise TypeError(
        f"argument {position} of {kernel} is of type {type(value).__name__}: a kernel takes "
        "device arrays and numbers."
    )
