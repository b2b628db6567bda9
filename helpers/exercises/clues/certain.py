"""Mistakes that are certain once a result is wrong: in the map of a tile, or in the text."""

import re
from collections.abc import Sequence

from ...kernels.kernel import Kernel
from ...simulator.compile.source_text import line_of, mask
from ..diagnosis import Diagnosis, own_lines, whole
from ..spec import Case, Exercise
from .parities import of_the_parities
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
        told = told or matching(exercise, text, exercise.signs)
        if told is None and kernel is not None:
            told = of_the_lines(exercise, text, case, kernel)
    if not lines:
        told = told or matching(exercise, text, exercise.signs) or of_the_parities(exercise, text)
        told = told or _returns_early(exercise, text)
        if told is None and kernel is None:
            told = _in_turns_of_their_own(exercise, text)
    return Diagnosis(told[0], tuple(told[1])) if told else None


def stores_by_adding(exercise: Exercise, text: str) -> list[int]:
    """Lines that add to an output by an atomic, where no line stores to it."""
    code = mask(text)
    names = "|".join(exercise.outputs)
    if re.search(rf"\b(?:{names})\s*\[[^;]*\]\s*=(?!=)", code):
        return []
    rows = code.split("\n")
    pattern = rf"\batomic\w+\s*\(\s*(?:&\s*)?(?:{names})\b"
    return [n for n, row in enumerate(rows, 1) if re.search(pattern, row)]


def maps_well(exercise: Exercise, text: str) -> bool:
    """Whether an answer's map of a tile, however it is written, is one to one in each row."""
    return exercise.place is not None and of_the_map(exercise, text, exercise.cases[0]) is None


def matching(
    exercise: Exercise, text: str, patterns: Sequence[tuple[str, str]]
) -> tuple[str, list[int]] | None:
    """The sentence of the first pattern that is in a line of a student's own, and that line."""
    code, own = mask(text), own_lines(exercise, whole(text))
    for pattern, sentence in patterns:
        for found in re.finditer(pattern, code):
            line = line_of(code, found.end() - 1)
            if line in own:
                return sentence, [line]
    return None


def _of_threads(text: str, condition: str) -> bool:
    """Whether a condition is another for each thread: a name in it comes from threadIdx."""
    code = mask(text)
    known = {"threadIdx"}
    sets = re.findall(r"(\w+)(?:\s*\[[^\]]*\])?\s*[-+*/]?=(?!=)([^;]*);", code)
    for _ in sets:
        new = {name for name, value in sets if known & set(re.findall(r"\w+", value))} - known
        if not new:
            break
        known |= new
    return bool(known & set(re.findall(r"\w+", condition)))


def _returns_early(exercise: Exercise, text: str) -> tuple[str, list[int]] | None:
    rows = mask(text).split("\n")
    waits = [n for n, row in enumerate(rows, 1) if "__syncthreads()" in row]
    for n in sorted(own_lines(exercise, whole(text))):
        later = [wait for wait in waits if wait > n]
        leaves = re.search(r"\bif\b(.*)\breturn\s*;", rows[n - 1])
        if later and leaves and _of_threads(text, leaves[1]):  # else whole blocks return
            return (
                f"Threads that return in line {n} never come to the barrier of line {later[0]}, "
                "and what they should copy for others is missing: let them go on, and guard the "
                "accesses.",
                [n],
            )
    return None


def _in_turns_of_their_own(exercise: Exercise, text: str) -> tuple[str, list[int]] | None:
    """A loop with a barrier that some threads of a block go through more often than others."""
    code, own = mask(text), own_lines(exercise, whole(text))
    for loop in re.finditer(r"\b(?:for|while)\s*\(((?:[^(){}]|\([^()]*\))*)\)\s*\{", code):
        end = _closing(code, loop.end() - 1)
        barrier = code.rfind("__syncthreads()", loop.end(), end)
        if barrier < 0:
            continue
        line, last = line_of(code, loop.start()), line_of(code, barrier)
        for name in _bounds(loop[1]):
            sets = list(re.finditer(rf"(?<![\w.]){name}\s*=(?!=)([^;]*);", code[: loop.start()]))
            if (
                sets
                and (n := line_of(code, sets[-1].start())) in own
                and _of_threads(code[: loop.start()], sets[-1][1])
            ):
                return (
                    f"Line {n} gives threads of a block another `{name}` each, so they go through "
                    f"the loop of line {line} in turns of their own. Its barriers need all of "
                    "them in every turn: let it be the same for the whole block.", [n],
                )  # fmt: skip
        for skip in re.finditer(r"\bif\s*\(([^;{}]*)\)\s*\{?\s*(continue|break)\s*;", code):
            n = line_of(code, skip.start())
            inner = re.search(r"\b(?:for|while)\s*\(", code[loop.end() : skip.start()])
            depth = code.count("{", loop.end(), skip.start()) - code.count(
                "}", loop.end(), skip.start()
            )
            if not loop.end() <= skip.start() < barrier or n not in own or (inner and depth):
                continue
            if _of_threads(code[: skip.start()], skip[1]):
                return (
                    f"Threads that {skip[2]} in line {n} never come to the barrier of line "
                    f"{last}, at which the others wait for them.", [n],
                )  # fmt: skip
    return None


def _bounds(header: str) -> list[str]:
    """Names in the beginning and in the condition of a loop, but its own variable."""
    parts = header.split(";")
    own = re.findall(r"(\w+)\s*=(?!=)", parts[0]) if len(parts) == 3 else []
    names = re.findall(r"[A-Za-z_]\w*", " ".join(parts[:2]))
    return [name for name in dict.fromkeys(names) if name not in (*own, "int", "const")]


def _closing(code: str, opening: int) -> int:
    """Where the brace at `opening` is closed."""
    depth = 0
    for at in range(opening, len(code)):
        depth += (code[at] == "{") - (code[at] == "}")
        if not depth:
            return at
    return len(code)
