"""Figures of the first chapters: what they take from a run, and what they then say and draw."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from figure_layout import faults

from helpers import cp, figures, simulator
from helpers.figures.canvas import Canvas
from helpers.figures.events import WarpAccess, owners, warp_accesses
from helpers.figures.palette import colour
from helpers.kernels import load_kernel
from helpers.measure.charts import HUES
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


def drawn(figure, kind: str, **wanted) -> list[dict[str, str]]:
    """The attributes of the elements of a kind that have those wanted."""
    wanted = {name.replace("_", "-"): value for name, value in wanted.items()}
    return [
        e.attrib
        for e in ET.fromstring(figure.svg()).iter()
        if e.tag.endswith(f"}}{kind}") and all(e.get(k) == v for k, v in wanted.items())
    ]


def lines(figure, **wanted) -> list[dict[str, str]]:
    return drawn(figure, "line", **wanted)


def paths(figure, **wanted) -> list[str]:
    """`d` of the paths with these attributes."""
    return [found["d"] for found in drawn(figure, "path", **wanted)]


# ------------------------------------------------------------------ the trace


@pytest.mark.parametrize("tile", (8, 16, 32))
def test_owners_are_those_of_the_index_formula(tile):
    N = 27
    owned = owners(scores(N, 5, tile), "S")
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
    mine = warp_accesses(report, space="global", block=(1, 1), warp=1)
    for array, rows in {"Q": range(8, 16), "K": range(12, 16)}.items():
        steps = [a.elements for a in mine if a.array == array]
        assert steps == [[row * d + i for row in rows] for i in range(d)]
    (stored,) = [a for a in mine if a.kind == "store"]
    assert stored.elements == [row * N + col for row in range(8, 16) for col in range(12, 16)]
    # Block column 2 begins at 16, warp 1 has threadIdx.y 4 to 7, and S ends with column 19.
    assert warp_accesses(report, space="global", block=(1, 2), warp=1) == []


def touch(bytes_each: int, first: int, addresses: list[int], indices: list[int]) -> WarpAccess:
    """A load by the lanes from `first` on."""
    lanes = slice(first, first + len(addresses))
    filled = [np.zeros(32, kind) for kind in (np.int64, np.intp, bool)]
    for array, values in zip(filled, (addresses, indices, True), strict=True):
        array[lanes] = values
    return WarpAccess(0, "x", "load", "global", 1, bytes_each, *filled)


def test_sectors_and_elements_follow_from_addresses():
    wide = touch(16, 3, [320, 344], [16, 22])
    assert wide.sectors == [10, 11]  # bytes 320-335 and 344-359
    assert wide.elements == [16, 17, 18, 19, 22, 23, 24, 25] and wide.lanes == [3, 4]
    assert wide.start == 256 and list(wide.words(4)) == [86, 87, 88, 89]
    assert touch(4, 0, [28, 32, 36], [7, 8, 9]).sectors == [0, 1]
    half = touch(2, 0, [96, 98, 100], [16, 17, 18])
    assert (half.start, half.elements, half.sectors) == (64, [16, 17, 18], [3])


def test_sums_of_sectors_are_the_counters():
    report = scores(33, 7, 16)
    total = 0
    for block in {o.block for o in owners(report, "S").values()}:
        for warp in range(8):
            mine = warp_accesses(report, kind="load", space="global", block=block, warp=warp)
            total += sum(len(a.sectors) for a in mine)
    assert total == report.counters["global_load_sectors"]


def test_an_array_that_is_not_written():
    with pytest.raises(ValueError, match="vector_add stored nothing in a"):
        owners(vector_add(20, 8), "a")


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
        lines(figures.thread_map(r, "c"), stroke=colour("blue"), stroke_width="1.5")
        for r in (vector_add(16, 8), report)
    )
    ends = [[float(line["x2"]) for line in found] for found in (usual, other)]
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
        [paths(figures.footprint(report, step=s, Q=(32, 16)), fill=colour(name))
         for name in ("blue", "blue-fill")]
        for s in (3, 4)
    )  # fmt: skip
    xs = [[float(x) for x in re.findall(r"M([\d.]+)", d)] for d in (one[0][0], two[0][0])]
    assert len(xs[0]) == 16 and {round(b - a, 2) for a, b in zip(*xs, strict=True)} == {9.0}
    assert one[1] == two[1]  # both within one sector of each row
    with pytest.raises(ValueError, match="makes 16 global accesses of Q; there is no number 16"):
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
    fills = colour("blue"), "none"
    squares = ["".join(paths(figure, fill=fill)).count("M") for fill in fills]
    assert squares == [busy, 132 - busy]


def test_filling_gives_each_block_its_warps_and_says_what_keeps_more_out():
    held = simulator.occupancy(128, 242, 49152, "H200", blocks=4096)
    figure = figures.filling({"flash": held})
    squares = {
        hue: "".join(paths(figure, fill=colour(hue))).count("M") for hue in ("blue", "orange")
    }
    assert squares == {"blue": 4, "orange": 4}  # two blocks of four warps
    assert "".join(paths(figure, fill="none")).count("M") == 64 - 8
    said = " ".join(texts(figure))
    assert "8 of 64 warps" in said and "What keeps more out: registers" in said
    assert "4,096 blocks, 264 at once" in said and "15.5 waves; the last is 52% full" in said


def test_memory_chart_takes_the_colours_of_the_page():
    chart = figures.memory_chart([1024, 65536], 64, {"24 GiB": 24 * 2**30})
    assert chart.svg().startswith("<svg ")
    assert "currentColor" in chart.svg() and "#010203" not in chart.svg()
    hues = re.findall(r"(?:stroke|fill): [^;\"]*#[0-9a-f]{6}[^;\"]*", chart.svg())
    assert hues and all(HUES[0] in hue or HUES[5] in hue for hue in hues)
    assert all("currentColor" in hue for hue in hues)  # so that they stand out on dark pages too
    assert {"N, tokens", "24 GiB", "1,024", "65,536"} <= set(texts(chart))


def test_a_canvas_is_one_piece_of_markup():
    canvas = Canvas(10, 20, 'a < b & "c"')
    canvas.text(1, 2, "x < y")
    html = canvas._repr_html_()
    assert 'aria-label="a &lt; b &amp; &quot;c&quot;"' in html and "x &lt; y" in html
    assert '<svg style="max-width:10px" ' in html and "--fig-ink: " in html
    assert ET.fromstring(canvas.svg()).get("viewBox") == "0 0 10 20"
    assert repr(canvas) == '<Figure: a < b & "c">'


def stills() -> dict[str, list]:
    small = scores(27, 4, 16)
    maps = [figures.thread_map(vector_add(n, b), "c") for n, b in ((20, 8), (1, 4), (30, 3))]
    adds = [figures.sectors(vector_add(1000, 256), "c", block=3, warp=w) for w in (0, 7)]
    prints = {"Q": (27, 4), "K": (27, 4), "S": (27, 27)}
    return {
        "thread_map": maps,
        "ownership": [figures.ownership(small, "S", (27, 27), block=(b, b)) for b in (0, 1)],
        "sectors": [*adds, figures.sectors(small, "S")],
        "footprint": [figures.footprint(small, **one) for one in (prints, {"Q": (27, 4)})],
        "filling": [
            figures.filling(
                {
                    "coarsened": simulator.occupancy(256, 40, 8192, "H200", blocks=1000),
                    "a_b": simulator.occupancy(1024, 32, 0, "T4", blocks=41),
                }
            )
        ],
        "multiprocessors": [figures.multiprocessors({"a_b": (16, 256), "c": ((64, 64), 256)})],
    }


@pytest.mark.browser
def test_nothing_in_a_still_is_cut_off_or_on_something_else(page):
    for name, pictures in stills().items():
        assert faults(page, [(picture.svg(), "") for picture in pictures]) == [], name
