"""Numbers, indices and lists as a sentence has them."""

from collections.abc import Sequence

import numpy as np


def power(value: float) -> str:
    """A small number as one writes it: 3.3e-7."""
    if not value or not np.isfinite(value):
        return f"{value:g}"
    digits, _, exponent = f"{value:.1e}".partition("e")
    return f"{digits.removesuffix('.0')}e{int(exponent)}"


def size(value: float) -> str:
    """An error: 3.3e-7, and in plain digits from a hundredth on."""
    return short(value) if value >= 0.01 and np.isfinite(value) else power(value)


def short(value: float) -> str:
    """Four digits of a number."""
    return f"{value:.4g}"


def listed(words: Sequence[str]) -> str:
    """One, two and three."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else ""


def ordinal(number: int) -> str:
    """2nd, 3rd, 4th, 11th."""
    last = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10)
    return f"{number:,}{last or 'th'}"


def plural(axis: str) -> str:
    """Rows, columns, indices."""
    return "indices" if axis == "index" else f"{axis}s"


def spans(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """The runs of neighbours in ascending numbers: (first, last) of each."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def places(axis: str, numbers: Sequence[int], most: int = 4) -> str:
    """`row 3`, `rows 3 and 7`, `rows 96 to 99`; of more than `most` runs the first ones."""
    runs = spans(sorted(numbers))
    if len(numbers) == 1:
        return f"{axis} {numbers[0]}"
    shown = [f"{a}" if a == b else f"{a} {'and' if b == a + 1 else 'to'} {b}" for a, b in runs]
    if len(runs) == 2 and runs[0][1] == runs[0][0] + 1:  # not "3 and 4 and 9"
        shown[0] = f"{runs[0][0]}, {runs[0][1]}"
    if len(shown) > most:
        return f"{plural(axis)} {', '.join(shown[:most])} and {len(shown) - most} more"
    return f"{plural(axis)} {listed(shown)}"
