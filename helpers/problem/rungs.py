"""What a rung of the ladder is: three kernels, how each is launched, the calls that run them."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from ..gpu import device
from ..kernels.kernel import KERNELS, Kernel, load_kernel
from ..kernels.launches import Launch
from ..kernels.source import KernelError, Parameter, Value

__all__ = ["Prepared", "Rung", "Step", "cdiv"]

Shape = tuple[int, ...]
Values = Mapping[str, Value]
# (parameters, N, d) -> blocks along x, y and z
Grid = Callable[[Values, int, int], Shape]
# parameters -> threads of a block along x, y and z
Block = Callable[[Values], Shape]


def cdiv(a: int, b: int) -> int:
    """a / b, rounded up: how many pieces of b cover a."""
    return -(-a // b)


@dataclass(frozen=True)
class Step:
    """One kernel of a rung: where it is and how it is launched.

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


@dataclass(frozen=True)
class Rung:
    """A way to compute attention: its kernels, in the order in which they are launched.

    Attributes:
        name: such as `tiled`.
        chapter: number of the chapter that teaches it.
        adds: what it adds to the rung below, in a few words.
        steps: its kernels.
        settings: parameters that differ from what the files have as their defaults.
        variants: labels and settings of the kinds that the chapter compares; the first is the rung
            itself. Empty if there is one only.
        alignment: what the addresses of Q, K and V are a multiple of, in bytes.
    """

    name: str
    chapter: int
    adds: str
    steps: tuple[Step, ...]
    settings: Values = field(default_factory=lambda: MappingProxyType({}))
    variants: Mapping[str, Values] = field(default_factory=lambda: MappingProxyType({}))
    alignment: int = 4

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters that its files declare, by name, with the values that the rung has set.

        Raises:
            KernelError: two files declare one with different choices, or a setting does not fit.
        """
        found: dict[str, Parameter] = {}
        for step in self.steps:
            for name, parameter in _declared(step).items():
                known = found.setdefault(name, parameter)
                if known.choices != parameter.choices:
                    raise KernelError(
                        f"The files of the rung {self.name} disagree on the choices of {name}: "
                        f"{_listed(known.choices)} and {_listed(parameter.choices)}."
                    )
        for name, value in self.settings.items():
            if name not in found:
                declared = ", ".join(f"{p.name} ({_listed(p.choices)})" for p in found.values())
                raise KernelError(
                    f"The rung {self.name} has no parameter {name}; its parameters are {declared}."
                )
            if value not in found[name].choices:
                raise KernelError(
                    f"The parameter {name} of the rung {self.name} is one of "
                    f"{_listed(found[name].choices)}, not {value!r}."
                )
            found[name] = replace(found[name], value=value)
        return found

    @property
    def choices(self) -> dict[str, tuple[Value, ...]]:
        """The values that each parameter may have, by name."""
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

    def with_parameters(self, **values: Value) -> Rung:
        """The same rung with some parameters set.

        Raises:
            KernelError: there is no such parameter, or the value is not among its choices.
        """
        changed = replace(self, settings=MappingProxyType({**self.settings, **values}))
        return replace(changed, settings=MappingProxyType(_plain(changed.parameters, values, self)))

    def launches(self, N: int, d: int, **parameters: Value) -> list[Launch]:
        """Its launches for one head of N positions and d dimensions, their arguments left open.

        Raises:
            KernelError: as for `with_parameters`.
        """
        values = self.with_parameters(**parameters).values
        return [
            Launch.of(_kernel(step, values), step.grid(values, N, d), step.block(values))
            for step in self.steps
        ]

    def prepare(self, Q, K, V, **parameters: Value) -> Prepared:
        """Allocate S, P and O on the device and compile, so that a launch does nothing else.

        Args:
            Q, K, V: [N, d], float32, of `cp` or of NumPy; the latter are copied to the device.

        Raises:
            KernelError: the arrays or the parameters do not fit; the message says what to do.
        """
        self._check(Q, K, V)
        cp = device.cp
        arrays = _with_results(cp, *(cp.asarray(x) for x in (Q, K, V)))
        launches = self.launches_on(arrays, **parameters)
        for launch in launches:
            launch.kernel.compile()
        return Prepared(arrays, launches)

    def run(self, Q, K, V, **parameters: Value):
        """O = softmax(Q Kᵀ / √d) V on the current device.

        Args:
            Q, K, V: [N, d], float32, of `cp` or of NumPy; the latter are copied to the device.
            **parameters: as for `with_parameters`.

        Returns:
            O: [N, d], an array of `cp`. What no thread wrote is NaN.

        Raises:
            KernelError: the arrays or the parameters do not fit; the message says what to do.
        """
        prepared = self.prepare(Q, K, V, **parameters)
        prepared.run()
        return prepared.arrays["O"]

    def simulate(self, Q, K, V, count: bool = True, **parameters: Value):
        """O = softmax(Q Kᵀ / √d) V on the simulator, on any machine.

        Args:
            Q, K, V: [N, d], float32, of NumPy or of `cp`.
            count: whether to count and trace, which takes a few times as long.
            **parameters: as for `with_parameters`.

        Returns:
            (O, reports): O is a NumPy array, [N, d]; the reports are those of
                `helpers.simulator.launch`, one for each kernel.

        Raises:
            KernelError: the arrays or the parameters do not fit; the message says what to do.
        """
        self._check(Q, K, V)
        arrays = _with_results(np, *(_on_host(x) for x in (Q, K, V)))
        launches = self.launches_on(arrays, **parameters)
        return arrays["O"], [launch.simulate(copy=False, count=count).report for launch in launches]

    def launches_on(self, arrays: Mapping[str, Any], **parameters: Value) -> list[Launch]:
        """Its launches on the arrays of one head: Q, K, V, S, P, O, and N and d, by name.

        Raises:
            KernelError: as for `with_parameters`.
        """
        found = []
        for launch in self.launches(arrays["N"], arrays["d"], **parameters):
            args = (arrays[argument.name] for argument in launch.kernel.arguments)
            found.append(launch.with_args(tuple(args)))
        return found

    def __repr__(self) -> str:
        settings = "".join(f", {name}={value}" for name, value in self.settings.items())
        return f"<Rung {self.name} of chapter {self.chapter}{settings}>"

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


@dataclass(frozen=True)
class Prepared:
    """A rung that is compiled and has its arrays; `run` does nothing but launch.

    Attributes:
        arrays: those of `cp` by name, and the sizes.
        launches: its launches, in order.
    """

    arrays: Mapping[str, Any]
    launches: list[Launch]

    def run(self) -> None:
        """Launch all kernels, one after another."""
        for launch in self.launches:
            launch.run()


def _with_results(module, Q, K, V) -> dict[str, object]:
    """The arrays of one head by name; S, P and O are NaN until a kernel writes them."""
    N, d = Q.shape
    results = {
        name: module.full(shape, np.nan, dtype=np.float32)
        for name, shape in (("S", (N, N)), ("P", (N, N)), ("O", (N, d)))
    }
    return {"Q": Q, "K": K, "V": V, **results, "N": N, "d": d}


def _on_host(array) -> np.ndarray:
    return np.asarray(array.get() if hasattr(array, "get") else array)


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


def _declared(step: Step) -> dict[str, Parameter]:
    path = KERNELS / step.file
    return _read_parameters(path, path.stat().st_mtime_ns, step.entry)


@functools.lru_cache(64)
def _read_parameters(path: Path, changed: int, entry: str) -> dict[str, Parameter]:
    return dict(load_kernel(path, entry).parameters)


def _kernel(step: Step, values: Values) -> Kernel:
    """A step's kernel with its parameters set; the same object again while the file is the same."""
    path = KERNELS / step.file
    own = tuple((name, values[name]) for name in _declared(step))
    return _load(path, path.stat().st_mtime_ns, step.entry, own)


@functools.lru_cache(512)
def _load(path: Path, changed: int, entry: str, values: tuple[tuple[str, Value], ...]) -> Kernel:
    return load_kernel(path, entry, **dict(values))


def _plain(parameters: Mapping[str, Parameter], values: Values, rung: Rung) -> dict[str, Value]:
    """The settings of `rung` and `values`, each as its file has it: 8 rather than 8.0."""
    wanted = {**rung.settings, **values}
    return {
        name: next(choice for choice in parameters[name].choices if choice == value)
        for name, value in wanted.items()
    }


def _listed(values) -> str:
    return ", ".join(str(value) for value in values)
