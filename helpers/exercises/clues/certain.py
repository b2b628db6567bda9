"""Mistakes that are certain once a result is wrong: in the map of a tile, or in the text."""

import re

from ...kernels.kernel import Kernel
from ...simulator.compile.source_text import line_of, mask
from ..diagnosis import Diagnosis, own_lines, whole
from ..spec import Case, Exercise
from .place_maps import of_the_lines, of_the_map


def certain(
    exercise: Exercise, text: str, case: Case, kernel: Kernel | None = None, lines: bool = False
) -> Diagnosis | None:
    """What is certain of an answer that is wrong, or None.

    Args:
        text: the answer.
        case: where it is wrong.
        kernel: its kernel at that case, or None if that does not run to its end.
        lines: only what a line does beside the map of a tile.
    """
    told = None
    if exercise.place is not None:
        told = None if lines else of_the_map(exercise, text, case)
        if told is None and kernel is not None:
            told = of_the_lines(exercise, text, case, kernel)
    if not lines:
        told = told or _signs(exercise, text) or _returns_early(exercise, text)
    return Diagnosis(told[0], tuple(told[1])) if told else None


def _signs(exercise: Exercise, text: str) -> tuple[str, list[int]] | None:
    code, own = mask(text), own_lines(exercise, whole(text))
    for pattern, sentence in exercise.signs:
        for found in re.finditer(pattern, code):
            line = line_of(code, found.end() - 1)
            if line in own:
                return sentence, [line]
    return None


def _returns_early(exercise: Exercise, text: str) -> tuple[str, list[int]] | None:
    rows = mask(text).split("\n")
    waits = [n for n, row in enumerate(rows, 1) if "__syncthreads()" in row]
    for n in sorted(own_lines(exercise, whole(text))):
        later = [wait for wait in waits if wait > n]
        if later and re.search(r"\bif\b.*\breturn\s*;", rows[n - 1]):
            return (
                f"Threads that return in line {n} never come to the barrier of line {later[0]}, "
                "and what they should copy for others is missing: let them go on, and guard the "
                "accesses.",
                [n],
            )
    return None
