"""A tile's banks and an access to it: the figure against the rule of banks and the counters."""

from __future__ import annotations

import re
from math import gcd

import numpy as np
import pytest

from helpers.figures.pictures.tile_layouts import TILE_STEPS, tile_layouts
from helpers.figures.tile_runs import ELEMENT_BYTES, LAYOUTS, launch_reads, run_tile

CASES = [
    (32, "float", "column", 1), (16, "float", "column", 1), (33, "float", "column", 2),
    (48, "float", "column", 3), (7, "float", "row", 1), (36, "float", "mma", 1),
    (12, "float2", "column", 1), (35, "float2", "row", 1), (20, "float2", "mma", 3),
    (8, "float4", "column", 1), (9, "float4", "ldmatrix", 1), (4, "float4", "ldmatrix", 1),
    (64, "half", "ldmatrix", 1), (40, "half", "ldmatrix", 1), (64, "half", "mma", 1),
    (34, "half", "mma", 1), (33, "half", "column", 1), (128, "half", "row", 1),
]  # fmt: skip


def name(case) -> str:
    return "-".join(map(str, case))


def targets(columns: int, access: str, each: int) -> np.ndarray:
    """(row, column) of each lane's first element, by the words of the docstring."""
    lane = np.arange(32)
    return {
        "column": np.stack([lane, np.full(32, min(3, columns - 1))], 1),
        "row": np.stack([5 + lane // columns, lane % columns], 1),
        "mma": np.stack([lane // 4, lane % 4 * each], 1),
        "ldmatrix": np.stack([lane % 16, lane // 16 * each], 1),
    }[access]


def offsets(layout: str, columns: int, size: int, pad: int) -> np.ndarray:
    """Bytes at which elements begin; XOR moves 16 bytes of halves, else single elements."""
    row, column = np.indices((32, columns))
    group = gcd(columns, 8) if size == 2 else 1
    period = 1
    while columns // group % (2 * period) == 0 and 2 * period * group * size <= 128:
        period *= 2
    if layout == "XOR":
        column = column ^ (row % period) * group
    return size * (row * (columns + pad * (layout == "padded")) + column)


def wavefronts(starts: np.ndarray, size: int) -> int:
    """The most different words of a bank, phase by phase, added up."""
    lanes = 32 if size <= 4 else 128 // size
    total = 0
    for first in range(0, 32, lanes):
        words = {
            int(start) // 4 + n
            for start in starts[first : first + lanes]
            for n in range(max(1, size // 4))
        }
        total += max(np.bincount([word % 32 for word in words]))
    return int(total)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_each_layout_costs_what_the_rule_and_the_counters_say(case):
    columns, element, access, pad = case
    tile, size = run_tile(*case), ELEMENT_BYTES[element]
    np.testing.assert_array_equal(tile.targets, targets(columns, access, tile.each))
    counted = 0
    for number, layout in enumerate(tile.layouts):
        expected = offsets(layout.name, columns, size, tile.pad)
        np.testing.assert_array_equal(layout.offsets, expected)
        assert sorted(set(expected.flat)) == sorted(expected.flat)  # nothing is lost
        starts = expected[tuple(tile.targets.T)]
        found = layout.verdict.wavefronts
        assert found == wavefronts(starts, size * tile.each), layout.name
        np.testing.assert_array_equal(layout.access.addresses - layout.access.addresses[0],
                                      starts - starts[0])  # fmt: skip
        group = gcd(columns, 8) if size == 2 else 1
        period = int(re.search(r"row % (\d+)", tile.layouts[2].formula)[1])
        alone = launch_reads(
            (number,), element, access, columns, tile.pad, tile.each, group, period
        )
        assert alone.counters["shared_load_wavefronts"] == found
        assert alone.counters["shared_load_bank_conflicts"] == layout.verdict.conflicts
        counted += found
        # Each phase has as many turns as wavefronts.
        turns = np.array(layout.turns)
        each = [turns[layout.verdict.phases == p].max() for p in set(layout.verdict.phases)]
        assert sum(each) == found
    assert tile.report.counters["shared_load_wavefronts"] == counted


def test_the_frames_write_what_the_run_found():
    frames = tile_layouts(32, "float", "column")
    assert len(frames) == len(TILE_STEPS) == 1 + len(LAYOUTS)
    assert "plain 32, padded 1, XOR 1 wavefronts; ideal 1" in frames[0].caption
    for frame, words in zip(
        frames[1:], ("32 wavefronts", "1 wavefront", "1 wavefront"), strict=True
    ):
        assert f">{words}<" in frame.svg
    assert "place = row * 33 + column" in frames[2].svg
    lines = re.findall(r">(\s*\d+\s+\d+,\d+\s+\d+\s+\d+\s+\d+)<", frames[2].svg)
    assert [line.split() for line in lines] == [
        [str(n), f"{n},3", str(4 * (33 * n + 3)), str((33 * n + 3) % 32), "1"] for n in range(32)
    ]


@pytest.mark.parametrize(
    "case, words",
    [((33, "half", "ldmatrix"), "multiple of 8 half"), ((8, "float", "ldmatrix"), "float4"),
     ((1, "float4", "ldmatrix"), "two pieces"), ((33, "half", "mma"), "fragment"),
     ((3, "float", "mma"), "fragment"), ((0, "float", "row"), "one element"),
     ((8, "double", "row"), "element is one of"), ((200, "float4", "row"), "48 KB")],
    ids=lambda value: name(value) if isinstance(value, tuple) else None,
)  # fmt: skip
def test_what_cannot_be_read_so_says_why(case, words):
    with pytest.raises(ValueError, match=words):
        run_tile(*case)
