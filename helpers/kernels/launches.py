"""A launch: one kernel, its grid and block, its arguments and its shared memory, checked once.

    launch = Launch.of(k, grid, block, args)

    launch.run()                         # on the GPU, or on the simulator in its place
    launch.count().counters              # counted on copies, on any machine
    report, arrays = launch.simulate()   # and what the kernel wrote
    timing.measure(launch.run)
    profile(launch)

Everything that starts a kernel of `kernels/` goes through here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import simulator
from ..gpu import device
from ..gpu.tensor_map import MappedArray
from ..simulator.errors import SimulatorError
from ..simulator.launch_rules import Shape, check_promise, launch_shape
from ..simulator.limits import SIMULATED
from ..simulator.observe.report import Report
from .arguments import checked, shared_memory
from .source import CannotRun, KernelError

if TYPE_CHECKING:
    from .kernel import Kernel

_REFUSED_BY_SOURCE = re.compile(
    r'(?:static assertion failed(?: with)?|#error directive:)\s*"?(?P<why>[^"\n]*)'
)


class Simulated(NamedTuple):
    """A launch on the simulator: its report, and the arrays as the kernel left them, by name.

    A tensor map's name stands for the array that it is of.
    """

    report: Report
    arrays: dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Launch:
    """A launch of a kernel; make one with `Launch.of`.

    Attributes:
        kernel: the kernel, its parameters set.
        grid, block: blocks, and threads of a block, along x, y and z.
        args: its arguments in order, arrays as they were given and numbers in their C types; None
            before they are known.
        shared_mem: bytes of dynamic shared memory.
    """

    kernel: Kernel
    grid: Shape
    block: Shape
    args: tuple[Any, ...] | None = None
    shared_mem: int = 0

    @classmethod
    def of(
        cls, kernel: Kernel, grid, block, args=None, shared_mem: int = 0, *, on_device: bool = False
    ) -> Launch:
        """A launch whose geometry and arguments are checked.

        Args:
            kernel: the kernel.
            grid, block: along x, y and z: an integer each, or up to three.
            args: an array of `cp` or of NumPy for each pointer and a number for each value, in the
                kernel's order or by name; None to leave them open.
            shared_mem: bytes of dynamic shared memory.
            on_device: take arrays of `cp` alone, such as `run` needs.

        Raises:
            KernelError: an argument does not fit the signature; or, as `CannotRun`, the launch does
                not fit the hardware.
        """
        grid, block = launch_shape(kernel.entry, grid, block, CannotRun)
        if isinstance(args, Mapping):
            args = _in_order(kernel, args)
        if args is not None:
            ours = device.cp.ndarray
            arrays = ours if on_device else (ours, np.ndarray)
            args = checked(kernel.entry, kernel.arguments, args, arrays)
        return cls(kernel, grid, block, args, shared_memory(kernel.entry, shared_mem))

    def with_args(self, args) -> Launch:
        """The same launch with other arguments; see `of`."""
        return Launch.of(self.kernel, self.grid, self.block, args, self.shared_mem)

    @property
    def by_name(self) -> dict[str, Any]:
        """The arguments by the kernel's names for them."""
        return dict(zip(self._names, self._given, strict=True))

    def run(self) -> None:
        """Launch on `cp`: on the GPU, or on the simulator where there is none.

        More than 48 KB of shared memory are asked for as the hardware requires.

        Raises:
            KernelError: an array is not on the device, or the hardware lacks shared memory.
            SimulatorError: of kind `compile`, if the source does not compile.
        """
        k, reachable = self.kernel, device.cp.ndarray
        if any(isinstance(x, np.ndarray) and not isinstance(x, reachable) for x in self._pointers):
            checked(k.entry, k.arguments, self._given, reachable)  # says which
        shared_mem = k.compile().opt_in(self.shared_mem)
        device.note_launch(f"{k.entry} of {k.file.name}, grid {self.grid} and block {self.block}")
        k.raw(self.grid, self.block, self._given, shared_mem=shared_mem)

    def simulate(self, copy: bool = True, **options) -> Simulated:
        """Run on the simulator, on any machine: the report, and what the kernel wrote.

        Args:
            copy: let the kernel write to copies; otherwise to the arrays themselves, of NumPy.
            **options: for `helpers.simulator.launch`.

        Raises:
            SimulatorError: the kernel does not compile, or does something wrong.
        """
        k, args = self.kernel, self._given
        args = self._on_host() if copy else args
        if self.shared_mem:
            options.setdefault("max_dynamic_shared", self.shared_mem)
        report = simulator.launch(
            k.code, k.entry, self.grid, self.block, args,
            options=k.options, shared_mem=self.shared_mem, **options,
        )  # fmt: skip
        named = {}
        for argument, value in zip(k.arguments, args, strict=True):
            if isinstance(value, MappedArray):
                named[argument.name] = value.array
            elif argument.pointer:
                named[argument.name] = value
        return Simulated(report, named)

    def count(self, **options) -> Report:
        """What the simulator says of it, on any machine; the arrays stay as they are.

        Args:
            **options: for `helpers.simulator.launch`, such as `sanitize=True`.

        Raises:
            SimulatorError: as for `simulate`.
        """
        return self.simulate(**options).report

    def refusal(self) -> str | None:
        """Why it cannot run, in one sentence, or None: the compiler is asked, and nothing runs.

        Raises:
            SimulatorError: of kind `compile`, if the source does not compile for another reason.
        """
        k = self.kernel
        try:
            static = k.static_shared
            if static > SIMULATED.shared:
                return (
                    f"{k.entry}: its tiles take {static:,} bytes of shared memory, and a block "
                    f"can declare at most {SIMULATED.shared:,}; use smaller tiles."
                )
            shared_memory(k.entry, self.shared_mem, static)
            check_promise(k.entry, self.block, k.most_threads, CannotRun)
        except CannotRun as error:
            return str(error)
        except SimulatorError as error:
            found = _REFUSED_BY_SOURCE.search(str(error))
            if error.kind != "compile" or not found:
                raise
            return f"{k.file.name} line {error.line} says: {found['why'].rstrip('.')}."
        return None

    @property
    def _names(self) -> list[str]:
        return [argument.name for argument in self.kernel.arguments]

    @property
    def _given(self) -> tuple[Any, ...]:
        """The arguments; a KernelError where they are still open."""
        if self.args is None:
            return checked(self.kernel.entry, self.kernel.arguments, (), np.ndarray)
        return self.args

    @property
    def _pointers(self) -> list[Any]:
        pairs = zip(self.kernel.arguments, self._given, strict=True)
        return [value for argument, value in pairs if argument.pointer]

    def _on_host(self) -> tuple[Any, ...]:
        """The arguments on the host, those that the kernel may write as copies.

        An array passed twice stays one array.
        """
        pairs = list(zip(self.kernel.arguments, self._given, strict=True))
        written = {id(v) for a, v in pairs if a.pointer and not a.constant}
        copies: dict[int, np.ndarray] = {}
        for _, value in pairs:
            if isinstance(value, MappedArray):  # the kernel may write through it
                copies[id(value.array)] = np.array(device.cp.asnumpy(value.array))
        for argument, value in pairs:
            if not argument.pointer or id(value) in copies:
                continue
            if isinstance(value, np.ndarray):
                host = value.view(np.ndarray)
                copies[id(value)] = host.copy() if id(value) in written else host
            else:
                copies[id(value)] = device.cp.asnumpy(value)

        def there(value):
            if isinstance(value, MappedArray):
                return value.of(copies[id(value.array)])
            return copies.get(id(value), value)

        return tuple(there(value) for _, value in pairs)

    def __repr__(self) -> str:
        return f"<Launch of {self.kernel.entry}, grid {self.grid} and block {self.block}>"


def refusal(kernel: Kernel, grid, block, shared_mem: int = 0) -> str | None:
    """Why a kernel cannot be launched so, in one sentence, or None; see `Launch.refusal`.

    Raises:
        SimulatorError: of kind `compile`, if the source does not compile for another reason.
    """
    try:
        return Launch.of(kernel, grid, block, None, shared_mem).refusal()
    except CannotRun as error:
        return str(error)


def _in_order(kernel: Kernel, args: Mapping[str, Any]) -> tuple[Any, ...]:
    """Arguments given by name in the kernel's order; a KernelError if one is missing or unknown."""
    names = [argument.name for argument in kernel.arguments]
    missing = [name for name in names if name not in args]
    unknown = [name for name in args if name not in names]
    if missing or unknown:
        fault = f"{missing[0]} is missing" if missing else f"there is no {unknown[0]}"
        raise KernelError(f"{kernel.entry} takes {', '.join(names)}; {fault}.")
    return tuple(args[name] for name in names)
