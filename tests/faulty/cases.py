"""What each kernel of this folder does wrong, by the definition of the fault.

A kernel is `k(const float* a, float* b, int n)`. The comment on its first line says what is wrong;
`// 1` marks the line of the fault, or of the access that comes first, and `// 2` the other one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parent
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
# Which tool of compute-sanitizer looks for which fault.
LOOKS_FOR = {
    "out_of_bounds": "memcheck",
    "misaligned": "memcheck",
    "race": "racecheck",
    "async": "racecheck",
    "uninitialised": "initcheck",
    "barrier": "synccheck",
}


@dataclass(frozen=True)
class Faulty:
    """One kernel and its launch.

    Attributes:
        name: of the file, without `.cu`.
        kind: of the fault, as the simulator calls it; None for a kernel without one.
        a, b: lengths of the two arrays; `a` holds 0, 1, 2 ... and `b` zeros.
        n: the number that is passed.
        written: whether `b` is written before the launch.
    """

    name: str
    kind: str | None
    grid: int = 1
    block: int = 64
    a: int = 64
    b: int = 64
    n: int = 64
    shared_mem: int = 0
    written: bool = True

    @property
    def code(self) -> str:
        """The source text."""
        return (FOLDER / f"{self.name}.cu").read_text(encoding="utf-8")

    @property
    def lines(self) -> tuple[int, ...]:
        """The marked lines, the first access first."""
        marked = {}
        for number, line in enumerate(self.code.split("\n"), 1):
            if m := re.search(r"// (1|2|1 2)$", line):
                marked.update(dict.fromkeys(m[1].split(), number))
        return tuple(marked[n] for n in sorted(marked))

    def arguments(self) -> tuple[np.ndarray, np.ndarray, np.int32]:
        """a, b and n."""
        a = np.arange(self.a, dtype=np.float32)
        return a, np.zeros(self.b, np.float32), np.int32(self.n)


OUT_OF_BOUNDS = (
    Faulty("global_past_end", "out_of_bounds", block=96),
    Faulty("global_before_start", "out_of_bounds"),
    Faulty("global_vector_past_end", "out_of_bounds", a=62, n=62),
    Faulty("global_null", "out_of_bounds"),
    Faulty("global_index_overflow", "out_of_bounds"),
    Faulty("global_atomic_past_end", "out_of_bounds"),
    Faulty("shared_past_end", "out_of_bounds"),
    Faulty("shared_before_start", "out_of_bounds"),
    Faulty("shared_dynamic_too_small", "out_of_bounds", shared_mem=128),
    Faulty("local_past_end", "out_of_bounds"),
    Faulty("copy_source_past_end", "out_of_bounds"),
)
MISALIGNED = tuple(
    Faulty(name, "misaligned")
    for name in ("global_misaligned", "shared_misaligned", "copy_misaligned")
)
RACES = (
    Faulty("race_between_warps", "race"),
    Faulty("race_write_after_read", "race"),
    Faulty("race_two_writers", "race"),
    Faulty("race_within_warp", "race", block=32),
    Faulty("race_within_warp_write_after_read", "race", block=32),
    Faulty("race_syncwarp_half", "race", block=32),
    Faulty("race_tree", "race"),
    Faulty("race_maximum_then_sum", "race"),
    Faulty("race_next_tile", "race", n=128),
    Faulty("race_atomic_and_read", "race"),
    Faulty("race_volatile", "race"),
    Faulty("race_copy_no_barrier", "race"),
    Faulty("race_copy_over_read", "race"),
    Faulty("global_race_in_block", "race", b=128),
    Faulty("global_race_between_blocks", "race", grid=3),
    Faulty("global_race_lost_update", "race"),
)
UNINITIALISED = (
    Faulty("uninitialised_edge", "uninitialised"),
    Faulty("uninitialised_sum", "uninitialised"),
    Faulty("uninitialised_global", "uninitialised", b=128, written=False),
)
BARRIERS = (
    Faulty("barrier_one_warp", "barrier"),
    Faulty("barrier_odd_lanes", "barrier"),
    Faulty("barrier_uneven_loop", "barrier"),
    Faulty("barrier_in_both_branches", "barrier"),
    Faulty("barrier_syncwarp_mask", "barrier", block=32),
    Faulty("barrier_shuffle_mask", "barrier", block=32),
)
COPIES = tuple(
    Faulty(name, "async")
    for name in (
        "async_no_wait", "async_no_commit", "async_wait_one_left", "async_written_under_way",
    )
)  # fmt: skip
CLEAN = (
    Faulty("clean_early_exit", None),
    Faulty("clean_same_value", None),
    Faulty("clean_shuffle", None),
    Faulty("clean_atomics", None, grid=3),
    Faulty("clean_half_warps", None),
    Faulty("clean_barrier_of_a_block", None, grid=2),
    Faulty("clean_named_barrier", None),
    Faulty("clean_next_row", None),
)
FAULTY = OUT_OF_BOUNDS + MISALIGNED + RACES + UNINITIALISED + BARRIERS + COPIES
ALL = FAULTY + CLEAN

_NUMPY = (
    "The simulator gets b as a NumPy array, all of which has a value, so it cannot tell; initcheck "
    "is right."
)
# What the simulator does not say although the definition has it: the words that it says instead.
NOT_SEEN = {"uninitialised_global": _NUMPY}
# Kernels of which the simulator and compute-sanitizer say different things: which is right, why.
_SHARED_ALONE = "racecheck looks at shared memory alone; the simulator is right."
_GLOBAL_ALONE = "initcheck looks at global memory alone; the simulator is right."
_EXITED = (
    "The simulator is right: a barrier may stand in a branch or loop only if all threads of the "
    "block take it alike. synccheck says nothing, and the GPU does not hang, because the other "
    "warp has ended by then and an ended warp no longer counts for a barrier."
)
DIFFERENT = {
    "global_race_in_block": _SHARED_ALONE,
    "global_race_between_blocks": _SHARED_ALONE,
    "global_race_lost_update": _SHARED_ALONE,
    "uninitialised_edge": _GLOBAL_ALONE,
    "uninitialised_sum": _GLOBAL_ALONE,
    "uninitialised_global": _NUMPY,
    "shared_past_end": (
        "Both are right about the write to s[64]. compute-sanitizer says more, rightly: lines 5 "
        "and 6 write s[t + 1] from two threads with no barrier between, a race too, but the "
        "simulator ends the launch at the access out of bounds."
    ),
    "shared_before_start": (
        "The simulator is right: s starts at s[0]. memcheck says nothing because the GPU keeps "
        "the first 1024 bytes of a block's shared memory for itself, so that the address of s[-1] "
        "lies in memory that exists."
    ),
    "local_past_end": (
        "The simulator is right: r has 4 elements, and threads with t % 8 > 3 read past them. "
        "memcheck cannot see it: compiled for this GPU, r stays in registers, and no instruction "
        "accesses local memory."
    ),
    "barrier_one_warp": _EXITED,
    "barrier_uneven_loop": _EXITED,
    "barrier_shuffle_mask": (
        "The simulator is right: what a shuffle gives a lane that its own mask does not name is "
        "undefined. synccheck checks the mask of __syncwarp(), not that of a shuffle."
    ),
    "barrier_in_both_branches": (
        "Both are right about the barriers. The race that racecheck adds is their consequence, and "
        "rightly said: no barrier that all threads pass separates line 6 from line 12. The "
        "simulator names the cause alone, since it lets the two halves meet as if at one barrier."
    ),
    "race_atomic_and_read": (
        "The simulator is right: a thread may read s[0] in line 10 before or after another one "
        "adds to it, so that b depends on the order of the warps. racecheck reports no hazard "
        "between an atomic operation and a plain read."
    ),
}


def case(name: str) -> Faulty:
    """The kernel of that name."""
    return next(one for one in ALL if one.name == name)
