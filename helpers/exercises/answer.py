"""Reading an answer: from a text or a file to a kernel that fits the exercise, or a sentence."""

import functools
import os
import re
import tempfile
from pathlib import Path

from ..kernels.kernel import Kernel, load_kernel
from ..kernels.source import KernelError, Parameter, kernel_functions, parameters, read
from ..simulator.compile.source_text import has_computed_include, includes, line_of, mask
from .spec import Case, Exercise

ANSWERS = "my_kernels"
_MOST_BYTES = 200_000


class Refused(Exception):
    """Why an answer cannot be taken, in a sentence; `line` is the line that matters, or None."""

    def __init__(self, message: str, line: int | None = None):
        super().__init__(message)
        self.line = line


def read_answer(exercise: Exercise, source) -> str:
    """The text of an answer; line ends become newlines.

    Args:
        exercise: what it answers.
        source: text, path of a file, or None for the student's own file.

    Raises:
        Refused: there is none, or it is not text.
    """
    if source is None:
        path = Path(ANSWERS) / f"{exercise.name}.cu"
        if not path.is_file():
            raise Refused(
                f"There is no {ANSWERS}/{exercise.name}.cu yet: run the cell that begins with "
                f"%%kernel {exercise.name}.cu first."
            )
        text = _from_file(path)
    elif isinstance(source, os.PathLike) or (
        isinstance(source, str) and "\n" not in source and source.strip().endswith(".cu")
    ):
        text = _from_file(Path(source))
    elif isinstance(source, str):
        text = source
    else:
        raise Refused(
            f"An answer is a text of CUDA C or the path of a .cu file, not {type(source).__name__}."
        )
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if text.startswith("%%"):  # a whole cell, as one copies it
        text = f"// {text}"
    if "\0" in text:
        raise Refused(
            "The answer holds a zero byte, which no source text does: save it as UTF-8.",
            line_of(text, text.index("\0")),
        )
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise Refused("The answer holds half a character: save it as UTF-8.")
    if not text.strip():
        raise Refused("The answer is empty: start again from the exercise's cell.")
    if len(text) > _MOST_BYTES:
        raise Refused(
            f"The answer has {len(text):,} characters; an exercise needs a few thousand, and "
            f"{_MOST_BYTES:,} is the most that is read."
        )
    return text


def _from_file(path: Path) -> str:
    if path.is_file() and path.stat().st_size > 4 * _MOST_BYTES:
        raise Refused(f"{path.name} has {path.stat().st_size:,} bytes: that is no exercise.")
    try:
        return read(path)
    except KernelError as error:
        line = re.search(r"line (\d+)", str(error))
        raise Refused(str(error), int(line[1]) if line else None) from None


def body(text: str) -> str:
    """An answer without the line that names its cell."""
    first, _, rest = text.partition("\n")
    return rest if first.startswith("// %%kernel ") else text


def refuse_includes(exercise: Exercise, text: str) -> None:
    """Raise Refused if the answer includes what the solution does not and the toolkit lacks."""
    own = {include.name for include in includes(exercise.solution) if include.quoted}
    for include in includes(text):
        name = include.name
        foreign = include.quoted and name not in own
        if foreign or ".." in name or name.startswith("/") or name.endswith(".cu"):
            line = line_of(text, include.start)
            allowed = f" but {', '.join(sorted(own))}" if own else ""
            raise Refused(
                f"Line {line} includes {name}: an answer stands alone, with no file of the "
                f"course{allowed}; headers of the CUDA toolkit are in angle brackets.",
                line,
            )
    if has_computed_include(text):
        raise Refused("An #include of the answer names its file by a macro: write the name out.")


def refuse_a_changed_course(exercise: Exercise) -> None:
    """Raise Refused if the solution that answers are held against is not what it was."""
    try:
        functions = kernel_functions(exercise.solution, exercise.file.name)
        if exercise.entry in functions and exercise.marked and declared(exercise) is not None:
            return
        reason = "its kernel or its marked lines are gone"
    except KernelError as error:
        reason = str(error)
    raise changed_course(exercise, reason)


def changed_course(exercise: Exercise, reason: str) -> Refused:
    """What is said where the solution itself does not do any more."""
    file = f"kernels/exercises/{exercise.file.name}"
    return Refused(
        f"The course's own {file} has been changed ({reason.split(chr(10))[0].rstrip('.')}): put "
        f"it back, for example with git checkout {file}, and restart the notebook's kernel. Your "
        f"own file is {ANSWERS}/{exercise.file.name}."
    )


# What would make parameters, lines or launches others than they are, and what is said of it.
_DIRECTIVES = {
    r"^[ \t]*#[ \t]*undef[ \t]+(\w+)": "takes {} away, which the check sets: take the line out.",
    r"^[ \t]*(?:#|%:|\?\?=)(?:[ \t]|\\\n)*(line\b|\d)": "gives the lines below it other numbers, "
    "so that nobody could tell where a fault lies: take this directive out.",
    r"\b(__cluster_dims__)\b": "asks for clusters, and the check launches none: take it out.",
}


def refuse_directives(exercise: Exercise, text: str) -> None:
    """Raise Refused for what would make lines, parameters or launches others than they are."""
    code = mask(text)
    for pattern, said in _DIRECTIVES.items():
        for found in re.finditer(pattern, code, re.MULTILINE):
            if "undef" not in found[0] or found[1] in declared(exercise):
                line = line_of(code, found.start())
                raise Refused(f"Line {line} {said.format(found[1])}", line)


def kernel_of(exercise: Exercise, text: str, case: Case) -> Kernel:
    """The kernel of an answer with the parameters that the exercise and the case set.

    Raises:
        Refused: a parameter is no longer declared.
        KernelError: the file has no such kernel or value, or an include is missing.
    """
    known = declared(exercise)
    values = {name: parameter.default for name, parameter in known.items()}
    values |= {name: value for name, value in case.items() if name in known}
    file = f"{exercise.name}.cu"
    own = parameters(text, file)
    missing = [name for name in known if name not in own]
    if missing and exercise.entry in kernel_functions(text, file):
        used = re.search(rf"\b{missing[0]}\b", mask(text))
        raise Refused(
            f"The check sets {missing[0]}, which the answer no longer declares: put back the lines "
            f"from #ifndef {missing[0]} to its #endif, the comment with its choices as well.",
            line_of(text, used.start()) if used else None,
        )
    with tempfile.TemporaryDirectory(prefix="answer_") as folder:
        path = Path(folder) / file
        path.write_text(text, encoding="utf-8", newline="\n")
        values = {name: value for name, value in values.items() if name in own}
        return load_kernel(path, exercise.entry, **values)


@functools.lru_cache(maxsize=128)
def kernel_of_solution(exercise: Exercise, case: tuple) -> Kernel:
    """The kernel of the solution at a case, given as its items."""
    return kernel_of(exercise, exercise.solution, dict(case))


@functools.lru_cache(maxsize=64)
def declared(exercise: Exercise) -> dict[str, Parameter]:
    """The parameters that the solution declares."""
    return parameters(exercise.solution, exercise.file.name)


def refuse_signature(exercise: Exercise, kernel: Kernel, solution: Kernel) -> None:
    """Raise Refused if the kernel takes other arguments than the solution."""
    wanted = [(a.pointer, a.dtypes, a.vector) for a in solution.arguments]
    alike = [(a.pointer, a.dtypes, a.vector) for a in kernel.arguments] == wanted
    names, own = ([a.name for a in k.arguments] for k in (solution, kernel))
    if alike and (own == names or sorted(own) != sorted(names)):
        return
    called = ", ".join(a.declaration for a in solution.arguments)
    has = ", ".join(a.declaration for a in kernel.arguments) or "nothing"
    raise Refused(
        f"The check calls {exercise.entry}({called}), but the answer's kernel takes {has}: put "
        "its arguments back.",
        kernel.lines(exercise.entry)[0],
    )
