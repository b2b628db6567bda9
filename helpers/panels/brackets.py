"""The bracket that is left open, or closes nothing: what many errors of a compiler come from."""

from collections.abc import Sequence

from helpers.simulator.compile.source_text import mask

_CLOSED_BY = {"(": ")", "[": "]", "{": "}"}


def unmatched(source: str, numbers: Sequence[int] = ()) -> tuple[int, str] | None:
    """Line and sentence of the first bracket of a source text without its other one, or None.

    Args:
        source: the text.
        numbers: what its lines are called; 1, 2, 3 ... if empty.
    """
    code = mask(source)
    numbers = numbers or range(1, code.count("\n") + 2)
    open_ones: list[tuple[str, int]] = []
    at = 0
    for character in code:
        line = numbers[at]
        if character == "\n":
            at += 1
        elif character in _CLOSED_BY:
            open_ones.append((character, line))
        elif character in ")]}":
            if not open_ones:
                return line, f"The {character} in line {line} closes nothing: is it one too many?"
            left, above = open_ones.pop()
            if _CLOSED_BY[left] != character:
                return line, (
                    f"The {left} in line {above} is not closed by a {_CLOSED_BY[left]} before the "
                    f"{character} in line {line}."
                )
    if not open_ones:
        return None
    left, line = open_ones[-1]
    return line, f"The {left} in line {line} is never closed by a {_CLOSED_BY[left]}."
