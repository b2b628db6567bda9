"""Slips that compile, and what they look like in the text: clues for a wrong result."""

import re
from collections import ChainMap
from collections.abc import Iterable, Iterator

from ..kernels.kernel import Kernel
from ..simulator.compile.compile_errors import parse_log
from ..simulator.compile.compiler import compile_ptx
from ..simulator.compile.source_text import line_of, mask
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
_SURE = re.compile(r"no effect|before its value is set|out of bounds|unreachable")
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
    module, mangled = kernel.ptx()
    functions = module.functions
    found = slips_of_text(text)
    if nan:
        found += _without_value(functions[mangled])
    found += [*_cut_off(functions.values()), *_hidden(text), *_overwritten(text)]
    found += _warned(compile_ptx(kernel.code, kernel.options).log, kernel.file.name)
    return list(dict.fromkeys(found))


def _conditions(text: str) -> Iterator[Clue]:
    code = mask(text)
    for found in _CONDITION.finditer(code):
        word, line = found[1], line_of(text, found.start())
        end = _closing(code, found.end() - 1)
        condition = code[found.end() : end]
        if word == "for":
            parts = condition.split(";")
            condition = parts[1] if len(parts) == 3 else ""
        if assigned := _ASSIGNS.search(condition):
            name = condition[: assigned.start()].split()[-1:] or ["a variable"]
            what = f"The condition in line {line} gives {name[0].lstrip('(!')} a value"
            yield (line,), f"{what}: = sets, == compares."
        if chain := _CHAIN.search(condition):
            yield (
                (line,),
                (
                    f"Line {line} compares twice in a row: C compares what the first comparison "
                    f"gives, 0 or 1, with the last number. Write two comparisons, joined by &&: "
                    f"{' '.join(chain[0].split())} does not mean what it means in mathematics."
                ),
            )
        if word != "while" and re.compile(r"\s*;").match(code, end + 1):
            where = f"The ; behind the brackets of the {word} in line {line} ends it there"
            yield (line,), f"{where}: what follows does not belong to it."


def _foreign(text: str) -> Iterator[Clue]:
    """What belongs to other languages, or to a program around a kernel."""
    code = mask(text)
    for pattern, sentence in _FOREIGN.items():
        if found := re.search(pattern, code):
            line = line_of(code, found.start())
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
            said = f"The \\ at the end of line {line} makes line {line + 1} a part of the comment."
            yield (line, line + 1), said


def _without_value(function: Function) -> Iterator[Clue]:
    """Where a register is read on a way on which nothing was written to it."""
    blocks = build(function).blocks
    unset = blocks[0].live_in if blocks else 0
    lines = {i.line for i in function.instructions if reads_and_writes(i)[0] & unset and i.line}
    if lines:
        said = f"Line {min(lines)} uses a variable that may not have been given a value before."
        yield (min(lines),), said


def _cut_off(functions: Iterable[Function]) -> Iterator[Clue]:
    """Where a float becomes an integer."""
    code = (i for function in functions for i in function.instructions)
    lines = {i.line for i in code if i.opcode == "cvt" and "rzi" in i.modifiers and i.line}
    if lines:
        yield (
            (min(lines),),
            (
                f"Line {min(lines)} turns a float into an int, which cuts off what is behind the "
                "point: is a variable there an int that should be a float?"
            ),
        )


def _hidden(text: str) -> Iterator[Clue]:
    """A variable that is declared again in an inner block."""
    code = mask(text)
    known: ChainMap[str, int] = ChainMap()  # the innermost block first
    declared = {found.start(1): found[1] for found in _DECLARED.finditer(code)}
    brackets = 0
    for at, character in enumerate(code):
        if character == "{":
            known = known.new_child()
        elif character == "}":
            known = known.parents
        brackets += (character == "(") - (character == ")")
        if at in declared and not brackets:
            name, line = declared[at], line_of(code, at)
            if (above := known.parents.get(name)) is not None:
                said = f"Line {line} declares a second {name}, which hides that of line {above}."
                yield (above, line), said
            known[name] = line


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
            line = line_of(code, later[0].start())
            yield (line,), f"Line {line} gives {name} a new value in every turn: += adds to it."


def _warned(log: str, file: str) -> Iterator[Clue]:
    for found in parse_log(log):
        sure = _SURE.search(found.message)
        if found.severity == "warning" and found.line and found.file == file and sure:
            said = found.message.rstrip(".")
            yield (found.line,), f"The compiler warns of line {found.line}: {said}."
