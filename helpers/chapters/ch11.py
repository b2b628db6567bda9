"""Chapter 11, Hopper: its rungs and exercises."""

import numpy as np

from ..exercises.spec import Case, Exercise, Goal, Misconception
from ..problem.flash_hopper import HOPPER
from .shared import NO_ROOM, Arguments, empty, normal

RUNGS = HOPPER


def _rows(case: Case) -> Arguments:
    m, n = case["batches"], case["n"]
    return {"X": normal(m, n, 64), "Y": empty(m, 64), "n": n}


def _tiles(case: Case) -> Arguments:
    m = case["batches"]
    A, B = (normal(m, 64, 32, seed=seed, dtype=np.float16) for seed in (0, 1))
    return {"A": A, "B": B, "S": empty(m, 64, 64)}


_FREE = "mbarrier_wait(&empty[stage], 1 - t / STAGES % 2);"
_THERE = "mbarrier_wait(&full[stage], t / STAGES % 2);"
_MOVED = "moved = chunk ^ row / 2 % 4;"

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="11_phases",
        title="the phase to wait for",
        task=(
            "A producer and its consumers pass tiles on through STAGES places. Write the three "
            "lines in which they wait for each other. Which parity is it, in round t?\n\n"
            "`mbarrier_wait(barrier, parity)` waits. `mbarrier_arrive(barrier)` is an arrival of "
            "each thread that calls it, `mbarrier_arrive_warp(barrier)` one of a whole warp."
        ),
        hints=(
            "Take STAGES = 2 and write a line for each t: which place, which tile of that place, "
            "counted from 0. The tile of a place with that number is the mbarrier's phase of that "
            "number. What is its parity?",
            "Consumers wait for the parity of t / STAGES at full. The producer wants the phase of "
            "empty that belongs to the tile before in that place, one round earlier, so its parity "
            "is the other one. An arrival of one lane stands for its warp.",
        ),
        explanation=(
            "Place t % STAGES holds its tile number t / STAGES, and each of its mbarriers goes "
            "through one phase a tile. So the consumers of tile t wait for the parity of "
            "t / STAGES. The producer waits for the phase before, whose parity is the opposite. "
            "In the first round there is none: the phase before phase 0 counts as complete, and a "
            "wait for parity 1 does not wait."
        ),
        entry="column_sums",
        cases=(
            {"batches": 3, "n": 45},
            {"batches": 2, "n": 62, "STAGES": 3},
            {"batches": 2, "n": 7},
        ),
        launch=lambda case, kernel: ((case["batches"],), (96,), 0),
        arguments=_rows,
        results={"Y": lambda X: X.sum(axis=1)},
        tolerance=1e-5,
        counted={"batches": 3, "n": 45},
        goals=(
            Goal(
                "barriers",
                "Mbarriers do without a barrier of all threads: it would hold the producer up "
                "where it could fetch the next tile.",
                name="barriers, summed over all warps",
            ),
        ),
        never=(
            (
                r"mbarrier_arrive\w*\s*\([^;]*\bempty\s*(?:\[|\+\s*\()[^\];)]*[-+^!]",
                "The result is right, but consumers tell of another place than the one that they "
                "have read. So the producer waits for a tile later than it has to, and fewer "
                "copies run ahead.",
            ),
        ),
        misconceptions=(
            Misconception(
                "The waits at full lack: the consumers read a place whatever is there.",
                ((_THERE, ""),),
            ),
        ),
    ),
    Exercise(
        name="11_narrow_rows",
        title="a swizzle of 64 bytes",
        task=(
            "A tile with rows of 64 bytes has a swizzle of its own. Put each chunk where TMA would "
            "put it, and tell wgmma where a step of the product begins."
        ),
        hints=(
            "Write down rows 0 to 9 with their four places each. Two rows share 128 bytes, and "
            "with them one number to XOR with. After how many rows does the pattern begin again?",
            "The number is that of the 128 bytes, row / 2, of which only the lowest two bits "
            "count. A group of eight rows has eight times 64 bytes. A step of the product takes 16 "
            "columns, and its start is counted as if nothing were swizzled.",
        ),
        explanation=(
            "The 64-byte mode takes the chunk's two bits of an address and XORs them with the "
            "lowest two bits of the number of the 128 bytes that it lies in: row / 2 % 4. So eight "
            "rows, 512 bytes, make the pattern. A descriptor counts from there: 512 bytes from one "
            "group of eight rows to the next. wgmma applies the same XOR to the addresses that it "
            "works out, so the start of a step is 32 bytes a step, unswizzled."
        ),
        entry="scores",
        cases=({"batches": 1}, {"batches": 2}),
        launch=lambda case, kernel: ((case["batches"],), (128,), 0),
        arguments=_tiles,
        results={"S": lambda A, B: A @ B.transpose(0, 2, 1)},
        tolerance=1e-4,
        counted={"batches": 1},
        goals=(NO_ROOM,),
        keeps=("wgmma<half, false>",),
        never=(
            (
                r"(?:\b3\s*-|\^\s*3\b|~)",
                "The result is right, as a sum over all columns hides their order: each row is "
                "mirrored. Bytes 0 to 127 of the tile keep their order in this mode.",
            ),
        ),
        misconceptions=(
            Misconception(
                "Each row is XORed with a number of its own, where two rows share 128 bytes and "
                "their number.",
                ((_MOVED, "moved = chunk ^ row % 4;"),),
            ),
            Misconception(
                "Nothing is swizzled: wgmma looks for each chunk where the 64-byte mode puts it.",
                ((_MOVED, "moved = chunk;"),),
            ),
            Misconception(
                "The number to XOR with changes with every fourth row, and it is every second.",
                ((_MOVED, "moved = chunk ^ row / 4 % 4;"),),
            ),
            Misconception(
                "Only two numbers to XOR with come, 0 and 1: rows 4 to 7 have 2 and 3.",
                ((_MOVED, "moved = chunk ^ row / 2 % 2;"),),
            ),
            Misconception(
                "Chunks are added up where TMA XORs them: rows keep all of theirs, but elsewhere.",
                ((_MOVED, "moved = (chunk + row / 2) % 4;"),),
            ),
            Misconception(
                "All steps of the product take the first 16 columns.",
                (("column = 16 * k;", "column = 0;"),),
            ),
        ),
    ),
)
