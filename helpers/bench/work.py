"""One run of a bench: compile, check, count, time; in stages, so that it can be dropped between."""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..kernels.source import KernelError, Value
from ..measure import timing
from ..simulator.errors import SimulatorError
from ..simulator.launch_rules import is_array
from .check import Check, compare, poison
from .result import SIMULATOR, KernelRun, Result
from .subject import Control, Launch, Refused, Settings, Subject

# Elements of the largest array up to which float64 on the host is quick, and sums in fp32 are short
# enough for the tolerance. Above it, a timed result is only searched for elements never written.
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
        launches = subject.launches(settings)
        yield from run.compile(launches)
        yield from run.count(launches)
        if not run.wrong and _is_gpu():
            run.on_gpu = True
            yield from run.check_on_gpu(launches)
            if time and not run.wrong:
                yield from run.time()
    except Refused as error:
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

    def compile(self, launches: list[Launch]) -> Generator[str, None, None]:
        for launch in launches:
            yield f"compiling {launch.kernel.entry}"
            self.current = launch
            if reason := launch.refusal():
                raise Refused(reason)
        self.current = None

    def count(self, launches: list[Launch]) -> Generator[str, None, None]:
        arrays = _Copies(np)
        for launch in launches:
            kernel = launch.kernel
            yield f"running and counting {kernel.entry}"
            self.current = launch
            bound = launch.on(arrays.of)
            for name in launch.expected:
                poison(arrays.of(launch.args[name]))
            with contextlib.redirect_stdout(self.printed):
                report = bound.simulate(copy=False, progress=False).report
            self.reports[kernel.entry] = report
            checks = tuple(
                compare(name, arrays.of(launch.args[name]), _values(expected), launch.tolerance)
                for name, expected in launch.expected.items()
            )
            self.kernels.append(
                replace(
                    _described(launch),
                    totals=_occurring(report.counters),
                    by_line={
                        line: _occurring(counts)
                        for line, counts in report.by_line.items()
                        if line is not None
                    },
                    segments=_segments(kernel, report.by_line),
                    checks=checks,
                )
            )
        self.current = None

    def check_on_gpu(self, launches: list[Launch]) -> Generator[str, None, None]:
        from .. import cp
        from ..gpu import device

        yield "running on the GPU"
        self.device = device.name()
        arrays = _Copies(cp)
        for n, launch in enumerate(launches):
            self.current = launch
            _launch(launch, arrays)()
            checks = tuple(
                compare(
                    name,
                    cp.asnumpy(arrays.of(launch.args[name])),
                    _values(expected),
                    launch.tolerance,
                )
                for name, expected in launch.expected.items()
            )
            # The GPU's own result is what counts on a GPU.
            self.kernels[n] = replace(self.kernels[n], checks=checks)
        self.current = None

    def time(self) -> Generator[str, None, None]:
        from .. import cp

        size = self.subject.timed
        settings = dict(self.settings)
        if size is not None:
            settings[size.of] = settings[size.name]
            self.timed = {size.of: settings[size.name]}
        else:
            self.timed = {}
        launches = self.subject.launches(settings)
        arrays = _Copies(cp)
        largest = max(
            (v.size for launch in launches for v in launch.args.values() if is_array(v)), default=0
        )
        for n, launch in enumerate(launches):
            yield f"timing {launch.kernel.entry}"
            self.current = launch
            call = _launch(launch, arrays)
            milliseconds = timing.measure(call)
            checks = self.kernels[n].checks
            for name, expected in launch.expected.items():
                array = arrays.of(launch.args[name])
                if largest <= _LARGEST_REFERENCE:
                    got = cp.asnumpy(array)
                    checks += (compare(name, got, _values(expected), launch.tolerance),)
                elif unwritten := int((array != array).sum()):
                    size, bound = int(array.size), launch.tolerance
                    checks += (Check(name, False, math.inf, bound, unwritten, unwritten, size),)
            self.kernels[n] = replace(
                self.kernels[n], milliseconds=milliseconds, checks=_worst_of(checks)
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
        if self.current is not None and self.current.kernel is not None:
            run = _described(self.current)
            lines = len(run.source.rstrip("\n").split("\n"))
            if line is not None and 1 <= line <= lines:
                run = replace(run, mark=line, segments=_segments(self.current.kernel, [line]))
            self.kernels.append(run)
        return self.result("error", str(error).split("\n\nNVRTC's log:")[0])


class _Copies:
    """A copy of each array of a problem, on the host or the device, the same for all launches."""

    def __init__(self, module):
        self._module = module
        self._made: dict[int, tuple[np.ndarray, Any]] = {}

    def of(self, value):
        if not isinstance(value, np.ndarray):
            return value
        if id(value) not in self._made:  # the original is kept, so that its id stays its own
            self._made[id(value)] = value, self._module.array(value)
        return self._made[id(value)][1]

    def unset(self, value: np.ndarray):
        """The copy of an array that will be written, poisoned, without copying it first."""
        if id(value) not in self._made:
            made = self._module.empty(value.shape, value.dtype)
            self._made[id(value)] = value, made
        copy = self._made[id(value)][1]
        host = np.empty(1, value.dtype)
        poison(host)
        copy[...] = host[0]
        return copy


def _launch(launch: Launch, arrays: _Copies):
    """A function that launches on the device; the arrays that it writes are poisoned now."""
    for name in launch.expected:
        arrays.unset(launch.args[name])
    return launch.on(arrays.of).run


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
    grid, block = (
        tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        for shape in (launch.grid, launch.block)
    )
    return KernelRun(
        kernel.file.name,
        kernel.entry,
        {name: parameter.value for name, parameter in kernel.parameters.items()},
        tuple(map(int, grid)),
        tuple(map(int, block)),
        static + launch.shared_mem,
        kernel.source,
        _segments(kernel, ()),
    )


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


def _values(expected) -> np.ndarray:
    return expected() if callable(expected) else expected


def _is_gpu() -> bool:
    from ..gpu import device

    return device.is_gpu


def controls_of(subject: Subject) -> tuple[Control, ...]:
    """The subject's controls, with the size for times where there is a GPU to time."""
    timed = (subject.timed,) if subject.timed is not None and _is_gpu() else ()
    return (*subject.controls(), *timed)
