# ruff: noqa: E501 (kernel text reads better unbroken)
"""Single PTX instructions on chosen operands, many to a kernel."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from .cases import Case, Stream
from .instruction_list import all_specs
from .operands import operand, related
from .spec import Spec

COUNT = 192  # operand tuples an instruction
PER_KERNEL = 24  # instructions a kernel

_LETTER = {"16": "h", "32": "r", "64": "l"}


def _type(kind: str) -> tuple[str, str, str, str]:
    """asm constraint, C type, and C expressions (with `@`) from and to raw bits."""
    kind = kind.split(">")[0]
    if kind in ("f32", "angle"):
        return "f", "float", "__uint_as_float((unsigned)@)", "__float_as_uint(@)"
    if kind == "f64":
        return "d", "double", "__longlong_as_double((long long)@)", "__double_as_longlong(@)"
    if kind in ("b64",):
        return "l", "unsigned long long", "@", "@"
    if kind in ("b8", "b16", "f16", "bf16"):
        return "h", "unsigned short", "(unsigned short)@", "@"
    return "r", "unsigned", "(unsigned)@", "@"


def width(kind: str) -> int:
    """Bits that a result of `kind` takes in a register."""
    return {"h": 16, "r": 32, "f": 32, "l": 64, "d": 64}[_type(kind)[0]]


@dataclass(frozen=True)
class Group:
    """Instructions that share one kernel."""

    name: str
    specs: tuple[Spec, ...]
    seed: int

    def operands(self) -> np.ndarray:
        """All operands as uint64, shape (operands of all instructions, COUNT)."""
        rows = []
        for position, spec in enumerate(self.specs):
            stream = Stream(11, self.seed, position)
            own: list[np.ndarray] = []
            for index, kind in enumerate(spec.inputs):
                values = operand(stream, kind, COUNT)
                if index and kind == spec.inputs[index - 1] and kind not in ("pred", "shift"):
                    values = related(stream, own[-1], values)
                own.append(values)
            rows += own
        return np.array(rows, np.uint64)

    def slots(self) -> list[tuple[int, int]]:
        """(instruction, width in bits) of each row of results."""
        return [(i, width(kind)) for i, spec in enumerate(self.specs) for kind in spec.outputs]

    def code(self) -> str:
        """The kernel's CUDA C: y[slot][i] = instruction(x[operand][i], ...)."""
        lines = [
            'extern "C" __global__ void k(const unsigned long long* x, unsigned long long* y, int n) {',
            "  int i = blockIdx.x * blockDim.x + threadIdx.x;",
            "  if (i >= n) return;",
        ]
        row = slot = 0
        for spec in self.specs:
            lines.append(f"  {{  // {spec.name}")
            sources, targets, stores = [], [], []
            for k, kind in enumerate(spec.outputs):
                letter, ctype, _, to_bits = _type(kind)
                lines.append(f"    {ctype} d{k};")
                targets.append(f'"={letter}"(d{k})')
                stores.append(f"    y[{slot} * n + i] = {to_bits.replace('@', f'd{k}')};")
                slot += 1
            for k, kind in enumerate(spec.inputs):
                letter, ctype, from_bits, _ = _type(kind)
                lines.append(f"    {ctype} s{k} = {from_bits.replace('@', f'x[{row} * n + i]')};")
                sources.append(f'"{letter}"(s{k})')
                row += 1
            lines.append(
                f'    asm volatile("{spec.asm}" : {", ".join(targets)} : {", ".join(sources)});'
            )
            lines += stores + ["  }"]
        return "\n".join([*lines, "}", ""])

    def case(self) -> Case:
        """The launch that gives every result of the group."""

        def make_args() -> list:
            slots = len(self.slots())
            return [self.operands(), np.zeros((slots, COUNT), np.uint64), np.int32(COUNT)]

        return Case(self.name, self.code(), "k", (COUNT // 64,), (64,), make_args, (1,))

    def single(self, position: int) -> Group:
        """The group that holds one of the instructions, with the operands it has here."""
        return _Single(f"{self.name}[{position}]", (self.specs[position],), self.seed, position)


@dataclass(frozen=True)
class _Single(Group):
    position: int = 0

    def operands(self) -> np.ndarray:
        whole = next(group for group in groups() if group.seed == self.seed)
        start = sum(len(spec.inputs) for spec in whole.specs[: self.position])
        return whole.operands()[start : start + len(self.specs[0].inputs)]


@functools.cache
def groups() -> tuple[Group, ...]:
    """Every group, in order; the names begin with the subject."""
    result: list[Group] = []
    for subject, specs in all_specs().items():
        for start in range(0, len(specs), PER_KERNEL):
            name = f"{subject}_{start // PER_KERNEL}"
            result.append(Group(name, tuple(specs[start : start + PER_KERNEL]), len(result)))
    return tuple(result)


def pack(group: Group, results: np.ndarray) -> dict[str, np.ndarray]:
    """Results (slots, COUNT) as one array a width, so that the file stays small."""
    slots = group.slots()
    packed = {}
    for bits, dtype in ((16, np.uint16), (32, np.uint32), (64, np.uint64)):
        rows = [k for k, (_, slot_bits) in enumerate(slots) if slot_bits == bits]
        if rows:
            packed[f"{group.name}/{bits}"] = results[rows].astype(dtype)
    return packed


def unpack(group: Group, data: dict[str, np.ndarray]) -> np.ndarray:
    """The inverse of `pack`: uint64, shape (slots, COUNT)."""
    slots = group.slots()
    results = np.zeros((len(slots), COUNT), np.uint64)
    for bits in (16, 32, 64):
        rows = [k for k, (_, slot_bits) in enumerate(slots) if slot_bits == bits]
        if rows:
            results[rows] = data[f"{group.name}/{bits}"]
    return results
