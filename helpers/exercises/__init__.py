"""Exercises: kernels with gaps, and checks that say what is wrong, where and why.

    from helpers.exercises import check     # also loads the %%kernel cell magic

    check("03_window")                       # my_kernels/03_window.cu, as %%kernel wrote it
    check("03_window", "path/to/answer.cu")  # or a file, or the text of one

A solution is in `kernels/exercises/`; the lines that a student has to write end in `//!` there.

A wrong result is compared with what each of the exercise's misconceptions gives, and the sentence
of one that gives the same is said:

    Misconception("Rows and columns of K are exchanged: ...", (("old text", "new text"),))
    Misconception("The mask hides nothing: ...", results={"S": lambda Q, K: Q @ K.T})

The first is the solution with a change, run as a kernel; the second is a NumPy function, as in
`Exercise.results`. The sentence names what is confused with what, and gives no code of the answer.
"""

from typing import TYPE_CHECKING

from . import magic
from .checking import run
from .spec import Exercise, Goal, Misconception, find
from .verdict import Step, Verdict

__all__ = ["EXERCISES", "Exercise", "Goal", "Misconception", "Step", "Verdict", "check", "exercise",
           "skeleton", "solution"]  # fmt: skip

if TYPE_CHECKING:
    from ..chapters import EXERCISES


magic.register()


def __getattr__(name: str):
    if name == "EXERCISES":
        return _exercises()
    raise AttributeError(f"module 'helpers.exercises' has no attribute {name!r}")


def _exercises() -> tuple[Exercise, ...]:
    from ..chapters import EXERCISES  # late: chapters are made of what is here

    return EXERCISES


def exercise(name: str) -> Exercise:
    """The exercise of that name.

    Raises:
        KernelError: there is none.
    """
    return find(_exercises(), name)


def skeleton(name: str) -> str:
    """What students start from: the solution without its marked lines."""
    return exercise(name).skeleton


def solution(name: str) -> str:
    """Text of the solution, without the markers."""
    return exercise(name).solution


def check(name: str, source=None) -> Verdict:
    """Check an answer: compiles, right, no race, goals; on a GPU its time as well.

    Nothing in the answer raises an error: whatever is wrong is in the verdict.

    Args:
        name: the exercise, such as `03_window`.
        source: text of the answer, or the path of a file; `my_kernels/NAME.cu` if None.

    Raises:
        KernelError: there is no such exercise.
    """
    return run(exercise(name), source)
