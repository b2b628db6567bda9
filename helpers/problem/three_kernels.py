"""The kind of rung that chapters 02 to 07 climb: one head in fp32 by three kernels, or by one."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..kernels.kernel import Kernel
from ..kernels.launches import Launch
from ..kernels.source import Value
from .attention import make_inputs, on_host, reference
from .input_checks import check_inputs
from .problem import PreparedProblem, Problem
from .rungs import Rung, Size, Values, kernel_of

Shape = tuple[int, ...]
# (parameters, N, d) -> blocks along x, y and z
Grid = Callable[[Values, int, int], Shape]
# parameters -> threads of a block along x, y and z
Block = Callable[[Values], Shape]


@dataclass(frozen=True)
class KernelOfRung:
    """One of a rung's kernels: where it is and how it is launched.

    Its arguments are out of Q, K, V, S, P, O, N and d, and it calls them so.

    Attributes:
        file: the .cu file in `kernels/`.
        entry: the kernel's name.
        grid, block: its launch geometry, from the parameters, N and d.
        shared: bytes of dynamic shared memory, from the parameters; none by default.
    """

    file: str
    entry: str
    grid: Grid
    block: Block
    shared: Callable[[Values], int] = lambda values: 0


@dataclass(frozen=True, kw_only=True, repr=False)
class ThreeKernels(Rung):
    """One head in fp32, [N, d], by a kernel each for S, P and O, or by one for all three.

    Attributes:
        steps: its kernels.
        alignment: what the addresses of Q, K and V are a multiple of, in bytes.
        usual_N: small enough for the simulator to answer at once.
    """

    kind: ClassVar[str] = "fp32"

    steps: tuple[KernelOfRung, ...]
    alignment: int = 4
    usual_N: int = 64

    @property
    def title(self) -> str:
        return self.name

    @property
    def kernels(self) -> tuple[tuple[str, str], ...]:
        return tuple((step.file, step.entry) for step in self.steps)

    @property
    def sizes(self) -> tuple[Size, ...]:
        return (
            Size("N", (32, 64, 100, 128), self.usual_N, (256, 512, 1024, 4096, 16384),
                 "rows of Q, K and V"),
            Size("d", (16, 32, 64, 80, 128), 64, (), "columns of Q, K and V"),
        )  # fmt: skip

    def launches(self, N: int, d: int, **parameters: Value) -> list[Launch]:
        """Its launches for one head of N positions and d dimensions, their arguments left open.

        Raises:
            KernelError: as for `with_parameters`, or a launch exceeds what the hardware allows.
        """
        values = self.with_parameters(**parameters).values
        return [
            Launch.of(
                _kernel(step, values),
                step.grid(values, N, d),
                step.block(values),
                shared_mem=step.shared(values),
            )
            for step in self.steps
        ]

    def launches_on(self, arrays: Mapping[str, Any], **parameters: Value) -> list[Launch]:
        """Its launches on the arrays of one head: Q, K, V, S, P, O, and N and d, by name.

        Raises:
            KernelError: as for `launches`.
        """
        found = []
        for launch in self.launches(arrays["N"], arrays["d"], **parameters):
            args = (arrays[argument.name] for argument in launch.kernel.arguments)
            found.append(launch.with_args(tuple(args)))
        return found

    def problem(self, entry: str | None = None, **settings: Value) -> Problem:
        N, d = int(settings.pop("N")), int(settings.pop("d"))
        launches = self.launches(N, d, **settings)
        launches = [one for one in launches if entry in (None, one.kernel.entry)]
        inputs, exact = _one_head(N, d, alone=entry is not None)
        written = dict.fromkeys(
            a.name for one in launches for a in one.kernel.arguments if a.pointer and not a.constant
        )
        expected = {name: functools.partial(getattr, exact, name) for name in written}
        used = {a.name for one in launches for a in one.kernel.arguments}
        inputs = {name: value for name, value in inputs.items() if name in used}
        return Problem(tuple(launches), inputs, expected)

    def _bind(self, module, arrays, **parameters: Value) -> PreparedProblem:
        check_inputs(arrays, "[N, d]", (np.dtype(np.float32).name,), "fp32", self.alignment)
        Q, K, V = map(on_host if module is np else module.asarray, arrays)
        N, d = Q.shape
        used = {a.name for file, entry in self.kernels for a in kernel_of(file, entry).arguments}
        results = {
            name: module.full(shape, np.nan, dtype=np.float32)
            for name, shape in (("S", (N, N)), ("P", (N, N)), ("O", (N, d)))
            if name in used
        }
        named = {"Q": Q, "K": K, "V": V, **results, "N": N, "d": d}
        return PreparedProblem(named, self.launches_on(named, **parameters))


class _Exact:
    """S, P and O in float64, computed when first asked for."""

    def __init__(self, *inputs: np.ndarray):
        self._inputs = inputs

    @functools.cached_property
    def _all(self):
        return reference(*self._inputs)

    def __getattr__(self, name: str) -> np.ndarray:
        if name not in "SPO":
            raise AttributeError(name)
        return getattr(self._all, name)


def _one_head(N: int, d: int, alone: bool) -> tuple[dict[str, Any], _Exact]:
    """Arrays of one head by name, and what S, P and O should be.

    S and P have values only where a kernel is turned `alone` and may read them: at the sizes that
    a GPU is timed at, memory that nobody touches costs nothing.
    """
    Q, K, V = make_inputs(N, d)
    exact = _Exact(Q, K, V)
    arrays: dict[str, Any] = {"Q": Q, "K": K, "V": V, "N": N, "d": d}
    for name, shape in (("S", (N, N)), ("P", (N, N)), ("O", (N, d))):
        filled = alone and name != "O"
        arrays[name] = (
            getattr(exact, name).astype(np.float32) if filled else np.empty(shape, np.float32)
        )
    return arrays, exact


def _kernel(step: KernelOfRung, values: Values) -> Kernel:
    """A step's kernel with its own parameters set."""
    own = kernel_of(step.file, step.entry).parameters
    return kernel_of(step.file, step.entry, **{name: values[name] for name in own})
