"""Tables of machine code: what kernels take, and how many instructions of a kind they have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from ..kernels import Kernel, KernelError
from ..simulator import MachineCode
from ..simulator.compile.machine_code import lacking
from ..simulator.compile.sass import KINDS, MachineInstruction
from .tables import Table

_FACTS = {
    "registers": "registers",
    "bytes spilled": "spilled_bytes",
    "local memory": "local_bytes",
    "static shared memory": "static_shared",
}


def machine_table(
    kernels: Mapping[str, Kernel | MachineCode],
    columns: Sequence[str],
    line: str | None = None,
    architecture: str = "sm_90",
    loop: bool = False,
) -> Table:
    """A row for each kernel, from its machine code for a GPU that need not be here.

    Args:
        kernels: by what they are called in the table; or the code of some already.
        columns: each `registers`, a number of bytes (`bytes spilled`, `local memory`, `static
            shared memory`), `instructions`, a kind such as `fp32`, or an opcode such as `LDS.128`
            or, with all that is like it, `LDSM*`.
        line: instructions are counted in lines that hold this text alone.
        architecture: the GPU's.
        loop: whether instructions are counted in the longest loop alone.

    Returns:
        The table; on a machine that cannot make machine code, a sentence in its place.

    Raises:
        KernelError: no line holds the text.
        SimulatorError: a kernel does not compile, or there is no such architecture.
    """
    if lacks := lacking():
        return Table(["", *columns], [], lacks)
    rows, made_for = [], {}
    for name, kernel in kernels.items():
        code = kernel.machine_code(architecture) if isinstance(kernel, Kernel) else kernel
        made_for[code.architecture] = None  # sm_90a for a kernel of Hopper alone
        rows.append((name, *(_value(code, kernel, column, line, loop) for column in columns)))
    headings = [column.removesuffix("*") for column in columns]
    counted = "; instructions of the longest loop" if loop else ""
    return Table(["", *headings], rows, f"Machine code for {', '.join(made_for)}{counted}.")


def longest_loop(code: MachineCode) -> tuple[MachineInstruction, ...]:
    """The instructions from a label to the last jump back to it, of the loop that has most."""
    labels = {one.label: n for n, one in enumerate(code.instructions) if one.label}
    longest = range(0)
    for n, one in enumerate(code.instructions):
        first = labels.get(one.text.rpartition(" ")[2].strip("`()"), n + 1)
        if one.opcode.startswith("BRA") and len(found := range(first, n + 1)) > len(longest):
            longest = found
    return tuple(code.instructions[n] for n in longest)


def _value(
    code: MachineCode, kernel: Kernel | MachineCode, column: str, line: str | None, loop: bool
) -> int:
    if column in _FACTS:
        return getattr(code, _FACTS[column])
    found = longest_loop(code) if loop else code.instructions
    if line is not None:
        if not isinstance(kernel, Kernel):
            raise KernelError("Lines are looked up by their text in kernels, not in their code.")
        found = [one for n in kernel.lines(line, whole=True) for one in code.by_line.get(n, ())]
    if column == "instructions":
        return len(found)
    if column in KINDS:
        return sum(one.kind == column for one in found)
    return sum(fnmatchcase(one.opcode.removesuffix(".FTZ"), column) for one in found)
