"""What a bench turns: the controls that a kernel's file declares, and the problems they lead to."""

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..kernels.kernel import KERNELS, Kernel, load_kernel
from ..kernels.lookup import find_file, pick
from ..kernels.source import CannotRun, KernelError, Parameter, Value
from ..problem.ladder import ladder, rung
from ..problem.problem import Problem
from ..problem.rungs import Rung
from ..simulator.errors import SimulatorError

Settings = dict[str, Value]
Target = Rung | Kernel | str | os.PathLike
Pose = Callable[..., Problem]
Choices = Sequence[Value]


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
        return pick(self.name, self.choices, value)


@dataclass(frozen=True, eq=False)
class Subject:
    """What a bench turns.

    Attributes:
        title: what it is called.
        declared: gives the parameters, read again from the kernels' files.
        pose: makes a problem of a setting, its arrays anew. Raises CannotRun for settings that do
            not go together, and KernelError for a kernel's file that is not as it should be.
        sizes: the controls of the problem's sizes.
        timed: the size that times have of their own, since a simulated one is too small.
        rung: the name in the ladder's chart, of a whole rung that it shows.
    """

    title: str
    declared: Callable[[], Iterable[Parameter]]
    pose: Callable[[Settings], Problem]
    sizes: tuple[Control, ...]
    timed: Control | None = None
    rung: str | None = None

    def controls(self) -> tuple[Control, ...]:
        """The controls, read again from the kernels' files."""
        return (
            *(Control(p.name, p.choices, p.value, p.description) for p in self.declared()),
            *self.sizes,
        )

    def problem(self, settings: Mapping[str, Value]) -> Problem:
        """The problem of a setting.

        Raises:
            CannotRun: the settings cannot run.
            KernelError: a kernel's file is not as it should be.
        """
        return self.pose(dict(settings))

    def refusal(self, settings: Mapping[str, Value]) -> str | None:
        """Why `settings` cannot run, in one sentence, or None if nothing speaks against it.

        Looks at the geometry, and asks the compiler what the source refuses and how much shared
        memory it declares; runs nothing.
        """
        try:
            reasons = (launch.refusal() for launch in self.problem(settings).launches)
            return next(filter(None, reasons), None)
        except CannotRun as error:
            return str(error)
        except (KernelError, SimulatorError):
            return None  # an error in the source, which is told where it is run


def subject_of(
    target: Target,
    entry: str | None = None,
    problem: Pose | None = None,
    *,
    timed: Mapping[str, Choices] | Choices | None = None,
    kernels_dir: str | os.PathLike | None = None,
    **sizes: Choices,
) -> Subject:
    """What `bench` and `sweep` turn; see `helpers.bench.bench` for the arguments.

    Raises:
        KernelError: there is no such rung, file or kernel, or a kernel's problem is not known.
    """
    if problem is not None:
        return _of_kernel(target, entry, problem, sizes, timed, kernels_dir)
    if isinstance(target, Rung):
        return _of_rung(target, entry, sizes, timed)
    if isinstance(target, Kernel):
        found = _rung_with(target.file, target.entry)
        values = {n: p.value for n, p in target.parameters.items() if n in found.parameters}
        return _of_rung(found.with_parameters(**values), target.entry, sizes, timed)
    if not isinstance(target, (str, os.PathLike)):
        raise KernelError(
            f"A bench takes a rung, its name, a kernel or the name of a .cu file, not {target!r}."
        )
    name = os.fspath(target)
    if not isinstance(name, str):
        raise KernelError(f"The name of a rung or of a .cu file is text, not {name!r}.")
    if not name.endswith(".cu"):
        return _of_rung(rung(name), entry, sizes, timed)
    folder = KERNELS if kernels_dir is None else Path(kernels_dir)
    return _of_rung(_rung_with(find_file(name, folder), entry), entry, sizes, timed)


def _rung_with(file: Path, entry: str | None) -> Rung:
    """The lowest rung that launches a kernel of this file."""
    for one in ladder():
        if any(KERNELS / f == file and entry in (None, e) for f, e in one.kernels):
            return one
    raise KernelError(
        f"No rung of the ladder has {entry or 'a kernel'} of {file.name}: give its problem, a "
        "function that takes the kernel and sizes and returns a Problem."
    )


def _of_rung(one: Rung, entry: str | None, choices: Mapping[str, Choices], timed) -> Subject:
    """A rung, or one of its kernels: then it runs on what the reference gives."""
    own = [(file, name) for file, name in one.kernels if entry in (None, name)]
    if not own:
        names = ", ".join(name for _, name in one.kernels)
        raise KernelError(f"The rung {one.name} has no kernel {entry}; it has {names}.")
    for name in choices:
        if name not in (known := [size.name for size in one.sizes]):
            raise KernelError(f"{one.name} has no size {name}; it has {' and '.join(known)}.")
    sizes = []
    for size in one.sizes:
        given = _choices(size.name, choices.get(size.name, size.choices))
        usual = size.usual if size.usual in given else given[0]
        sizes.append(Control(size.name, given, usual, size.description, "size"))
    first = one.sizes[0]
    timed = timed if isinstance(timed, Mapping) else {first.name: timed or first.timed}

    alone = entry is not None and len(one.kernels) > 1

    def declared() -> list[Parameter]:
        names = load_kernel(KERNELS / own[0][0], entry).parameters if alone else one.declared
        return [parameter for name, parameter in one.declared.items() if name in names]

    def pose(settings: Settings) -> Problem:
        known = (*one.declared, *(size.name for size in one.sizes))
        return one.problem(entry, **{n: settings[n] for n in known if n in settings})

    shown = one.name if entry is None and one.kind == "fp32" else None  # in the ladder's chart
    return Subject(
        f"{one.name} · {entry}" if alone else one.title,
        declared, pose, tuple(sizes), _timed(sizes, timed), shown,
    )  # fmt: skip


def _of_kernel(
    target: Target,
    entry: str | None,
    problem: Pose,
    sizes: Mapping[str, Choices],
    timed: Mapping[str, Choices] | None,
    kernels_dir: str | os.PathLike | None,
) -> Subject:
    """One kernel, with a function that poses its problem."""
    if not callable(problem):
        raise KernelError(f"problem is a function that returns a Problem, not {problem!r}.")
    if isinstance(target, Kernel):
        values = {name: parameter.value for name, parameter in target.parameters.items()}
        load = functools.partial(load_kernel, target.file, target.entry)
    elif isinstance(target, Rung):
        raise KernelError(f"The rung {target.name} has a problem of its own.")
    else:
        values, load = {}, functools.partial(load_kernel, target, entry, kernels_dir=kernels_dir)
    kernel = load(**values)
    controls = tuple(_size(name, choices, problem) for name, choices in sizes.items())

    def pose(settings: Settings) -> Problem:
        names = load().parameters
        own = load(**{name: settings[name] for name in names if name in settings})
        try:
            posed = problem(own, **{size.name: settings[size.name] for size in controls})
        except ValueError as error:
            raise CannotRun(str(error)) from error
        if not isinstance(posed, Problem):
            raise KernelError(f"problem() of a bench returns a Problem, not {posed!r}.")
        return posed

    return Subject(
        f"{kernel.file.name} · {kernel.entry}",
        lambda: load(**values).parameters.values(), pose, controls, _timed(controls, timed),
    )  # fmt: skip


def _choices(name: str, choices: Choices) -> tuple[Value, ...]:
    """The choices of a size, at least one."""
    if isinstance(choices, (str, bytes)) or not isinstance(choices, Iterable):
        raise KernelError(f"The choices of {name} are a list, such as [64, 128], not {choices!r}.")
    found = tuple(choices)
    if not found:
        raise KernelError(f"The size {name} has no choices.")
    return found


def _size(name: str, choices: Choices, problem: Pose) -> Control:
    """The control of a size; its default is the one of the problem's function."""
    found = _choices(name, choices)
    declared = inspect.signature(problem).parameters.get(name)
    default: Any = found[0]
    if declared is not None and declared.default is not inspect.Parameter.empty:
        default = declared.default
    if default not in found:
        raise KernelError(f"The size {name} is {default} by default, which is not in {found}.")
    return Control(name, found, default, kind="size")


def _timed(sizes: Sequence[Control], timed: Mapping[str, Choices] | None) -> Control | None:
    """The control of a size at which a GPU is timed; by default the last choice but one."""
    if not timed:
        return None
    if not isinstance(timed, Mapping) or len(timed) != 1:
        raise KernelError(f'timed is one size by its name, such as {{"n": [1024]}}, not {timed!r}.')
    [(name, choices)] = timed.items()
    if name not in [size.name for size in sizes]:
        raise KernelError(f"{name} is to be timed, but is no size of the problem.")
    found = _choices(name, choices)
    description = f"{name} when the GPU is timed"
    default = found[max(0, len(found) - 2)]
    return Control(f"{name} timed", found, default, description, kind="timed", of=name)
