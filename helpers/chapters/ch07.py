"""Chapter 07, bank conflicts: its rungs and exercises."""

import itertools
import re

import numpy as np

from ..exercises.spec import Case, Exercise, Goal, Misconception, PlaceMap
from ..problem.attention import cdiv
from ..problem.fp32 import REDUCTION, TRANSPOSES, columns_first, row_softmax, steps
from ..problem.rungs import Values
from ..problem.three_kernels import KernelOfRung, ThreeKernels
from .shared import (
    LOADS,
    NO_ROOM,
    SECTORS,
    STORES,
    Arguments,
    covering,
    empty,
    keys,
    normal,
    scores,
)

_BLOCKED = "07_register_blocked.cu"


def _rows(p: Values) -> int:
    """Rows of Q of a block of the fused kernel: 8 in each thread, KEYS / 8 threads for a row."""
    return 8 * 32 * p["WARPS"] // (p["KEYS"] // 8)


def _tiles(p: Values) -> int:
    """Bytes of its struct `Tiles`: Q and V, and K or the weights, whichever is larger."""
    rows, keys = _rows(p), p["KEYS"]
    return 4 * (rows * 68 + keys * 64 + max(keys * 68, rows * (keys + 4)))


RUNGS = (
    ThreeKernels(
        name="padded",
        chapter=7,
        steps=steps("07_padded.cu", columns_first, REDUCTION),
        variants=TRANSPOSES,
    ),
    ThreeKernels(
        name="register_blocked",
        chapter=7,
        steps=(
            KernelOfRung(
                _BLOCKED,
                "scaled_dot_product",
                lambda p, N, d: (cdiv(N, 16 * p["PATCH"]), cdiv(N, 16 * p["PATCH"])),
                lambda p: (256,),
            ),
            row_softmax(_BLOCKED, lambda p: 1),
            KernelOfRung(
                _BLOCKED,
                "pv_multiply",
                lambda p, N, d: (cdiv(d, 64), cdiv(N, 8 * p["PATCH"])),
                lambda p: (128,),
            ),
        ),
        compared=True,
        alignment=16,
    ),
    ThreeKernels(
        name="fused",
        chapter=7,
        steps=(
            KernelOfRung(
                "07_fused.cu",
                "fused_attention",
                lambda p, N, d: (cdiv(d, 64), cdiv(N, _rows(p))),
                lambda p: (32 * p["WARPS"],),
                _tiles,
            ),
        ),
        compared=True,
        alignment=16,
    ),
)


def _p_and_do(case: Case) -> Arguments:
    N, d = case["N"], case["d"]
    return {"P": normal(N, N), "dO": normal(N, d, seed=1), "dV": empty(N, d), "N": N, "d": d}


def _q_and_k(case: Case) -> Arguments:
    N, d = case["N"], case["d"]
    Q, K = normal(N, d), normal(N, d, seed=1)
    return {"Q": Q, "K": K, "S": empty(N, N), "N": N, "d": d}


_Q_LOAD, _K_LOAD = "s_Q[ty * pitch + k]", "s_K[tx * pitch + k]"

FLOAT2 = Exercise(
    name="07_float2",
    title="two floats at a time",
    task=(
        "Read two neighbours with each load from shared memory. Choose a pitch at which that is "
        "possible and does not conflict."
    ),
    hints=(
        "A `float2` is 8 bytes and starts at a multiple of 8 bytes. Then 16 lanes are as much as "
        "all banks give at once.",
        "Think of 16 banks of 8 bytes. The 16 lanes that go together read 16 rows, so count how "
        "many `float2` a row has: which numbers put 16 rows into 16 different banks?",
    ),
    entry="scaled_dot_product",
    cases=({"N": 37, "d": 17}, {"N": 32, "d": 32}),
    launch=covering((16, 16), ("N", 16), ("N", 16)),
    arguments=_q_and_k,
    results={"S": scores},
    goals=(
        Goal(
            "shared_load_bank_conflicts",
            "Lanes that go together read different words of the same bank, and wait for each "
            "other. How many float2 has a row at this pitch, and which rows begin in the same "
            "bank of 8 bytes?",
            at_most=0,
        ),
        Goal(
            "shared_load_instructions",
            "Two floats that lie side by side are one load of 8 bytes, if they begin at a "
            "multiple of 8 bytes: read them through a pointer to float2.",
        ),
        *SECTORS,
    ),
    keeps=("float2*",),
    timed={"N": 4096, "d": 64},
    misconceptions=(
        Misconception(
            "K's tile is read at the row of S: the thread's column of S is a row of K's tile.",
            ((_K_LOAD, "s_K[ty * pitch + k]"),),
        ),
        Misconception(
            "Q's tile is read at the column of S: the thread's row of S is a row of Q's tile.",
            ((_Q_LOAD, "s_Q[tx * pitch + k]"),),
        ),
        Misconception(
            "`tx` and `ty` are exchanged in both loads: `ty` says which row of S the thread "
            "computes, `tx` which column.",
            ((_Q_LOAD, "s_Q[tx * pitch + k]"), (_K_LOAD, "s_K[ty * pitch + k]")),
        ),
        Misconception(
            "The second operand is also taken from Q's tile: this is Q times itself.",
            ((_K_LOAD, "s_Q[tx * pitch + k]"),),
        ),
        Misconception(
            "Every load takes the first two elements of its row: the loads have to move along it.",
            ((_Q_LOAD, "s_Q[ty * pitch]"), (_K_LOAD, "s_K[tx * pitch]")),
        ),
        Misconception(
            "Rows are stored with one pitch and read with another.",
            ((_Q_LOAD, "s_Q[ty * 16 + k]"), (_K_LOAD, "s_K[tx * 16 + k]")),
        ),
        *(
            Misconception(
                f"16 rows of {pitch} words do not fit into a tile: a row has room for 32.",
                (("pitch = 18;", f"pitch = {pitch};"),),
            )
            for pitch in (34, 36, 40, 48)
        ),
        Misconception(
            "Only half of the tile's positions are summed: `k` counts floats, not pairs.",
            (("k < 16; k += 2", "k < 8; k += 2"),),
        ),
        Misconception(
            "Every position but the first and the last of a turn counts twice: two floats are read "
            "at a time, so `k` moves on by two.",
            (("k < 16; k += 2", "k < 15; k += 1"),),
        ),
        Misconception(
            "The position is halved, as if it counted pairs: `k` counts floats, and so does an "
            "index of the tile.",
            (
                (_Q_LOAD, "s_Q[ty * pitch + k / 4 * 2]"),
                (_K_LOAD, "s_K[tx * pitch + k / 4 * 2]"),
            ),
        ),
    ),
    signs=(
        (
            r"float2\s*\*\s*(?:\)\s*s_[QK]|>\s*\(\s*s_[QK]\s*\))\s*\)*\s*[+\[](?![^;]*/\s*2)",
            "An index behind a pointer to float2 counts pairs, and `ty * pitch + k` counts floats.",
        ),
        (
            r"float2\s*\*\s*(?:(?:>\s*\(|\))\s*\(?\s*&?\s*s_[QK][^;()]*\)\s*\[\s*k\s*\]"
            r"|\)\s*&\s*s_[QK]\s*\[[^\]]*\]\s*\+\s*k\b)",
            "An index behind a pointer to float2 counts pairs, and `k` counts floats: it is twice "
            "as far as it should be.",
        ),
        (
            r"float2\s*\*\s*(\w+)\s*=[^;]*;(?:(?!\bfloat2\s*\*)[\s\S])*?\b\1\s*\[\s*k\s*\]",
            "An index behind a pointer to float2 counts pairs, and `k` counts floats.",
        ),
    ),
    explanation=(
        "Loads of 8 bytes go in two phases of 16 lanes, and 16 × 8 bytes fill all banks once. A "
        "row of 18 words is 9 `float2`. 9 is odd, so it has no factor in common with 16, and 16 "
        "rows begin in 16 different banks of 8 bytes. 17 words would put every second row at no "
        "multiple of 8 bytes. 20 words are 10 `float2`, and 10 has the factor 2 in common with 16: "
        "two rows meet in each bank. 22, 26 or 30 words would do as well."
    ),
)

_PLACE = "16 * row + (col ^ (row / 2))"

TRANSPOSE = Exercise(
    name="07_transpose",
    title="a transpose with no conflict at all",
    task=(
        "Two rows of this tile fill the 32 banks once, and a warp reads columns of 32 rows. Let "
        "`place` keep the elements so that neither the stores nor the loads conflict, without "
        "padding."
    ),
    hints=(
        "Which rows of the tile begin in bank 0, and how many are they? Down a column, those are "
        "the rows that meet.",
        "Rows 0, 2, 4 and so on begin in bank 0, 16 of the 32. Each needs a permutation of its own "
        "16 places: number these rows 0, 1, 2 ..., and use that number. Rows 1, 3, 5 and so on "
        "begin in bank 16, and can do the same.",
    ),
    entry="transpose",
    cases=({"N": 35, "d": 37}, {"N": 64, "d": 32}),
    launch=covering((16, 32), ("d", 16), ("N", 32)),
    arguments=keys,
    results={"KT": lambda K: K.T},
    goals=(
        Goal(
            "shared_load_bank_conflicts",
            "Two rows fill the 32 banks, so rows 0, 2, 4 ... 30 begin in the same bank: does the "
            "map permute each of these 16 in another way? So do rows 1, 3, 5 ... 31.",
            at_most=0,
        ),
        STORES,
        NO_ROOM,
        *SECTORS,
    ),
    place=PlaceMap("place", "column", 32, 16, 16, 1, {"s_K": (0,)}),
    timed={"N": 16384, "d": 1024},
    misconceptions=(
        Misconception(
            "Several elements of a row share a place: with an or, different columns give the same "
            "number. Each row needs a map that can be undone.",
            ((_PLACE, "16 * row + (col | (row / 2))"),),
        ),
        Misconception(
            "Several elements of a row share a place: with an and, different columns give the same "
            "number. Each row needs a map that can be undone.",
            ((_PLACE, "16 * row + (col & (row / 2))"),),
        ),
        Misconception(
            "All elements of a row share one place: it depends on the row alone.",
            ((_PLACE, "16 * row + (row / 2)"),),
        ),
        Misconception(
            "Elements of different rows share a place: row and column are exchanged, and a row of "
            "the tile has 16 words while a column has 32.",
            ((_PLACE, "16 * col + row"),),
        ),
        Misconception(
            "Rows are closer together than they are long, so their elements overlap.",
            ((_PLACE, "8 * row + col"),),
        ),
    ),
    explanation=(
        "A warp stores two neighbouring rows. One lies in banks 0 to 15 and the other in 16 to 31, "
        "and a permutation within a row changes nothing about that. Down a column, the 16 rows "
        "with even numbers share banks 0 to 15. `row / 2` numbers them 0 to 15, and $c \\oplus n$ "
        "is different for each $n$. With `row` in place of `row / 2` elements would leave "
        "their rows. With `row % 16` the even rows would have only eight different numbers, and "
        "would meet in pairs. A rotation by `row / 2` does as well."
    ),
)


def _two_rows_exchanged(a: int, b: int):
    """dV with rows a and b of each patch of 4 rows exchanged; past its last row are zeros."""

    def result(P: np.ndarray, dO: np.ndarray) -> np.ndarray:
        N, d = dO.shape
        rows = np.pad(P.T @ dO, ((0, -N % 4), (0, 0))).reshape(-1, 4, d)
        rows[:, [a, b]] = rows[:, [b, a]]
        return rows.reshape(-1, d)[:N]

    return result


_SUMS = tuple(f"add_multiple(sum[{r}], p.{x}, o);" for r, x in enumerate("xyzw"))
_P_LOAD, _DO_LOAD = "s_P[k][4 * ty]", "s_dO[k][4 * tx]"

GRADIENT = Exercise(
    name="07_gradient",
    title="a patch for the gradient of V",
    task=(
        "Training needs $dV=P^{\\mathsf T}dO$. Here both tiles have the position along the sum "
        "first. Load what a patch of 4 × 4 needs at one position, and add its 16 products."
    ),
    hints=(
        "At one position along the sum, a patch needs 4 elements of $P$ and 4 of $dO$, and "
        "multiplies each with each. Neighbours in a row of the tile are neighbours in the patch.",
        "The 4 elements of $P$ belong to the patch's rows, the 4 of $dO$ to its columns. `sum[r]` "
        "is a row of the patch: it gets one element of $P$ times all four of $dO$.",
    ),
    entry="gradient",
    cases=({"N": 37, "d": 19}, {"N": 32, "d": 36}),
    launch=covering((64,), ("d", 32), ("N", 32)),
    arguments=_p_and_do,
    results={"dV": lambda P, dO: P.T @ dO},
    goals=(
        LOADS,
        Goal(
            "shared_load_instructions",
            "A patch needs four neighbours of either tile: that is one load of 16 bytes each, "
            "whose floats are then used from registers.",
        ),
        *SECTORS,
    ),
    timed={"N": 4096, "d": 64},
    misconceptions=(
        Misconception(
            "The patch is turned: each of its rows got one element of dO times four of P. Rows of "
            "dV belong to P, and columns to dO.",
            tuple((s, s.replace("p.", "o.").replace("o);", "p);")) for s in _SUMS),
        ),
        Misconception(
            "`tx` and `ty` are exchanged: the patch's rows are chosen by `ty`, its columns by "
            "`tx`.",
            ((_P_LOAD, "s_P[k][4 * tx]"), (_DO_LOAD, "s_dO[k][4 * ty]")),
        ),
        Misconception(
            "P is read at the patch's columns: its elements belong to rows of dV.",
            ((_P_LOAD, "s_P[k][4 * tx]"),),
        ),
        Misconception(
            "dO is read at the patch's rows: its elements belong to columns of dV.",
            ((_DO_LOAD, "s_dO[k][4 * ty]"),),
        ),
        Misconception(
            "All four rows of the patch use the same element of P: each has one of its own.",
            tuple((s, re.sub(r"p\.\w", "p.x", s)) for s in _SUMS[1:]),
        ),
        Misconception(
            "Only elements with the same number are multiplied, which is the patch's diagonal: "
            "each of the four of P belongs to each of the four of dO.",
            (
                (_SUMS[0], "sum[0].x += p.x * o.x; sum[1].y += p.y * o.y;"),
                (_SUMS[1], "sum[2].z += p.z * o.z; sum[3].w += p.w * o.w;"),
                (_SUMS[2], ""),
                (_SUMS[3], ""),
            ),
        ),
        Misconception(
            "All products go into one row of the patch: each of its rows has sums of its own.",
            tuple((one, one.replace(f"[{r}]", "[0]")) for r, one in enumerate(_SUMS) if r),
        ),
        Misconception(
            "Only one row of the patch gets its products: there are four.",
            tuple((one, "") for one in _SUMS[1:]),
        ),
        Misconception(
            "Both loads come from the tile of P: the columns of dV belong to dO.",
            ((_DO_LOAD, "s_P[k][4 * tx]"),),
        ),
        Misconception(
            "Each position replaces the sums: its products have to be added.",
            results={
                "dV": lambda P, dO: (
                    np.outer(P[-1], dO[-1]) if len(P) % 16 == 0 else np.zeros_like(dO)
                )
            },
        ),
        Misconception(
            "The tile of P is read with its indices exchanged: the position along the sum comes "
            "first in it, then the row of dV.",
            (
                (
                    f"*(const float4*)&{_P_LOAD}",
                    "make_float4(s_P[4 * ty][k], s_P[4 * ty + 1][k], s_P[4 * ty + 2][k], "
                    "s_P[4 * ty + 3][k])",
                ),
            ),
        ),
        Misconception(
            "The number of the thread in its block is taken for its column of patches, which `tx` "
            "is: 64 threads share 8 columns.",
            ((_DO_LOAD, "s_dO[k][4 * threadIdx.x]"),),
        ),
        Misconception(
            "All products are added twice.",
            results={"dV": lambda P, dO: 2 * P.T @ dO},
        ),
        Misconception(
            "The four products of p and o at the same place were added up, as in a dot product: "
            "each of the four elements of P belongs to each of the four of dO.",
            (
                (_SUMS[0], "sum[0].x += p.x * o.x + p.y * o.y + p.z * o.z + p.w * o.w;"),
                *((one, "") for one in _SUMS[1:]),
            ),
        ),
        *(
            Misconception(
                f"Rows {a} and {b} of the patch are exchanged: sum[{a}] got the element of P that "
                f"belongs to sum[{b}].",
                results={"dV": _two_rows_exchanged(a, b)},
            )
            for a, b in itertools.combinations(range(4), 2)
        ),
        *(
            Misconception(
                f"One row of the patch gets no products, the one of sum[{r}]: there are four.",
                ((one, ""),),
            )
            for r, one in enumerate(_SUMS)
        ),
        Misconception(
            "Both loads come from the tile of dO: one factor belongs to P.",
            ((_P_LOAD, "s_dO[k][4 * ty]"),),
        ),
        Misconception(
            "The rows of the patch that are loaded lie 8 apart, and those that are stored are "
            "neighbours.",
            (
                (
                    f"*(const float4*)&{_P_LOAD}",
                    "make_float4(s_P[k][ty], s_P[k][ty + 8], s_P[k][ty + 16], s_P[k][ty + 24])",
                ),
            ),
        ),
        Misconception(
            "Rows and columns of P are exchanged: this is the product of P itself and dO.",
            results={"dV": lambda P, dO: P @ dO},
        ),
    ),
    signs=(
        (
            r"float4\s*\*\s*(?:\)\s*s_\w+|>\s*\(\s*s_\w+)[\w\[\]\s]*\)*\s*(?:\[|\+)\s*4\s*\*\s*t[xy]",
            "An index behind a pointer to float4 counts float4: a row of a tile has 8 of them.",
        ),
    ),
    explanation=(
        "This is an outer product: 8 floats from shared memory serve 16 multiplications, half a "
        "float each. Both loads run along rows of the tiles, so nothing has to be padded. Lanes "
        "with the same `ty` share their load of $P$. The 8 lanes of a phase read 8 neighbouring "
        "`float4` of $dO$, which are all 32 banks."
    ),
)

EXERCISES: tuple[Exercise, ...] = (FLOAT2, TRANSPOSE, GRADIENT)
