"""PTX text in, a program out: functions, variables and instructions with their source lines.

Only the syntax is dealt with here; what an instruction means is in the table of `instructions`
and in `steps`. The grammar is chapter 4 ("Syntax") and 5 ("State Spaces, Types, and Variables")
of the PTX ISA manual, as far as NVRTC and inline assembly use it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

TYPE_SIZES = {
    "pred": 1, "b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2,
    "b32": 4, "u32": 4, "s32": 4, "f32": 4, "f16x2": 4, "bf16x2": 4,
    "b64": 8, "u64": 8, "s64": 8, "f64": 8, "b128": 16,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reg:
    """A register operand: its slot in the function, its type's size in bytes (0: predicate)."""

    slot: int
    size: int
    name: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """A byte (b0 … b3) or half (h0, h1) of a 32-bit register, in a video instruction."""

    register: Reg
    size: int  # bytes
    shift: int  # bits


@dataclass(frozen=True, slots=True)
class Imm:
    """A literal. `value` is an int, or a float with `bits` when written as 0f… or 0d…."""

    value: int | float
    bits: int | None = None
    bits_size: int = 0


@dataclass(frozen=True, slots=True)
class Special:
    """A special register such as %tid.x."""

    name: str


@dataclass(frozen=True, slots=True)
class Sym:
    """The address of a variable, parameter or function, plus a constant."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Mem:
    """[base + offset]: base is a Reg, a Sym or None (an absolute address)."""

    base: Reg | Sym | None
    offset: int


@dataclass(frozen=True, slots=True)
class Vec:
    """{a, b, …}"""

    items: tuple


@dataclass(slots=True)
class Instruction:
    """One PTX instruction. `index` is its place in the function: the program counter."""

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple
    predicate: Reg | None
    line: int | None
    text: str
    index: int = 0
    column: int = 0
    file: int = 1
    pair: bool = False  # the first destination was written p|q
    serial: int = 0  # number in the module, for tallies
    # What ptxas makes of it (see `ptxas`): the (offset, bytes) that are really accessed here, or
    # None for the access as written; and whether a branch in front of it counts it.
    plan: tuple | None = None
    predicated_off: bool = False
    used_bytes: int | None = None  # a bit for each byte of a load that anything reads; None: all

    @property
    def name(self) -> str:
        """The full mnemonic, such as ld.global.f32."""
        return ".".join((self.opcode, *self.modifiers))


@dataclass(slots=True)
class Variable:
    """A module- or function-level variable in memory. `size` is in bytes, 0 for extern []."""

    name: str
    space: str
    align: int
    size: int
    element: str
    initial: list = field(default_factory=list)


@dataclass(slots=True)
class Param:
    """A parameter of a kernel or function: its size and alignment in bytes."""

    name: str
    type: str
    size: int
    align: int
    is_pointer: bool = False


@dataclass(slots=True)
class Function:
    """A kernel (`entry`) or device function."""

    name: str
    entry: bool
    params: list[Param]
    returns: list[Param]
    registers: list[tuple[str, int]]  # (name, size in bytes; 0 for predicates)
    instructions: list[Instruction]
    labels: dict[str, int]
    variables: dict[str, Variable]
    tables: dict[str, list[str]]  # .branchtargets
    nounroll: set[int]  # instruction indices in front of which .pragma "nounroll" stood
    bounds: dict[str, int]  # .maxntid and the like
    lines: tuple[int, int] | None = None
    fault: Exception | None = None  # why the body could not be read


@dataclass(slots=True)
class Module:
    """A parsed PTX file."""

    functions: dict[str, Function]
    variables: dict[str, Variable]
    files: dict[int, str]


def parse(text: str, main_file: str | None = None) -> Module:
    """Parse PTX text.

    `main_file` is the name that the source had when it was compiled; lines of other files (headers)
    are mapped to the line of the main file that they were inlined at. A function with a statement
    that cannot be read has a `fault`, the SimulatorError ("unsupported") to raise if it is needed.
    Raises SimulatorError where a function's head cannot be read.
    """
    from .ptx_parser import Parser

    return Parser(text, main_file).module()
