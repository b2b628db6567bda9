"""Figures of the first chapters: what they take from a run, and what they then say and draw."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from helpers import cp, figures, simulator
from helpers.figures import trace
from helpers.figures.drawing import HUES, Drawing
from helpers.kernels import load_kernel
from helpers.problem.attention import cdiv, make_inputs


def vector_add(n, block):
    a, b, c = (cp.full(n, cp.nan, dtype=cp.float32) for _ in range(3))
    return load_kernel("00_vector_add.cu").count(cdiv(n, block), block, (a, b, c, n))


def scores(N, d, tile):
    Q, K, _ = map(cp.asarray, make_inputs(N, d))
    S, tiles = cp.full((N, N), cp.nan, dtype=cp.float32), cdiv(N, tile)
    k = load_kernel("02_naive.cu", "scaled_dot_product", TILE=tile)
    return k.count((tiles, tiles), (tile, tile), (Q, K, S, N, d))


def texts(figure) -> list[str]:
    root = ET.fromstring(figure.svg())
    return ["".join(e.itertext()) for e in root.iter() if e.tag.endswith("text")]


def paths(figure, **wanted) -> list[str]:
    """`d` of the paths with these attributes."""
    wanted = {name.replace("_", "-"): value for name, value in wanted.items()}
    return [
        e.get("d")
        for e in ET.fromstring(figure.svg()).iter()
        if e.tag.endswith("path") and all(e.get(k) == v for k, v in wanted.items())
    ]


# ------------------------------------------------------------------ the trace


@pytest.mark.parametrize("tile", (8, 16, 32))
def test_owners_are_those_of_the_index_formula(tile):
    N = 27
    owned = trace.owners(scores(N, 5, tile), "S")
    assert len(owned) == N * N
    for index, owner in owned.items():
        row, col = divmod(index, N)
        assert owner.block == (row // tile, col // tile, 0)
        assert owner.thread == (row % tile, col % tile, 0)
        number = row % tile + tile * (col % tile)
        assert (owner.warp, owner.lane) == divmod(number, 32)


def test_accesses_of_a_warp_come_step_by_step():
    N, d, tile = 20, 6, 8
    report = scores(N, d, tile)
    mine = trace.warp_accesses(report, (1, 1), warp=1)
    for array, rows in {"Q": range(8, 16), "K": range(12, 16)}.items():
        steps = [a.indices for a in mine if a.array == array]
        assert steps == [[row * d + i for row in rows] for i in range(d)]
    (stored,) = [a for a in mine if a.kind == "store"]
    assert stored.indices == [row * N + col for row in range(8, 16) for col in range(12, 16)]
    # Block column 2 begins at 16, warp 1 has threadIdx.y 4 to 7, and S ends with column 19.
    with pytest.raises(ValueError, match="made no access"):
        trace.warp_accesses(report, (1, 2), warp=1)


def test_sectors_follow_from_addresses():
    wide = trace.Access("x", "load", 1, 16, ((0, 0, 64), (1, 1, 88)))
    assert wide.sectors == [2, 3]  # bytes 64-79 and 88-103
    assert trace.Access("x", "load", 1, 4, ((0, 7, 28), (1, 8, 32), (2, 9, 36))).sectors == [0, 1]


def test_sums_of_sectors_are_the_counters():
    report = scores(33, 7, 16)
    total = 0
    for block in {o.block for o in trace.owners(report, "S").values()}:
        for warp in range(8):
            try:
                mine = trace.warp_accesses(report, block, warp)
            except ValueError:
                continue
            total += sum(len(a.sectors) for a in mine if a.kind == "load")
    assert total == report.counters["global_load_sectors"]


def test_an_array_that_is_not_written():
    with pytest.raises(ValueError, match="vector_add stored nothing in a"):
        trace.owners(vector_add(20, 8), "a")


# ------------------------------------------------------------------ figures


def test_thread_map_tells_the_idle_threads():
    shown = texts(figures.thread_map(vector_add(20, 8), "c"))
    assert (
        "3 blocks × 8 threads = 24 threads for 20 elements. The 4 dashed threads store nothing."
        in (shown)
    )
    assert [t for t in shown if t.startswith("block ")] == ["block 0", "block 1", "block 2"]
    even = texts(figures.thread_map(vector_add(16, 8), "c"))
    assert "2 blocks × 8 threads = 16 threads for 16 elements." in even


def test_thread_map_follows_the_kernel():
    """Another map in the kernel gives other lines: here neighbours are a block apart."""
    k = load_kernel("00_vector_add.cu")
    strided = k.source.replace(
        "blockIdx.x * blockDim.x + threadIdx.x", "threadIdx.x * gridDim.x + blockIdx.x"
    )
    arrays = [np.zeros(16, np.float32) for _ in range(3)]
    report = simulator.launch(strided, "vector_add", 2, 8, (*arrays, np.int32(16)))
    usual, other = (
        paths(figures.thread_map(r, "c"), stroke=HUES[0], stroke_width="1.5")[0]
        for r in (vector_add(16, 8), report)
    )
    ends = [[float(x) for x in re.findall(r"L([\d.]+)", d)] for d in (usual, other)]
    steps = [{round(b - a) for a, b in zip(e, e[1:], strict=False)} for e in ends]
    assert steps == [{34}, {68}]


def test_thread_map_refuses_what_it_cannot_draw():
    with pytest.raises(ValueError, match="room for 48 threads; 4 blocks of 16 are 64"):
        figures.thread_map(vector_add(60, 16), "c")
    with pytest.raises(ValueError, match="one dimension"):
        figures.thread_map(scores(8, 2, 8), "S")


def test_ownership_numbers_the_lanes():
    shown = texts(figures.ownership(scores(32, 4, 16), "S", (32, 32)))
    numbers = [int(t) for t in shown if t.isdigit()]
    assert sorted(numbers) == sorted(list(range(32)) * 8)
    assert "threadIdx.x ↓, threadIdx.y →" in shown
    assert [t for t in shown if t.startswith("warp ")] == [f"warp {n}" for n in range(8)]
    assert "grid 2 × 2 blocks of 16 × 16 threads" in shown


def test_ownership_at_the_edge_shows_the_threads_that_store():
    shown = texts(figures.ownership(scores(27, 3, 8), "S", (27, 27), block=(3, 3)))
    assert sorted(int(t) for t in shown if t.isdigit()) == [0, 1, 2, 8, 9, 10, 16, 17, 18]
    with pytest.raises(ValueError, match="Block \\(4, 0\\) stored nothing in S"):
        figures.ownership(scores(27, 3, 8), "S", (27, 27), block=(4, 0))


@pytest.mark.parametrize(("tile", "q", "k"), [(8, 8, 4), (16, 16, 2), (32, 32, 1)])
def test_footprint_counts_elements_and_sectors(tile, q, k):
    shown = texts(
        figures.footprint(scores(32, 16, tile), step=3, Q=(32, 16), K=(32, 16), S=(32, 32))
    )

    def words(n):
        return f"{n} element{'s' * (n > 1)}, {n} sector{'s' * (n > 1)}"

    assert words(q) in shown and words(k) in shown
    assert f"32 elements, {tile} sectors" in shown
    assert f"{4 * q} of {32 * q} bytes used" in shown


def test_footprint_moves_with_the_step():
    report = scores(32, 16, 16)
    one, two = (
        paths(figures.footprint(report, step=s, Q=(32, 16)), fill=HUES[0], stroke="none")
        for s in (3, 4)
    )
    xs = [[float(x) for x in re.findall(r"M([\d.]+)", d)] for d in (one[-1], two[-1])]
    assert len(xs[0]) == 16 and {round(b - a, 2) for a, b in zip(*xs, strict=True)} == {9.0}
    assert one[0] == two[0]  # both within one sector of each row
    with pytest.raises(ValueError, match="steps 0 to 15"):
        figures.footprint(report, step=16, Q=(32, 16))


def test_sectors_shows_what_a_request_fetches():
    full = texts(figures.sectors(vector_add(1000, 256), "a"))
    assert "1 request, 32 lanes × 4 bytes, 4 sectors of 32 bytes." in full
    assert "bytes 96 to 127" in full
    last = texts(figures.sectors(vector_add(1000, 256), "c", block=3, warp=7))
    assert "1 request, 8 lanes × 4 bytes, 1 sector of 32 bytes." in last
    assert {"992", "999", "bytes 3968 to 3999"} <= set(last)
    shifted = texts(figures.sectors(vector_add(1000, 20), "a", block=1))
    assert {"bytes 64 to 95", "bytes 128 to 159", "20", "39"} <= set(shifted)


@pytest.mark.parametrize(
    ("launch", "busy", "said"),
    [
        ((16, 256), 16, "16 blocks of 256 threads: work for 16 of 132 SMs, 1.5 % of"),
        (((64, 64), 256), 132, "4,096 blocks of 256 threads: work for 132 of 132 SMs, 3.9 times"),
        ((1, 32), 1, "1 block of 32 threads: work for 1 of 132 SMs, 0.012 % of"),
        ((200, 1024), 132, "200 blocks of 1,024 threads: work for 132 of 132 SMs, 76 % of"),
    ],
)  # fmt: skip
def test_multiprocessors(launch, busy, said):
    figure = figures.multiprocessors({"k": launch})
    assert f"{said} the threads they can hold" in " ".join(texts(figure))
    squares = {fill: "".join(paths(figure, fill=fill)).count("M") for fill in (HUES[0], "none")}
    assert squares == {HUES[0]: busy, "none": 132 - busy}


def test_memory_chart_takes_the_colours_of_the_page():
    chart = figures.memory_chart([1024, 65536], 64, {"24 GiB": 24 * 2**30})
    assert chart.svg().startswith("<svg ")
    assert "currentColor" in chart.svg() and "#010203" not in chart.svg()
    hues = re.findall(r"(?:stroke|fill): [^;\"]*#[0-9a-f]{6}[^;\"]*", chart.svg())
    assert hues and all(HUES[0] in hue or HUES[5] in hue for hue in hues)
    assert all("currentColor" in hue for hue in hues)  # so that they stand out on dark pages too
    assert {"N, tokens", "24 GiB", "1,024", "65,536"} <= set(texts(chart))


def test_a_drawing_is_one_piece_of_markup():
    drawing = Drawing(10, 20, 'a < b & "c"')
    drawing.text(1, 2, "x < y")
    html = drawing._repr_html_()
    assert 'aria-label="a &lt; b &amp; &quot;c&quot;"' in html and "x &lt; y" in html
    assert ET.fromstring(drawing.svg()).get("viewBox") == "0 0 10 20"
    assert repr(drawing) == '<Figure: a < b & "c">'
