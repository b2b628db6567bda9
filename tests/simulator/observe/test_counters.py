"""The counting rules, against a slow oracle of sets and dictionaries and against an H200."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from helpers.simulator.errors import SimulatorError
from helpers.simulator.observe import counters

LANES = range(32)
DATA = Path(__file__).parents[2] / "data"


# ---------------------------------------------------------------- the oracle, one warp at a time


def oracle_sectors(addresses, size, active) -> int:
    touched = set()
    for lane in LANES:
        if active[lane]:
            for byte in range(size):
                touched.add((int(addresses[lane]) + byte) // 32)
    return len(touched)


def oracle_bank_rule(addresses, size, lanes) -> int:
    """Largest number of distinct four-byte words in one bank."""
    words_of_bank = defaultdict(set)
    for lane in lanes:
        for byte in range(size):
            word = (int(addresses[lane]) + byte) // 4
            words_of_bank[word % 32].add(word)
    return max(len(words) for words in words_of_bank.values())


def oracle_phases(addresses, size, active, load) -> list[list[int]]:
    """The active lanes of each non-empty phase."""
    width = {8: 16, 16: 8}.get(size, 32)
    if load and size in (8, 16):
        for step in (1, 2):
            pairs = [(lane, lane ^ step) for lane in LANES]
            if all(addresses[a] == addresses[b] or not (active[a] and active[b]) for a, b in pairs):
                width *= 2
                break
    phases = [[n for n in range(at, at + width) if active[n]] for at in range(0, 32, width)]
    return [lanes for lanes in phases if lanes]


def oracle_shared(addresses, size, active, load) -> tuple[int, int]:
    phases = oracle_phases(addresses, size, active, load)
    return sum(oracle_bank_rule(addresses, size, lanes) for lanes in phases), len(phases)


# ---------------------------------------------------------------- random patterns


def random_addresses(rng: np.random.Generator, size: int) -> np.ndarray:
    """One warp's addresses of one of many shapes: strides, tiles, broadcasts, gathers, pairs."""
    lane = np.arange(32)
    kind = rng.integers(0, 9)
    base = int(rng.integers(0, 200)) * size
    if kind == 0:
        offsets = lane * int(rng.integers(0, 70))
    elif kind == 1:
        offsets = (31 - lane) * int(rng.integers(0, 40))
    elif kind == 2:
        width = int(rng.choice([2, 4, 8, 16]))
        offsets = lane // width * int(rng.integers(0, 130)) + lane % width
    elif kind == 3:
        width = int(rng.choice([2, 4, 8, 16]))
        offsets = lane % width * int(rng.integers(0, 40)) + lane // width
    elif kind == 4:
        offsets = rng.integers(0, int(rng.choice([2, 8, 32, 100, 3000])), 32)
    elif kind == 5:
        offsets = rng.permutation(32) * int(rng.integers(1, 5))
    else:  # neighbours at distance 1, 2 or 4 read the same
        step = {6: 1, 7: 2, 8: 4}[int(kind)]
        offsets = rng.integers(0, 500, 32)[lane & ~step]
        if rng.random() < 0.3:  # ... except for one lane
            offsets[rng.integers(0, 32)] += 1
    return (base + offsets * size).astype(np.int64)


def random_mask(rng: np.random.Generator) -> np.ndarray:
    lane = np.arange(32)
    kind = rng.integers(0, 5)
    if kind == 0:
        return np.ones(32, bool)
    if kind == 1:
        return lane < rng.integers(0, 33)
    if kind == 2:
        return (lane // 8) % 2 == rng.integers(0, 2)
    return rng.random(32) < rng.choice([0.05, 0.5, 0.95])


def random_warps(seed: int, size: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    addresses = np.stack([random_addresses(rng, size) for _ in range(count)])
    masks = np.stack([random_mask(rng) for _ in range(count)])
    # Inactive lanes hold whatever their registers hold.
    garbage = rng.integers(0, 2**40, addresses.shape)
    return np.where(masks, addresses, garbage), masks


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16, 32])
def test_sectors_equal_the_oracle(size):
    addresses, masks = random_warps(size, size, 1200)
    addresses += np.int64(0x7F12_3400_0000)  # addresses of real arrays do not fit 32 bits
    got = counters.global_sectors(addresses, size, masks)
    expected = [oracle_sectors(a, size, m) for a, m in zip(addresses, masks, strict=True)]
    np.testing.assert_array_equal(got, expected)
    full = masks.all(axis=1)
    assert 100 < full.sum() < len(full)
    np.testing.assert_array_equal(
        counters.global_sectors(addresses[full], size), np.array(expected)[full]
    )


@pytest.mark.parametrize("load", [True, False])
@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_shared_wavefronts_equal_the_oracle(size, load):
    addresses, masks = random_warps(100 + size, size, 1200)
    expected = np.array(
        [oracle_shared(a, size, m, load) for a, m in zip(addresses, masks, strict=True)]
    )
    wavefronts, phases = counters.shared_wavefronts(addresses, size, masks, load=load)
    np.testing.assert_array_equal(wavefronts, expected[:, 0])
    np.testing.assert_array_equal(phases, expected[:, 1])
    full = masks.all(axis=1)
    wavefronts, phases = counters.shared_wavefronts(addresses[full], size, load=load)
    np.testing.assert_array_equal(wavefronts, expected[full, 0])
    np.testing.assert_array_equal(phases, expected[full, 1])
    for row in range(0, 200):  # alone, where nothing can be shared with other warps
        alone = counters.shared_wavefronts(addresses[row], size, masks[row], load=load)
        assert tuple(int(n) for n in alone) == tuple(expected[row])


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_warps_that_repeat_a_few_patterns(size, masked):
    """The shortcut for warps that are alike must not take different warps for the same."""
    addresses, masks = random_warps(200 + size, size, 30)
    masks |= not masked
    addresses %= 2**16
    addresses &= -size
    rng = np.random.default_rng(size)
    choice = rng.integers(0, 30, 5000)
    moved = addresses[choice] + rng.integers(0, 9, (5000, 1)) * size
    wavefronts, phases = counters.shared_wavefronts(
        moved, size, masks[choice] if masked else None, load=True
    )
    seen = {}
    for row, pattern in enumerate(choice):
        key = (pattern, int(moved[row, 0]))
        if key not in seen:
            seen[key] = oracle_shared(moved[row], size, masks[pattern], True)
        assert (wavefronts[row], phases[row]) == seen[key]


@pytest.mark.parametrize("matrices", [1, 2, 4])
def test_ldmatrix_equals_the_oracle(matrices):
    addresses, _ = random_warps(300 + matrices, 16, 600)
    addresses %= 2**20
    addresses &= ~15
    wavefronts, phases = counters.ldmatrix_wavefronts(addresses, matrices)
    expected = [
        sum(oracle_bank_rule(a, 16, range(8 * m, 8 * m + 8)) for m in range(matrices))
        for a in addresses
    ]
    np.testing.assert_array_equal(wavefronts, expected)
    assert (phases == matrices).all()


# ---------------------------------------------------------------- a real GPU


def test_patterns_recorded_on_an_h200():
    """146 launches of one warp each under Nsight Compute 2025.3, CUDA 13.0."""
    with np.load(DATA / "h200_shared_patterns.npz") as recorded:
        instructions = recorded["instruction"]
        addresses = recorded["addresses"].astype(np.int64)
        active = np.unpackbits(recorded["active"], axis=-1).astype(bool)
        expected = np.stack([recorded["wavefronts"], recorded["conflicts"]], -1).astype(int)
    assert len(set(instructions)) == 15 and len(instructions) == 146
    for instruction, row, mask, (wavefronts, conflicts) in zip(
        instructions, addresses, active, expected, strict=True
    ):
        if "m" in instruction:  # ldm1 ... stm4, stmt4 (stmatrix.trans)
            got, phases = counters.ldmatrix_wavefronts(row, int(instruction[-1]))
        else:
            load, size = instruction.startswith("ld"), int(instruction[2:])
            got, phases = counters.shared_wavefronts(row, size, mask, load=load)
        assert (int(got), int(got - phases)) == (wavefronts, conflicts), instruction


def total(pair) -> tuple[int, int]:
    wavefronts, phases = pair
    return int(wavefronts.sum()), int((wavefronts - phases).sum())


def test_named_kernels_recorded_on_an_h200():
    """Addresses worked out by hand; (wavefronts, conflicts) as Nsight Compute counted them."""
    t = np.arange(32)
    for stride, expected in ((1, (4, 0)), (4, (16, 12))):  # float4 s[32 * stride]
        assert total(counters.shared_wavefronts(t * stride * 16, 16, load=False)) == expected
        gather = ((t * 7) & 31) * stride * 16
        assert total(counters.shared_wavefronts(gather, 16, load=True)) == expected
    for stride, expected in ((1, (2, 0)), (2, (4, 2))):  # float2 s[32 * stride]
        assert total(counters.shared_wavefronts(t * stride * 8, 8, load=False)) == expected
        reverse = (31 - t) * stride * 8
        assert total(counters.shared_wavefronts(reverse, 8, load=True)) == expected
    # 128-byte rows, read one row a lane after a cp.async: 16-byte chunk c of row t
    c = np.arange(8)[:, None]
    rows = (t * 8 + c) * 16
    assert total(counters.shared_wavefronts(rows, 16, load=True)) == (256, 224)
    swizzled = (t * 8 + (c ^ (t % 8))) * 16
    assert total(counters.shared_wavefronts(swizzled, 16, load=True)) == (32, 0)
    # an mma accumulator's packed halves, stored into 128-byte rows
    n, h = np.arange(8)[:, None, None], np.arange(2)[:, None]
    fragment = ((t // 4 + 8 * h) * 32 + n * 4 + t % 4) * 4
    assert total(counters.shared_wavefronts(fragment, 4, load=False)) == (128, 112)
    # ldmatrix.x4 over a 64 x 64 tile of halves
    r0, c0 = np.arange(0, 64, 16)[:, None, None], np.arange(0, 8, 2)[:, None]
    r, chunk = r0 + t % 16, c0 + t // 16
    assert total(counters.ldmatrix_wavefronts((r * 8 + chunk) * 16, 4)) == (512, 448)
    assert total(counters.ldmatrix_wavefronts((r * 8 + (chunk ^ (r % 8))) * 16, 4)) == (64, 0)
    # transposing a 32 x 32 tile of floats: reading a column, without and with a padded row
    assert total(counters.shared_wavefronts(t * 128, 4, load=True)) == (32, 31)
    assert total(counters.shared_wavefronts(t * 132, 4, load=True)) == (1, 0)
    # copy_stride_8 and copy_float4: 32 and 16 sectors a request
    assert counters.global_sectors(t * 32 + 0x7F00_0000_0000, 4) == 32
    assert counters.global_sectors(t * 16 + 0x7F00_0000_0000, 16) == 16


# ---------------------------------------------------------------- shapes and limits


def test_leading_axes_views_and_empty_input():
    addresses, masks = random_warps(9, 8, 24)
    addresses &= ~7
    before = addresses.copy()
    flat = counters.shared_wavefronts(addresses, 8, masks, load=True)
    deep = counters.shared_wavefronts(
        addresses.reshape(2, 3, 4, 32), 8, masks.reshape(2, 3, 4, 32), load=True
    )
    for one, other in zip(flat, deep, strict=True):
        np.testing.assert_array_equal(one.reshape(2, 3, 4), other)
    # the same addresses for 50 blocks, as a view that repeats itself, with masks that differ
    view = np.broadcast_to(addresses, (50, 24, 32))
    for mask in (None, np.broadcast_to(masks, view.shape)):
        flat_mask = None if mask is None else masks
        expected = counters.shared_wavefronts(addresses, 8, flat_mask, load=True)
        got = counters.shared_wavefronts(view, 8, mask, load=True)
        for one, other in zip(expected, got, strict=True):
            np.testing.assert_array_equal(np.broadcast_to(one, (50, 24)), other)
        np.testing.assert_array_equal(
            counters.global_sectors(view, 8, mask),
            np.broadcast_to(counters.global_sectors(addresses, 8, flat_mask), (50, 24)),
        )
    np.testing.assert_array_equal(
        counters.shared_wavefronts(addresses[:1], 8, masks, load=True)[0],
        [oracle_shared(addresses[0], 8, m, True)[0] for m in masks],
    )
    np.testing.assert_array_equal(addresses, before)
    nothing = np.zeros((0, 3, 32), np.int64)
    assert counters.global_sectors(nothing, 4).shape == (0, 3)
    assert counters.shared_wavefronts(nothing, 4, load=True)[1].shape == (0, 3)
    assert counters.ldmatrix_wavefronts(nothing, 4)[0].shape == (0, 3)


def test_no_active_lane_costs_nothing():
    none = np.zeros((2, 32), bool)
    addresses = np.arange(64).reshape(2, 32) * 16
    assert (counters.global_sectors(addresses, 16, none) == 0).all()
    wavefronts, phases = counters.shared_wavefronts(addresses, 16, none, load=True)
    assert not wavefronts.any() and not phases.any()


def test_sizes_that_no_instruction_has_are_refused():
    t = np.arange(32)
    with pytest.raises(SimulatorError, match="3 bytes"):
        counters.global_sectors(t, 3)
    with pytest.raises(SimulatorError, match="32 bytes"):
        counters.shared_wavefronts(t, 32, load=True)
    with pytest.raises(SimulatorError, match="12 bytes"):
        counters.lane_words(t, 12)
    with pytest.raises(SimulatorError, match="not 3"):
        counters.ldmatrix_wavefronts(t, 3)


# ---------------------------------------------------------------- what the figures draw


@pytest.mark.parametrize("load", [True, False])
@pytest.mark.parametrize("size", [2, 4, 8, 16])
def test_bank_loads_and_phases_agree_with_the_oracle(size, load):
    addresses, masks = random_warps(400 + size, size, 150)
    loads = counters.bank_loads(addresses, size, masks, load=load)
    lane_phases = counters.lane_phases(addresses, size, masks, load=load)
    words = counters.lane_words(addresses, size)
    assert loads.shape == (150, 4, 32) and words.shape == (150, 32, max(1, size // 4))
    for row in range(150):
        phases = oracle_phases(addresses[row], size, masks[row], load)
        numbers = [set(lane_phases[row, lanes]) for lanes in phases]
        assert all(len(n) == 1 for n in numbers)  # the lanes of a phase carry one number
        assert len(set.union(set(), *numbers)) == len(phases)
        assert (lane_phases[row] == -1).sum() == 32 - masks[row].sum()
        for lanes, number in zip(phases, numbers, strict=True):
            for bank in range(32):
                expected = {
                    (int(addresses[row, lane]) + byte) // 4
                    for lane in lanes
                    for byte in range(size)
                }
                expected = {word for word in expected if word % 32 == bank}
                assert loads[row, min(number), bank] == len(expected)
        wavefronts, _ = oracle_shared(addresses[row], size, masks[row], load)
        assert loads[row].max(axis=-1).sum() == wavefronts
        lane = int(masks[row].argmax())
        if not masks[row, lane]:
            continue
        assert words[row, lane, 0] == addresses[row, lane] // 4
        assert words[row, lane, -1] == (addresses[row, lane] + size - 1) // 4
