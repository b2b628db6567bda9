"""What a rung of the ladder is, and what every kind of them can do."""

import functools
import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar, Self

import numpy as np

from ..gpu import device
from ..kernels.kernel import KERNELS, Kernel, cached_kernel
from ..kernels.launches import Launch
from ..kernels.lookup import set_parameters
from ..kernels.source import KernelError, Parameter, Value
from .problem import PreparedProblem, Problem

Values = Mapping[str, Value]

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
        compared: whether its chapter holds its times against a library's.
        draws: what its bench draws of each kernel, the first that there is: `reads`, `tree`,
            `sectors`, `sectors and banks`, and failing these the banks of shared memory.
    """

    kind: ClassVar[str]  # what its kernels are made of: `fp32`, `flash`, or `hopper`
    from_arrays: ClassVar[tuple[str, ...]] = ()  # parameters that follow from Q, K and V

    name: str
    chapter: int
    settings: Values = field(default_factory=_nothing)
    variants: Mapping[str, Values] = field(default_factory=_nothing)
    compared: bool = False
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
    def _bind(self, module, arrays, **options) -> PreparedProblem:
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
            for name, parameter in kernel_of(file, entry).parameters.items():
                known = found.setdefault(name, parameter)
                if known.choices != parameter.choices:
                    raise KernelError(
                        f"The files of the rung {self.name} disagree on the choices of {name}: "
                        f"{', '.join(map(str, known.choices))} and "
                        f"{', '.join(map(str, parameter.choices))}."
                    )
        return set_parameters(found, self.settings, f"The rung {self.name}")

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

    def prepare(self, Q, K, V, **options) -> PreparedProblem:
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

    def simulate(
        self, Q, K, V, *, count: bool = True, sample: int | None = None, **options
    ) -> tuple[np.ndarray, list]:
        """The same on the simulator, on any machine.

        Args:
            Q, K, V, **options: as for `run`.
            count: whether to count and trace, which takes a few times as long.
            sample: run no more than so many blocks of each kernel, for bounds on a large launch's
                time; O is not complete then.

        Returns:
            (O, reports): O is a NumPy array; the reports are those of `helpers.simulator.launch`,
                one for each kernel.

        Raises:
            KernelError: the arrays or the parameters do not fit; the message says what to do.
        """
        made = self._bind(np, (Q, K, V), **options)
        reports = [
            one.simulate(copy=False, count=count, sample=sample).report for one in made.launches
        ]
        return made.arrays["O"], reports

    def refused_here(self) -> str:
        """Why this machine's GPU cannot run it, in a sentence; empty if it can or is none."""
        return ""

    def _check_device(self, launch: Launch) -> None:  # noqa: B027 (most need nothing)
        """Raise a KernelError if this GPU lacks what a launch needs beside its limits."""

    def __repr__(self) -> str:
        settings = "".join(f", {name}={value}" for name, value in self.settings.items())
        return f"<Rung {self.name} of chapter {self.chapter}{settings}>"


def kernel_of(file: str, entry: str, **values: Value) -> Kernel:
    """A kernel of `kernels/` with some parameters set; the same again while the file is."""
    return cached_kernel(KERNELS / file, entry, **values)
