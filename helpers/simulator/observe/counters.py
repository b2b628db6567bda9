"""How many memory transactions one instruction of one warp causes.

Pure functions on NumPy arrays whose last axis is the 32 lanes of a warp; leading axes are free
(usually one row per warp). The rules are those with which Nsight Compute's counters of an H200
were reproduced to the last digit:

=====================  ========================================================================
global sectors         distinct 32-byte segments touched by the active lanes
shared wavefronts      lanes go in phases: all 32 for up to 4 bytes a lane, 16 for 8 bytes, 8
                       for 16 bytes. A phase costs as many wavefronts as the busiest of the
                       32 four-byte banks has distinct words; the phases add up.
merged phases          a load of 8 or 16 bytes in which every active pair (lane, lane ^ 1), or
                       every active pair (lane, lane ^ 2), reads equal addresses takes two
                       neighbouring phases together. A store never does.
``ldmatrix``           eight row addresses of 16 bytes a matrix, one matrix a phase
bank conflicts         wavefronts minus the phases that have an active lane
=====================  ========================================================================

A 16-byte access touches four neighbouring banks, always the same four together. So the functions
count in *units* of the access's own size: 32 banks of 4 bytes, 16 of 8 or 8 of 16, which gives the
same numbers as counting words.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import SimulatorError
from ..isa.tensor.matrix_moves import check_matrices
from ..limits import BANKS, LANES, SECTOR_BYTES, WORD

_CHUNK = 4096  # warps counted at once
_SIZES = (1, 2, 4, 8, 16)
_LANE_XOR = {step: np.arange(LANES, dtype=np.intp) ^ step for step in (1, 2)}
# Odd multipliers of a hash of 32 relative addresses; equality is checked afterwards.
_HASH = np.cumprod(np.full(LANES, 0x5851F42D4C957F2D, np.uint64)).view(np.int64)
_INACTIVE = np.int64(-0x3ADE68B15D4F2A17)  # no distance between two addresses
_BYTE_ONES = np.uint64(0x0101010101010101)


# ---------------------------------------------------------------- global memory


def global_sectors(
    addresses: np.ndarray, size: int, active: np.ndarray | None = None
) -> np.ndarray:
    """Distinct 32-byte segments that each warp's active lanes touch.

    addresses: int64 (..., 32), byte addresses, aligned to `size` as the hardware demands.
    size: bytes a lane, a power of two up to 32, so that a lane stays inside one segment.
    active: bool (..., 32), or None where every lane is active.
    Returns an intp array (...): 0 for a warp without an active lane.
    Raises SimulatorError (`unsupported`) for another size.
    """
    if size not in _SIZES and size != SECTOR_BYTES:
        raise SimulatorError(
            "unsupported",
            f"a global access of {size} bytes a lane cannot be counted: use 1, 2, 4, 8, 16 or 32.",
        )
    rows, mask, small, leading = _rows(addresses, active)
    counts = _in_chunks(_row_sectors, rows, mask)[0]
    return np.broadcast_to(counts.reshape(small), leading)


def _row_sectors(rows: np.ndarray, mask: np.ndarray | None) -> tuple[np.ndarray]:
    sectors = rows >> 5
    if mask is None:
        return (_distinct(sectors),)
    lanes_on = _count_true(mask)
    full = lanes_on == LANES
    if full.all():
        return (_distinct(sectors),)
    counts = np.zeros(len(rows), np.intp)
    partial = (lanes_on > 0) & ~full
    if full.any():
        counts[full] = _distinct(sectors[full])
    if partial.any():
        counts[partial] = _distinct(_fill_inactive(sectors[partial], mask[partial]))
    return (counts,)


def _distinct(keys: np.ndarray) -> np.ndarray:
    """Number of distinct values in each row of (rows, 32) keys."""
    flat = np.ascontiguousarray(keys).reshape(-1)
    changes = np.empty(keys.shape, np.bool_)
    flat_changes = changes.reshape(-1)
    np.not_equal(flat[1:], flat[:-1], out=flat_changes[1:])
    # Lanes in ascending order, the usual case, need no sort: a step down only ever stands at
    # a row's first lane.
    down = np.empty(keys.shape, np.bool_)
    np.less(flat[1:], flat[:-1], out=down.reshape(-1)[1:])
    down[:, 0] = False
    if down.any():
        ordered = np.sort(keys, axis=-1).reshape(-1)
        np.not_equal(ordered[1:], ordered[:-1], out=flat_changes[1:])
    changes[:, 0] = True
    return _count_true(changes)


# ---------------------------------------------------------------- shared memory


def shared_wavefronts(
    addresses: np.ndarray, size: int, active: np.ndarray | None = None, *, load: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Wavefronts and non-empty phases of one shared access of each warp.

    addresses: int64 (..., 32), byte addresses in shared memory, aligned to `size`.
    size: bytes a lane: 1, 2, 4, 8 or 16.
    active: bool (..., 32), or None where every lane is active.
    load: True for a load (8 and 16 bytes may merge phases), False for a store.
    Returns two intp arrays (...); their difference is the number of bank conflicts.
    Raises SimulatorError (`unsupported`) for another size.
    """
    _check_shared_size(size)
    return _each_kind_once(
        addresses,
        active,
        max(size, WORD),
        lambda rows, mask: _row_wavefronts(rows, mask, size, load),
    )


def _each_kind_once(
    addresses: np.ndarray, active: np.ndarray | None, unit: int, cost: Callable, lanes: int = LANES
) -> tuple[np.ndarray, np.ndarray]:
    """(wavefronts, phases) of every warp by `cost(rows, mask)`, rows that are alike taken once.

    Only the first `lanes` of a warp count.
    """
    rows, mask, small, leading = _rows(addresses, active)

    def count(rows: np.ndarray, mask: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        rows = rows[:, :lanes]
        if mask is not None and mask.all():
            mask = None
        alike = _alike(rows, mask, unit) if len(rows) > 1 else None
        if alike is None:
            return cost(rows, mask)
        chosen, place = alike
        wavefronts, phases = cost(rows[chosen], None if mask is None else mask[chosen])
        return wavefronts[place], phases[place]

    found = _in_chunks(count, rows, mask)
    return tuple(np.broadcast_to(each.reshape(small), leading) for each in found)


def _alike(
    rows: np.ndarray, mask: np.ndarray | None, unit: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Rows to count in place of all, and for each row the position of the one that stands for it.

    Warps whose lanes lie alike relative to their first active lane cost the same: moving all
    addresses by whole units only turns the banks round. The warps of a kernel mostly share a few
    patterns. None where they do not.
    """
    if mask is None:
        relative = rows - (rows[:, :1] & -unit)
    else:
        first = rows[np.arange(len(rows), dtype=np.intp), mask.argmax(axis=-1)] & -unit
        relative = np.where(mask, rows - first[:, None], _INACTIVE)
    if (relative == relative[0]).all():
        return np.zeros(1, np.intp), np.zeros(len(rows), np.intp)
    _, chosen, place = np.unique(
        relative @ _HASH[: rows.shape[1]], return_index=True, return_inverse=True
    )
    if 2 * len(chosen) > len(rows) or not (relative == relative[chosen][place]).all():
        return None
    return chosen, place


def _row_wavefronts(
    rows: np.ndarray, mask: np.ndarray | None, size: int, load: bool
) -> tuple[np.ndarray, np.ndarray]:
    """`shared_wavefronts` of (rows, 32) addresses, each row counted by itself."""
    unit = max(size, WORD)
    lanes_a_phase = LANES * WORD // unit
    units = rows >> (unit.bit_length() - 1)
    merged = _merges(rows, mask) if load and unit > WORD else np.zeros(1, np.bool_)
    if not merged.any():
        return _phase_sums(units, mask, lanes_a_phase, unit)
    if merged.all():
        return _phase_sums(units, mask, 2 * lanes_a_phase, unit)
    wavefronts = np.empty(len(rows), np.intp)
    phases = np.empty(len(rows), np.intp)
    for choice, lanes in ((merged, 2 * lanes_a_phase), (~merged, lanes_a_phase)):
        chosen_mask = None if mask is None else mask[choice]
        wavefronts[choice], phases[choice] = _phase_sums(units[choice], chosen_mask, lanes, unit)
    return wavefronts, phases


def ldmatrix_wavefronts(row_addresses: np.ndarray, matrices: int) -> tuple[np.ndarray, np.ndarray]:
    """Wavefronts and phases of `ldmatrix` or `stmatrix` of 8x8 matrices of 16-bit elements.

    row_addresses: int64 (..., 32): lanes 8m .. 8m+7 hold the 16-byte rows of matrix m; the lanes
    beyond the last matrix do not matter. `.trans` changes nothing.
    matrices: 1, 2 or 4. Returns two intp arrays (...); the phases are the matrices.
    Raises SimulatorError (`unsupported`) for another number of matrices.
    """
    check_matrices(matrices)
    return _each_kind_once(
        row_addresses, None, 16, lambda rows, _: _phase_sums(rows >> 4, None, 8, 16), 8 * matrices
    )


def _phase_sums(
    units: np.ndarray, mask: np.ndarray | None, lanes_a_phase: int, unit: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sum over a warp's phases of the busiest bank's distinct units, and the non-empty phases.

    units: (rows, lanes) unit numbers; mask: bool of the same shape or None.
    """
    rows, lanes = units.shape
    groups = lanes // lanes_a_phase
    split = units.reshape(rows * groups, lanes_a_phase)
    banks = BANKS * WORD // unit
    if mask is None:
        degrees = _busiest_bank(split, banks)
        phases = np.full(rows, groups, np.intp)
    else:
        split_mask = mask.reshape(rows * groups, lanes_a_phase)
        occupied = split_mask.any(axis=-1)
        degrees = np.zeros(rows * groups, np.intp)
        if occupied.all():
            degrees = _busiest_bank(_fill_inactive(split, split_mask), banks)
        elif occupied.any():
            degrees[occupied] = _busiest_bank(
                _fill_inactive(split[occupied], split_mask[occupied]), banks
            )
        phases = occupied.reshape(rows, groups).sum(axis=-1, dtype=np.intp)
    return degrees.reshape(rows, groups).sum(axis=-1, dtype=np.intp), phases


def _busiest_bank(units: np.ndarray, banks: int) -> np.ndarray:
    """The largest number of distinct units in one bank, for each row of (rows, lanes)."""
    # Fewer than `banks` units from the lowest to the highest cannot share a bank.
    near = units.max(axis=-1) - units.min(axis=-1) < banks
    if near.all():
        return np.ones(len(units), np.intp)
    if near.any():
        degrees = np.ones(len(units), np.intp)
        degrees[~near] = _busiest_bank(units[~near], banks)
        return degrees
    # Sorting by (bank, unit) brings equal units side by side, and the units of a bank together.
    offsets = units - units.min()
    shift = banks.bit_length() - 1
    bits = max(int(offsets.max() >> shift).bit_length(), 1)
    keys = ((offsets & (banks - 1)) << bits) | (offsets >> shift)
    if bits + shift < 31:
        keys = keys.astype(np.int32)  # half the bytes to sort
    keys = np.sort(keys, axis=-1)
    # Number the distinct units along the row, and take off the number at which their bank began.
    new_unit = np.ones(keys.shape, np.bool_)
    np.not_equal(keys[:, 1:], keys[:, :-1], out=new_unit[:, 1:])
    number = np.cumsum(new_unit, axis=-1, dtype=np.int8)
    keys >>= bits
    new_bank = np.ones(keys.shape, np.bool_)
    np.not_equal(keys[:, 1:], keys[:, :-1], out=new_bank[:, 1:])
    began = np.maximum.accumulate(number * new_bank, axis=-1)
    number -= began
    return number.max(axis=-1).astype(np.intp) + 1


def _merges(rows: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """Bool (rows,): whether a load of 8 or 16 bytes takes its phases two by two."""
    merged = np.zeros(len(rows), np.bool_)
    for partner in _LANE_XOR.values():
        equal = rows == rows[:, partner]
        if mask is not None:
            equal |= ~(mask & mask[:, partner])
        merged |= equal.all(axis=-1)
    return merged


# ---------------------------------------------------------------- for pictures and explanations


def lane_words(addresses: np.ndarray, size: int) -> np.ndarray:
    """The four-byte words of shared memory that each lane touches.

    addresses: int64 (..., 32); size: bytes a lane. Returns int64 (..., 32, words), with
    words = 1, 2 or 4; a word's bank is its number modulo 32.
    Raises SimulatorError (`unsupported`) for a size that is not 1, 2, 4, 8 or 16.
    """
    _check_shared_size(size)
    words = np.arange(max(1, size // WORD), dtype=np.int64)
    return (np.asarray(addresses, np.int64)[..., None] >> 2) + words


def lane_phases(
    addresses: np.ndarray, size: int, active: np.ndarray | None = None, *, load: bool
) -> np.ndarray:
    """The phase (0, 1, ...) in which each lane of a shared access goes; -1 for an inactive lane.

    Arguments as for `shared_wavefronts`; returns intp (..., 32). Phases are numbered by their
    lanes: one without an active lane keeps its number, though it costs nothing.
    """
    _check_shared_size(size)
    addresses, active = _broadcast(addresses, active)
    unit = max(size, WORD)
    lanes_a_phase = np.full(addresses.shape[:-1] + (1,), LANES * WORD // unit, np.intp)
    if load and unit > WORD:
        mask = None if active is None else active.reshape(-1, LANES)
        merged = _merges(addresses.reshape(-1, LANES), mask).reshape(lanes_a_phase.shape)
        lanes_a_phase = np.where(merged, 2 * lanes_a_phase, lanes_a_phase)
    phases = np.arange(LANES, dtype=np.intp) // lanes_a_phase
    return phases if active is None else np.where(active, phases, -1)


def bank_loads(
    addresses: np.ndarray, size: int, active: np.ndarray | None = None, *, load: bool
) -> np.ndarray:
    """Distinct words in every bank in every phase: intp (..., 4, 32).

    Arguments as for `shared_wavefronts`. The last axis is the bank, the one before the phase as
    `lane_phases` numbers it (unused phases are zero). The wavefronts of an access are the sum
    over phases of the maximum over banks.
    """
    words = lane_words(addresses, size)
    phases = lane_phases(addresses, size, active, load=load)
    words, phases = np.broadcast_arrays(words, phases[..., None])
    leading = phases.shape[:-2]
    loads = np.zeros((int(np.prod(leading, dtype=np.intp)), 4, BANKS), np.intp)
    flat_words = words.reshape(len(loads), -1)
    flat_phases = phases.reshape(len(loads), -1)
    row, lane = np.nonzero(flat_phases >= 0)
    touched = np.stack([row, flat_phases[row, lane], flat_words[row, lane]])
    row, phase, word = np.unique(touched, axis=1)
    np.add.at(loads, (row, phase, word % BANKS), 1)
    return loads.reshape(leading + (4, BANKS))


# ---------------------------------------------------------------- shared by all


def _check_shared_size(size: int) -> None:
    if size not in _SIZES:
        raise SimulatorError(
            "unsupported",
            f"a shared access of {size} bytes a lane cannot be counted: use 1, 2, 4, 8 or 16.",
        )


def _rows(
    addresses: np.ndarray, active: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None, tuple[int, ...], tuple[int, ...]]:
    """Addresses and mask as (rows, 32), the rows' own shape, and the shape they stand for.

    Leading axes along which a broadcast view only repeats itself are counted once.
    """
    addresses, active = _broadcast(addresses, active)
    leading = addresses.shape[:-1]
    repeats = tuple(
        slice(0, 1)
        if stride == 0 and (active is None or active.strides[axis] == 0)
        else slice(None)
        for axis, stride in enumerate(addresses.strides[:-1])
    )
    addresses = addresses[repeats]
    small = addresses.shape[:-1]
    if active is not None:
        active = np.ascontiguousarray(active[repeats]).reshape(-1, LANES)
    return addresses.reshape(-1, LANES), active, small, leading


def _broadcast(
    addresses: np.ndarray, active: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None]:
    addresses = np.asarray(addresses)
    if active is None:
        return addresses, None
    active = np.asarray(active, np.bool_)
    if active.shape != addresses.shape:
        addresses, active = np.broadcast_arrays(addresses, active)
    return addresses, active


def _in_chunks(
    count: Callable[[np.ndarray, np.ndarray | None], tuple[np.ndarray, ...]],
    rows: np.ndarray,
    mask: np.ndarray | None,
) -> tuple[np.ndarray, ...]:
    """count(rows, mask) in pieces whose temporary arrays stay in the cache."""
    if 0 < len(rows) <= _CHUNK:
        return count(rows, mask)
    pieces = [
        count(rows[start : start + _CHUNK], None if mask is None else mask[start : start + _CHUNK])
        for start in range(0, len(rows), _CHUNK)
    ]
    if not pieces:
        return (np.zeros(0, np.intp), np.zeros(0, np.intp))
    return tuple(np.concatenate(parts) for parts in zip(*pieces, strict=True))


def _count_true(flags: np.ndarray) -> np.ndarray:
    """True lanes in each row of contiguous (rows, 32) flags, added eight bytes at a time."""
    words = flags.view(np.uint64)
    sums = words[:, 0] + words[:, 1] + words[:, 2] + words[:, 3]
    return ((sums * _BYTE_ONES) >> np.uint64(56)).astype(np.intp)


def _fill_inactive(keys: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Give inactive lanes the key of their row's first active lane, so that they add nothing."""
    first = keys[np.arange(len(keys), dtype=np.intp), active.argmax(axis=-1)]
    return np.where(active, keys, first[:, None])
