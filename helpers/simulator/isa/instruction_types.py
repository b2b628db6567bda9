"""What the simulator's table of pure PTX instructions is made of.

The evaluators expect NumPy's floating-point warnings to be off (`np.errstate(all="ignore")`): they
compute with infinities and NaNs on purpose, and switching the state inside each of them would
cost more than the arithmetic of a small array.
"""

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
U8, U16, U32, U64 = (np.dtype(f"u{size}") for size in (1, 2, 4, 8))
I16, I32, I64 = (np.dtype(f"i{size}") for size in (2, 4, 8))
BOOL = np.dtype(np.bool_)


@dataclass(frozen=True, slots=True)
class Operation:
    """One pure PTX instruction: how to compute it and the types it computes in.

    `evaluate(*inputs)` gives an array, or a tuple of arrays when there are several `outputs`. It
    broadcasts its inputs and writes into none of them. `inputs` and `outputs` are the NumPy
    dtypes of the operands (`np.bool_` for predicates). With `reads_carry`, evaluate takes the
    carry flag as one more boolean array; with `writes_carry` it returns `(result, carry)`.
    `flops` is what a profiler counts for one thread: 2 for an fma, 1 for an add or a multiply,
    twice that for packed pairs, 0 for anything else.
    """

    evaluate: Callable
    inputs: tuple[np.dtype, ...]
    outputs: tuple[np.dtype, ...]
    reads_carry: bool = False
    writes_carry: bool = False
    flops: int = 0


# PTX ISA 9.0, "Fundamental Types"; bf16 has no NumPy type and stays in its bits.
TYPES: dict[str, np.dtype] = {
    "pred": BOOL,
    **{
        kind + bits: np.dtype(f"{'i' if kind == 's' else 'u'}{int(bits) // 8}")
        for kind in "sub"
        for bits in ("8", "16", "32", "64")
    },
    **{"f16": F16, "f32": F32, "f64": F64, "bf16": U16},
    **dict.fromkeys(("f16x2", "bf16x2", "u16x2", "s16x2", "tf32"), U32),
}

SIGNED = frozenset(("s8", "s16", "s32", "s64"))
UNSIGNED = frozenset(("u8", "u16", "u32", "u64"))
BITS = frozenset(("b8", "b16", "b32", "b64"))
FLOATS = frozenset(("f16", "f32", "f64", "bf16"))
INTEGERS = SIGNED | UNSIGNED
INTEGER = "|".join(sorted(INTEGERS))  # for patterns of `form`
WORDS = "u32|s32|u64|s64"


def width(kind: str) -> int:
    """The number of bits of a PTX type's value, e.g. 32 for `s32` and for `f16x2`."""
    return TYPES[kind].itemsize * 8


def signature(evaluate: Callable, inputs: str, outputs: str, **properties: object) -> Operation:
    """An Operation from type names: `signature(np.add, "u32 u32", "u32")`."""
    return Operation(
        evaluate,
        tuple(TYPES[kind] for kind in inputs.split()),
        tuple(TYPES[kind] for kind in outputs.split()),
        **properties,  # type: ignore[arg-type]
    )


def uniform(evaluate: Callable, kind: str, operands: int, **properties: object) -> Operation:
    """An Operation whose operands and result all have one type."""
    return signature(evaluate, " ".join([kind] * operands), kind, **properties)


# opcode -> its forms: the pattern of the whole name, and what makes the Operation of one
FORMS: dict[str, list[tuple[re.Pattern, Callable[..., Operation | None]]]] = {}


def form(*patterns: str) -> Callable[[Callable], Callable]:
    """Declare the forms of an instruction; the decorated function makes its Operation.

    Patterns look as the PTX manual writes a form: in `(min|max)[.ftz].(f16|bf16)` round brackets
    hold alternatives, square ones what may be left out, and `*` stands for any modifiers. The
    function is called with what stands in each bracket (None where it is left out); it returns
    None for a combination that PTX does not have. Forms are tried in the order of declaration.
    """

    def register(make: Callable[..., Operation | None]) -> Callable[..., Operation | None]:
        for pattern in patterns:
            optional = re.sub(r"\[([^][()]*)\]", r"(\1)?", pattern)
            optional = optional.replace("[", "(?:").replace("]", ")?")
            whole = re.compile(optional.replace(".", r"\.").replace("*", ".+"))
            head = re.match(r"[\w|()]+", pattern)[0]
            parts = [part.split("|") for part in re.findall(r"[\w|]+", head)]
            for opcode in map("".join, itertools.product(*parts)):
                FORMS.setdefault(opcode, []).append((whole, make))
        return make

    return register
