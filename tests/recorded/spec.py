"""What one recorded instruction is, and short ways to write it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Spec:
    """One instruction: its asm text and what goes in and out (kinds of `operands.operand`).

    `approximate` is None where PTX defines every bit, else (format, relative, absolute): the results are numbers of
    that format and may differ by that much. The bounds are PTX's own for the instruction, doubled, since both
    sides err.
    """

    name: str
    asm: str
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    approximate: tuple[str, float, float] | None = None


def ins(name: str, output: str, *inputs: str, approximate=None, tail: str = "") -> Spec:
    """An instruction of the plain form `name d, a, b, ...;`, `tail` being immediate operands."""
    places = ", ".join(f"%{i}" for i in range(len(inputs) + 1))
    return Spec(f"{name}{tail}", f"{name} {places}{tail};", (output,), inputs, approximate)


def block(name: str, asm: str, outputs: Iterable[str], *inputs: str, approximate=None) -> Spec:
    """Several instructions in braces."""
    return Spec(name, "{ " + asm + " }", tuple(outputs), inputs, approximate)


def predicate(name: str, *inputs: str) -> Spec:
    """An instruction whose result is a predicate, stored as 0 or 1."""
    places = ", ".join(f"%{i + 1}" for i in range(len(inputs)))
    return block(name, f".reg .pred p; {name} p, {places}; selp.b32 %0, 1, 0, p;", ["b32"], *inputs)


def bits(kind: str) -> str:
    """The kind of raw operands of a PTX type: s32 -> b32, f32 -> f32."""
    return f"b{kind[1:]}" if kind[0] in "su" else kind
