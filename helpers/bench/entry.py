"""The bench: a kernel's own parameters as controls; then check, count, and on a GPU time.

    from helpers.bench import bench

    bench("padded")                                  # a rung of the ladder
    bench("03_tiled.cu", "scaled_dot_product")       # one kernel of it
    bench("00_vector_add.cu", problem=add, n=[20, 1000], block=[64, 256])   # any other kernel

where `add(k, n=1000, block=256)` returns `Problem.of(k, grid, block, args, expected)`: geometry,
arguments by name, and what the arrays should hold afterwards. `sweep` runs the settings one after
the other and gives plain data.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..kernels.source import KernelError, Value
from .result import Result
from .subject import Pose, Subject, Target, subject_of
from .work import controls_of, work


def bench(
    target: Target,
    entry: str | None = None,
    problem: Pose | None = None,
    *,
    start: Mapping[str, Value] | None = None,
    **sizes: Any,
):
    """A bench to show at the end of a notebook's cell.

    Args:
        target: a rung or its name, a .cu file, or a kernel out of one at the values it has.
        entry: one kernel of it; otherwise all of a rung, or the one of a file.
        problem: for a file that no rung has: `problem(k, **sizes)` returns a `Problem`. A
            ValueError from it says, in one sentence, why a setting cannot run.
        start: settings that differ from the defaults, such as `{"TILE": 32, "N": 256}`.
        **sizes: choices of the problem's sizes by name (`N` and `d` of a rung in fp32); `timed`,
            choices of N, or of one size by its name, at which a GPU is timed; `kernels_dir` as for
            `load_kernel`.

    Raises:
        KernelError: there is no such rung, file, kernel, control or choice.
        ImportError: anywidget, which draws it, is not installed; `sweep` does without.
    """
    from .view import Bench  # late: it needs anywidget, and `sweep` does without

    return Bench(subject_of(target, entry, problem, **sizes), start=dict(start or {}))


def sweep(
    target: Target,
    choices: Mapping[str, Sequence[Value]] | None = None,
    entry: str | None = None,
    problem: Pose | None = None,
    *,
    start: Mapping[str, Value] | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    time: bool = True,
    **sizes: Any,
) -> list[dict[str, Any]]:
    """Run every combination of some choices, and return what each gives as plain data.

    Args:
        target, entry, problem, start, **sizes: as for `bench`.
        choices: values of the controls that vary; all that are declared, of every parameter, if
            left out. The other controls stay at their defaults, or at `start`.
        progress: called before each run with how many are done, how many there are, and the
            settings in words.
        time: whether to time on a GPU.

    Returns:
        For each combination, in order, what `Result.data()` gives: settings, status, message,
        kernels with source, counters in total and by line, checks and times. JSON can hold it.

    Raises:
        KernelError: as for `bench`.
    """
    return [result.data() for result in sweep_results(
        subject_of(target, entry, problem, **sizes), choices, start, progress, time
    )]  # fmt: skip


def sweep_results(
    subject: Subject,
    choices: Mapping[str, Sequence[Value]] | None = None,
    start: Mapping[str, Value] | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    time: bool = True,
) -> list[Result]:
    """`sweep` of a subject, with the reports still at hand.

    Raises:
        KernelError: there is no such control or choice.
    """
    controls = {control.name: control for control in controls_of(subject)}
    if choices is None:
        choices = {c.name: c.choices for c in controls.values() if c.kind == "parameter"}
    for name in (*choices, *(start or {})):
        if name not in controls:
            raise KernelError(
                f"{subject.title} has no control {name}; it has {', '.join(controls)}."
            )
    usual = {name: control.default for name, control in controls.items()}
    usual |= {name: controls[name].pick(value) for name, value in (start or {}).items()}
    varied = [[controls[name].pick(value) for value in values] for name, values in choices.items()]
    combinations = list(itertools.product(*varied))
    results = []
    for number, values in enumerate(combinations):
        settings = {**usual, **dict(zip(choices, values, strict=True))}
        if progress is not None:
            said = ", ".join(f"{name}={settings[name]}" for name in choices)
            progress(number, len(combinations), said)
        results.append(_finished(work(subject, settings, time=time)))
    return results


def _finished(stages) -> Result:
    """Run a generator of stages to its end."""
    while True:
        try:
            next(stages)
        except StopIteration as end:
            return end.value
