"""Pure instructions against what an NVIDIA H200 computed, 32 operand tuples each.

`data/h200_pure_instructions.npz` was recorded with CUDA 13.0, every instruction alone in an asm
statement of a kernel compiled for sm_90. `names` lists the instructions; `words8` to `words64` hold
their operands and results (predicates as bytes), instruction after instruction, operands before
results. Beside them are the results of the 16-bit functions for each of the 65536 operands.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from instruction_oracles import find, run

DATA = Path(__file__).parents[2] / "data" / "h200_pure_instructions.npz"
ROWS = 32
# What an approximation may differ by: relative and absolute, by PTX's bounds for the hardware.
BOUNDS = {
    "div": (2.0**-21, 0.0),
    "rcp": (2.0**-22, 0.0),
    "sqrt": (2.0**-22, 0.0),
    "rsqrt": (2.0**-22, 0.0),
    "ex2": (2.0**-22, 0.0),
    "lg2": (2.0**-22, 2.0**-22),
    "sin": (0.0, 2.0**-20.5),
    "cos": (0.0, 2.0**-20.5),
    "tanh": (2.0**-10.9, 0.0),
}


@functools.cache
def recorded() -> dict[str, np.ndarray]:
    with np.load(DATA) as data:
        return {key: data[key] for key in data.files}


@functools.cache
def rows() -> dict[str, tuple[list[np.ndarray], list[np.ndarray]]]:
    """name -> operands and results, in the types of the instruction."""
    data = recorded()
    position = dict.fromkeys((8, 16, 32, 64), 0)

    def take(dtype: np.dtype) -> np.ndarray:
        width = 8 * dtype.itemsize
        start = position[width]
        position[width] += ROWS
        return data[f"words{width}"][start : start + ROWS].view(dtype)

    return {
        name: ([take(d) for d in find(name).inputs], [take(d) for d in find(name).outputs])
        for name in str(data["names"]).split()
    }


def opcodes() -> list[str]:
    return sorted({name.split(".")[0] for name in rows()})


def agree(name: str, got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Where two results are equal in all bits, or within the bounds of an approximation."""
    raw = f"u{got.dtype.itemsize}"
    same = np.ascontiguousarray(got).view(raw) == np.ascontiguousarray(want).view(raw)
    opcode, *modifiers = name.split(".")
    if got.dtype == np.float64:
        same |= np.isnan(got) & np.isnan(want)  # PTX leaves the payload open
    if got.dtype.kind != "f" or not {"approx", "full"} & set(modifiers):
        return same
    relative, absolute = BOUNDS[opcode]
    if got.dtype == np.float64 and "ftz" in modifiers:
        relative = 2.0**-18  # only the upper word is computed
    with np.errstate(all="ignore"):
        off = np.absolute(got.astype(np.float64) - want)
        bound = absolute + relative * np.absolute(want.astype(np.float64))
        return same | (off <= np.maximum(bound, 2.0**-149))  # at least one unit of a subnormal


@pytest.mark.parametrize("opcode", opcodes())
def test_as_the_gpu(opcode: str) -> None:
    wrong = []
    for name, (inputs, outputs) in rows().items():
        if name.split(".")[0] != opcode:
            continue
        results = run(name, *inputs)
        results = results if isinstance(results, tuple) else (results,)
        for got, want in zip(results, outputs, strict=True):
            right = agree(name, np.broadcast_to(got, want.shape), want)
            if not right.all():
                i = int(np.argmin(right))
                wrong.append(f"{name} of {[a[i] for a in inputs]}: {got[i]}, on the GPU {want[i]}")
    assert not wrong, "\n".join(wrong)


def test_the_recording_covers_the_table() -> None:
    assert len(rows()) > 1000
    assert {len(a) for inputs, outputs in rows().values() for a in (*inputs, *outputs)} == {ROWS}


# Operands of all 65536 whose result may be one unit off.
@pytest.mark.parametrize(
    ("name", "off_by_one"),
    [
        ("ex2.approx.f16", 0),
        ("ex2.approx.ftz.bf16", 0),
        ("tanh.approx.bf16", 2),
        ("tanh.approx.f16", 60),
    ],
)
def test_every_operand_of_the_half_functions(name: str, off_by_one: int) -> None:
    every = np.arange(65536, dtype=np.uint16)
    got = run(name, every).view(np.uint16)
    off = np.absolute(got.astype(np.int32) - recorded()[name])
    assert off.max() <= 1
    assert np.count_nonzero(off) <= off_by_one
