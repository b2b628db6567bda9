"""How near a result must be to the recorded one."""

from __future__ import annotations

import numpy as np

from .cases import Case
from .instructions import Group

# Sums of products in a tensor core: PTX defines neither their order nor how much of a small product
# is kept. Bounds in units of the largest magnitude that enters the sum.
MMA_BOUND = {"f32": 2.0**-22, "f16": 2.0**-10}
ROUNDED_BOUND = (
    1e-5  # of the largest value, where a kernel's own text leaves roundings to the compiler
)

_FLOATS = {16: np.float16, 32: np.float32, 64: np.float64}
_UNSIGNED = {16: np.uint16, 32: np.uint32, 64: np.uint64}


def _lanes(values: np.ndarray, kind: str) -> np.ndarray:
    """Raw uint64 results of format `kind` as float64; packed formats give a second axis."""
    if kind.endswith("x2"):
        halves = [values & np.uint64(0xFFFF), values >> np.uint64(16) & np.uint64(0xFFFF)]
        return np.stack([_lanes(half, kind[:-2]) for half in halves], -1)
    with np.errstate(invalid="ignore"):
        if kind == "bf16":
            bits = (values << np.uint64(16)).astype(np.uint32)
            return bits.view(np.float32).astype(np.float64)
        bits = int(kind[1:])
        return values.astype(_UNSIGNED[bits]).view(_FLOATS[bits]).astype(np.float64)


def close(got: np.ndarray, want: np.ndarray, relative: float, absolute: float) -> np.ndarray:
    """True where two float64 arrays agree: the same NaN and infinities, the rest within a bound."""
    with np.errstate(invalid="ignore"):
        near = np.abs(got - want) <= absolute + relative * np.abs(want)
    return near | (got == want) | (np.isnan(got) & np.isnan(want))


def instruction_errors(group: Group, got: np.ndarray, want: np.ndarray) -> list[str]:
    """One line an instruction that is off: how often, and the first operands where it is."""
    operands = group.operands()
    rows = np.cumsum([0] + [len(spec.inputs) for spec in group.specs])
    lines = []
    for slot, (position, bits) in enumerate(group.slots()):
        spec = group.specs[position]
        ours, theirs = got[slot], want[slot]
        if spec.approximate:
            kind, relative, absolute = spec.approximate
            right = close(_lanes(ours, kind), _lanes(theirs, kind), relative, absolute)
            right = right.all(-1) if right.ndim > 1 else right
        else:
            right = ours == theirs
            if "f64" in spec.outputs:  # PTX leaves the payload of a double's NaN open
                right |= np.isnan(_lanes(ours, "f64")) & np.isnan(_lanes(theirs, "f64"))
        if not right.all():
            first = int(np.argmin(right))
            values = ", ".join(
                f"{operands[row, first]:#x}" for row in range(rows[position], rows[position + 1])
            )
            digits = bits // 4
            lines.append(
                f"{spec.name}: {int((~right).sum())} of {right.size} differ; of ({values}) the H200 makes "
                f"{int(theirs[first]):#0{digits + 2}x}, here {int(ours[first]):#0{digits + 2}x}"
            )
    return lines


def _bits_equal(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Equal values, -0 apart from 0, any NaN the same as any other."""
    if got.dtype.kind == "f":
        same = (got == want) & (np.signbit(got) == np.signbit(want))
        return same | (np.isnan(got) & np.isnan(want))
    return got == want


def output_errors(case: Case, got: list[np.ndarray], want: list[np.ndarray]) -> list[str]:
    """One line an output array that is off."""
    lines = []
    for index, ours, theirs in zip(case.outputs, got, want, strict=True):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        right = _right(case, ours, theirs)
        if not right.all():
            first = np.unravel_index(int(np.argmin(right)), right.shape)
            place = ", ".join(str(int(i)) for i in first)
            lines.append(
                f"argument {index}: {int((~right).sum())} of {right.size} values differ; at [{place}] the H200 wrote "
                f"{theirs[first]!r}, here {ours[first]!r}"
            )
    return lines


def _right(case: Case, ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    if "mma" in case.notes:
        return _mma_right(case, ours, theirs)
    if ours.dtype.kind == "f" and case.notes.get("exact") is False:
        finite = np.abs(theirs[np.isfinite(theirs)])
        size = float(finite.max()) if finite.size else 0.0
        return close(
            ours.astype(np.float64), theirs.astype(np.float64), ROUNDED_BOUND, ROUNDED_BOUND * size
        )
    return _bits_equal(ours, theirs)


def _mma_right(case: Case, ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Within MMA_BOUND of the largest of |c| and |a b| in each sum."""
    shape, kind, accumulate = case.notes["mma"]
    a, b, c = case.make_args()[:3]
    depth = int(shape.split("k")[1])
    left, right = matrices(a, b, depth, kind)
    start = _fragment_c(c, accumulate)
    with np.errstate(invalid="ignore", over="ignore"):
        product = np.abs(left[:, :, None, :] * right.transpose(0, 2, 1)[:, None, :, :])
        largest = np.fmax(np.nanmax(np.where(np.isnan(product), 0, product), -1), np.abs(start))
    bound = np.where(np.isfinite(largest), largest, 0) * MMA_BOUND[accumulate]
    if accumulate == "f16":
        bound = np.maximum(bound, 2.0**-24)
    got, want = _fragment_c(ours, accumulate), _fragment_c(theirs, accumulate)
    good = close(got, want, 0.0, bound) | close(got, want, MMA_BOUND[accumulate], 0.0)
    return _to_fragment(good, ours.shape, accumulate)


def matrices(a: np.ndarray, b: np.ndarray, depth: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Fragments of mma.m16n8k8 or k16 (PTX ISA 9.7.14) as float64 A (tiles, 16, depth) and B (tiles, depth, 8)."""
    tiles = a.shape[0]
    lane = np.arange(32)
    left, right = np.zeros((tiles, 16, depth)), np.zeros((tiles, depth, 8))
    for register in range(a.shape[1]):
        pair = _lanes(a[:, register].astype(np.uint64), f"{kind}x2")
        for half in range(2):
            row = lane // 4 + 8 * (register % 2)
            column = lane % 4 * 2 + half + 8 * (register // 2)
            left[:, row, column] = pair[..., half]
    for register in range(b.shape[1]):
        pair = _lanes(b[:, register].astype(np.uint64), f"{kind}x2")
        for half in range(2):
            right[:, lane % 4 * 2 + half + 8 * register, lane // 4] = pair[..., half]
    return left, right


def _fragment_c(c: np.ndarray, accumulate: str) -> np.ndarray:
    """An accumulator's fragments as float64 (tiles, 16, 8)."""
    lane = np.arange(32)
    whole = np.zeros((c.shape[0], 16, 8))
    for register in range(c.shape[1]):
        if accumulate == "f32":
            whole[:, lane // 4 + 8 * (register // 2), lane % 4 * 2 + register % 2] = c[:, register]
        else:
            pair = _lanes(c[:, register].astype(np.uint64), "f16x2")
            for half in range(2):
                whole[:, lane // 4 + 8 * register, lane % 4 * 2 + half] = pair[..., half]
    return whole


def _to_fragment(good: np.ndarray, shape: tuple[int, ...], accumulate: str) -> np.ndarray:
    """A boolean (tiles, 16, 8) in the layout of the fragments."""
    lane = np.arange(32)
    result = np.ones(shape, bool)
    for register in range(shape[1]):
        if accumulate == "f32":
            result[:, register] = good[
                :, lane // 4 + 8 * (register // 2), lane % 4 * 2 + register % 2
            ]
        else:
            for half in range(2):
                result[:, register] &= good[:, lane // 4 + 8 * register, lane % 4 * 2 + half]
    return result
