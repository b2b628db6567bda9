"""Chapter 11, Hopper: wrong answers to its exercises, and trials of changed kernels."""

from __future__ import annotations

from exercise_answers import Wrong
from mutants.hopper_targets import boxes, hopper
from mutants.survivors import Reason

from helpers.problem.flash_hopper import HOPPER

_FREE = "            mbarrier_wait(&empty[stage], 1 - t / STAGES % 2);"
_THERE = "        mbarrier_wait(&full[stage], t / STAGES % 2);"
_DONE = "        mbarrier_arrive_warp(&empty[stage]);"
_MOVED = "    moved = chunk ^ row / 2 % 4;"
_COLUMN = "        column = 16 * k;"
_GROUP = "        group_stride = 8 * WIDTH * 2;"

WRONG: dict[str, tuple[Wrong, ...]] = {
    "11_phases": (
        Wrong(
            "the producer waits for the consumers' parity",
            ((_FREE, "mbarrier_wait(&empty[stage], t / STAGES % 2);"),),
            "right",
            ("waits for ever at an mbarrier", "the parity that is waited for"),
        ),
        Wrong(
            "always the first phase",
            ((_THERE, "mbarrier_wait(&full[stage], 0);"),),
            "right",
            ("mbarrier",),
        ),
        Wrong(
            "the parity of the tile, not of its round",
            ((_FREE, "mbarrier_wait(&empty[stage], 1 - t % 2);"),),
            "right",
            ("waits for ever at an mbarrier",),
        ),
        Wrong("nobody says that a place is free", ((_DONE, ""),), "right", ("arrivals",)),
        Wrong("tiles are not waited for", ((_THERE, ""),), "right", ("mbarrier",)),
        Wrong(
            "the producer does not wait",
            ((_FREE, ""),),
            "right",
            ("may still be under way",),
        ),
        Wrong(
            "every lane arrives",
            ((_DONE, "mbarrier_arrive(&empty[stage]);"),),
            "right",
            ("mbarrier",),
        ),
        Wrong(
            "a barrier of the consumers as well",
            ((_DONE, _DONE + " barrier_sync(1, 64);"),),
            "goal",
            ("barriers", "Mbarriers do without"),
        ),
        Wrong(
            "a number of a round for a parity",
            ((_FREE, "mbarrier_wait(&empty[stage], 1 - t / STAGES);"),),
            "right",
            ("the phase of parity -1: a parity is 0 or 1", "A remainder is missing"),
        ),
        Wrong(
            "the place of the next tile is told of",
            ((_DONE, "mbarrier_arrive_warp(&empty[(stage + 1) % STAGES]);"),),
            "goal",
            ("another place than the one that they have read",),
        ),
    ),
    "11_narrow_rows": (
        Wrong("a number for each row", ((_MOVED, "moved = chunk ^ row % 4;"),), "right",
              ("two rows share 128 bytes",)),
        Wrong("no swizzle", ((_MOVED, "moved = chunk;"),), "right", ("Nothing is swizzled",)),
        Wrong("every fourth row", ((_MOVED, "moved = chunk ^ row / 4 % 4;"),), "right",
              ("with every fourth row",)),
        Wrong("a sum", ((_MOVED, "moved = (chunk + row / 2) % 4;"),), "right", ("are added up",)),
        Wrong("the swizzle of 128 bytes", ((_MOVED, "moved = chunk ^ row % 8;"),), "right", ()),
        Wrong("from the end", ((_MOVED, "moved = chunk ^ 3 - row / 2 % 4;"),), "goal",
              ("each row is mirrored",)),
        Wrong("all steps alike", ((_COLUMN, ""),), "right", ("the first 16 columns",)),
        Wrong("groups of 128-byte rows", ((_GROUP, ""),), "right",
              ("descriptor", "its two strides")),
    ),
}  # fmt: skip

TRIALS = {"11_toy_box.cu": boxes, **{rung.file: hopper for rung in HOPPER}}

_MAPS = r"11[b-g]_\w+\.cu"
_TURNS = r"11[efg]_\w+\.cu"

REASONS = (
    Reason(
        r"11[a-g]_\w+\.cu",
        r"multiply_(qk|pv)|flash_attention",
        r".*(column = k % 4 \* 16|16 \* k \* PANEL|\(2 \* TILE\)|\* 64 \* PANEL);  ->  .* \+ 1;",
        "A descriptor counts addresses in 16 bytes: an element more, of two bytes, is cut off.",
    ),
    Reason(
        r"11a_wgmma\.cu",
        "rescale",
        r"for \(int i = 0; i < 4 \* DIM_TILES; i\+\+\) \{  ->  .* <= .*",
        "The element too many lies past the end of the registers of O, and nothing reads it: the "
        "compiler drops it.",
    ),
    Reason(
        r"11[a-g]_\w+\.cu",
        "flash_attention",
        r"wgmma_fence\(r_O, r_P\);  ->  wgmma_fence\(r_P\);",
        "The instruction is the same: the list only tells the compiler what not to move past it. "
        "It moves nothing of r_O there, which the sanitizer has read in the PTX.",
    ),
    Reason(
        _MAPS,
        "store_rows",
        r"for \(int x = 0; x < HEAD_DIM; .*  ->  .*x <= HEAD_DIM.*",
        "The box too many begins behind the last column of O: TMA leaves it out.",
    ),
    Reason(
        r"11b_tma\.cu",
        "flash_attention",
        r"if \(threadIdx.x == 0 && key \+ B_C < keys\) \{  ->  .*(true|key \+ B_C <= keys)\) \{",
        "One tile more is copied behind the last, to a stage that nobody reads again. No check "
        "looks for a copy into shared memory that nobody waits for: a block should not end so.",
    ),
    Reason(
        r"11c_producer\.cu",
        "produce",
        r"for \(int t = 0; t < tiles; t\+\+\) \{  ->  .* <= .*",
        "The producer copies one tile more, to a stage that nobody reads again. No check looks for "
        "a copy into shared memory that nobody waits for: a block should not end so.",
    ),
    Reason(
        r"11c_producer\.cu",
        "produce",
        r"mbarrier_wait\(&s\.empty_.*  ->  "
        r"mbarrier_wait\(&s\.empty_(V\[stage\]|K\[stage \+ 1\]|[KV]\[1 - stage\]), 1 - parity\);",
        "It waits for what consumers give back later, and so for the right tile with it; where it "
        "is one given back earlier, the producer's wait before was for a later one.",
    ),
    Reason(
        r"11c_producer\.cu",
        "flash_attention",
        r"mbarrier_arrive_warp\(&s\.empty_(K|V)\[stage\]\);  ->  .*\[1 - stage\]\);",
        "A stage is given back a tile later, with the other one, or a tile too early, when the "
        "producer's wait before was for just this tile: it copies no sooner than it may.",
    ),
    Reason(
        _MAPS,
        "flash_attention",
        r"mbarrier_init\(&s\.(full|empty)_(K|V)\[stage\], .*  ->  .*\[1 - stage\], .*",
        "The loop makes the mbarriers of both stages, now in the other order.",
        same_program=True,
    ),
    Reason(
        r"11[d-g]_\w+\.cu",
        "flash_attention",
        r"mbarrier_init\(&s\.empty_K\[stage\], .*  ->  .* CONSUMERS - 1\);",
        "The producer waits for V of the tile before as well, which is given back after this K. In "
        "the eighth round of a stage, which no trial reaches, a phase too many is complete: the "
        "parity is wrong, and the block waits for ever.",
    ),
    Reason(
        r"11c_producer\.cu",
        "flash_attention",
        r"(take|give)_registers<.*",
        "The simulator's registers never run out. On a GPU a warpgroup that takes more than the "
        "others have given back waits for ever, and one that takes none has to spill.",
    ),
    Reason(
        r"11c_producer\.cu|11d_ahead\.cu",
        "flash_attention|mask",
        r"if \(end (<|>=) B_C .*  ->  if \(end (<=|>) B_C .*|"
        r"if \(end >= B_C .*  ->  .*diagonal > B_C - 1\)\) \{",
        "The condition saves time alone: where it now masks, nothing is past the end or right of "
        "the diagonal.",
    ),
    Reason(
        r"11[c-g]_\w+\.cu",
        "flash_attention",
        r"barrier_sync\(1 \+ warpgroup, 128\);  ->  (barrier_sync\(1, 128\);)?",
        "Each warp has waited for the last product that reads Q, which its warpgroup makes "
        "together, and puts O where no other warpgroup reads: nothing is left to wait for.",
    ),
    Reason(
        r"11[d-g]_\w+\.cu",
        "flash_attention",
        r"wgmma_wait<1>\(r_S\);  ->  wgmma_wait<0>\(r_S\);",
        "It waits for P V as well, which takes time and changes no number.",
    ),
    Reason(
        r"11[d-g]_\w+\.cu",
        "flash_attention",
        r"settle\(r_S\);  ->  ",
        "No instruction comes of it: it keeps the compiler from moving the softmax behind the wait "
        "for P V, which takes time and changes no number.",
    ),
    Reason(
        _TURNS,
        "flash_attention",
        r"if \(warpgroup == CONSUMERS - 1\) \{  ->  if \(warpgroup == 0\) \{",
        "The first turn is given all the same: warpgroup 0 gives it to itself.",
    ),
    Reason(
        _TURNS,
        "flash_attention",
        r"barrier_sync\(TURN \+ warpgroup, 256\);  ->  (barrier_sync\(TURN, 256\);)?",
        "Turns say who multiplies when. Without them, or with one barrier for all, consumers go on "
        "sooner or later, and no number depends on it: mbarriers guard what they read.",
    ),
    Reason(
        r"11f_rescale\.cu",
        "update_softmax",
        r"if \(SLACK >= 0 .*  ->  if \((true && .*|SLACK > 0 .*|.*r_max\[h\]\) > SLACK\)\) \{)",
        "Rows take a new maximum a little sooner or later, or one that is no larger: each is as "
        "right, as long as exponents stay small.",
    ),
    Reason(
        r"11f_rescale\.cu",
        "flash_attention",
        r"if \(SLACK < 0 .*  ->  if \(SLACK <= 0 .*",
        "With SLACK 0 each tile is rescaled now, by factors of 1 where no maximum has grown.",
    ),
    Reason(
        r"11g_persistent\.cu",
        "work_of",
        r"const int first = .*  ->  const int first = \(true \? .*",
        "Pieces of work are taken in another order, which changes no sum; it saves time with "
        "CAUSAL alone.",
    ),
)
