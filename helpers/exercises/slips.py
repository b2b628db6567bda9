"""Slips that compile, and what they look like in the text: clues for a wrong result."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..kernels.kernel import Kernel
from ..simulator.compile.compile_errors import parse_log
from ..simulator.compile.compiler import compile_ptx
from ..simulator.compile.source_text import mask
from ..simulator.ptx.program import build, reads_and_writes
from ..simulator.ptx.syntax import Function

Clue = tuple[tuple[int, ...], str]

_CONDITION = re.compile(r"\b(if|for|while)\s*\(")
_ASSIGNS = re.compile(r"(?<![=!<>+\-*/%&|^])=(?!=)")
_CHAIN = re.compile(r"([\w.]+)\s*<=?\s*(?:[\w.]+|\([^()]*\))\s*<=?\s*[\w.]+")
_FOREIGN = {
    r"\bint\s+main\s*\(": "Line {line}: an answer holds a kernel and no main(), which belongs to a "
    "program on the CPU.",
    r"\bin\s+range\s*\(": "Line {line} has a loop of Python's: write for (int i = 0; i < n; i++).",
    r"\bif\s+\w[^\n;{]*:": "Line {line} has a condition of Python's: write if (...) and no : "
    "behind it.",
    r"\belif\b": "Line {line}: elif is Python's, and else if is C's.",
}
_SUM = re.compile(r"\bfloat\s+(\w+)\s*=\s*0[.0f]*\s*;")
_DECLARED = re.compile(
    r"(?<![\w.])(?:int|unsigned|float|double|half|size_t|bool|float4)\s+(\w+)\s*(?=[=;\[])"
)


def slips_of_text(text: str) -> list[Clue]:
    """What may be meant otherwise than it is written, (lines, sentence) each, from the text."""
    return list(dict.fromkeys([*_conditions(text), *_joined_comments(text), *_foreign(text)]))


def slips(kernel: Kernel, nan: bool) -> list[Clue]:
    """The same of a kernel that compiles, the surest first.

    Args:
        kernel: the kernel.
        nan: whether there is a NaN in its results, as there is if a variable has no first value.
    """
    text = kernel.source
    made = compile_ptx(kernel.code, kernel.options)
    module, mangled = kernel.ptx()
    functions = module.functions
    found = slips_of_text(text)
    if nan:
        found += _without_value(functions[mangled])
    found += [*_cut_off(functions.values()), *_hidden(text), *_overwritten(text)]
    found += _warned(made.log, kernel.file.name)
    return list(dict.fromkeys(found))


def _conditions(text: str) -> Iterator[Clue]:
    code = mask(text)
    for found in _CONDITION.finditer(code):
        word, line = found[1], text.count("\n", 0, found.start()) + 1
        end = _closing(code, found.end() - 1)
        inside = code[found.end() : end]
        condition = inside
        if word == "for":
            parts = inside.split(";")
            condition = parts[1] if len(parts) == 3 else ""
        if assigned := _ASSIGNS.search(condition):
            name = condition[: assigned.start()].split()[-1:] or ["a variable"]
            yield (
                (line,),
                f"The condition in line {line} gives {name[0].lstrip('(!')} a value: = sets, == "
                "compares.",
            )
        if chain := _CHAIN.search(condition):
            yield (
                (line,),
                f"Line {line} compares twice in a row: C compares what the first comparison "
                f"gives, 0 or 1, with the last number. Write two comparisons, joined by &&: "
                f"{' '.join(chain[0].split())} does not mean what it means in mathematics.",
            )
        after = re.compile(r"\s*;").match(code, end + 1)
        if after and word != "while":
            yield (
                (line,),
                f"The ; behind the brackets of the {word} in line {line} ends it there: what "
                "follows does not belong to it.",
            )


def _foreign(text: str) -> Iterator[Clue]:
    """What belongs to other languages, or to a program around a kernel."""
    code = mask(text)
    for pattern, sentence in _FOREIGN.items():
        if found := re.search(pattern, code):
            line = code.count("\n", 0, found.start()) + 1
            yield (line,), sentence.format(line=line)


def _closing(code: str, opening: int) -> int:
    depth = 0
    for at in range(opening, len(code)):
        depth += (code[at] == "(") - (code[at] == ")")
        if not depth:
            return at
    return len(code)


def _joined_comments(text: str) -> Iterator[Clue]:
    for line, row in enumerate(text.split("\n"), 1):
        if "//" in row and row.rstrip().endswith("\\"):
            yield (
                (line, line + 1),
                f"The \\ at the end of line {line} makes line {line + 1} a part of the comment.",
            )


def _without_value(function: Function) -> Iterator[Clue]:
    """Where a register is read on a way on which nothing was written to it."""
    blocks = build(function).blocks
    unset = blocks[0].live_in if blocks else 0
    lines = {i.line for i in function.instructions if reads_and_writes(i)[0] & unset and i.line}
    if lines:
        first = min(lines)
        yield (
            (first,),
            f"Line {first} uses a variable that may not have been given a value before.",
        )


def _cut_off(functions: Iterable[Function]) -> Iterator[Clue]:
    """Where a float becomes an integer."""
    code = (i for function in functions for i in function.instructions)
    lines = {i.line for i in code if i.opcode == "cvt" and "rzi" in i.modifiers and i.line}
    if lines:
        first = min(lines)
        yield (
            (first,),
            f"Line {first} turns a float into an int, which cuts off what is behind the point: is "
            "a variable there an int that should be a float?",
        )


def _hidden(text: str) -> Iterator[Clue]:
    """A variable that is declared again in an inner block."""
    code = mask(text)
    known: list[dict[str, int]] = [{}]
    declared = {found.start(1): found[1] for found in _DECLARED.finditer(code)}
    line, brackets = 1, 0
    for at, character in enumerate(code):
        if character == "\n":
            line += 1
        elif character == "{":
            known.append({})
        elif character == "}" and len(known) > 1:
            known.pop()
        brackets += (character == "(") - (character == ")")
        if at in declared and not brackets:
            name = declared[at]
            above = next((scope[name] for scope in known[:-1] if name in scope), None)
            if above is not None:
                yield (
                    (above, line),
                    f"Line {line} declares a second {name}, which hides that of line {above}.",
                )
            known[-1][name] = line


def _overwritten(text: str) -> Iterator[Clue]:
    """A sum that starts from 0 and is then set in a loop, never added to."""
    code = mask(text)
    for found in _SUM.finditer(code):
        name = found[1]
        changes = list(re.finditer(rf"(?<![\w.]){name}\s*([-+*/]?=)(?!=)([^;]*);", code))
        later = [c for c in changes if c.start() > found.end()]
        if len(later) != 1 or later[0][1] != "=" or re.search(rf"\b{name}\b", later[0][2]):
            continue
        between = code[found.end() : later[0].start()]
        if re.search(r"\bfor\s*\(", between) and "*" in later[0][2]:
            line = code.count("\n", 0, later[0].start()) + 1
            yield (line,), f"Line {line} gives {name} a new value in every turn: += adds to it."


def _warned(log: str, file: str) -> Iterator[Clue]:
    for found in parse_log(log):
        if found.severity == "warning" and found.line and found.file == file:
            said = found.message.rstrip(".")
            yield (found.line,), f"The compiler warns of line {found.line}: {said}."
