"""Exercises of chapters 06 to 09: coalescing, bank conflicts, FlashAttention, swizzles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..attention import cdiv
from ..kernels import Kernel
from .spec import Case, Exercise, Goal, Shape

Arguments = dict[str, Any]
Launch = tuple[Shape, Shape, int]

# Goals that several exercises share.
_SECTORS = (
    Goal(
        "global_load_sectors",
        "Lanes that read neighbours share a sector of 32 bytes; here, sectors are read for a part "
        "of what they hold. Let tx run along rows of the array that is loaded.",
    ),
    Goal(
        "global_store_sectors",
        "Lanes that write neighbours share a sector of 32 bytes; here, sectors are written for a "
        "part of what they hold. Let tx run along rows of the array that is stored.",
    ),
)
_LOADS = Goal(
    "shared_load_bank_conflicts",
    "Lanes of a warp read different words of the same bank, and wait for each other.",
    at_most=0,
)
_STORES = Goal(
    "shared_store_bank_conflicts",
    "Lanes of a warp write different words of the same bank, and wait for each other.",
    at_most=0,
)
_NO_ROOM = Goal(
    "shared_bytes",
    "This exercise is about doing without padding: give the tile its size back.",
    name="bytes of shared memory a block",
)


def _normal(*shape: int, seed: int = 0, dtype: type = np.float32) -> np.ndarray:
    """Standard normal numbers, others for each seed."""
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32).astype(dtype)


def _empty(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)


def _tiled(rows: str, columns: str, size: int = 0):
    """A launch with a block of TILE x TILE (or size x size) threads for each tile of a result."""

    def launch(case: Case, kernel: Kernel) -> Launch:
        edge = size or kernel.parameters["TILE"].value
        return (cdiv(case[columns], edge), cdiv(case[rows], edge)), (edge, edge), 0

    return launch


# ---- 06: K^T, and dV = P^T dO


def _k(case: Case) -> Arguments:
    N, d = case["N"], case["d"]
    return {"K": _normal(N, d), "KT": _empty(d, N), "N": N, "d": d}


def _k_transposed(case: Case, arguments: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {"KT": arguments["K"].T.astype(np.float64)}


def _p_and_do(case: Case) -> Arguments:
    N, d = case["N"], case["d"]
    P = np.random.default_rng(N).dirichlet(np.full(N, 0.5), N).astype(np.float32)
    return {"P": P, "dO": _normal(N, d), "dV": _empty(N, d), "N": N, "d": d}


def _dv(case: Case, arguments: Mapping[str, Any]) -> dict[str, np.ndarray]:
    P, dO = (arguments[name].astype(np.float64) for name in ("P", "dO"))
    return {"dV": P.T @ dO}


# ---- 07: S = Q K^T / sqrt(d)


def _q_and_k(case: Case) -> Arguments:
    N, d = case["N"], case["d"]
    Q, K = _normal(N, d), _normal(N, d, seed=1)
    return {"Q": Q, "K": K, "S": _empty(N, N), "N": N, "d": d}


def _scores(case: Case, arguments: Mapping[str, Any]) -> dict[str, np.ndarray]:
    Q, K = (arguments[name].astype(np.float64) for name in "QK")
    return {"S": Q @ K.T / np.sqrt(Q.shape[1])}


def _patches(case: Case, kernel: Kernel) -> Launch:
    tiles = cdiv(case["N"], 32)
    return (tiles, tiles), (64,), 0


# ---- 08: attention in fp32, the scores of one token, S on tensor cores


def _attention(case: Case) -> Arguments:
    n, d = case["n"], case["HEAD_DIM"]
    Q, K, V = (_normal(n, d, seed=seed) for seed in range(3))
    # Twice as far apart as usual: the largest score often comes late, and matters. And scores of
    # each row around a level of its own, -100 ... 100, so that no constant can be subtracted.
    Q *= 2
    K[:, 0] = 4
    Q[:, 0] = np.linspace(-100, 100, n).round() * np.sqrt(d).round() / 4
    return {"Q": Q, "K": K, "V": V, "O": _empty(n, d), "n": n}


def _softmax_v(case: Case, arguments: Mapping[str, Any]) -> dict[str, np.ndarray]:
    Q, K, V = (arguments[name].astype(np.float64) for name in "QKV")
    S = Q @ K.T / np.sqrt(Q.shape[1])
    P = np.exp(S - S.max(axis=1, keepdims=True))
    return {"O": P @ V / P.sum(axis=1, keepdims=True)}


def _blocks_of_64(case: Case, kernel: Kernel) -> Launch:
    return (cdiv(case["n"], 64),), (64,), 0


def _new_token(case: Case) -> Arguments:
    n, d = case["n"], case["HEAD_DIM"]
    return {"K": _normal(n, d), "q": _normal(d, seed=1), "S": _empty(n), "n": n}


def _new_scores(case: Case, arguments: Mapping[str, Any]) -> dict[str, np.ndarray]:
    K, q = (arguments[name].astype(np.float64) for name in ("K", "q"))
    return {"S": K @ q / np.sqrt(len(q))}


def _halves(case: Case) -> Arguments:
    m, n = case["m"], case["n"]
    Q, K = _normal(m, 64, dtype=np.float16), _normal(n, 64, seed=1, dtype=np.float16)
    return {"Q": Q, "K": K, "S": _empty(m, n), "m": m, "n": n}


def _tiles_of_16(case: Case, kernel: Kernel) -> Launch:
    return (cdiv(case["n"], 16), cdiv(case["m"], 16)), (32,), 0


# ---- 09: a toy, and O = P V on tensor cores


def _chunks(case: Case) -> Arguments:
    count = case["matrices"]
    return {"rows": _normal(count, 8, 8, 4), "columns": _empty(count, 8, 8, 4)}


def _turned(case: Case, arguments: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {"columns": arguments["rows"].swapaxes(1, 2).astype(np.float64)}


def _block_a_matrix(case: Case, kernel: Kernel) -> Launch:
    return (case["matrices"],), (8, 8), 0


def _p_and_v(case: Case) -> Arguments:
    m = case["m"]
    P, V = _normal(m, 64, dtype=np.float16), _normal(64, 64, seed=1, dtype=np.float16)
    return {"P": P, "V": V, "O": _empty(m, 64, dtype=np.float16), "m": m}


def _weighted(case: Case, arguments: Mapping[str, Any]) -> dict[str, np.ndarray]:
    P, V = (arguments[name].astype(np.float64) for name in "PV")
    return {"O": P @ V}


def _warp_for_16_rows(case: Case, kernel: Kernel) -> Launch:
    return (cdiv(case["m"], 16),), (32,), 0


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="06_transpose",
        chapter=6,
        title="rows in, rows out",
        task=(
            "This kernel transposes $K$. Its loads are coalesced and its stores are not. Let each "
            "thread write another element of the tile, so that the stores are as well."
        ),
        hint=(
            "`tx` has to run along a row of `KT`. Rows of `KT` are columns of `K`, so this tile "
            "begins at row `first_col` and column `first_row` of `KT`."
        ),
        entry="transpose",
        cases=({"N": 21, "d": 38}, {"N": 33, "d": 9, "TILE": 8}, {"N": 48, "d": 32}),
        launch=_tiled("N", "d"),
        arguments=_k,
        outputs=("KT",),
        expected=_k_transposed,
        goals=_SECTORS,
        timed={"N": 16384, "d": 1024},
    ),
    Exercise(
        name="06_gradient",
        chapter=6,
        title="a product with the columns of P",
        task=(
            "Training needs $dV=P^{\\mathsf{T}}dO$. Copy the tile of $P$ so that its loads are "
            "coalesced, and multiply."
        ),
        hint=(
            "The block needs a square of $P$: rows from `i` on, columns from `first_row` on. Copy "
            "it as it lies. A column of it then belongs to a row of $dV$, and the thread's own is "
            "`ty`."
        ),
        entry="gradient",
        cases=({"N": 33, "d": 18}, {"N": 20, "d": 33, "TILE": 8}, {"N": 48, "d": 32}),
        launch=_tiled("N", "d"),
        arguments=_p_and_do,
        outputs=("dV",),
        expected=_dv,
        goals=_SECTORS,
        timed={"N": 4096, "d": 64},
    ),
    Exercise(
        name="07_padding",
        chapter=7,
        title="a pitch without conflicts",
        task=(
            "The columns of this tile all lie in one bank. Give its rows a pitch at which no "
            "access conflicts, neither down a column nor along a row."
        ),
        hint="Lanes one row apart are `pitch` words apart. What must the gcd of `pitch` and 32 be?",
        entry="transpose",
        cases=({"N": 35, "d": 70}, {"N": 64, "d": 32}),
        launch=_tiled("N", "d", 32),
        arguments=_k,
        outputs=("KT",),
        expected=_k_transposed,
        goals=(_LOADS, _STORES, *_SECTORS),
        timed={"N": 16384, "d": 1024},
    ),
    Exercise(
        name="07_xor",
        chapter=7,
        title="no conflict without padding",
        task=(
            "`s_K` has rows of 16 words and no room for padding. Store each element in its row, at "
            "a place that depends on the row, and read it from there."
        ),
        hint=(
            "An exclusive or with the row's number permutes a row, in every row differently. The "
            "row that is stored to is `ty`. Which row is read from?"
        ),
        entry="scaled_dot_product",
        cases=({"N": 37, "d": 17}, {"N": 32, "d": 48}),
        launch=_tiled("N", "N", 16),
        arguments=_q_and_k,
        outputs=("S",),
        expected=_scores,
        goals=(_NO_ROOM, _LOADS, _STORES, *_SECTORS),
        timed={"N": 4096, "d": 64},
    ),
    Exercise(
        name="07_patch",
        chapter=7,
        title="16 bytes a lane",
        task=(
            "Fill a thread's registers with loads of 16 bytes, and choose a pitch at which those "
            "are possible and do not conflict."
        ),
        hint=(
            "A `float4` starts at a multiple of 16 bytes, so the pitch is a multiple of 4 words. "
            "Eight lanes read eight rows at once. Think of eight banks of 16 bytes: which pitches "
            "put the rows into eight different ones?"
        ),
        entry="scaled_dot_product",
        cases=({"N": 37, "d": 17}, {"N": 32, "d": 48}),
        launch=_patches,
        arguments=_q_and_k,
        outputs=("S",),
        expected=_scores,
        goals=(
            _LOADS,
            Goal(
                "shared_load_instructions",
                "Four floats that lie side by side are one load of 16 bytes, if they begin at a "
                "multiple of 16 bytes: read them through a pointer to float4.",
            ),
            *_SECTORS,
        ),
        timed={"N": 4096, "d": 64},
    ),
    Exercise(
        name="08_online",
        chapter=8,
        title="a softmax that is kept up to date",
        task=(
            "A thread walks along the keys, tile by tile. Leave out the keys past the last one, "
            "and put right what was added up under an older maximum."
        ),
        hint=(
            "An old weight $e^{s-m}$ becomes $e^{s-m'}$ if it is multiplied by $e^{m-m'}$. A "
            "weight is 0 if its score is minus infinity."
        ),
        entry="flash_attention",
        cases=({"n": 13, "HEAD_DIM": 32}, {"n": 65, "HEAD_DIM": 16, "B_C": 16}),
        launch=_blocks_of_64,
        arguments=_attention,
        outputs=("O",),
        expected=_softmax_v,
        tolerance=3e-5,
        goals=(
            Goal(
                "global_load_sectors",
                "Q, K and V need to be read only once: until the maximum of a row is known, the "
                "largest score so far will do.",
            ),
        ),
        timed={"n": 4096, "HEAD_DIM": 64},
        unlike={"HEAD_DIM": 16, "B_C": 16},
    ),
    Exercise(
        name="08_copies",
        chapter=8,
        title="copies that nobody waits for",
        task=(
            "Start the copies of a tile of $K$ with `cp_async_16`, and see to it that they have "
            "arrived, those of the other threads as well, before a row is read."
        ),
        hint=(
            "A wait is for groups of copies, and of a thread's own only. What other threads have "
            "waited for is there for all after a barrier."
        ),
        entry="scores",
        cases=({"n": 50, "HEAD_DIM": 64}, {"n": 133, "HEAD_DIM": 32}),
        launch=_blocks_of_64,
        arguments=_new_token,
        outputs=("S",),
        expected=_new_scores,
        goals=(
            Goal(
                "cp_async_instructions",
                "Each chunk is copied once, by one thread.",
            ),
            Goal(
                "cp_async_instructions",
                "Rows of K are to come by cp_async_16, which copies while its thread goes on.",
                at_least=0.5,
            ),
            Goal("barriers", "One barrier is enough: nothing is written after it."),
        ),
        timed={"n": 1 << 20, "HEAD_DIM": 64},
    ),
    Exercise(
        name="08_fragments",
        chapter=8,
        title="who holds what",
        task=(
            "Multiply on tensor cores: pick the registers with the right keys, and bring each sum "
            "to its row and its column of $S$."
        ),
        hint=(
            "Lanes 0 to 15 passed rows 0 to 15 of the first chunk, so register 0 comes from keys "
            "0 to 7, register 1 from keys 8 to 15; lanes 16 to 31 did so for the next chunk. The "
            "figure of fragments shows which row and column of $C$ a lane has."
        ),
        entry="scaled_dot_product",
        cases=({"m": 16, "n": 16}, {"m": 21, "n": 35}),
        launch=_tiles_of_16,
        arguments=_halves,
        outputs=("S",),
        expected=_scores,
        goals=(
            Goal(
                "instructions",
                "One mma_m16n8k16 of a warp does 4,096 operations: leave all products to it.",
                slack=1.5,
            ),
        ),
    ),
    Exercise(
        name="09_latin",
        chapter=9,
        title="a square of your own",
        task=(
            "Choose where in its row each chunk lies, so that neither rows nor columns of the "
            "matrix conflict. XOR is one way; find another if you can."
        ),
        hint=(
            "Each row must have every place once, or chunks are lost, and so must each column, or "
            "lanes conflict: a Latin square."
        ),
        entry="turn",
        cases=({"matrices": 1}, {"matrices": 3}),
        launch=_block_a_matrix,
        arguments=_chunks,
        outputs=("columns",),
        expected=_turned,
        goals=(_NO_ROOM, _LOADS, _STORES),
        keeps=(
            "s_rows[y][place(y, x)] = rows[first + 8 * y + x];",
            "columns[first + 8 * y + x] = s_rows[x][place(x, y)];",
        ),
    ),
    Exercise(
        name="09_paths",
        chapter=9,
        title="one map on every path",
        task=(
            "Swizzle the tiles of this kernel: write the map once, then read $V$ by it, and write "
            "$O$ by it, so that nothing conflicts."
        ),
        hint=(
            "`place` tells where a chunk begins, for those that write it and those that read it. "
            "What lies within the chunk is added to that."
        ),
        entry="weighted_rows",
        cases=({"m": 16}, {"m": 41}),
        launch=_warp_for_16_rows,
        arguments=_p_and_v,
        outputs=("O",),
        expected=_weighted,
        tolerance=1e-3,
        goals=(_NO_ROOM, _LOADS, _STORES, *_SECTORS),
        timed={"m": 1 << 20},
    ),
)
