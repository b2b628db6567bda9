"""What a rung of the ladder is, and the kind of chapters 02 to 07: three kernels in fp32."""

from __future__ import annotations

import functools
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np

from ..gpu import device
from ..kernels.kernel import KERNELS, Kernel, cached_kernel
from ..kernels.launches import Launch
from ..kernels.source import KernelError, Parameter, Value
from .attention import make_inputs, on_host, reference
from .problem import Prepared, Problem

__all__ = ["KernelOfRung", "Rung", "Size", "ThreeKernels"]

Shape = tuple[int, ...]
Values = Mapping[str, Value]
# (parameters, N, d) -> blocks along x, y and z
Grid = Callable[[Values, int, int], Shape]
# parameters -> threads of a block along x, y and z
Block = Callable[[Values], Shape]

_nothing = functools.partial(MappingProxyType, {})


@dataclass(frozen=True)
class Size:
    """A size of a rung's problem: what to try, what is usual, and what a GPU is timed at."""

    name: str
    choices: tuple[int, ...]
    usual: int
    timed: tuple[int, ...] = ()
    description: str = ""


@dataclass(frozen=True, kw_only=True)
class Rung(ABC):
    """A way to compute attention: its kernels, how they are launched, what can be turned.

    Attributes:
        name: such as `tiled`.
        chapter: number of the chapter that teaches it.
        settings: parameters that differ from what the files have as their defaults.
        variants: labels and settings of the kinds that the chapter compares; the first is the rung
            itself. Empty if there is one only.
        draws: what its bench draws of each kernel, the first that there is: `reads`, `tree`,
            `sectors`, `sectors and banks`, and failing these the banks of shared memory.
    """

    kind: ClassVar[str]  # what its kernels compute in: `fp32` or `flash`
    from_arrays: ClassVar[tuple[str, ...]] = ()  # parameters that follow from Q, K and V

    name: str
    chapter: int
    settings: Values = field(default_factory=_nothing)
    variants: Mapping[str, Values] = field(default_factory=_nothing)
    draws: tuple[str, ...] = ()

    # ---- what each kind says of itself

    @property
    @abstractmethod
    def title(self) -> str:
        """What it is called above its bench."""

    @property
    @abstractmethod
    def kernels(self) -> tuple[tuple[str, str], ...]:
        """Its kernels as (file, entry), in the order in which they are launched."""

    @property
    @abstractmethod
    def sizes(self) -> tuple[Size, ...]:
        """The sizes of its problem; the first is the one that times are shown over."""

    @abstractmethod
    def problem(self, entry: str | None = None, **settings: Value) -> Problem:
        """Random inputs, the launches on them, and what they should give.

        Args:
            entry: one of its kernels alone, whose inputs are the reference's then.
            **settings: every size, and any of the parameters.

        Raises:
            CannotRun: the settings do not go together.
            KernelError: as for `with_parameters`.
        """

    @abstractmethod
    def _bind(self, module, arrays, **options) -> Prepared:
        """Launches bound to Q, K and V, which are checked, and to new results of a module."""

    # ---- what they share

    @property
    def declared(self) -> dict[str, Parameter]:
        """The parameters that its files declare, by name, with the values that the rung has set.

        Raises:
            KernelError: two files declare one with different choices, or a setting does not fit.
        """
        found: dict[str, Parameter] = {}
        for file, entry in self.kernels:
            for name, parameter in cached_kernel(KERNELS / file, entry).parameters.items():
                known = found.setdefault(name, parameter)
                if known.choices != parameter.choices:
                    raise KernelError(
                        f"The files of the rung {self.name} disagree on the choices of {name}: "
                        f"{_listed(known.choices)} and {_listed(parameter.choices)}."
                    )
        for name, value in self.settings.items():
            if name not in found:
                listed = ", ".join(f"{p.name} ({_listed(p.choices)})" for p in found.values())
                raise KernelError(
                    f"The rung {self.name} has no parameter {name}; its parameters are {listed}."
                )
            if value not in found[name].choices:
                raise KernelError(
                    f"The parameter {name} of the rung {self.name} is one of "
                    f"{_listed(found[name].choices)}, not {value!r}."
                )
            # As its file has it: 8 rather than 8.0.
            plain = next(choice for choice in found[name].choices if choice == value)
            found[name] = replace(found[name], value=plain)
        return found

    @property
    def parameters(self) -> dict[str, Parameter]:
        """Those of them that are free, whatever Q, K and V are."""
        return {n: p for n, p in self.declared.items() if n not in self.from_arrays}

    @property
    def choices(self) -> dict[str, tuple[Value, ...]]:
        """The values that each parameter may have, by name. Not all of them need go together."""
        return {name: parameter.choices for name, parameter in self.parameters.items()}

    @property
    def values(self) -> dict[str, Value]:
        """The value that each parameter has."""
        return {name: parameter.value for name, parameter in self.parameters.items()}

    def combinations(self) -> Iterator[dict[str, Value]]:
        """Every choice of every parameter with every other."""
        choices = self.choices
        for values in itertools.product(*choices.values()):
            yield dict(zip(choices, values, strict=True))

    def with_parameters(self, **values: Value) -> Self:
        """The same rung with some parameters set.

        Raises:
            KernelError: there is no such parameter, or the value is not among its choices.
        """
        for name in values:
            if name in self.from_arrays:
                raise KernelError(
                    f"{name} of the rung {self.name} follows from Q, K and V; its parameters are "
                    f"{', '.join(self.choices)}."
                )
        changed = replace(self, settings={**self.settings, **values})
        plain = changed.values
        return replace(self, settings=MappingProxyType({n: plain[n] for n in changed.settings}))

    def prepare(self, Q, K, V, **options) -> Prepared:
        """Allocate what it writes on the device and compile, so that `run` does nothing else.

        Args:
            Q, K, V, **options: as for `run`.

        Raises:
            KernelError: as for `run`.
        """
        made = self._bind(device.cp, (Q, K, V), **options)
        for launch in made.launches:
            self._check_device(launch)
            launch.kernel.compile()
        return made

    def run(self, Q, K, V, **options):
        """O = softmax(Q Kᵀ / √d) V on the current device.

        Args:
            Q, K, V: arrays of `cp` or of NumPy; the latter are copied to the device. See the rung's
                class for their shape and type.
            **options: parameters as for `with_parameters`, and what else the rung's class takes.

        Returns:
            O: like Q, an array of `cp`. What no thread wrote is NaN.

        Raises:
            KernelError: the arrays or the parameters do not fit, or this GPU cannot run the
                kernels; the message says what to do.
        """
        prepared = self.prepare(Q, K, V, **options)
        prepared.run()
        return prepared.arrays["O"]

    def simulate(self, Q, K, V, *, count: bool = True, **options) -> tuple[np.ndarray, list]:
        """The same on the simulator, on any machine.

        Args:
            Q, K, V, **options: as for `run`.
            count: whether to count and trace, which takes a few times as long.

        Returns:
            (O, reports): O is a NumPy array; the reports are those of `helpers.simulator.launch`,
                one for each kernel.

        Raises:
            KernelError: the arrays or the parameters do not fit; the message says what to do.
        """
        made = self._bind(np, (Q, K, V), **options)
        reports = [one.simulate(copy=False, count=count).report for one in made.launches]
        return made.arrays["O"], reports

    def _check_device(self, launch: Launch) -> None:  # noqa: B027 (most need nothing)
        """Raise a KernelError if this GPU lacks what a launch needs beside its limits."""

    def __repr__(self) -> str:
        settings = "".join(f", {name}={value}" for name, value in self.settings.items())
        return f"<Rung {self.name} of chapter {self.chapter}{settings}>"


@dataclass(frozen=True)
class KernelOfRung:
    """One of three kernels: where it is and how it is launched.

    Its arguments are out of Q, K, V, S, P, O, N and d, and it calls them so.

    Attributes:
        file: the .cu file in `kernels/`.
        entry: the kernel's name.
        grid, block: its launch geometry, from the parameters, N and d.
    """

    file: str
    entry: str
    grid: Grid
    block: Block


@dataclass(frozen=True, kw_only=True, repr=False)
class ThreeKernels(Rung):
    """One head in fp32, [N, d], by a kernel each for S, P and O.

    Attributes:
        steps: its kernels.
        alignment: what the addresses of Q, K and V are a multiple of, in bytes.
        usual_N: small enough for the simulator to answer at once.
    """

    kind: ClassVar[str] = "fp32"

    steps: tuple[KernelOfRung, ...]
    alignment: int = 4
    usual_N: int = 128

    @property
    def title(self) -> str:
        return self.name

    @property
    def kernels(self) -> tuple[tuple[str, str], ...]:
        return tuple((step.file, step.entry) for step in self.steps)

    @property
    def sizes(self) -> tuple[Size, ...]:
        return (
            Size("N", (32, 64, 100, 128, 256), self.usual_N, (256, 512, 1024, 4096, 16384),
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
            Launch.of(_kernel(step, values), step.grid(values, N, d), step.block(values))
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

    def _bind(self, module, arrays, **parameters: Value) -> Prepared:
        self._check(*arrays)
        Q, K, V = map(on_host if module is np else module.asarray, arrays)
        N, d = Q.shape
        results = {
            name: module.full(shape, np.nan, dtype=np.float32)
            for name, shape in (("S", (N, N)), ("P", (N, N)), ("O", (N, d)))
        }
        named = {"Q": Q, "K": K, "V": V, **results, "N": N, "d": d}
        return Prepared(named, self.launches_on(named, **parameters))

    def _check(self, *arrays) -> None:
        """Raise a KernelError with one sentence if the arrays are not Q, K and V of one head."""
        for name, array in zip("QKV", arrays, strict=True):
            if not all(hasattr(array, a) for a in ("shape", "dtype", "flags")):
                raise KernelError(
                    f"{name} is a {type(array).__name__}: pass an array of shape [N, d] and dtype "
                    "float32."
                )
            if len(array.shape) != 2 or 0 in array.shape:
                raise KernelError(
                    f"{name} has the shape {tuple(array.shape)}: one head has two dimensions, "
                    "[N, d], each at least 1."
                )
            if array.dtype != np.float32:
                raise KernelError(
                    f"{name} is {array.dtype}, and these kernels are for fp32: pass "
                    f"{name}.astype(np.float32)."
                )
            if not array.flags.c_contiguous:
                raise KernelError(
                    f"{name} is not contiguous in memory, row after row: pass "
                    f"cp.ascontiguousarray({name})."
                )
            if _misaligned(array, self.alignment):
                raise KernelError(
                    f"{name} does not start at a multiple of {self.alignment} bytes, which the "
                    f"rung {self.name} needs for its float4 loads: pass {name}.copy()."
                )
        shapes = [tuple(array.shape) for array in arrays]
        if len(set(shapes)) > 1:
            raise KernelError(
                f"Q, K and V have the shapes {shapes[0]}, {shapes[1]} and {shapes[2]}: in one head "
                "all three are [N, d]."
            )


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


def _misaligned(array, alignment: int) -> bool:
    """Whether an array starts at an address that a GPU cannot load a float4 from.

    A device array is where its address says; one of NumPy will be where a copy of the array that
    owns its memory begins, plus its offset there.
    """
    if hasattr(array, "data") and hasattr(array.data, "ptr") and not isinstance(array, np.ndarray):
        return bool(array.data.ptr % alignment)
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    start, own = (x.__array_interface__["data"][0] for x in (root, array))
    return bool((own - start) % alignment)


def _kernel(step: KernelOfRung, values: Values) -> Kernel:
    """A step's kernel with its own parameters set."""
    path = KERNELS / step.file
    own = cached_kernel(path, step.entry).parameters
    return cached_kernel(path, step.entry, **{name: values[name] for name in own})


def _listed(values) -> str:
    return ", ".join(str(value) for value in values)
