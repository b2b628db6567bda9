"""What a check says of a case, of an error, and of what is wrong."""

from __future__ import annotations

from ..panels.difference import Difference
from ..panels.numbers import short
from .spec import Case


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
