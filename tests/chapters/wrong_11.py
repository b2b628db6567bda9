"""Chapter 11, Hopper: wrong answers to its exercises, and trials of changed kernels."""

from __future__ import annotations

from exercise_answers import Wrong
from mutants.hopper_targets import boxes, hopper
from mutants.survivors import Reason

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

TRIALS = {"11_toy_box.cu": boxes, "11a_wgmma.cu": hopper}

REASONS = (
    Reason(
        r"11a_wgmma\.cu",
        "multiply_(qk|pv)",
        r".*(column = k % 4 \* 16|16 \* k \* PANEL);  ->  .* \+ 1;",
        "A descriptor counts addresses in 16 bytes: an element more, of two bytes, is cut off.",
    ),
    Reason(
        r"11a_wgmma\.cu",
        "rescale",
        r"for \(int i = 0; i < 4 \* DIM_TILES; i\+\+\) \{  ->  .* <= .*",
        "The element too many lies past the end of the registers of O, and nothing reads it: the "
        "compiler drops it.",
    ),
)
