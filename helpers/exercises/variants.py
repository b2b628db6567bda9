"""Many variants of a kernel, compiled together: the compiler's start costs more than a kernel."""

import dataclasses
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..kernels.kernel import KERNELS, Kernel
from ..kernels.source import KernelError, expand_includes
from ..simulator.compile.compile_errors import parse_log
from ..simulator.errors import SimulatorError
from .answer import Refused, kernel_of
from .spec import Case, Exercise

_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b.*$", re.MULTILINE)
_UNROLL = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+unroll\b.*$", re.MULTILINE)
_LOOP = re.compile(r"^([ \t]*)(?=for\b)", re.MULTILINE)  # not unrolled, it compiles sooner
_FILE = "variant_"
_TRIES = 4  # each without the variants that the last one complained of


def compiled(exercise: Exercise, texts: Sequence[str], case: Case) -> list[Kernel | None]:
    """Kernels of several texts at a case; None where one does not compile.

    All have the arguments and parameters of the exercise.
    """
    made: list[Kernel | None] = [None] * len(texts)
    try:
        base = kernel_of(exercise, exercise.solution, case)
    except (SimulatorError, KernelError, Refused):
        return made
    left = list(range(len(texts)))
    for _ in range(_TRIES):
        if not left:
            break
        names = {n: f"{exercise.entry}__{n}" for n in left}
        code = _together(exercise, texts, names)
        kernels = {n: _kernel(base, code, name) for n, name in names.items()}
        try:
            kernels[left[0]].ptx()
        except SimulatorError as error:
            at_fault = _at_fault(error.log or "")
            if not at_fault:
                break
            left = [n for n in left if n not in at_fault]
            continue
        for n, kernel in kernels.items():
            made[n] = kernel
        break
    return made


def _kernel(base: Kernel, code: str, name: str) -> Kernel:
    function = dataclasses.replace(base._function, name=name)
    kernel = Kernel(base.file, base.source, base.code, function, base.parameters)
    kernel.code = code  # with the arguments of the one text, which are read sooner
    return kernel


def _together(exercise: Exercise, texts: Sequence[str], names: dict[int, str]) -> str:
    """One text of all, each in a namespace, and for the compiler each in a file of its own."""
    heads = list(dict.fromkeys(_INCLUDE.findall(exercise.solution)))
    with tempfile.TemporaryDirectory(prefix="variants_") as folder:
        path = Path(folder) / "variants.cu"
        path.write_text("\n".join([*heads, ""]), encoding="utf-8", newline="\n")
        pieces = [expand_includes(path, [KERNELS / "include"])]
    for n, name in names.items():
        text = re.sub(rf"\b{exercise.entry}\b", name, _INCLUDE.sub("", texts[n]))
        text = _LOOP.sub(r'\1_Pragma("unroll 1") ', _UNROLL.sub("", text))
        pieces.append(f'namespace variant_{n} {{\n#line 1 "{_FILE}{n}.cu"\n{text}\n}}')
    return "\n".join(pieces)


def _at_fault(log: str) -> set[int]:
    """The variants in whose lines there are errors."""
    files = {one.file or "" for one in parse_log(log) if one.severity == "error"}
    return {int(f.removeprefix(_FILE).removesuffix(".cu")) for f in files if f.startswith(_FILE)}
