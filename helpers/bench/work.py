"""One run of a bench: compile, check, count, time; in stages, so that it can be dropped between."""

import contextlib
import io
import math
from collections.abc import Generator, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..gpu import device
from ..gpu.unset import count_nan
from ..kernels.launches import Launch
from ..kernels.source import CannotRun, KernelError, Value
from ..measure import timing
from ..problem.problem import Problem
from ..simulator.errors import SimulatorError
from ..simulator.launch_rules import is_array
from .check import Check, compare
from .counted import counted
from .result import SIMULATOR, KernelRun, Result
from .subject import Control, Settings, Subject

# Elements of the largest array up to which float64 on the host is quick, and sums in fp32 are short
# enough for the tolerance. Above it, a timed result is only searched for elements never written.
BOUND_ON = "H200"
_LARGEST_REFERENCE = 2048**2


def work(
    subject: Subject, settings: Mapping[str, Value], time: bool = True
) -> Generator[str, None, Result]:
    """Run `settings`, yielding what comes next before each stage; returns the result.

    Whatever kernels and their files do wrong is in the result; nothing of that is raised.

    Args:
        subject: what to run.
        settings: a value for each of its controls.
        time: whether to time on a GPU.
    """
    run = _Run(subject, dict(settings))
    try:
        yield "reading the kernels"
        problem = subject.problem(settings)
        yield from run.compile(problem)
        yield from run.count(problem)
        if not run.wrong and device.is_gpu:
            run.on_gpu = True
            yield from run.check_on_gpu(problem)
            if time and not run.wrong:
                yield from run.time()
    except CannotRun as error:
        return run.result("refused", str(error))
    except (KernelError, SimulatorError) as error:
        return run.failed(error)
    except Exception as error:
        if not run.on_gpu:
            raise
        return run.result("error", f"The GPU could not run it: {error}")
    return run.result()


class _Run:
    """A run under way: what is known of it so far."""

    def __init__(self, subject: Subject, settings: Settings):
        self.subject, self.settings = subject, settings
        self.kernels: list[KernelRun] = []
        self.reports: dict[str, Any] = {}
        self.device, self.timed = SIMULATOR, None
        self.printed = io.StringIO()
        self.current: Launch | None = None
        self.on_gpu = False

    @property
    def wrong(self) -> list[Check]:
        return [check for kernel in self.kernels for check in kernel.checks if not check.right]

    def compile(self, problem: Problem) -> Generator[str, None, None]:
        for launch in problem.launches:
            yield f"compiling {launch.kernel.entry}"
            self.current = launch
            if reason := launch.refusal():
                raise CannotRun(reason)
        self.current = None

    def count(self, problem: Problem) -> Generator[str, None, None]:
        self.current = problem.launches[0]
        prepared = problem.prepare()
        for launch in prepared.launches:
            kernel = launch.kernel
            yield f"running and counting {kernel.entry}"
            self.current = launch
            report, _, printed = counted(launch)
            self.printed.write(printed)
            self.reports[kernel.entry] = report
            self.kernels.append(
                replace(
                    _described(launch),
                    totals=_occurring(report.counters),
                    by_line={
                        line: _occurring(counts)
                        for line, counts in report.by_line.items()
                        if line is not None
                    },
                    marks=report.marks_at_hand,
                    segments=_segments(kernel, report.by_line),
                    checks=tuple(_checks(problem, launch, prepared.arrays)),
                    bound=_bound(report),
                )
            )
        self.current = None

    def check_on_gpu(self, problem: Problem) -> Generator[str, None, None]:
        yield "running on the GPU"
        self.device = device.name()
        prepared = problem.prepare(device.cp)
        for n, launch in enumerate(prepared.launches):
            self.current = launch
            launch.run()
            # The GPU's own result is what counts on a GPU.
            checks = tuple(_checks(problem, launch, prepared.arrays, device.cp.asnumpy))
            self.kernels[n] = replace(self.kernels[n], checks=checks)
        self.current = None

    def time(self) -> Generator[str, None, None]:
        size = self.subject.timed
        self.timed = {} if size is None else {size.of: self.settings[size.name]}
        problem = self.subject.problem(self.settings | self.timed)
        prepared = problem.prepare(device.cp)
        largest = max((v.size for v in problem.inputs.values() if is_array(v)), default=0)
        for n, launch in enumerate(prepared.launches):
            yield f"timing {launch.kernel.entry}"
            self.current = launch
            milliseconds = timing.measure(launch.run)
            if largest <= _LARGEST_REFERENCE:
                found = _checks(problem, launch, prepared.arrays, device.cp.asnumpy)
            else:
                found = _unwritten(problem, launch, prepared.arrays)
            self.kernels[n] = replace(
                self.kernels[n],
                milliseconds=milliseconds,
                checks=_worst_of((*self.kernels[n].checks, *found)),
            )
        self.current = None

    def result(self, status: str = "", message: str = "") -> Result:
        if not status:
            wrong = self.wrong
            status = "wrong" if wrong else "right"
            checks = [check for kernel in self.kernels for check in kernel.checks]
            message = str(wrong[0] if wrong else checks[-1]) if checks else "Nothing was checked."
        return Result(
            self.subject.title,
            self.subject.rung,
            self.settings,
            status,
            message,
            tuple(self.kernels),
            self.device,
            self.timed,
            self.printed.getvalue()[:4000],
            self.reports,
        )

    def failed(self, error: Exception) -> Result:
        """The result of an error in the kernel at hand."""
        line = getattr(error, "line", None)
        if self.current is not None:
            run = _described(self.current)
            lines = len(run.source.rstrip("\n").split("\n"))
            if line is not None and 1 <= line <= lines:
                run = replace(run, mark=line, segments=_segments(self.current.kernel, [line]))
            self.kernels.append(run)
        return self.result("error", str(error).split("\n\nNVRTC's log:")[0])


def _checks(
    problem: Problem, launch: Launch, arrays: Mapping[str, Any], on_host=np.asarray
) -> Iterator[Check]:
    """What the arrays that a launch has written are worth."""
    for name in problem.outputs(launch):
        got = on_host(arrays[name])
        yield compare(name, got, problem.exact(name), problem.tolerance)


def _unwritten(problem: Problem, launch: Launch, arrays: Mapping[str, Any]) -> Iterator[Check]:
    """The arrays of a large problem that have elements which nobody wrote."""
    for name in problem.outputs(launch):
        array = arrays[name]
        if missing := count_nan(array):
            size, bound = int(array.size), problem.tolerance
            yield Check(name, False, math.inf, bound, missing, missing, size)


def _worst_of(checks: tuple[Check, ...]) -> tuple[Check, ...]:
    """One check of each array: the one with the largest error."""
    worst: dict[str, Check] = {}
    for check in checks:
        known = worst.get(check.array)
        if known is None or (known.right, -known.error) > (check.right, -check.error):
            worst[check.array] = check
    return tuple(worst.values())


def _described(launch: Launch) -> KernelRun:
    """A kernel before it ran."""
    kernel = launch.kernel
    static = 0
    with contextlib.suppress(SimulatorError):
        static = kernel.static_shared
    return KernelRun(
        kernel.file.name,
        kernel.entry,
        {name: parameter.value for name, parameter in kernel.parameters.items()},
        launch.grid,
        launch.block,
        static + launch.shared_mem,
        kernel.source,
        _segments(kernel, ()),
    )


def _bound(report) -> dict[str, str | float]:
    """The least time of a counted launch, on the GPU that times are recorded of."""
    least = report.bounds(BOUND_ON, assembled=False)  # at once, without compiling again
    return {
        "gpu": BOUND_ON, "seconds": least.seconds, "limit": least.limit,
        "sentence": least.sentence,
    }  # fmt: skip


def _segments(kernel, lines) -> tuple[tuple[int, int], ...]:
    """The kernel's lines, and those of every function around one of `lines` that is outside it."""
    shown = kernel.show().lines
    segments = [(shown[0].number, shown[-1].number)]
    texts = kernel.source.rstrip("\n").split("\n")
    for line in sorted(number for number in lines if number):
        if line > len(texts) or any(first <= line <= last for first, last in segments):
            continue
        first = last = line
        while first > 1 and texts[first - 2].strip():  # back to the blank line before it
            first -= 1
        while last < len(texts) and not texts[last - 1].startswith("}"):
            last += 1
        segments.append((first, last))
    return tuple(segments)


def _occurring(counters: Mapping[str, int]) -> dict[str, int]:
    return {name: int(count) for name, count in counters.items() if count}


def controls_of(subject: Subject) -> tuple[Control, ...]:
    """The subject's controls, with the size for times where there is a GPU to time."""
    timed = (subject.timed,) if subject.timed is not None and device.is_gpu else ()
    return (*subject.controls(), *timed)
