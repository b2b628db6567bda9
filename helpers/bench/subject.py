"""What a bench turns: the controls that a kernel's file declares, and the launches they lead to."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from ..kernels.kernel import Kernel, load_kernel
from ..kernels.launches import Launch as OneLaunch
from ..kernels.launches import refusal
from ..kernels.source import KernelError, Parameter, Value
from ..problem.attention import TOLERANCE, make_inputs, reference
from ..problem.ladder import LADDER, Rung, rung
from ..simulator.errors import Headlined

# N at first: small enough for the simulator to answer at once. The compiler takes half a second for
# the file of register_blocked, which leaves its kernels the less.
_USUAL_N = {"register_blocked": 64}
_USUAL = {"N": 128, "d": 64}

Settings = dict[str, Value]
Expected = Mapping[str, "np.ndarray | Callable[[], np.ndarray]"]


class Refused(Headlined, ValueError):
    """Settings that cannot run; the message says why, in one sentence."""

    headline = "These settings cannot run"


@dataclass(frozen=True)
class Control:
    """One thing to turn: a parameter of the kernel's file, or a size of its problem.

    `kind` is `parameter`, `size`, or `timed`: the value that the size `of` has when a GPU is timed.
    """

    name: str
    choices: tuple[Value, ...]
    default: Value
    description: str = ""
    kind: str = "parameter"
    of: str = ""

    def pick(self, value: Value) -> Value:
        """The choice that equals `value`.

        Raises:
            KernelError: there is none.
        """
        for choice in self.choices:
            if isinstance(choice, str) == isinstance(value, str) and choice == value:
                return choice
        listed = ", ".join(str(choice) for choice in self.choices)
        raise KernelError(f"{self.name} is one of {listed}, not {value!r}.")


@dataclass(frozen=True)
class Launch:
    """One launch of a problem.

    Args:
        grid, block, shared_mem: as for `k(grid, block, args, shared_mem)`.
        args: by name of the kernel's argument, NumPy arrays and numbers. An array that several
            launches of a problem have in common is one matrix to all of them.
        expected: by name, what the arrays that the kernel writes should hold: an array in
            float64, or a function that returns one. They are poisoned before the launch.
        tolerance: largest relative error that counts as right.
        kernel: the kernel; a bench of one kernel fills it in.
    """

    grid: Any
    block: Any
    args: Mapping[str, Any]
    expected: Expected = field(default_factory=dict)
    shared_mem: int = 0
    tolerance: float = TOLERANCE
    kernel: Kernel | None = None

    def refusal(self) -> str | None:
        """Why it cannot run, or None; see `helpers.kernels.launches`."""
        return refusal(self.kernel, self.grid, self.block, self.shared_mem)

    def on(self, array: Callable[[Any], Any]) -> OneLaunch:
        """The launch with its arguments; `array` makes of each what is passed.

        Raises:
            KernelError: an argument is missing or does not fit.
        """
        assert self.kernel is not None
        names = [argument.name for argument in self.kernel.arguments]
        if unknown := [name for name in self.expected if name not in names]:
            raise KernelError(
                f"{self.kernel.entry} takes {', '.join(names)}; there is no {unknown[0]}."
            )
        args = {name: array(value) for name, value in self.args.items()}
        return OneLaunch.of(self.kernel, self.grid, self.block, args, self.shared_mem)


class Subject(Protocol):
    """What a bench turns."""

    title: str
    rung: str | None  # its name in the ladder's chart
    timed: Control | None  # a size of its own for times, since a simulated one is too small

    def controls(self) -> tuple[Control, ...]:
        """The controls, read again from the kernels' files."""
        ...

    def launches(self, settings: Mapping[str, Value]) -> list[Launch]:
        """The launches of a setting, arrays made anew.

        Raises:
            Refused: the settings cannot run.
            KernelError: a kernel's file is not as it should be.
        """
        ...


class KernelSubject:
    """One kernel, with a function that sets its problem up.

    Args:
        file, entry, kernels_dir: as for `load_kernel`.
        problem: `problem(k, **sizes)` returns a `Launch`; `k.parameters["TILE"].value` and the
            like give the geometry. A ValueError from it says why a setting cannot run.
        sizes: choices of each size, by name. Its default is that of the function, or the first.
        timed: choices for one of these sizes when a GPU is timed.
    """

    rung: str | None = None

    def __init__(
        self,
        file: str | os.PathLike,
        entry: str | None,
        problem: Callable[..., Launch],
        sizes: Mapping[str, Sequence[Value]],
        timed: Mapping[str, Sequence[Value]] | None = None,
        kernels_dir: str | os.PathLike | None = None,
    ):
        self._load = lambda **values: load_kernel(file, entry, kernels_dir=kernels_dir, **values)
        kernel = self._load()
        self.title = f"{kernel.file.name} · {kernel.entry}"
        self._problem = problem
        self._sizes = tuple(_size(name, choices, problem) for name, choices in sizes.items())
        self.timed = _timed(self._sizes, timed)

    def controls(self) -> tuple[Control, ...]:
        declared = self._load().parameters.values()
        return (*map(of_parameter, declared), *self._sizes)

    def launches(self, settings: Mapping[str, Value]) -> list[Launch]:
        sizes = {size.name: settings[size.name] for size in self._sizes}
        values = {name: settings[name] for name in self._load().parameters if name in settings}
        kernel = self._load(**values)
        try:
            launch = self._problem(kernel, **sizes)
        except ValueError as error:
            raise Refused(str(error)) from error
        return [replace(launch, kernel=kernel)]


class RungSubject:
    """A rung of the ladder, or one of its kernels.

    Args:
        rung: the rung; the values that it has are the defaults of the controls.
        entry: one of its kernels, to be turned alone; its inputs are then the reference's.
        N, d: choices of the sizes; the first are the defaults where the usual ones are missing.
        timed: choices of N when a GPU is timed.

    Raises:
        KernelError: the rung has no such kernel.
    """

    def __init__(
        self,
        rung: Rung,
        entry: str | None = None,
        N: Sequence[int] = (32, 64, 100, 128, 256),
        d: Sequence[int] = (16, 32, 64, 80, 128),
        timed: Sequence[int] = (256, 512, 1024, 4096, 16384),
    ):
        self._rung, self._entry = rung, entry
        self.steps = [step for step in rung.steps if entry in (None, step.entry)]
        if not self.steps:
            names = ", ".join(step.entry for step in rung.steps)
            raise KernelError(f"The rung {rung.name} has no kernel {entry}; it has {names}.")
        self.title = f"{rung.name} · {entry}" if entry else rung.name
        self.rung = None if entry else rung.name
        usual = {**_USUAL, "N": _USUAL_N.get(rung.name, _USUAL["N"])}
        self._sizes = tuple(
            Control(
                name,
                tuple(choices),
                usual[name] if usual[name] in choices else choices[0],
                f"{what} of Q, K and V",
                "size",
            )
            for name, choices, what in (("N", N, "rows"), ("d", d, "columns"))
        )
        self.timed = timed_control("N", timed)

    def controls(self) -> tuple[Control, ...]:
        declared = self._rung.parameters.values()
        if self._entry:
            own = load_kernel(self.steps[0].file, self._entry).parameters
            declared = [parameter for parameter in declared if parameter.name in own]
        return (*(replace(of_parameter(p), default=p.value) for p in declared), *self._sizes)

    def launches(self, settings: Mapping[str, Value]) -> list[Launch]:
        N, d = int(settings["N"]), int(settings["d"])
        values = {name: settings[name] for name in self._rung.parameters if name in settings}
        arrays, exact = _attention(N, d, alone=self._entry is not None)
        found = []
        for launch in self._rung.launches(N, d, **values):
            if self._entry not in (None, launch.kernel.entry):
                continue
            declared = launch.kernel.arguments
            args = {argument.name: arrays[argument.name] for argument in declared}
            written = {
                argument.name: functools.partial(getattr, exact, argument.name)
                for argument in declared
                if argument.pointer and not argument.constant
            }
            found.append(Launch(launch.grid, launch.block, args, written, kernel=launch.kernel))
        return found


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


def _attention(N: int, d: int, alone: bool) -> tuple[dict[str, Any], _Exact]:
    """Arrays of one head by name, and what S, P and O should be.

    S and P have values only where a kernel is turned `alone` and may read them: at the sizes that
    a GPU is timed at, memory that nobody touches costs nothing.
    """
    Q, K, V = make_inputs(N, d)
    exact = _Exact(Q, K, V)
    arrays: dict[str, Any] = {"Q": Q, "K": K, "V": V, "N": N, "d": d}
    for name, shape in (("S", (N, N)), ("P", (N, N)), ("O", (N, d))):
        filled = alone and name != "O"
        arrays[name] = getattr(exact, name).astype(np.float32) if filled else None
        if not filled:
            arrays[name] = np.empty(shape, np.float32)
    return arrays, exact


def subject_of(
    target: Rung | str | os.PathLike,
    entry: str | None = None,
    problem: Callable[..., Launch] | None = None,
    *,
    timed: Mapping[str, Sequence[Value]] | Sequence[int] | None = None,
    kernels_dir: str | os.PathLike | None = None,
    **sizes: Sequence[Value],
) -> Subject:
    """What `bench` and `sweep` turn; see `helpers.bench.bench` for the arguments.

    Raises:
        KernelError: there is no such rung or kernel, or a kernel's problem is not known.
    """
    if isinstance(target, Rung):
        chosen: Rung | None = target
    elif problem is not None:
        return KernelSubject(target, entry, problem, sizes, timed, kernels_dir)
    else:
        name = os.fspath(target)
        chosen = rung(name) if not name.endswith(".cu") else _rung_with(name, entry)
        if chosen is None:
            raise KernelError(
                f"No rung of the ladder has {entry or 'a kernel'} of {name}: give its problem, a "
                "function that takes the kernel and sizes and returns a Launch."
            )
    options: dict[str, Any] = dict(sizes)
    if timed is not None:
        options["timed"] = timed["N"] if isinstance(timed, Mapping) else timed
    return RungSubject(chosen, entry, **options)


def _rung_with(file: str, entry: str | None) -> Rung | None:
    """The lowest rung that launches a kernel of this file."""
    for one in LADDER:
        if any(step.file == file and entry in (None, step.entry) for step in one.steps):
            return one
    return None


def of_parameter(parameter: Parameter) -> Control:
    """The control of a parameter that a kernel's file declares."""
    return Control(parameter.name, parameter.choices, parameter.default, parameter.description)


def _size(name: str, choices: Sequence[Value], problem: Callable) -> Control:
    """The control of a size; its default is the one of the problem's function."""
    choices = tuple(choices)
    if not choices:
        raise ValueError(f"The size {name} has no choices.")
    declared = inspect.signature(problem).parameters.get(name)
    default = choices[0]
    if declared is not None and declared.default is not inspect.Parameter.empty:
        default = declared.default
    if default not in choices:
        raise ValueError(f"The size {name} is {default} by default, which is not in {choices}.")
    return Control(name, choices, default, kind="size")


def _timed(sizes: tuple[Control, ...], timed: Mapping[str, Sequence[Value]] | None):
    if not timed:
        return None
    [(name, choices)] = timed.items()
    if name not in [size.name for size in sizes]:
        raise ValueError(f"{name} is to be timed, but is no size of the problem.")
    return timed_control(name, choices)


def timed_control(name: str, choices: Sequence[Value], default: Value | None = None) -> Control:
    """The control of a size at which a GPU is timed; by default the last but one."""
    choices = tuple(choices)
    if default is None:
        default = choices[max(0, len(choices) - 2)]
    description = f"{name} when the GPU is timed"
    return Control(f"{name} timed", choices, default, description, kind="timed", of=name)
