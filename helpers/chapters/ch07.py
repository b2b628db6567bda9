"""Chapter 07, bank conflicts: its rungs and exercises."""

from ..exercises.spec import Case, Exercise, Goal
from ..problem.attention import cdiv
from ..problem.fp32 import REDUCTION, TRANSPOSES, columns_first, row_softmax, steps
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
        alignment=16,
    ),
)


def _q_and_k(case: Case) -> Arguments:
    N, d = case["N"], case["d"]
    Q, K = normal(N, d), normal(N, d, seed=1)
    return {"Q": Q, "K": K, "S": empty(N, N), "N": N, "d": d}


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="07_padding",
        title="a pitch without conflicts",
        task=(
            "The columns of this tile all lie in one bank. Give its rows a pitch at which no "
            "access conflicts, neither down a column nor along a row."
        ),
        hints=(
            "Lanes one row apart are `pitch` words apart.",
            "What must the gcd of `pitch` and 32 be?",
        ),
        entry="transpose",
        cases=({"N": 35, "d": 70}, {"N": 64, "d": 32}),
        launch=covering((32, 32), ("d", 32), ("N", 32)),
        arguments=keys,
        results={"KT": lambda K: K.T},
        goals=(LOADS, STORES, *SECTORS),
        timed={"N": 16384, "d": 1024},
    ),
    Exercise(
        name="07_xor",
        title="no conflict without padding",
        task=(
            "`s_K` has rows of 16 words and no room for padding. Store each element in its row, at "
            "a place that depends on the row, and read it from there."
        ),
        hints=(
            "An exclusive or with the row's number permutes a row, in every row differently.",
            "The row that is stored to is `ty`. Which row is read from?",
        ),
        entry="scaled_dot_product",
        cases=({"N": 37, "d": 17}, {"N": 32, "d": 48}),
        launch=covering((16, 16), ("N", 16), ("N", 16)),
        arguments=_q_and_k,
        results={"S": scores},
        goals=(NO_ROOM, LOADS, STORES, *SECTORS),
        timed={"N": 4096, "d": 64},
    ),
    Exercise(
        name="07_patch",
        title="16 bytes a lane",
        task=(
            "Fill a thread's registers with loads of 16 bytes, and choose a pitch at which those "
            "are possible and do not conflict."
        ),
        hints=(
            "A `float4` starts at a multiple of 16 bytes, so the pitch is a multiple of 4 words.",
            (
                "Eight lanes read eight rows at once. Think of eight banks of 16 bytes: which "
                "pitches put the rows into eight different ones?"
            ),
        ),
        entry="scaled_dot_product",
        cases=({"N": 37, "d": 17}, {"N": 32, "d": 48}),
        launch=covering((64,), ("N", 32), ("N", 32)),
        arguments=_q_and_k,
        results={"S": scores},
        goals=(
            LOADS,
            Goal(
                "shared_load_instructions",
                "Four floats that lie side by side are one load of 16 bytes, if they begin at a "
                "multiple of 16 bytes: read them through a pointer to float4.",
            ),
            *SECTORS,
        ),
        timed={"N": 4096, "d": 64},
    ),
)
