"""One trial of an exercise's kernel at one case: on the simulator, or on the GPU."""

import contextlib
import functools
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..gpu import device
from ..kernels.kernel import Kernel
from ..kernels.launches import Launch, refusal
from ..measure import timing
from ..panels.difference import Difference, difference
from ..problem.problem import Problem
from ..simulator.errors import SimulatorError
from ..simulator.limits import SIMULATED
from .answer import Refused, kernel_of_solution
from .spec import Case, Exercise

MOST_PRINTED = 200_000  # characters that a kernel may print in a trial
MOST_STEPS = 200_000  # instructions that a batch may take before a loop counts as endless
_MORE_STEPS = 32  # one warp after another takes so many times the steps, at most


@dataclass(frozen=True)
class Outcome:
    """What a simulated run gave.

    Attributes:
        report: the simulator's.
        wrong: the first output that is not right, or None.
        changed: name of an input that the kernel wrote to, or empty.
        arrays: the outputs by name, as the kernel left them.
    """

    report: Any
    wrong: Difference | None
    changed: str
    arrays: Mapping[str, np.ndarray]


def simulate(
    exercise: Exercise, case: Case, kernel: Kernel, quiet: bool = False, **options
) -> Outcome:
    """Run a case on the simulator, outputs poisoned, and compare.

    Args:
        quiet: swallow what the kernel prints.
        **options: for `simulator.launch`.
    """
    problem = _problem(exercise, case, kernel)
    prepared = problem.prepare()
    slower = 1 if options.get("schedule", "lockstep") == "lockstep" else _MORE_STEPS
    steps = options.pop("max_steps", MOST_STEPS * slower)
    with contextlib.redirect_stdout(io.StringIO()) if quiet else contextlib.nullcontext():
        report, _ = prepared.launches[0].simulate(
            copy=False, max_steps=steps, progress=False, **options
        )
    changed = (
        name
        for name, value in problem.inputs.items()
        if isinstance(value, np.ndarray)
        and name not in problem.expected
        and value.tobytes() != prepared.arrays[name].tobytes()
    )
    written = {name: prepared.arrays[name] for name in problem.expected}
    return Outcome(report, _wrong(problem, kernel, prepared.arrays), next(changed, ""), written)


def _wrong(problem: Problem, kernel: Kernel, arrays: Mapping[str, Any]) -> Difference | None:
    """The first output that is not right."""
    tile = kernel.parameters.get("TILE")
    for name in problem.expected:
        want = problem.exact(name)
        edge = tile.value if tile is not None and want.ndim == 2 else None
        found = difference(arrays[name], want, problem.tolerance, name=name, tile=edge)
        if found is not None:
            return found
    return None


def wrong_on_gpu(exercise: Exercise, case: Case, kernel: Kernel) -> Difference | None:
    """Run a case on the GPU; the first output that is not right, or None."""
    problem = _problem(exercise, case, kernel)
    prepared = problem.prepare(device.cp)
    prepared.run()
    host = {name: device.cp.asnumpy(prepared.arrays[name]) for name in problem.expected}
    return _wrong(problem, kernel, host)


def time_on_gpu(exercise: Exercise, case: Case, kernel: Kernel) -> float:
    """Milliseconds of a launch on the GPU."""
    return timing.measure(_problem(exercise, case, kernel).prepare(device.cp).run)


def _problem(exercise: Exercise, case: Case, kernel: Kernel) -> Problem:
    """The problem of a case; the answer may call its arguments otherwise, in the same order."""
    grid, block, shared = exercise.launch(case, kernel)
    key = tuple(case.items())
    return Problem(
        (Launch.of(kernel, grid, block, None, shared),),
        _inputs(exercise, key),
        {name: lambda name=name: _exact(exercise, key)[name] for name in exercise.outputs},
        exercise.tolerance,
        tuple(_inputs(exercise, key)),
    )


class Kept(io.StringIO):
    """What a kernel prints, up to so many characters."""

    def __init__(self, most: int):
        super().__init__()
        self.most, self.more, self.printed = most, False, 0

    def write(self, text: str) -> int:
        """Keep what there is room for.

        Raises:
            Refused: it prints without end.
        """
        self.printed += len(text)
        if self.printed > MOST_PRINTED:
            raise Refused(
                f"The kernel prints more than {MOST_PRINTED:,} characters: let a single thread "
                "print, as in if (row == 0 && col == 0) printf(...)."
            )
        room = self.most - self.tell()
        self.more |= len(text) > room
        super().write(text[: max(0, room)])
        return len(text)

    def told(self) -> str:
        """The text, control characters written out, and whether there was more."""
        text = "".join(
            c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in self.getvalue()
        )
        return f"{text}\n... and more, which is not kept." if self.more else text


def refuse_launch(exercise: Exercise, case: Case, kernel: Kernel) -> None:
    """Compile to PTX, and raise Refused if what it declares does not fit the launch.

    Raises:
        SimulatorError: of kind `compile`.
        Refused: too much shared or local memory, or promises that the launch does not keep.
    """
    grid, block, shared = exercise.launch(case, kernel)
    if reason := refusal(kernel, grid, block, shared):
        raise Refused(reason)
    functions = kernel.ptx()[0].functions.values()
    arrays = (v for function in functions for v in function.variables.values())
    local = sum(v.size for v in arrays if v.space == "local")
    if local > SIMULATED.local:
        raise Refused(
            f"{kernel.entry}: the arrays of a thread take {local:,} bytes, and a GPU gives it "
            f"{SIMULATED.local:,} at most."
        )


def given(exercise: Exercise, case: Case) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Arguments of a case by name, and what each output should hold."""
    key = tuple(case.items())
    return _inputs(exercise, key), _exact(exercise, key)


@functools.lru_cache(maxsize=64)
def _inputs(exercise: Exercise, case: tuple) -> dict[str, Any]:
    """Arguments of a case."""
    return exercise.arguments(dict(case))


@functools.lru_cache(maxsize=64)
def _exact(exercise: Exercise, case: tuple) -> dict[str, np.ndarray]:
    """What each output of a case should hold."""
    return exercise.expected(_inputs(exercise, case))


@functools.lru_cache(maxsize=64)
def solved(exercise: Exercise, case: tuple):
    """The report of the solution at a case."""
    kernel = kernel_of_solution(exercise, case)
    return simulate(exercise, dict(case), kernel, quiet=True, count=True).report


@functools.lru_cache(maxsize=64)
def most_steps(exercise: Exercise, case: tuple) -> int:
    """Instructions that a variant of the solution may take: 16 times as many, or a little more."""
    steps = 250
    while steps < MOST_STEPS:
        with contextlib.suppress(SimulatorError):
            kernel = kernel_of_solution(exercise, case)
            simulate(exercise, dict(case), kernel, quiet=True, count=False, max_steps=steps)
            return 16 * steps
        steps *= 2
    return MOST_STEPS
