"""What the simulator's table of pure PTX instructions is made of.

The evaluators expect NumPy's floating-point warnings to be off (`np.errstate(all="ignore")`): they
compute with infinities and NaNs on purpose, and switching the state inside each of them would
cost more than the arithmetic of a small array.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


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


Builder = Callable[[tuple[str, ...]], Operation | None]

# PTX ISA 9.0, "Fundamental Types"; bf16 has no NumPy type and stays in its bits.
TYPES: dict[str, np.dtype] = {
    "pred": np.dtype(np.bool_),
    **{
        kind + bits: np.dtype(f"{'i' if kind == 's' else 'u'}{int(bits) // 8}")
        for kind in "sub"
        for bits in ("8", "16", "32", "64")
    },
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "bf16": np.dtype(np.uint16),
    "f16x2": np.dtype(np.uint32),
    "bf16x2": np.dtype(np.uint32),
    "u16x2": np.dtype(np.uint32),
    "s16x2": np.dtype(np.uint32),
    "tf32": np.dtype(np.uint32),
}

SIGNED = frozenset(("s8", "s16", "s32", "s64"))
UNSIGNED = frozenset(("u8", "u16", "u32", "u64"))
BITS = frozenset(("b8", "b16", "b32", "b64"))
FLOATS = frozenset(("f16", "f32", "f64", "bf16"))


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


def first_of(*builders: Builder) -> Builder:
    """A builder that asks each of `builders` in turn and takes the first answer."""

    def build(modifiers: tuple[str, ...]) -> Operation | None:
        for builder in builders:
            found = builder(modifiers)
            if found is not None:
                return found
        return None

    return build


def same_type(evaluate: Callable, operands: int, kinds: frozenset[str]) -> Builder:
    """A builder of `opcode.kind` whose operands and result all have that type."""

    def build(modifiers: tuple[str, ...]) -> Operation | None:
        if len(modifiers) != 1 or modifiers[0] not in kinds:
            return None
        return signature(evaluate, " ".join(modifiers * operands), modifiers[0])

    return build
