"""What is recorded of chapter 11's kernels: the steps, variants that were tried, and their sizes."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

from recorded.flash_cases import Variant

from helpers.problem.flash_hopper import (
    FLASH_AHEAD,
    FLASH_PING_PONG,
    FLASH_RARE_RESCALE,
    HOPPER,
)
from helpers.problem.flash_overlap import FLASH_RESCALE
from tools.record.rivals import contest
from tools.record.rivals.contest import SHAPES

LARGE = SHAPES[0]
NARROW = SHAPES[3]  # rows of 64 elements
TUNED = (LARGE, NARROW)  # with the variants

BEFORE = Variant("10e rescale", rung=FLASH_RESCALE)
STEPS = tuple(Variant(f"{one.file[:3]} {one.name[6:]}", rung=one) for one in HOPPER)
# Q once from shared memory to registers, and from there into every product.
_Q_REGISTERS = (
    ("float (&r_S)[KEY_TILES][4], const ELEMENT* s_Q, const ELEMENT* s_K",
     "float (&r_S)[KEY_TILES][4], const unsigned (&r_Q)[HEAD_DIM / 16][4], const ELEMENT* s_K"),
    ("wgmma<ELEMENT, false>(r_S, describe(s_Q + panel * B_R * PANEL + column),",
     "wgmma<ELEMENT, false>(r_S, r_Q[k],"),
    ("    mbarrier_wait(&s.full_Q, 0);\n",
     "    mbarrier_wait(&s.full_Q, 0);\n"
     "    unsigned r_Q[HEAD_DIM / 16][4];\n"
     "    #pragma unroll\n"
     "    for (int k = 0; k < HEAD_DIM / 16; k++) {\n"
     "        const int lane = threadIdx.x % 32;\n"
     "        ldmatrix_x4(r_Q[k], s.Q + place(threadIdx.x / 32 * 16 + lane % 16, 2 * k + lane / 16));\n"
     "    }\n"
     "    settle(r_Q);\n"),
    ("multiply_qk(r_S, s_rows, s.K[stage]);", "multiply_qk(r_S, r_Q, s.K[stage]);"),
)  # fmt: skip
# The assembler then waits for P V before the softmax: nothing holds the wait behind it.
_EARLY_WAIT = (
    ("        mbarrier_wait(&s.full_V[stage], parity);  // for the next turn of the loop\n", ""),
    (
        "            multiply_pv(r_O, r_P, s.V[1 - stage]);\n",
        "            mbarrier_wait(&s.full_V[1 - stage], (t - 1) / 2 % 2);\n"
        "            multiply_pv(r_O, r_P, s.V[1 - stage]);\n",
    ),
    (
        "    multiply_pv(r_O, r_P, s.V[(tiles - 1) % 2]);\n",
        "    mbarrier_wait(&s.full_V[(tiles - 1) % 2], (tiles - 1) / 2 % 2);\n"
        "    multiply_pv(r_O, r_P, s.V[(tiles - 1) % 2]);\n",
    ),
)
TRIED = (
    Variant("11d, waits early", changes=_EARLY_WAIT, rung=FLASH_AHEAD),
    Variant("11d, Q in registers", changes=_Q_REGISTERS, rung=FLASH_AHEAD),
    Variant("11e, Q in registers", changes=_Q_REGISTERS, rung=FLASH_PING_PONG),
    Variant("11e, B_R 128", {"B_R": 128}, rung=FLASH_PING_PONG),
    Variant("11f, slack 8", {"SLACK": 8}, rung=FLASH_RARE_RESCALE),
    Variant("11f, slack 8, Q in registers", {"SLACK": 8}, _Q_REGISTERS, FLASH_RARE_RESCALE),
)
ALL = (*STEPS, *TRIED)
_NAMED = {one.name: one for one in ALL}
# What Nsight Compute profiles: a variant, its size, and whether with a mask.
PROFILED = (
    *((one, LARGE, 0) for one in STEPS),
    (_NAMED["11f, slack 8"], LARGE, 0),
    *((one, LARGE, 1) for one in STEPS[2:5]),
    *((_NAMED[name], LARGE, 1) for name in ("11d, Q in registers", "11f, slack 8")),
    *((one, NARROW, causal) for one in (STEPS[4], _NAMED["11e, B_R 128"]) for causal in (0, 1)),
)


def profiled_name(one: Variant, shape: Sequence[int], causal: int) -> str:
    """What a profile is called: `11e ping_pong, causal, d 64`."""
    more = (["causal"] if causal else []) + (["d 64"] if shape == NARROW else [])
    return ", ".join((one.name, *more))


def chosen(names: Sequence[str]) -> list[Variant]:
    """Steps and variants that are named, or begin with one of `names`; all if there are none."""
    begin = tuple(set(names) - {one.name for one in ALL})
    return [
        one
        for one in ALL
        if not names or one.name in names or (begin and one.name.startswith(begin))
    ]


def fits(one: Variant, d: int) -> bool:
    """Whether it has room, in shared memory and in registers, and differs from its step."""
    if (d == 64 and "Q in registers" in one.name) or (d == 128 and "B_R 128" in one.name):
        return False
    return one.rung.with_parameters(**one.values).shared_bytes(d) <= 227 * 1024


def contenders(names: Sequence[str], shape, causal: int) -> list[Variant]:
    """What is timed at one size, beside chapter 10's last."""
    everywhere = (*STEPS, _NAMED["11f, slack 8"])
    right = [one for one in chosen(names) if one in everywhere or shape in TUNED]
    listed = [BEFORE, *(one for one in right if fits(one, shape[3]))]
    return [asked(one, causal) for one in listed]


def asked(one: Variant, causal: int) -> Variant:
    """The same with a mask or without."""
    return dataclasses.replace(one, values={**one.values, "CAUSAL": causal})


def kernels(names: Sequence[str]) -> list[contest.Built]:
    """Everything that a recording launches."""
    elements, dims = ("half", "nv_bfloat16"), (64, 128)
    listed = [
        (asked(one, causal), element, d)
        for one, element, d, causal in itertools.product(chosen(names), elements, dims, (0, 1))
        if fits(one, d) and (one in STEPS or element == "half")
    ]
    return listed + [(asked(BEFORE, causal), "half", d) for causal in (0, 1) for d in dims]


def steps(names: Sequence[str]) -> list[Variant]:
    """The steps among those that are chosen."""
    return [one for one in chosen(names) if one in STEPS]
