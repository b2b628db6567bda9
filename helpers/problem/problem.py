"""A problem: launches, what they are run on, and what they should write.

Rungs, benches and exercises all pose one. `prepare` makes a copy of its arrays on the host or on a
device, those that will be written poisoned, and binds the launches to them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..gpu.tensor_map import MappedArray
from ..kernels.kernel import Kernel
from ..kernels.launches import Launch
from ..kernels.source import KernelError
from .attention import TOLERANCE
from .poison import poison

Exact = np.ndarray | Callable[[], np.ndarray]


@dataclass(frozen=True)
class PreparedProblem:
    """Launches that are bound to their arrays; `run` does nothing but launch.

    Attributes:
        arrays: those of the host or of a device by name, and the sizes.
        launches: the launches, in order.
    """

    arrays: Mapping[str, Any]
    launches: list[Launch]

    def run(self) -> None:
        """Launch all kernels on `cp`, one after another."""
        for launch in self.launches:
            launch.run()


@dataclass(frozen=True, eq=False)
class Problem:
    """What kernels are run on, and what they should write.

    Attributes:
        launches: the launches in order, their arguments left open.
        inputs: the arguments by name: NumPy arrays, those that are written among them, tensor maps
            of such, and numbers. An array that several launches have in common is one array to all
            of them.
        expected: by name, what the arrays that are written should hold: an array in float64, or a
            function that returns one.
        tolerance: largest relative error that is right.
        names: of the arguments in order, where a kernel may call them otherwise.
    """

    launches: tuple[Launch, ...]
    inputs: Mapping[str, Any]
    expected: Mapping[str, Exact]
    tolerance: float = TOLERANCE
    names: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        grid,
        block,
        args: Mapping[str, Any],
        expected: Mapping[str, Exact],
        shared_mem: int = 0,
        tolerance: float = TOLERANCE,
    ) -> Problem:
        """A problem of one launch: its geometry, its arguments by name, what is expected.

        Raises:
            KernelError: the geometry exceeds what the hardware allows.
        """
        launch = Launch.of(kernel, grid, block, None, shared_mem)
        return cls((launch,), args, expected, tolerance)

    def exact(self, name: str) -> np.ndarray:
        """What an array should hold."""
        expected = self.expected[name]
        return expected() if callable(expected) else expected

    def outputs(self, launch: Launch) -> list[str]:
        """The arrays that one of its launches should write."""
        pairs = zip(self._names(launch), launch.kernel.arguments, strict=True)
        return [
            name
            for name, a in pairs
            if name in self.expected
            and (isinstance(self.inputs[name], MappedArray) or (a.pointer and not a.constant))
        ]

    def prepare(self, module=np) -> PreparedProblem:
        """Its launches, bound to copies of its arrays; what will be written is poisoned.

        Args:
            module: `cp` or NumPy, whose arrays to make.

        Raises:
            KernelError: an argument is missing, there is no such argument, or it does not fit.
        """
        names = list(dict.fromkeys(name for one in self.launches for name in self._names(one)))
        missing = [name for name in names if name not in self.inputs]
        unknown = [name for name in self.expected if name not in names]
        if len(self.launches) == 1:
            unknown = [name for name in self.inputs if name not in names] + unknown
        if missing or unknown:
            fault = f"{missing[0]} is missing" if missing else f"there is no {unknown[0]}"
            entry = self.launches[0].kernel.entry
            raise KernelError(f"{entry} takes {', '.join(names)}; {fault}.")
        made: dict[int, Any] = {}
        behind = {name: _behind(self.inputs[name]) for name in names}
        for name, value in behind.items():
            if isinstance(value, np.ndarray) and id(value) not in made:
                written = name in self.expected
                made[id(value)] = _unset(module, value) if written else module.array(value)
        arrays = {name: made.get(id(value), value) for name, value in behind.items()}
        given = {
            name: self.inputs[name].of(value)
            if isinstance(self.inputs[name], MappedArray)
            else value
            for name, value in arrays.items()
        }
        return PreparedProblem(
            arrays,
            [one.with_args(tuple(given[n] for n in self._names(one))) for one in self.launches],
        )

    def _names(self, launch: Launch) -> tuple[str, ...]:
        return self.names or tuple(argument.name for argument in launch.kernel.arguments)


def _behind(value):
    """The array that a tensor map tells of; anything else as it is."""
    return value.array if isinstance(value, MappedArray) else value


def _unset(module, like: np.ndarray):
    """An array that is poisoned without being copied first."""
    host = np.empty(1, like.dtype)
    poison(host)
    made = module.empty(like.shape, like.dtype)
    made[...] = host[0]
    return made
