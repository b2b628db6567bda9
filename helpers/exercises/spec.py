"""What an exercise is: its texts, sizes it is tried at, what is right, misconceptions, goals."""

import functools
import inspect
import re
import textwrap
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from ..kernels.kernel import KERNELS, Kernel
from ..kernels.lookup import meant
from ..kernels.source import KernelError, Value, parameters, read

FOLDER = KERNELS / "exercises"
MARKER = "//!"
_MARKED = re.compile(rf"[ \t]*{MARKER}[ \t]*$", re.MULTILINE)

Case = Mapping[str, Value]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Goal:
    """A bound on a counter, met by the solution.

    Attributes:
        counter: one of `helpers.simulator.COUNTERS`, or `shared_bytes` of a block.
        said: what it comes to where it is missed, and why that matters: one or two sentences that
            follow the numbers, as in "Q's tile is loaded again for every tile of S."
        at_most: the bound; None means what the solution has, times `slack`.
        slack: factor on the solution's count.
        at_least: a part of the solution's count, and then it is the least that is wanted, with no
            upper bound: 0.5 is half of what the solution has.
        name: what the counter is called in the verdict; its name with spaces if empty.
    """

    counter: str
    said: str
    at_most: float | None = None
    slack: float = 1.0
    at_least: float | None = None
    name: str = ""

    @property
    def words(self) -> str:
        """What is bounded, in words: `shared load wavefronts`."""
        return self.name or self.counter.replace("_", " ")


@dataclass(frozen=True, eq=False, repr=False)
class Misconception:
    """A way to be wrong that students take, and what it gives: by either `changes` or `results`.

    Attributes:
        sentence: what is confused with what, in a student's terms, without the answer's code: "The
            last level of the tree is missing: two partial sums are left, and one is stored."
        changes: (old text, new text) pairs; each old text is in the solution exactly once.
        results: as `Exercise.results`, for those of the outputs that come out otherwise.
    """

    sentence: str
    changes: tuple[tuple[str, str], ...] = ()
    results: Mapping[str, Callable[..., np.ndarray]] | None = None

    def __repr__(self) -> str:
        """No more than that it is one: what it holds tells the answer."""
        return f"{type(self).__name__}(...)"

    def __post_init__(self) -> None:
        if bool(self.changes) == bool(self.results):
            raise ValueError(f"A misconception has either changes or results: {self.sentence!r}")

    def text(self, solution: str) -> str:
        """The solution with its changes.

        Raises:
            ValueError: an old text is not in the solution exactly once.
        """
        for old, _ in self.changes:
            if solution.count(old) != 1:
                raise ValueError(f"The solution has {old!r} {solution.count(old)} times, not once.")
        for old, new in self.changes:
            solution = solution.replace(old, new)
        return solution


@dataclass(frozen=True)
class PlaceMap:
    """A function of an exercise, `place(row, column)`, that says where a tile keeps a column.

    Attributes:
        name: of the function.
        column: what a column is called: chunk, or element.
        rows, columns: of the tile.
        row: how far apart rows begin, in elements of the shared array.
        each: how far apart the places in a row are.
        tiles: where tiles with this map begin, by the name of the shared array.
    """

    name: str
    column: str
    rows: int
    columns: int
    row: int
    each: int
    tiles: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, eq=False, repr=False)
class Exercise:
    """A kernel with gaps, and how an answer is checked.

    Attributes:
        name: such as `03_window`, of chapter 3; the solution is `kernels/exercises/03_window.cu`.
        title: a few words.
        task: one or two sentences.
        hints: a nudge, and then nearly the way, for those who are stuck; shown one by one.
        entry: the kernel's name.
        cases: sizes to try, such as `{"N": 37, "d": 19}`, odd and asymmetric ones among them. A
            name that the file declares as a parameter sets that, as in `{"N": 37, "TILE": 8}`.
        launch: `launch(case, kernel)` gives (grid, block, bytes of dynamic shared memory);
            `kernel.parameters["TILE"].value` is a parameter's value.
        arguments: `arguments(case)` gives the kernel's arguments by name, in order: NumPy arrays
            and numbers. Asymmetric, so that a transposed answer is not right by luck.
        results: by the name of each array that the kernel writes, a function of arguments that
            gives what it should hold. Its parameters are called as they are; arrays come in
            float64. The kernel finds these arrays poisoned.
        tolerance: largest relative error that is rounding.
        goals: bounds on counters, in the order in which they are looked at.
        counted: the case at which the goals are looked at; the last one if None.
        timed: the case that is timed on a GPU; nothing is timed if None.
        keeps: texts that the answer has to keep, blanks apart, since the goals alone could be met
            without what the exercise is about.
        never: (pattern, sentence) pairs: what an answer that gives right results may not have in
            lines of its own, and why.
        unlike: values that parameters take in the case that no answer is made for, if not any.
        misconceptions: known ways to be wrong, the likelier first; a wrong result is compared with
            what each of them gives.
        explanation: why the solution works; shown with the solution, never before.
        place: the map of its tiles, if it is about one.
        signs: (pattern, sentence) pairs: what a wrong answer shows in its text, if it matches.
    """

    name: str
    title: str
    task: str
    hints: tuple[str, str]
    entry: str
    cases: tuple[Case, ...]
    launch: Callable[[Case, Kernel], tuple[Shape, Shape, int]]
    arguments: Callable[[Case], dict[str, Any]]
    results: Mapping[str, Callable[..., np.ndarray]]
    tolerance: float = 2e-6
    goals: tuple[Goal, ...] = ()
    counted: Case | None = None
    timed: Case | None = None
    keeps: tuple[str, ...] = ()
    never: tuple[tuple[str, str], ...] = ()
    unlike: Mapping[str, Value] = field(default_factory=lambda: MappingProxyType({}))
    misconceptions: tuple[Misconception, ...] = ()
    explanation: str = ""
    place: PlaceMap | None = None
    signs: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        """Its name and title: hints, misconceptions and the explanation tell the answer."""
        return f"{type(self).__name__}({self.name!r}, {self.title!r})"

    @property
    def chapter(self) -> int:
        """Number of the chapter that it belongs to."""
        return int(self.name[:2])

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the arrays that the kernel writes."""
        return tuple(self.results)

    def expected(self, arguments: Mapping[str, Any], results=None) -> dict[str, np.ndarray]:
        """What each output should hold, by name, in float64; or what other `results` give."""

        def exact(name: str) -> Any:
            value = arguments[name]
            return value.astype(np.float64) if isinstance(value, np.ndarray) else value

        return {
            name: result(*map(exact, inspect.signature(result).parameters))
            for name, result in (results or self.results).items()
        }

    def unseen(self, text: str) -> Case:
        """A case that an answer cannot be made for: larger than all others, and its text decides.

        Parameters take a value that no other case has, if there is one.
        """
        seed = zlib.crc32(text.encode("utf-8", "replace")) % 2
        known = parameters(self.solution, self.file.name)
        case: dict[str, Value] = {}
        for n, name in enumerate(dict.fromkeys([name for c in self.cases for name in c])):
            if name not in known:
                case[name] = max(c[name] for c in self.cases if name in c) + 1 + 3 * seed + n
        for name, parameter in known.items():
            seen = {c.get(name, parameter.default) for c in self.cases}
            new = [choice for choice in parameter.choices if choice not in seen]
            choices = new or parameter.choices
            case[name] = self.unlike.get(name, choices[seed % len(choices)])
        return case

    @property
    def file(self) -> Path:
        """The solution with its marked lines, `kernels/exercises/NAME.cu`."""
        return FOLDER / f"{self.name}.cu"

    @functools.cached_property
    def marked(self) -> frozenset[int]:
        """Numbers of the marked lines of the solution."""
        lines = read(self.file).split("\n")
        return frozenset(n for n, line in enumerate(lines, 1) if _MARKED.search(line))

    @functools.cached_property
    def hopper(self) -> bool:
        """Whether it needs a GPU of compute capability 9.0, or the simulator."""
        return self.file.exists() and "hopper.cuh" in self.solution

    @functools.cached_property
    def solution(self) -> str:
        """Text of the solution, without the markers."""
        return _MARKED.sub("", read(self.file))

    @functools.cached_property
    def skeleton(self) -> str:
        """What students start from: the solution without its marked lines."""
        return "\n".join(line for line in read(self.file).split("\n") if not _MARKED.search(line))

    @functools.cached_property
    def answer(self) -> str:
        """The marked lines, each group of them below the line that precedes it."""
        lines = self.solution.split("\n")
        groups: list[list[str]] = []
        last = -1
        for number in sorted(self.marked):
            if number - 1 == last:
                groups[-1].append(lines[number - 1])
            elif number - 2 == last:  # a single line between the two
                groups[-1] += [lines[number - 2], lines[number - 1]]
            else:
                above = number - 2
                while all(line.lstrip().startswith("//") for line in lines[above - 1 : above + 1]):
                    above -= 1  # a comment of several lines is kept whole
                groups.append(lines[above:number])
            last = number
        return "\n\n".join(textwrap.dedent("\n".join(group)) for group in groups)


def find(exercises: tuple[Exercise, ...], name: str) -> Exercise:
    """The exercise of that name; `.cu` at its end does no harm.

    Raises:
        KernelError: there is none.
    """
    known = {one.name: one for one in exercises}
    wanted = str(name).removesuffix(".cu")
    if wanted in known:
        return known[wanted]
    asked = meant(wanted, known)
    raise KernelError(f"There is no exercise {wanted!r}; there are {', '.join(known)}.{asked}")
