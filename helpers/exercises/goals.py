"""Goals: what a counter comes to, and what it may come to."""

from collections.abc import Collection

from ..kernels.source import KernelError
from ..simulator.errors import SimulatorError
from .answer import changed_course
from .spec import Case, Exercise, Goal
from .trial import solved

# Ways to move data that the other counters do not see: an answer may use them as the solution does.
OTHER_WAYS = tuple(
    Goal(counter, "Loads and stores are counted in this exercise: use them.", name=name)
    for counter, name in (
        ("global_atomic_requests", "atomic operations of a warp on global memory"),
        ("shared_atomic_instructions", "atomic operations of a warp on shared memory"),
        ("cp_async_instructions", "cp.async instructions of a warp"),
    )
)


def bound_of(exercise: Exercise, goal: Goal, case: Case) -> float:
    """What a counter may come to at a case: the goal's number, or a factor on the solution's."""
    if goal.at_most is not None:
        return goal.at_most
    try:
        report = solved(exercise, tuple(case.items()))
    except (KernelError, SimulatorError) as error:
        raise changed_course(exercise, str(error)) from None
    factor = goal.slack if goal.at_least is None else goal.at_least
    return factor * measured(goal, report)


def missed(exercise: Exercise, goal: Goal, case: Case, report) -> str:
    """What is said of a goal that is missed, or ''."""
    bound, value = bound_of(exercise, goal, case), measured(goal, report)
    if goal is OTHER_WAYS[-1] and bound:  # goals of its own say how much: a copy may read nothing
        return ""
    if goal.at_least is None:
        enough, verb = value <= bound * (1 + 1e-9), "would do"
    else:
        enough, verb = value >= bound * (1 - 1e-9), "are expected"
    if enough:
        return ""
    more = ""
    if goal.counter == "barriers" and bound:
        more = f" That is {amount(round(value / bound, 2))} times as many."
    return f"{amount(value)} {goal.words}, and {amount(bound)} {verb}.{more} {goal.said}"


def met(exercise: Exercise, goal: Goal, case: Case, report) -> str:
    """What is said of a goal that is met."""
    value, bound = measured(goal, report), bound_of(exercise, goal, case)
    most = "at most" if goal.at_least is None else "at least"
    return f"{amount(value)} {goal.words}, {most} {amount(bound)}"


def measured(goal: Goal, report) -> float:
    """What the goal's counter has come to."""
    return report.shared_bytes if goal.counter == "shared_bytes" else report.counters[goal.counter]


def busiest(goal: Goal, report, own: Collection[int]) -> list[int]:
    """The line that adds most to a goal's counter, of a student's own ones if any of them does.

    No barrier, since each of them may be needed.
    """
    if goal.counter == "barriers":
        return []
    counts = {line: counts.get(goal.counter, 0) for line, counts in report.by_line.items() if line}
    counts = {n: count for n, count in counts.items() if n in own and count} or counts
    if not counts or not max(counts.values()):
        return []
    return [max(counts, key=counts.get)]


def amount(value: float) -> str:
    """A count as one writes it."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"
