"""What a PTX file holds: functions, variables and instructions with their source lines.

Only the syntax is dealt with here (`ptx_parser` reads it); what an instruction means is in the
table of `instructions` and in `steps`. The grammar is chapter 4 ("Syntax") and 5 ("State Spaces,
Types, and Variables") of the PTX ISA manual, as far as NVRTC and inline assembly use it.
"""

from dataclasses import dataclass, field

import numpy as np

from ..errors import SimulatorError
from ..isa.instruction_types import TYPES

SPACES = frozenset(("global", "shared", "local", "param", "const"))
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


_TEXTURES = (
    "textures and surfaces: pass the array itself, and clamp or wrap the index in the kernel"
)
CLUSTERS = (
    "clusters of blocks: let every block work alone, and share between blocks through global memory"
)
_LATER = "tensor memory, which GPUs after Hopper have: use mma.sync or wmma"
# What the simulator has not: by the start of an instruction's name, and what to do without.
IDEAS = {
    **dict.fromkeys(("tex.", "tld4.", "txq.", "suld.", "sust.", "sured.", "suq."), _TEXTURES),
    **dict.fromkeys(("mapa.", "getctarank.", "st.async", "red.async"), CLUSTERS),
    "tcgen05.": _LATER,
    "mov.b128": "128-bit atomics: lock with a word of 32 bits, or pack what changes into 64",
    "multimem.": "memory of several GPUs: there is one",
    "alloca.": "arrays whose size is known only when the kernel runs: fix it, or use malloc()",
}


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


def items_of(operand) -> tuple:
    """The items of a vector operand; any other operand alone."""
    return operand.items if isinstance(operand, Vec) else (operand,)


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

    @property
    def space(self) -> str:
        """The state space that the instruction names; "generic" if none."""
        heads = (m.split("__")[0] for m in self.modifiers)
        return next((head for head in heads if head in SPACES), "generic")

    @property
    def vector_length(self) -> int:
        """2 for .v2 and so on, 1 for a scalar."""
        return next((int(m[1:]) for m in self.modifiers if m in ("v2", "v4", "v8")), 1)

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the elements that a load or store moves."""
        dtype = TYPES.get(self.modifiers[-1])
        if dtype is None:
            raise self.unsupported(f"cannot move elements of type {self.modifiers[-1]}")
        return dtype

    def unsupported(self, why: str) -> SimulatorError:
        """The error for something that the simulator cannot execute.

        It names the idea where that is a known one, and the instruction where it is not.
        """
        idea = next((told for start, told in IDEAS.items() if self.name.startswith(start)), "")
        what = f"has no {idea}." if idea else (
            f"{why}: `{self.text}`; run this kernel on a GPU, or write the line another way."
        )  # fmt: skip
        return SimulatorError("unsupported", f"line {self.line}: the simulator {what}", self.line)


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
    fault: Exception | None = None  # why the body could not be read


@dataclass(slots=True)
class Module:
    """A parsed PTX file. `symbols` remembers what `ptxas.used_symbols` has found."""

    functions: dict[str, Function]
    variables: dict[str, Variable]
    files: dict[int, str]
    target: str = ""  # the architecture, such as sm_90
    symbols: dict[str | None, set[str]] = field(default_factory=dict, repr=False, compare=False)
