"""Chapter 09, swizzles: its rung and exercises."""

import numpy as np

from ..exercises.spec import Case, Exercise, Goal, Misconception, PlaceMap
from ..problem.flash import FLASH_SWIZZLED
from .shared import NO_ROOM, Arguments, covering, empty, normal, scores

RUNGS = (FLASH_SWIZZLED,)


def _halves(case: Case) -> Arguments:
    m, n = case["m"], case["n"]
    Q, K = normal(m, 32, dtype=np.float16), normal(n, 32, seed=1, dtype=np.float16)
    return {"Q": Q, "K": K, "S": empty(m, n), "m": m, "n": n}


def _p_and_v(case: Case) -> Arguments:
    m = case["m"]
    P, V = normal(m, 64, dtype=np.float16), normal(64, 80, seed=1, dtype=np.float16)
    return {"P": P, "V": V, "O": empty(m, 80, dtype=np.float16), "m": m}


def _conflicts(why: str) -> tuple[Goal, Goal]:
    """No access to shared memory conflicts; `why` they do follows the count."""
    return (
        Goal("shared_load_bank_conflicts", why, at_most=0),
        Goal("shared_store_bank_conflicts", why, at_most=0),
    )


_NARROW = "where = chunk ^ (row / 2 % 4);"
_TEN = "where = chunk ^ (row / 4 % 2);"
_LEAVES = (
    "The map leaves the row: a place past its last one is in the next row, where a chunk lies. "
)
_TWO = "Two chunks of a row share a place: "

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="09_narrow",
        title="rows of 64 bytes",
        task=(
            "Heads of 32 columns have rows of 4 chunks, and two rows fill the banks. Find a map "
            "for them: one to one in each row, and without a conflict on any path."
        ),
        hints=(
            "A row of 4 chunks begins in the first bank of 16 bytes or in the fifth. Write down "
            "for rows 0 to 7 which one, and which rows could meet in a bank if no chunk moved.",
            "Row 0 and row 1 can never meet, rows 0, 2, 4 and 6 do. So these four have to be "
            "permuted in four ways, and a row may be permuted as the other one of its pair is.",
        ),
        explanation=(
            "The bank of 16 bytes of a chunk is (4 row + place) mod 8. An even row has the first "
            "four banks, an odd row the last four. What tells rows 0, 2, 4 and 6 apart is the "
            "number of the pair, row / 2. Its two lowest bits flip those of the chunk, and never "
            "leave the row. TMA calls this map its 64-byte swizzle."
        ),
        entry="scaled_dot_product",
        cases=({"m": 16, "n": 16}, {"m": 21, "n": 35}),
        launch=covering((32,), ("n", 16), ("m", 16)),
        arguments=_halves,
        results={"S": scores},
        goals=(
            NO_ROOM,
            *_conflicts(
                "Eight lanes of a phase want the same chunk of eight rows, and some of these rows "
                "still have it in the same bank. Two rows fill the banks: which of the eight begin "
                "in the same bank, and does the map permute each of them in another way?"
            ),
        ),
        keeps=("return HEAD_DIM * row + 8 * where;",),
        place=PlaceMap("place", "chunk", 16, 4, 32, 8, {"s_Q": (0,), "s_K": (0,)}),
        misconceptions=(
            Misconception(
                _LEAVES + "A row has 4 chunks, so only two bits of a chunk's number may change.",
                ((_NARROW, "where = chunk ^ (row % 8);"),),
            ),
            Misconception(
                _LEAVES + "What is added to a chunk's number has to come round within the row.",
                ((_NARROW, "where = chunk + row / 2 % 4;"),),
            ),
            Misconception(
                _LEAVES + "All bits of the row's number take part, where two would do.",
                ((_NARROW, "where = chunk ^ row;"),),
            ),
            Misconception(
                _LEAVES + "All bits of the pair's number take part, where two would do.",
                ((_NARROW, "where = chunk ^ (row / 2);"),),
            ),
            Misconception(
                _TWO + "a product with the number of the row is not one to one.",
                ((_NARROW, "where = row * chunk % 4;"),),
            ),
            Misconception(
                _TWO + "a product with the number of the pair is not one to one.",
                ((_NARROW, "where = row / 2 * chunk % 4;"),),
            ),
            Misconception(
                _TWO + "an OR only sets bits, so it is not one to one.",
                ((_NARROW, "where = chunk | (row / 2 % 4);"),),
            ),
            Misconception(
                _TWO + "an AND only clears bits, so it is not one to one.",
                ((_NARROW, "where = chunk & (row / 2 % 4);"),),
            ),
            Misconception(
                _LEAVES + "The lowest bit of the row's number went to a bit that no chunk has.",
                ((_NARROW, "where = chunk ^ (row % 2 * 4);"),),
            ),
            Misconception(
                "A place is counted in chunks here: the line below makes elements of it.",
                ((_NARROW, "where = 8 * (chunk ^ (row / 2 % 4));"),),
            ),
            Misconception(
                "Only the first of two chunks goes through the map: the upper lanes want another "
                "chunk, and its number belongs into the call.",
                tuple(
                    (
                        f"{tile} + place(lane % 16, 2 * k + lane / 16)",
                        f"{tile} + place(lane % 16, 2 * k) + 8 * (lane / 16)",
                    )
                    for tile in ("s_Q", "s_K")
                ),
            ),
            Misconception(
                "All chunks of a row share one place: where a chunk lies does not depend on its "
                "number.",
                ((_NARROW, "where = row / 2 % 4;"),),
            ),
        ),
    ),
    Exercise(
        name="09_repair",
        title="a map that does not fit",
        task=(
            "Somebody took the swizzle over from a kernel with rows of 16 chunks. Here rows have "
            "10. Find out what goes wrong, repair the map, and bring the store of $O$ to it."
        ),
        hints=(
            "Where do chunks 8 and 9 of row 7 go? Which bits of a chunk's number can change at all "
            "without leaving a row of 10? Then write down in which bank each of rows 0 to 7 "
            "begins: ten chunks are two more than once around.",
            "Rows 0 to 3 begin two banks apart, and row 4 begins where row 0 does. So only rows "
            "0 ... 3 and rows 4 ... 7 need different permutations, and swapping neighbours will "
            "do. For the store: a chunk is 4 pairs, and `place` counts elements.",
        ),
        explanation=(
            "Row r begins in bank 2 r mod 8 of 16 bytes. Unswizzled, one chunk of rows 0 to 3 lies "
            "in every second bank, and rows 4 to 7 meet them there. If those swap neighbouring "
            "chunks, they take the four banks between. 10 is even, so a swap of neighbours stays "
            "in the row; an XOR with 2 or more would not. `place` counts elements and the store "
            "pairs, so half of it is where the chunk begins, and the lane's pair is added after."
        ),
        entry="weighted_rows",
        cases=({"m": 16}, {"m": 41}),
        launch=covering((32,), ("m", 16)),
        arguments=_p_and_v,
        results={"O": lambda P, V: P @ V},
        tolerance=1e-3,
        goals=(
            NO_ROOM,
            *_conflicts(
                "Eight lanes want the same chunk of eight rows, and some of these rows still have "
                "it in the same bank. Ten chunks are two more than once around the banks: which of "
                "the eight rows begin in the same bank, and are they permuted in different ways?"
            ),
        ),
        keeps=("return HEAD_DIM * row + 8 * where;",),
        place=PlaceMap("place", "chunk", 64, 10, 80, 8, {"s_tiles": (0, 16 * 80)}),
        signs=(
            (
                r"\bpair\s*=(?![^;]*(?:/\s*2|>>\s*1))[^;]*\bplace\s*\([^;]*;",
                "`place` counts elements, and `pair` is the number of a pair: it is half as large.",
            ),
        ),
        timed={"m": 1 << 20},
        misconceptions=(
            Misconception(
                _LEAVES + "It is still the one for 16 chunks: its XOR changes three bits, and "
                "turns chunk 8 of row 7 into 15.",
                ((_TEN, ""),),
            ),
            Misconception(
                _LEAVES + "The map is still the one for 16 chunks, and O is written by no map.",
                ((_TEN, ""), ("            pair = place(row, j) / 2 + lane % 4;\n", "")),
            ),
            Misconception(
                _LEAVES + "Two bits of a chunk's number change, and with them chunk 8 becomes "
                "10 or 11.",
                ((_TEN, "where = chunk ^ (row / 2 % 4);"),),
            ),
            Misconception(
                _LEAVES + "Of a chunk's number two bits change: chunk 8 becomes 10 or 11.",
                ((_TEN, "where = chunk ^ (row % 4);"),),
            ),
            Misconception(
                _TWO + "a remainder of 8 leaves eight places for ten chunks.",
                ((_TEN, "where = (chunk ^ row) % 8;"),),
            ),
            Misconception(
                _TWO + "places go from 0 to 9, and a remainder of 8 leaves only eight of them.",
                ((_TEN, "where = (chunk + row) % 8;"),),
            ),
            Misconception(
                _TWO + "what the XOR sends out of the row comes back to places that are taken.",
                ((_TEN, "where = (chunk ^ (row % 8)) % 10;"),),
            ),
            Misconception(
                _TWO + "whatever the XOR sends out of the row ends at the last place.",
                ((_TEN, "where = min(9, chunk ^ (row % 8));"),),
            ),
            Misconception(
                _LEAVES + "Of row / 4 all bits take part, where one would do.",
                ((_TEN, "where = chunk ^ (row / 4);"),),
            ),
            Misconception(
                _LEAVES
                + "A remainder of 10 goes up to 9, so four bits of a chunk's number change.",
                ((_TEN, "where = chunk ^ (row % 10);"),),
            ),
            Misconception(
                "O is written by no map, but read by the one above: its chunks are in other places "
                "than those where they are looked for.",
                (("            pair = place(row, j) / 2 + lane % 4;\n", ""),),
            ),
            Misconception(
                "The lane's number went into the map as if it were a chunk: four lanes share a "
                "chunk, so what lies within it is added after the map.",
                (("place(row, j) / 2 + lane % 4", "place(row, j + lane % 4) / 2"),),
            ),
            Misconception(
                "The four lanes of a chunk write to its first pair: each has a pair of its own.",
                (("place(row, j) / 2 + lane % 4", "place(row, j) / 2"),),
            ),
            Misconception(
                "Elements are taken for pairs, in the chunk's place and in the lane's offset.",
                (("place(row, j) / 2 + lane % 4", "place(row, j) + 2 * (lane % 4)"),),
            ),
            Misconception(
                "Both halves of O are written to rows 0 to 7: the lower half has rows 8 further.",
                (("place(row, j) / 2 + lane % 4", "place(lane / 4, j) / 2 + lane % 4"),),
            ),
            Misconception(
                "Row and chunk are exchanged in the call of the map.",
                (("place(row, j) / 2", "place(j, row) / 2"),),
            ),
            Misconception(
                "Elements are taken for pairs: the map counts elements, and the store pairs.",
                (("place(row, j) / 2 + lane % 4", "place(row, j) + lane % 4"),),
            ),
            Misconception(
                "The lane's offset counts elements, and the store pairs.",
                (("place(row, j) / 2 + lane % 4", "place(row, j) / 2 + 2 * (lane % 4)"),),
            ),
        ),
    ),
)
