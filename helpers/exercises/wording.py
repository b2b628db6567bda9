"""What a check says of a case, of an error, and of what is wrong."""

import re
import time
from pathlib import Path

from ..panels.difference import Difference
from ..panels.numbers import short
from .answer import ANSWERS
from .spec import Case, Exercise


def first_line(error: Exception) -> str:
    """The first line of an error's message, or its name."""
    return (str(error).strip() or type(error).__name__).split("\n")[0]


# Places that may come about by chance, and say nothing of the cause.
_PERIOD = re.compile(
    r", every \d+\w\w \w+, from \d+|(?:, and )?each of them is 1 times what it should be.*"
    r"| \(√.*?\)$"
)
_ROOT = re.compile(r" \(1/√.*?\)")
_BY_CHANCE = ("every k-th", "scattered", "everywhere")


def said(wrong: Difference, root: bool = False) -> str:
    """How many elements are wrong, in which pattern, and the first of them.

    Args:
        root: whether a factor is known to come of 1/√d.
    """
    if not wrong.wrong:  # inexact, or of another shape
        return wrong.sentence
    text = f"{wrong.count}."
    if wrong.kind not in _BY_CHANCE:
        pattern = _PERIOD.sub("", wrong.pattern)
        pattern = pattern if root else _ROOT.sub("", pattern)
        text = f"{wrong.count}: {pattern}." if pattern else text
    if wrong.wrong != wrong.unwritten:
        index = ", ".join(map(str, wrong.first))
        text += f" {wrong.name}[{index}] is {short(wrong.got)} in place of {short(wrong.expected)}."
    return text


def in_words(case: Case) -> str:
    """`N = 37, d = 19`."""
    return ", ".join(f"{name} = {value:,}" for name, value in case.items())


def age(exercise: Exercise) -> str:
    """How old the student's file is, if it is not fresh: the cell may have been edited since."""
    path = Path(ANSWERS) / exercise.file.name
    try:
        minutes = int((time.time() - path.stat().st_mtime) // 60)
    except OSError:
        return ""
    if minutes < 1:  # a student knows what the file holds
        return ""
    ago = "a minute" if minutes == 1 else f"{minutes} minutes"
    if minutes >= 120:
        ago = f"{minutes // 60} hours" if minutes < 2880 else f"{minutes // 1440} days"
    return (
        f"Looked at was {ANSWERS}/{path.name} as its cell was run {ago} ago: run the cell again if "
        "you have edited it since."
    )


def asked(exercise: Exercise) -> str:
    """The task without the marks of LaTeX."""
    text = re.sub(r"\\(?:[A-Za-z]+|.)\s*", "", exercise.task)
    return " ".join(re.sub(r"[${}^]", "", text).split())
