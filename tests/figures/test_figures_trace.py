"""Figures of the fp32 chapters: their numbers, and that they change with the kernel they show."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest
from figure_layout import faults as drawn_faults
from figure_pages import changed
from figure_texts import after, faults, texts

from helpers import figures
from helpers.figures.bank_rules import issued, judge
from helpers.figures.events import warp_access, warp_accesses
from helpers.figures.pictures.banks import access_banks, bank_frames, run_tile, tile_banks
from helpers.figures.pictures.chunks import phase_frames
from helpers.figures.pictures.coalescing import coalescing, sector_frames, view
from helpers.figures.pictures.coarsening import coarsening_compared
from helpers.figures.pictures.matrix_loads import ldmatrix_steps
from helpers.figures.pictures.patches import register_patch
from helpers.figures.pictures.playground import column_banks
from helpers.figures.pictures.reduction import ROW, run_reduction, tree_reduction
from helpers.figures.pictures.swizzle import swizzle_frames
from helpers.figures.pictures.tile_layouts import tile_layouts
from helpers.figures.pictures.tiling import tiled_product
from helpers.figures.player import Player
from helpers.figures.products import run_product
from helpers.figures.replay import replay
from helpers.kernels import load_kernel
from helpers.measure.facts import load_facts

PRODUCT_SIZES = [(8, 8, 4), (7, 5, 4), (3, 2, 1), (6, 9, 2), (5, 4, 8)]


def mutated(file: str, *changes: tuple[str, str], entry: str = "scaled_dot_product") -> str:
    """The code of a kernel file with each text replaced once, behind the start of `entry`."""
    code = load_kernel(file, entry).code
    start = code.index(f"void {entry}(")
    head, code = code[:start], code[start:]
    for old, new in changes:
        assert old in code, f"{file} no longer holds {old!r}"
        code = code.replace(old, new, 1)
    return head + code


def products(run) -> np.ndarray:
    return run.arrays["Q"].astype(np.float64) @ run.arrays["K"].astype(np.float64).T


# ---------------------------------------------------------------- tiles


def test_default_tiling_takes_nine_steps_a_block():
    frames = tiled_product()
    steps = [re.search(r"(load|barrier|multiply|store):?", f.caption)[1] for f in frames]
    a_tile = ["load", "barrier", "multiply", "barrier"]
    assert steps == [*a_tile, *a_tile, "store"] * 4
    blocks = [re.match(r"Block \((\d), (\d)\), tile (\d) of 2", f.caption).groups() for f in frames]
    assert len(set(blocks)) == 8
    assert len({frame.svg for frame in frames}) == 36


def test_both_barriers_are_steps_with_their_lines():
    frames = tiled_product()
    lines = load_kernel("03_tiled.cu", "scaled_dot_product").lines("__syncthreads()")
    for at, line, words in ((1, lines[0], "have stored"), (3, lines[1], "have read")):
        shown = texts(frames[at].svg)
        assert f"line {line}: 16 threads {words}" in shown
        assert {f"barrier, line {n}" for n in lines} < set(shown)
        assert f"__syncthreads() in line {line} holds" in frames[at].caption
    assert "go on and store its result" in frames[7].caption


@pytest.mark.parametrize("size", PRODUCT_SIZES)
def test_tiles_hold_what_numpy_cuts_out(size):
    N, d, T = size
    run = run_product("03_tiled.cu", N, d, T)
    padded = np.zeros((2, N + T, d + T))
    padded[0, :N, :d], padded[1, :N, :d] = run.arrays["Q"], run.arrays["K"]
    for block in replay(run):
        bx, by, _ = block.block
        loads = [phase for phase in block.phases if phase.kind == "load"]
        assert len(loads) == -(-d // T)
        for turn, phase in enumerate(loads):
            held = {
                name: np.array([words[n].value for n in range(T * T)]).reshape(T, T)
                for name, words in phase.shared.items()
            }
            at = slice(turn * T, turn * T + T)
            np.testing.assert_array_equal(held["s_Q"], padded[0, bx * T : bx * T + T, at])
            np.testing.assert_array_equal(held["s_K"], padded[1, by * T : by * T + T, at].T)


@pytest.mark.parametrize("size", PRODUCT_SIZES)
def test_sums_and_stored_results_are_the_product(size):
    N, d, T = size
    run = run_product("03_tiled.cu", N, d, T)
    exact, stored = products(run).reshape(-1), []
    for block in replay(run):
        last = block.phases[-1]
        for at in last.stored:
            assert last.partial[at] == exact[at]
        stored += last.stored
    assert sorted(stored) == list(range(N * N))


@pytest.mark.parametrize("size", [(8, 8, 4), (7, 5, 4), (6, 9, 3)])
def test_reads_are_counted_against_naive(size):
    N, d, T = size
    frames = tiled_product(N, d, T)
    inside = [min(T, N - start) for start in range(0, N, T)]
    along = [min(T, d - start) for start in range(0, d, T)]
    tiled = naive = 0
    seen = []
    for rows, columns, depth in [
        (inside[bx], inside[by], k)
        for by in range(len(inside))
        for bx in range(len(inside))
        for k in along
    ]:
        tiled += (rows + columns) * depth
        seen.append((tiled, naive))
        naive += 2 * rows * columns * depth
        seen.append((tiled, naive))
    shown = [
        (
            int(after(frame.svg, "tiled").replace(",", "")),
            int(after(frame.svg, "naive, same products").replace(",", "")),
        )
        for frame in frames
        if ", load:" in frame.caption or ", multiply:" in frame.caption
    ]
    assert shown == seen
    assert naive == 2 * N * N * d


def test_last_tiling_frame_shows_the_result():
    run = run_product("03_tiled.cu")
    shown = texts(tiled_product()[-1].svg)
    result = products(run) / np.sqrt(8)
    np.testing.assert_allclose(run.arrays["S"], result, rtol=1e-6)
    values = [text.replace("−", "-") for text in shown if re.fullmatch(r"−?\d\.\d", text)]
    wanted = [f"{v:.1f}".replace("-0.0", "0.0") for v in run.arrays["S"].reshape(-1)]
    assert sorted(values) == sorted(wanted)


def test_tiling_follows_the_kernel():
    whole = [frame.svg for frame in tiled_product()]
    changes = {
        "dropped load": [("Q[(size_t)row * d + i + ty]", "0.0f")],
        "swapped index": [("s_Q[tx][k]", "s_Q[ty][k]")],
        "other element": [("K[(size_t)col * d + i + tx]", "K[(size_t)col * d + (i + tx) / 2]")],
        "half the tile": [("k < TILE", "k < TILE / 2")],
    }
    drawn = {}
    for name, change in changes.items():
        with changed("03_tiled.cu", mutated("03_tiled.cu", *change)):
            drawn[name] = tiled_product()
    for name, frames in drawn.items():
        assert len(frames) == 36
        assert [frame.svg for frame in frames] != whole, name
    assert "16 elements of K from" in drawn["dropped load"][0].caption
    assert "of Q" not in drawn["dropped load"][0].caption
    assert "adds 2 products" in drawn["half the tile"][2].caption
    assert "64 words" in drawn["half the tile"][2].caption


def test_missing_barriers_are_missing_in_the_figure():
    barrier = "__syncthreads();"
    with changed("03_tiled.cu", mutated("03_tiled.cu", (barrier, ""))):
        frames = tiled_product()
    assert len(frames) == 28
    assert "No barrier came before" in frames[1].caption
    assert "no barrier" in texts(frames[0].svg)
    both = mutated("03_tiled.cu", (barrier, "REMAINS;"), (barrier, ""), ("REMAINS;", barrier))
    with changed("03_tiled.cu", both):
        frames = tiled_product()
    assert len(frames) == 28
    assert "No barrier kept them" in frames[3].caption
    assert not any("No barrier" in frame.caption for frame in tiled_product())


@pytest.mark.parametrize(
    "size, words", [((17, 8, 4), "16 at most"), ((8, 20, 4), "16 at most"), ((16, 16, 2), "2,112")]
)
def test_tiling_refuses_what_cannot_be_shown(size, words):
    with pytest.raises(ValueError, match=words):
        tiled_product(*size)


def test_no_tiles_without_shared_memory():
    with pytest.raises(ValueError, match="copied nothing to shared memory"):
        replay(run_product("02_naive.cu", 4, 4, 2))


# ---------------------------------------------------------------- reduction


def test_reduction_steps_and_values():
    frames = tree_reduction()
    assert len(frames) == 12
    row = np.array(ROW)
    for turn in range(4):
        shown = texts(frames[1 + turn].svg)
        wanted = [str(max(ROW[0], *row[t : 4 * turn + 4 : 4])) for t in range(4)]
        assert [shown[shown.index(f"thread {t}") + 1] for t in range(4)] == wanted
        assert f"S[{4 * turn}] to S[{4 * turn + 3}]" in frames[1 + turn].caption
    maxima = [max(row[t::4]) for t in range(4)]
    assert maxima == [5, 9, 8, 7]
    assert texts(frames[7].svg).count("8") > texts(frames[5].svg).count("8")
    assert "s_data[0] and s_data[2]" in frames[7].caption
    assert "s_data[0] and s_data[1]" in frames[9].caption
    assert "row_max = 9" in frames[11].caption


@pytest.mark.parametrize("threads", [4, 16])
def test_each_barrier_of_the_tree_is_a_step(threads):
    lines = load_kernel("04_reduction.cu", "softmax").lines("__syncthreads()")
    levels = int(np.log2(threads))
    found = [
        int(re.search(r"line (\d+)", frame.caption)[1])
        for frame in tree_reduction(ROW, threads, whole=True)
        if frame.caption.startswith("A barrier:") and re.search(r"^line \d+$", "\n".join(
            texts(frame.svg)), re.M)
    ]  # fmt: skip
    before, level, behind, before_sums, level_of_sums = lines
    wanted = [before, *[level] * levels, behind, before_sums, *[level_of_sums] * levels]
    assert found == wanted


@pytest.mark.parametrize("N, threads", [(16, 4), (13, 4), (3, 8), (32, 16), (5, 1)])
def test_reduction_of_any_size_is_the_softmax(N, threads):
    row = np.random.default_rng(N).integers(-9, 9, N)
    frames = tree_reduction(row, threads, whole=True)
    assert any(f"row_max = {max(row)}.".replace("-", "−") in f.caption for f in frames)
    total = np.exp(row - max(row).astype(float)).sum()
    said = [re.search(r"row_sum = (\d+(\.\d+)?)\.", frame.caption) for frame in frames]
    (row_sum,) = [float(found[1]) for found in said if found]
    assert row_sum == pytest.approx(total, abs=0.006)
    assert "add up to 1.000" in frames[-1].caption
    levels = [f for f in frames if "level of the tree" in f.caption]
    assert len(levels) == 2 * int(np.log2(threads))


def test_reduction_follows_the_kernel():
    def frames(*changes):
        with changed("04_reduction.cu", mutated("04_reduction.cu", *changes, entry="softmax")):
            return tree_reduction()

    plain = [frame.svg for frame in tree_reduction()]
    chunks = frames(
        ("j = tid; j < N; j += BLOCK_SIZE", "j = tid * 4; j < tid * 4 + 4; j++"),
    )
    assert "S[0], S[4], S[8], S[12]" in chunks[0].caption  # it reads S[0] for all after that
    assert "S[3], S[7], S[11], S[15]" in chunks[4].caption
    assert [f.svg for f in chunks] != plain
    neighbours = frames(
        ("int stride = BLOCK_SIZE / 2; stride >= 1; stride /= 2",
         "int stride = 1; stride < BLOCK_SIZE; stride *= 2"),
        ("tid < stride", "tid % (2 * stride) == 0"),
    )  # fmt: skip
    assert "s_data[0] and s_data[1]" in neighbours[7].caption
    assert "s_data[0] and s_data[2]" in neighbours[9].caption
    assert "No barrier" not in " ".join(f.caption for f in neighbours)


def test_reduction_says_where_no_barrier_is():
    barriers = [m.start() for m in re.finditer("__syncthreads", mutated("04_reduction.cu",
                entry="softmax"))]  # fmt: skip
    assert len(barriers) == 5
    for number, step, whole in ((0, 6, False), (1, 8, False), (2, 12, True)):
        code = mutated("04_reduction.cu", entry="softmax")
        at = barriers[number]
        code = code[:at] + code[at:].replace("__syncthreads()", "", 1)
        with changed("04_reduction.cu", code):
            frames = tree_reduction(whole=whole)
        assert "No barrier came before" in frames[step].caption, number
    assert not any("No barrier" in f.caption for f in tree_reduction(whole=True))


def test_reduction_refuses():
    with pytest.raises(ValueError, match="power of two"):
        tree_reduction(ROW, 3)
    with pytest.raises(ValueError, match="up to 32 scores"):
        tree_reduction(range(33), 4)
    with pytest.raises(ValueError, match="a row of scores"):
        tree_reduction([], 4)


# ---------------------------------------------------------------- coarsening


@pytest.mark.parametrize("size", [(4, 4, 2, 2), (4, 4, 2, 1), (8, 4, 2, 4), (6, 3, 2, 2)])
def test_coarsening_counts_reads(size):
    N, d, T, C = size
    frames = coarsening_compared(*size)
    blocks = -(-N // T)
    coarse_blocks = -(-N // (T * C))
    # Every block row reads Q once for each of its blocks, every block column K likewise.
    plain = (N * d * blocks, N * d * blocks)
    coarse = (N * d * coarse_blocks, N * d * blocks)
    said = re.search(r"in all: (.*) on the left, (.*) on the right. Blocks: (\d+) and (\d+)",
                     frames[-1].caption)  # fmt: skip
    assert said.groups() == (
        f"{plain[0]} + {plain[1]} = {sum(plain)}",
        f"{coarse[0]} + {coarse[1]} = {sum(coarse)}",
        str(blocks**2),
        str(blocks * coarse_blocks),
    )


def test_coarsening_default_is_the_lesson():
    frames = coarsening_compared()
    assert len(frames) == 16
    assert "s_Q stays as it is" in frames[2].caption
    assert texts(frames[2].svg).count("kept") == 1
    assert texts(frames[0].svg).count("kept") == 0


def test_coarsening_follows_the_kernel():
    load = "s_Q[tx][ty] = row < N && i + ty < d ? Q[(size_t)row * d + i + ty] : 0.0f;"
    again = mutated("05_coarsened.cu", ("s_K[tx][ty] =", f"{load} s_K[tx][ty] ="), (load, ""))
    with changed("05_coarsened.cu", again):
        frames = coarsening_compared()
    assert "32 + 32 = 64 on the left, 32 + 32 = 64 on the right" in frames[-1].caption
    assert "kept" not in texts(frames[2].svg)


@pytest.mark.parametrize("size", [(5, 6, 2, 2), (8, 8, 4, 2)])
def test_coarse_sums_are_the_product(size):
    run = run_product("05_coarsened.cu", *size)
    exact, stored = products(run).reshape(-1), []
    for block in replay(run):
        last = block.phases[-1]
        for at in last.stored:
            assert last.partial[at] == exact[at]
        stored += last.stored
    assert sorted(stored) == list(range(size[0] ** 2))


# ---------------------------------------------------------------- sectors


@pytest.mark.parametrize("array, counts", [("Q", (16, 4)), ("K", (4, 4)), ("S", (16, 4))])
def test_sectors_before_and_after(array, counts):
    frames = coalescing(array)
    assert len(frames) == 8
    above, below = counts
    wanted = (
        f"request for {above} sectors: 128 of {32 * above} bytes",
        f"request for {below} sectors: 128 of {32 * below} bytes",
    )
    for words in wanted:
        assert words in frames[-1].caption


def test_sectors_of_all_accesses_add_up_to_the_counters():
    report = run_product("05_coarsened.cu", 19, 13, 8, 2).report
    total = {"load": 0, "store": 0}
    for bx in range(report.grid[0]):
        for by in range(report.grid[1]):
            for warp in range(2):
                for access in warp_accesses(report, space="global", block=(bx, by), warp=warp):
                    words = access.addresses[access.active] // 32
                    total[access.kind] += len(set(words.tolist()))
    assert total["load"] == report.counters["global_load_sectors"]
    assert total["store"] == report.counters["global_store_sectors"]


def test_sectors_gather_lane_by_lane():
    report = run_product("05_coarsened.cu", 32, 32, 16, 2).report
    frames = sector_frames([view(report, "Q", columns=32)], lanes_a_step=1)
    addresses = warp_access(report, "Q", space="global").addresses
    for lane in (0, 3, 15, 16, 31):
        sectors = len(set((addresses[: lane + 1] // 32).tolist()))
        shown = [t for t in texts(frames[lane].svg) if re.fullmatch(r"\d+ sectors?", t)]
        assert shown == [f"{sectors} sector{'s' * (sectors > 1)}"]


def test_sectors_follow_the_kernel():
    turned = mutated(
        "06_coalesced.cu", ("Q[(size_t)row * d + i + tx]", "Q[(size_t)(i + tx) * d + row]")
    )
    with changed("06_coalesced.cu", turned):
        caption = coalescing("Q")[-1].caption
    assert "Below, one load of a warp is one request for 16 sectors" in caption
    offset = mutated("06_coalesced.cu", ("Q[(size_t)row * d + i + tx]",
                                         "Q[(size_t)row * d + (i + tx + 1) % d]"))  # fmt: skip
    with changed("06_coalesced.cu", offset):
        caption = coalescing("Q")[-1].caption
    assert "Below, one load of a warp is one request for 6 sectors" in caption


def test_sectors_say_what_is_missing():
    report = run_product("05_coarsened.cu", 16, 16, 16, 1).report
    with pytest.raises(ValueError, match="no number 5"):
        view(report, "Q", step=5)
    with pytest.raises(ValueError, match="makes 0 global accesses of nothing"):
        view(report, "nothing")
    with pytest.raises(ValueError, match="one or two views"):
        sector_frames([])


# ---------------------------------------------------------------- banks


@pytest.mark.parametrize(
    "options, wavefronts, ideal",
    [
        ({}, 8, 1),  # s_K[tx][k]: 16 words 16 apart in 2 banks
        ({"TRANSPOSE_ON_STORE": 1}, 1, 1),
        ({"PAD": 1}, 1, 1),
        ({"joined": True}, 16, 4),
        ({"PAD": 1, "joined": True}, 1, 1),  # 17 words a row: nothing to join
        ({"kind": "store"}, 1, 1),
        ({"kind": "store", "TRANSPOSE_ON_STORE": 1}, 8, 1),
        ({"kind": "store", "PAD": 1}, 2, 1),
        ({"TILE": 32}, 32, 1),
        ({"TILE": 32, "PAD": 1}, 1, 1),
    ],
)
def test_views_of_a_tile(options, wavefronts, ideal):
    frames = tile_banks(**options)
    assert len(frames) == 32
    shown = texts(frames[-1].svg)
    found = next(t for t in shown if re.search(r"wavefronts?$", t) and t != "wavefront")
    assert int(found.split()[-2]) == wavefronts
    assert f"ideal: {ideal}" in shown


@pytest.mark.parametrize("options", [(8, 0, 0), (8, 1, 0), (8, 0, 1), (16, 0, 0), (16, 0, 1)])
def test_wavefronts_of_all_accesses_add_up_to_the_counters(options):
    """Loads as the hardware joins them: otherwise the figure would not match the listing."""
    TILE, turn, pad = options
    report = run_tile(TILE, turn, pad).report
    warps = TILE * TILE // 32
    loads, stores = np.zeros(2, int), np.zeros(2, int)
    # All warps but the first touch the same patterns in other rows.
    for access in warp_accesses(report, space="shared", kind="store"):
        stores += warps * np.array([judge(access).wavefronts, judge(access).ideal])
    for array in ("s_Q", "s_K"):
        found = {}
        for step in range(TILE if TILE == 8 else 4):
            access = issued(report, array, step=step)
            found[access.bytes, access.addresses.tobytes()] = access
        for access in found.values():
            times = TILE // (access.bytes // 4) // len(found)
            loads += warps * times * np.array([judge(access).wavefronts, judge(access).ideal])
    for kind, (wavefronts, ideal) in (("load", loads), ("store", stores)):
        assert wavefronts == report.counters[f"shared_{kind}_wavefronts"]
        assert ideal == report.counters[f"shared_{kind}_ideal_wavefronts"]


def test_banks_fill_lane_by_lane():
    report = run_tile().report
    access = warp_access(report, "s_K", kind="load", space="shared", step=3)
    frames = bank_frames(access, "s_K[tx][k]", columns=16)
    for lane in (0, 1, 2, 9, 15, 16, 30):
        words = {(16 * (n % 16) + 3) for n in range(lane + 1)}
        banks = [sum(word % 32 == bank for word in words) for bank in range(32)]
        shown = texts(frames[lane].svg)
        count = max(banks)
        assert f"{count} wavefront{'s' * (count > 1)} so far" in shown
        row = lane % 16
        place = f"lane {lane}: s_K[{row}][3] = word {16 * row + 3}, bank {16 * row + 3} mod 32"
        assert any(text.startswith(place) for text in shown)


def test_banks_follow_the_kernel():
    access = ("s_K[TILE][TILE + PAD]", "s_K[TILE][TILE + 3 * PAD]")
    plain = [f.svg for f in tile_banks(PAD=1)]
    with changed("07_padded.cu", mutated("07_padded.cu", access)):
        wider = tile_banks(PAD=1)
    assert [f.svg for f in wider] != plain
    assert "19 apart" in wider[-1].caption and "17 apart" in tile_banks(PAD=1)[-1].caption
    swapped = mutated("06_coalesced.cu", ("s_K[k][tx] : s_K[tx][k]", "s_K[k][tx] : s_K[k][tx]"))
    with changed("06_coalesced.cu", swapped):
        frames = tile_banks()
    assert "No bank has two different words" in frames[-1].caption
    assert "8 different words" in tile_banks()[-1].caption


def test_any_shared_access_can_be_drawn():
    report = run_reduction(range(64), 32).report
    frames = access_banks(report, "s_data", kind="load", step=2)
    # The second level of the tree: 8 of 32 threads.
    assert len(frames) == 8
    assert "softmax" in texts(frames[0].svg)[0]
    with pytest.raises(ValueError, match="there is no number 400"):
        access_banks(report, "s_data", step=400)


# ---------------------------------------------------------------- what they look like

FIGURES = {
    "tiling": lambda: tiled_product()[:9],
    "tiling, odd": lambda: tiled_product(7, 5, 4)[::4],
    "tiling, large": lambda: tiled_product(16, 16, 8)[::5],
    "reduction": lambda: tree_reduction(whole=True),
    "reduction, wide": lambda: tree_reduction([1.5 * n for n in range(32)], 16, whole=True)[::3],
    "coarsening": lambda: coarsening_compared()[::3],
    "coarsening, odd": lambda: coarsening_compared(5, 3, 2, 2)[::7],
    "sectors": lambda: coalescing("Q")[::3],
    "sectors, odd": lambda: coalescing("Q", 19, 13, 8, 2)[::3],
    "banks": lambda: tile_banks()[::6],
    "banks, 32 words": lambda: tile_banks(32)[::6],
    "banks, joined": lambda: tile_banks(joined=True)[::6],
    "tile": lambda: tile_layouts(32, "float"),
    "tile, odd": lambda: tile_layouts(39, "float2", "row"),
    "tile of halves": lambda: tile_layouts(128, "half", "ldmatrix"),
    "tile, secret": lambda: tile_layouts(16, "float4", "mma", secret=True),
    "ldmatrix": lambda: ldmatrix_steps(False, 5),
    "ldmatrix, transposed": lambda: ldmatrix_steps(True, 31),
}
OPENING = {
    "tiling": tiled_product,
    "tiling, odd": lambda: tiled_product(7, 5, 4),
    "reduction": tree_reduction,
    "reduction, wide": lambda: tree_reduction(ROW, 16, whole=True),
    "coarsening": coarsening_compared,
    "coarsening by 1": lambda: coarsening_compared(COARSE=1),
    "sectors": lambda: coalescing("S"),
    "banks": tile_banks,
    "banks of a column": lambda: column_banks(2),
    "patch": register_patch,
    "chunks": phase_frames,
    "swizzle": swizzle_frames,
    "ldmatrix": ldmatrix_steps,
    "GPU": lambda: figures.gpu_picture(load_facts()),
    "latency": lambda: figures.hiding_frames(load_facts()),
}


@pytest.mark.parametrize("name", OPENING)
def test_a_figure_opens_on_a_step_that_is_not_nearly_empty(name):
    frames = OPENING[name]()
    player = Player(frames)
    assert player.frames[player.index].get("telling")
    assert len(frames[player.index].svg) > 0.5 * max(len(frame.svg) for frame in frames)


@pytest.mark.parametrize("name", FIGURES)
def test_no_text_lies_on_another_or_outside(name):
    for frame in FIGURES[name]():
        assert faults(frame.svg) == []
        assert frame.caption.endswith((".", ".)"))


@pytest.mark.browser
@pytest.mark.parametrize("name", FIGURES)
def test_no_text_lies_on_another_in_a_browser(page, name):
    assert drawn_faults(page, FIGURES[name]()) == []


@pytest.mark.parametrize(
    "figure", [tiled_product, tree_reduction, coarsening_compared, coalescing, tile_banks]
)
def test_a_figure_takes_half_a_second_at_most(figure):
    figure()  # without what happens once in a session: loading the compiler, compiling

    def spent() -> float:
        start = time.process_time()
        figure()
        return time.process_time() - start

    assert min(spent() for _ in range(3)) < 0.5  # the best, for a busy machine is slower
