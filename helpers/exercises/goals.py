"""Goals: what a counter comes to, and what it may come to."""

from __future__ import annotations

from ..kernels import Kernel
from ..source import KernelError
from .answer import kernel_of
from .spec import Exercise, Goal
from .trial import solved


def bound_of(exercise: Exercise, goal: Goal) -> float:
    """What a counter may come to: the goal's number, or the solution's with its slack."""
    if goal.at_most is not None:
        return goal.at_most
    case = exercise.counted or exercise.cases[-1]
    kernel = kernel_of(exercise, exercise.solution, case)
    report = solved(exercise, tuple(case.items()))
    return goal.slack * measured(goal, report, lines_of(goal, kernel))


def lines_of(goal: Goal, kernel: Kernel) -> list[int]:
    """The lines of the kernel that the goal looks at; none means all of it."""
    if not goal.line:
        return []
    try:
        return kernel.lines(goal.line)
    except KernelError:
        return []


def measured(goal: Goal, report, lines: list[int]) -> float:
    """The goal's counter in some lines, or in all, divided by its `per`."""

    def count(name: str) -> float:
        if name == "shared_bytes":
            return report.shared_bytes
        if not lines:
            return report.counters[name]
        return sum(report.by_line[n].get(name, 0) for n in lines if n in report.by_line)

    value = count(goal.counter)
    return value / (count(goal.per) or 1) if goal.per else value


def busiest(goal: Goal, report) -> list[int]:
    """The line that adds most to a goal's counter."""
    counts = {line: counts.get(goal.counter, 0) for line, counts in report.by_line.items() if line}
    if not counts or not max(counts.values()):
        return []
    return [max(counts, key=counts.get)]


def amount(value: float) -> str:
    """A count as one writes it."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"
