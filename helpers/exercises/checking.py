"""A check, step by step: compiles, right, no race, goals, and on a GPU the time."""

from __future__ import annotations

import contextlib
import io
import re

from ..bench_refusal import refusal_of
from ..bench_subject import Launch
from ..kernels import Kernel
from ..panels.difference import Difference
from ..panels.errors import panel_of
from ..panels.numbers import short
from ..simulator.compile_errors import parse_log
from ..simulator.errors import SimulatorError
from ..simulator.findings import Finding
from ..source import KernelError
from .answer import Refused, body, kernel_of, read_answer, refuse_includes, refuse_signature
from .goals import amount, bound_of, busiest, lines_of, measured
from .spec import Case, Exercise
from .trial import simulate, time_on_gpu, wrong_on_gpu
from .verdict import FAILED, NOT_REACHED, PASSED, Step, Verdict
from .waiting import Waiting

COMPILES, RIGHT, NO_RACE, GOAL, TIME = "compiles", "right", "no race", "goal", "time"
_GAP = re.compile(r"//\s*Gap\b")
_PRINTED = 2000  # characters of what a kernel prints that are kept


def run(exercise: Exercise, source=None) -> Verdict:
    """Check an answer; see `helpers.exercises.check`."""
    check = _Check(exercise)
    try:
        check.run(source)
    except _Stop:
        pass
    finally:
        check.waiting.close()
    return check.verdict()


class _Stop(Exception):
    """A step has failed, and the check is over."""


class _Check:
    """A check under way."""

    def __init__(self, exercise: Exercise):
        from .. import device

        self.exercise = exercise
        self.on_gpu = device.is_gpu
        self.names = [COMPILES, RIGHT, NO_RACE]
        if exercise.goals:
            self.names.append(GOAL)
        if self.on_gpu and exercise.timed:
            self.names.append(TIME)
        self.steps: list[Step] = []
        self.text, self.log, self.todo = "", "", ""
        self.lines: tuple[int, ...] = ()
        self.printed = io.StringIO()
        self.waiting = Waiting(exercise.name)
        self.findings: list[Finding] = []
        self.report = None  # of the case at which the goals are looked at

    @property
    def current(self) -> str:
        """Name of the step that is next."""
        return self.names[len(self.steps)]

    def passes(self, message: str = "") -> None:
        self.steps.append(Step(self.current, PASSED, message))

    def fails(self, message: str, lines=(), todo: str = "") -> None:
        self.steps.append(Step(self.current, FAILED, message))
        total = self.text.count("\n") + 1
        self.lines = tuple(sorted({n for n in lines if n and 1 <= n <= total}))
        self.todo = todo
        raise _Stop

    def verdict(self) -> Verdict:
        left = [Step(name, NOT_REACHED) for name in self.names[len(self.steps) :]]
        return Verdict(
            self.exercise.name,
            self.exercise.title,
            tuple(self.steps + left),
            self.todo,
            self.lines,
            self.text,
            self.log,
            self.printed.getvalue()[:_PRINTED],
        )

    def run(self, source) -> None:
        try:
            self.compile(source)
            self.be_right()
            if self.on_gpu:
                self.be_right_on_gpu()
            self.passes(f"The results are right {self.sizes()}.")
            self.have_no_race()
            self.meet_goals()
            self.be_timed()
        except Refused as error:
            self.fails(str(error), [error.line])
        except KernelError as error:
            self.fails(str(error))
        except SimulatorError as error:
            self.log = error.log or ""
            message = panel_of(error).said[0] if self.log else str(error)
            self.fails(message, self.lines_of(error))
        except MemoryError:
            self.fails("The kernel asks for more memory than this machine has: look at the arrays.")
        except RecursionError:
            self.fails("The kernel is nested too deeply to be read: take it apart.")
        except _Stop:
            raise
        except Exception as error:  # whatever an answer brings about, a student sees a sentence
            self.fails(f"This could not be run: {first_line(error)}")

    # ------------------------------------------------------------------ the steps

    def compile(self, source) -> None:
        exercise = self.exercise
        self.waiting.at(COMPILES)
        self.text = read_answer(exercise, source)
        refuse_includes(exercise, self.text)
        self.kernels: list[Kernel] = []
        for case in exercise.cases:
            kernel = kernel_of(exercise, self.text, case)
            refuse_signature(exercise, kernel, kernel_of(exercise, exercise.solution, case))
            refuse_launch(exercise, case, kernel)
            self.kernels.append(kernel)
        self.passes("The code compiles.")

    def be_right(self) -> None:
        """Right numbers when all threads go together, as in a kernel without a race."""
        exercise = self.exercise
        for case, kernel in zip(exercise.cases, self.kernels, strict=True):
            self.waiting.at(f"{RIGHT}, {in_words(case)}")
            counted = case == (exercise.counted or exercise.cases[-1])
            with self.printing():
                outcome = simulate(exercise, case, kernel, count=counted, sanitize=True)
            if counted:
                self.report = outcome.report
            self.findings += outcome.report.findings
            if outcome.changed:
                self.fails(
                    f"With {in_words(case)}: the kernel wrote to {outcome.changed}, which is an "
                    "input and stays as it is."
                )
            if outcome.wrong:
                self.explain(case, kernel, outcome.wrong)

    def explain(self, case: Case, kernel: Kernel, wrong: Difference) -> None:
        """Fail with what is wrong, and with what the sanitizer says to it or who wrote it."""
        message = f"With {in_words(case)}: {said(wrong)}"
        if self.is_skeleton():
            gaps = [n for n, line in enumerate(self.text.split("\n"), 1) if _GAP.search(line)]
            if gaps:
                self.fails(message, gaps, "Nothing is filled in yet.")
        if self.findings:
            self.fails(f"{message} A clue: {self.findings[0]}", self.findings[0].lines)
        report = simulate(self.exercise, case, kernel, count=True, quiet=True).report
        stores = [
            line
            for line, counts in report.by_line.items()
            if line and counts.get("global_store_requests")
        ]
        if not stores:
            self.fails(message, todo="No line of the kernel stores anything to global memory.")
        which = "line stores" if len(stores) == 1 else "lines store"
        self.fails(message, stores, f"The marked {which} the result. {wrong.advice}")

    def is_skeleton(self) -> bool:
        """Whether nothing is filled in yet."""
        return body(self.text).split() == self.exercise.skeleton.split()

    def be_right_on_gpu(self) -> None:
        exercise = self.exercise
        for case, kernel in zip(exercise.cases, self.kernels, strict=True):
            self.waiting.at(f"{RIGHT} on the GPU, {in_words(case)}")
            try:
                wrong = wrong_on_gpu(exercise, case, kernel)
            except (KernelError, SimulatorError):
                raise
            except Exception as error:
                panel = panel_of(error)
                self.fails(f"On the GPU, with {in_words(case)}: {panel.said[0]}", (), panel.todo)
            if wrong:
                message = f"On the GPU, with {in_words(case)}: {said(wrong)}"
                if self.findings:
                    self.fails(f"{message} A clue: {self.findings[0]}", self.findings[0].lines)
                self.fails(message, todo=wrong.advice)

    def have_no_race(self) -> None:
        if self.findings:
            finding = self.findings[0]
            self.fails(str(finding), finding.lines, self.in_another_order())
        if seen := self.in_another_order():
            self.fails(seen, todo="The result depends on which warp comes first.")
        self.passes(
            "No thread gets in another's way, and the result is the same if one warp runs after "
            "the other."
        )

    def in_another_order(self) -> str:
        """What is wrong, in a sentence, if one warp runs after the other between barriers."""
        exercise = self.exercise
        # A race that is there may hide in the first order.
        orders = {"warps": "one warp runs after the other"}
        if self.findings:
            orders["warps_reversed"] = "the last warp runs first"
        for schedule, order in orders.items():
            for case, kernel in zip(exercise.cases, self.kernels, strict=True):
                self.waiting.at(f"{NO_RACE}, {in_words(case)}")
                wrong = simulate(
                    exercise, case, kernel, count=False, schedule=schedule, quiet=True
                ).wrong
                if wrong:
                    return f"When {order}, with {in_words(case)}: {said(wrong)}"
        return ""

    def meet_goals(self) -> None:
        exercise = self.exercise
        if not exercise.goals:
            return
        self.waiting.at(GOAL)
        if self.report is None:
            case = exercise.counted
            kernel = kernel_of(exercise, self.text, case)
            self.report = simulate(exercise, case, kernel, count=True, quiet=True).report
        kernel = kernel_of(exercise, self.text, exercise.counted or exercise.cases[-1])
        said = []
        for goal in exercise.goals:
            bound = bound_of(exercise, goal)
            lines = lines_of(goal, kernel)
            value = measured(goal, self.report, lines)
            where = f" in line {lines[0]}" if lines else ""
            if value > bound * (1 + 1e-9):
                self.fails(
                    f"{amount(value)} {goal.words}{where}, and {amount(bound)} would do. "
                    f"{goal.said}",
                    lines or busiest(goal, self.report),
                )
            said.append(f"{amount(value)} {goal.words}{where}, at most {amount(bound)}")
        self.passes(f"{'; '.join(said)}.")

    def be_timed(self) -> None:
        if TIME not in self.names:
            return
        self.waiting.at(TIME)
        case = self.exercise.timed
        try:
            own, reference = (
                time_on_gpu(self.exercise, case, kernel_of(self.exercise, text, case))
                for text in (self.text, self.exercise.solution)
            )
        except Exception as error:  # times are told, not judged
            self.passes(f"It could not be timed: {first_line(error)}")
            return
        self.passes(
            f"With {in_words(case)} it takes {own:.3g} ms; the reference solution takes "
            f"{reference:.3g} ms."
        )

    # ------------------------------------------------------------------

    def lines_of(self, error: SimulatorError) -> list[int]:
        """Lines of the answer that an error is about: all that the compiler complains of."""
        own = [
            found.line
            for found in parse_log(self.log)
            if found.severity == "error" and found.file == f"{self.exercise.name}.cu"
        ]
        return own or [error.line]

    def sizes(self) -> str:
        return "with " + "; ".join(in_words(case) for case in self.exercise.cases)

    @contextlib.contextmanager
    def printing(self):
        """What the kernel prints is kept for the verdict, of the first case that prints."""
        if self.printed.getvalue():
            with contextlib.redirect_stdout(io.StringIO()):
                yield
        else:
            with contextlib.redirect_stdout(self.printed):
                yield


def refuse_launch(exercise: Exercise, case: Case, kernel: Kernel) -> None:
    """Compile to PTX, and raise Refused if what it declares does not fit the launch.

    Raises:
        SimulatorError: of kind `compile`.
        Refused: too much shared memory, or promises that the launch does not keep.
    """
    grid, block, shared = exercise.launch(case, kernel)
    reason = refusal_of(Launch(grid, block, {}, shared_mem=shared, kernel=kernel))
    if reason:
        raise Refused(reason)


def first_line(error: Exception) -> str:
    """The first line of an error's message, or its name."""
    return (str(error).strip() or type(error).__name__).split("\n")[0]


def said(wrong: Difference) -> str:
    """How many elements are wrong, in which pattern, and the first of them."""
    if not wrong.wrong:  # inexact, or of another shape
        return wrong.sentence
    text = f"{wrong.count}: {wrong.pattern}."
    if wrong.wrong != wrong.unwritten:
        index = ", ".join(map(str, wrong.first))
        text += f" {wrong.name}[{index}] is {short(wrong.got)} in place of {short(wrong.expected)}."
    return text


def in_words(case: Case) -> str:
    """`N = 37, d = 19`."""
    return ", ".join(f"{name} = {value:,}" for name, value in case.items())
