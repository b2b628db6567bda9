"""The toys of chapter 09: what each map does to the banks and to the data."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from helpers import cp, simulator
from helpers.kernels import load_kernel

FILE = "09_toy_swizzle.cu"
RIGHT = ("NONE", "XOR", "LATIN")
MAPS = (*RIGHT, "BROKEN", "WRITE_ONLY")
SIZES = (4, 8, 32)


def turn(element, size, swizzle):
    """The kernel, the matrix [size, size, words] and an array for its transpose."""
    k = load_kernel(FILE, "turn", ELEMENT=element, SIZE=size, SWIZZLE=swizzle)
    words = 4 if element == "float4" else 1
    rows = np.arange(size * size * words, dtype=np.float32).reshape(size, size, words)
    return k, rows, np.full_like(rows, np.nan)


def waves(report):
    """Wavefronts of shared loads and stores."""
    return tuple(report.counters[f"shared_{kind}_wavefronts"] for kind in ("load", "store"))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("element", ["float", "float4"])
@pytest.mark.parametrize("swizzle", MAPS)
def test_what_is_turned(element, size, swizzle):
    k, rows, columns = turn(element, size, swizzle)
    result = cp.asarray(columns)
    k(1, (size, size), (cp.asarray(rows), result))
    right = (cp.asnumpy(result) == rows.swapaxes(0, 1)).all(axis=2)
    if swizzle in RIGHT:
        assert right.all()
    elif swizzle == "BROKEN":
        # A row keeps one element in each place that it uses.
        places = {(r, r * c % size) for r in range(size) for c in range(size)}
        assert right.sum() == len(places) < size * size
    else:
        # Right where the XOR changes nothing: in row 0 alone.
        assert right.sum() == size and right[:, 0].all()


@pytest.mark.parametrize(("size", "swizzle"), list(itertools.product(SIZES, RIGHT)))
def test_banks_of_the_turn(size, swizzle):
    """Wavefronts from the banks alone, for words and for chunks of 16 bytes."""
    for element, words, lanes in (("float", 1, 32), ("float4", 4, 8)):
        k, rows, columns = turn(element, size, swizzle)
        report = k.count(1, (size, size), (rows, columns))
        threads = [(y, x) for y in range(size) for x in range(size)]
        place = {
            "NONE": lambda r, c: c,
            "XOR": lambda r, c: r ^ c,
            "LATIN": lambda r, c: (r + c) % size,
        }[swizzle]
        expected = 0
        for first in range(0, len(threads), lanes):
            banks = [(x * size + place(x, y)) % (32 // words) for y, x in threads[first:][:lanes]]
            expected += max(map(banks.count, banks))
        assert waves(report) == (expected, -(-len(threads) // lanes))


def test_a_column_of_chunks_takes_eight_turns_or_one():
    counts = {}
    for swizzle in RIGHT:
        k, rows, columns = turn("float4", 8, swizzle)
        counts[swizzle] = waves(k.count(1, (8, 8), (rows, columns)))
    assert counts == {"NONE": (64, 8), "XOR": (8, 8), "LATIN": (8, 8)}


def test_the_places_of_each_map():
    """From the trace: each row is a permutation, and each column too unless nothing is swizzled."""
    for swizzle in RIGHT:
        k, rows, columns = turn("float", 8, swizzle)
        report = k.count(1, (8, 8), (rows, columns))
        (line,) = k.lines("s_rows[y][place")
        stored = np.full((8, 8), -1)
        for a in report.accesses(line=line):
            if a.space == "shared":
                x, y, _ = a.thread
                assert a.index // 8 == y
                stored[y, x] = a.index % 8
        assert (np.sort(stored, axis=1) == np.arange(8)).all()
        latin = (np.sort(stored, axis=0) == np.arange(8)[:, None]).all()
        assert latin == (swizzle != "NONE")


@pytest.mark.parametrize("stride", range(9))
def test_phases(stride):
    k = load_kernel(FILE, "phases", STRIDE=stride)
    chunks = np.random.default_rng(stride).standard_normal((256, 4), dtype=np.float32)
    result = cp.zeros((32, 4), np.float32)
    k(1, 32, (cp.asarray(chunks), result))
    np.testing.assert_array_equal(cp.asnumpy(result), chunks[stride * np.arange(32)])
    report = k.count(1, 32, (chunks, np.zeros((32, 4), np.float32)))
    # Four phases, each with as many turns as lanes share a set of banks; reading one chunk in all
    # lanes merges phases in pairs.
    expected = 4 * math.gcd(stride, 8) if stride else 2
    assert report.counters["shared_load_wavefronts"] == expected


@pytest.mark.parametrize("swizzle", MAPS)
def test_races_of_the_turn(swizzle):
    """Only the map that puts several elements in one place has threads that write over others."""
    k, rows, columns = turn("float", 8, swizzle)
    report = simulator.launch(
        k.code, k.entry, 1, (8, 8), (rows, columns), options=k.options, sanitize=True
    )
    assert bool(report.findings) == (swizzle == "BROKEN")
