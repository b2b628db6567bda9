"""A check, step by step: compiles, right, no race, goals, and on a GPU the time."""

import contextlib
import io
import re

from ..gpu import device
from ..kernels.kernel import Kernel
from ..kernels.source import KernelError
from ..panels.brackets import unmatched
from ..panels.difference_map import DifferenceMap
from ..panels.error_panels import panel_of
from ..problem.flash_hopper import refused_here
from ..simulator.bounds.least import duration
from ..simulator.compile.compile_errors import parse_log
from ..simulator.compile.source_text import line_of, mask
from ..simulator.errors import SimulatorError
from ..simulator.observe.findings import Finding
from .answer import (
    Refused,
    kernel_of,
    kernel_of_solution,
    read_answer,
    refuse_a_changed_course,
    refuse_directives,
    refuse_includes,
    refuse_signature,
)
from .clues.certain import maps_well, matching
from .clues.meeting_lanes import why_missed
from .diagnosis import own_lines, unfilled, whole
from .explaining import of_a_race, of_a_result, of_an_error
from .goals import OTHER_WAYS, busiest, met, missed
from .spec import Case, Exercise
from .trial import Kept, Outcome, refuse_launch, simulate, time_on_gpu, wrong_on_gpu
from .verdict import FAILED, NOT_REACHED, PASSED, Step, Verdict
from .waiting_note import Waiting
from .wording import age, asked, first_line, in_words, said

BOUND_ON = "H200"  # that times are recorded of
COMPILES, RIGHT, NO_RACE, GOAL, TIME = "compiles", "right", "no race", "goal", "time"
_UNROLL = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+unroll\b(?![ \t]*[\w(])", re.MULTILINE)
_GAP = re.compile(r"//\s*Gap\b")
_PRINTED = 2000  # characters of what a kernel prints that are kept


def run(exercise: Exercise, source=None) -> Verdict:
    """Check an answer; see `helpers.exercises.check`."""
    check = _Check(exercise)
    try:
        check.run(source)
    except _Stop:
        if source is None:
            check.todo = f"{check.todo} {age(exercise)}".strip()
    finally:
        check.waiting.close()
    return check.verdict()


class _Stop(Exception):
    """A step has failed, and the check is over."""


class _Check:
    """A check under way."""

    def __init__(self, exercise: Exercise):
        self.exercise = exercise
        self.refused = refused_here("This exercise") if exercise.hopper else ""
        self.on_gpu = device.is_gpu and not self.refused
        self.names = [COMPILES, RIGHT, NO_RACE]
        if exercise.goals:
            self.names.append(GOAL)
        if self.on_gpu and exercise.timed:
            self.names.append(TIME)
        self.steps: list[Step] = []
        self.text, self.log, self.todo = "", "", ""
        self.picture: DifferenceMap | None = None
        self.case: Case | None = None  # that the simulator is at
        self.lines: tuple[int, ...] = ()
        self.printed = Kept(_PRINTED)
        self.waiting = Waiting(exercise.name)
        self.findings: list[Finding] = []
        self.report = None  # of the case at which the goals are looked at

    @property
    def current(self) -> str:
        """Name of the step that is next."""
        return self.names[len(self.steps)]

    def passes(self, message: str = "") -> None:
        self.steps.append(Step(self.current, PASSED, message))

    def fails(self, message: str, lines=(), todo: str = "", picture=None) -> None:
        self.steps.append(Step(self.current, FAILED, message))
        total = self.text.count("\n") + 1
        self.lines = tuple(sorted({n for n in lines if n and 1 <= n <= total}))
        self.todo, self.picture = todo, picture
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
            self.printed.told(),
            self.picture,
        )

    def run(self, source) -> None:
        exercise = self.exercise
        try:
            self.compile(source)
            self.be_right()
            if self.on_gpu:
                self.be_right_on_gpu()
            tried = "; ".join(map(in_words, exercise.cases))
            self.passes(f"The results are right with {tried}. {self.refused}".rstrip())
            self.have_no_race()
            self.meet_goals()
            self.be_timed()
        except Refused as error:
            self.fails(str(error), [error.line])
        except KernelError as error:
            todo = ""
            if "has no kernel" in str(error):
                todo = f"The check calls {exercise.entry}: the kernel has to have this name."
            self.fails(str(error), self.lines_named(str(error)), todo)
        except SimulatorError as error:
            self.log = error.log or ""
            self.fails(*of_an_error(exercise, self.text, self.case, error, self.lines_of(error)))
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
        refuse_a_changed_course(exercise)
        self.text = read_answer(exercise, source)
        refuse_includes(exercise, self.text)
        refuse_directives(exercise, self.text)
        self.kernels = [self.kernel_for(exercise.cases[0])]
        self.passes("The code compiles.")
        if unfilled(exercise, self.text):
            gaps = [n for n, line in enumerate(self.text.split("\n"), 1) if _GAP.search(line)]
            self.fails("Nothing is filled in yet.", gaps, f"What is asked: {asked(exercise)}")

    def kernel_for(self, case: Case) -> Kernel:
        """The answer's kernel at a case, compiled; that it cannot be is told of the first step."""
        exercise = self.exercise
        passed, self.steps = self.steps, []
        kernel = kernel_of(exercise, self.text, case)
        refuse_signature(exercise, kernel, kernel_of_solution(exercise, tuple(case.items())))
        refuse_launch(exercise, case, kernel)
        self.steps = passed
        return kernel

    def be_right(self) -> None:
        """Right numbers when all threads go together, as in a kernel without a race."""
        exercise = self.exercise
        for n, case in enumerate(exercise.cases):
            self.waiting.at(f"{RIGHT}, {in_words(case)}")
            if n:
                self.kernels.append(self.kernel_for(case))
            self.case = case
            counted = case == (exercise.counted or exercise.cases[-1])
            with self.printing():
                outcome = simulate(exercise, case, self.kernels[n], count=counted, sanitize=True)
            if counted:
                self.report = outcome.report
            self.findings += outcome.report.findings
            if outcome.changed:
                self.fails(
                    f"With {in_words(case)}: the kernel wrote to {outcome.changed}, which is an "
                    "input and stays as it is."
                )
            if outcome.wrong:
                self.explain(case, self.kernels[n], outcome)
        if self.findings:
            return
        self.be_right_without_unrolling()
        case = exercise.unseen(self.text)
        self.waiting.at(f"{RIGHT}, {in_words(case)}")
        kernel = self.kernel_for(case)
        self.case = case
        outcome = simulate(exercise, case, kernel, count=bool(exercise.goals), quiet=True)
        self.unseen = case, outcome.report
        if outcome.wrong:
            self.explain(case, kernel, outcome)

    def explain(self, case: Case, kernel: Kernel, outcome: Outcome) -> None:
        """Fail with what is wrong, and why as far as it is known."""
        finding = next(iter(self.findings), None)
        self.fails(*of_a_result(self.exercise, self.text, case, kernel, outcome, finding))

    def be_right_without_unrolling(self) -> None:
        """Where loops are unrolled, an array is in registers, and an index past its end vanishes.

        Without, such an array is in memory, where the simulator sees what is past its end.
        """
        text = _UNROLL.sub(r"\g<0> 1", self.text)
        if text == self.text:
            return
        exercise, case = self.exercise, self.exercise.cases[0]
        self.waiting.at(f"{RIGHT}, {in_words(case)}, no loop unrolled")
        kernel = kernel_of(exercise, text, case)
        wrong = simulate(exercise, case, kernel, count=False, quiet=True).wrong
        if wrong:
            self.fails(
                f"With {in_words(case)} and no loop unrolled: {said(wrong)}",
                [line_of(self.text, _UNROLL.search(self.text).start())],
                "What is right only if loops are unrolled uses an index past the end of an array, "
                "or a value that it has not set.",
            )

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
                self.fails(message, todo="On the simulator the result is right.")

    def have_no_race(self) -> None:
        if self.findings:
            order = self.in_another_order()
            self.fails(*of_a_race(self.exercise, self.text, self.findings[0], order))
        if seen := self.in_another_order():
            self.fails(seen, todo="The result depends on which warp comes first.")
        self.passes(
            "No thread gets in another's way, and the result is the same if one warp runs after "
            "the other."
        )

    def in_another_order(self) -> str:
        """What is wrong, in a sentence, if one warp runs after the other between barriers."""
        exercise = self.exercise
        orders = {
            "warps": "one warp runs after the other",
            "warps_reversed": "the last warp runs first",
        }
        last = len(exercise.cases) - 1
        for turn, (schedule, order) in enumerate(orders.items()):
            for n, (case, kernel) in enumerate(zip(exercise.cases, self.kernels, strict=True)):
                if not self.findings and (last - n) % 2 != turn:
                    continue  # each case in one order; a race that is there may hide in one
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
        case = exercise.counted or exercise.cases[-1]
        seen = case, self.report
        for case, report in (seen, self.unseen):
            for goal in (*exercise.goals, *OTHER_WAYS):
                if sentence := missed(exercise, goal, case, report):
                    if case is not seen[0]:
                        sentence = f"With {in_words(case)}: {sentence}"
                    clue = None
                    with contextlib.suppress(Exception):  # an answer may be anything
                        clue = why_missed(exercise, goal, self.text, case, report)
                    lines = (
                        clue.lines
                        if clue
                        else busiest(goal, report, own_lines(exercise, whole(self.text)))
                    )
                    self.fails(sentence, lines, clue.said if clue else "")
        code = "".join(mask(self.text).split())
        for text in exercise.keeps:
            if "".join(text.split()) not in code and not maps_well(exercise, self.text):
                self.fails(
                    f"The goal is met, but not by what this exercise is about: put back {text}"
                )
        if told := matching(exercise, self.text, exercise.never):
            self.fails(*told)
        least = self.report.bounds(BOUND_ON, assembled=False)  # at once
        self.passes(
            f"{'; '.join(met(exercise, goal, *seen) for goal in exercise.goals)}. "
            f"At least {duration(least.seconds)} on an {BOUND_ON}: {least.limit}."
        )

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
        file = f"{self.exercise.name}.cu"
        found = (d for d in parse_log(self.log) if d.severity == "error" and d.file == file)
        own = [diagnostic.line for diagnostic in found]
        if not own and self.log and (bracket := unmatched(self.text)):
            return [bracket[0]]
        return own or [error.line]

    def lines_named(self, message: str) -> list[int]:
        """The line that a message names, or that of the kernel, if it is the kernel's name."""
        if found := re.search(r"\blines? (\d+)", message):
            return [int(found[1])]
        code = mask(self.text)
        found = re.search(rf"\b{self.exercise.entry}\b|__global__", code)
        return [line_of(code, found.start())] if found else []

    @contextlib.contextmanager
    def printing(self):
        """What the kernel prints is kept for the verdict, of the first case that prints."""
        sink = io.StringIO() if self.printed.getvalue() else self.printed
        with contextlib.redirect_stdout(sink):
            yield
