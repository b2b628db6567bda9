"""Why the mutants that no check tells from the kernel give the same results.

Each reason was written after reading the changed line; it holds for the lines that its pattern
matches and for no others. A survivor without one fails the tests, and so does a reason that no
survivor needs.
"""

from __future__ import annotations

import itertools
import re
from typing import NamedTuple

import chapter_cases


class Reason(NamedTuple):
    """`file`, `function` and `change` ("before  ->  after") are regular expressions.

    `same_program`: whether the compiler makes the same instructions of the mutant; tested.
    """

    file: str
    function: str
    change: str
    why: str
    same_program: bool = False


FLASH = r"08_flash_baseline\.cu|09_flash_swizzled\.cu"
PRODUCTS = r"0[3567]_(tiled|coarsened|coalesced|padded)\.cu"
ANY = r".*"

# Those that hold in several chapters; what is one chapter's own stands in its module.
SHARED: tuple[Reason, ...] = (
    Reason(
        r"03_tiled\.cu|05_coarsened\.cu",
        ANY,
        r"__shared__ float s_.\[TILE\]\[TILE\];  ->  .*\[TILE \+ 1\];",
        "Rows get a word at their end that nothing reads or writes, and in these kernels, whose "
        "lanes walk down columns, conflicts become no more.",
    ),
    Reason(
        PRODUCTS,
        ANY,
        r".*: 0\.0f;  ->  .*: 1\.0f;",
        "Past the end of the summed dimension the other operand's tile holds zeros, so that ones "
        "add nothing; rows and columns past the edges of the result are not stored.",
    ),
    Reason(
        FLASH,
        "scale_and_mask",
        r"for \(int m = 0; m < ROW_TILES; m\+\+\) \{  ->  .* <= .*",
        "r_S has no tile of rows with that number, so the compiler drops what would be stored "
        "there: the same instructions are left, some in another order.",
        same_program=True,
    ),
    Reason(
        FLASH,
        "multiply_pv",
        r"for \(int m = 0; m < ROW_TILES; m\+\+\) \{  ->  .* <= .*",
        "The tile of rows too many is packed into registers that no product reads; the compiler "
        "drops it and makes the same program.",
        same_program=True,
    ),
    Reason(
        FLASH,
        "flash_attention",
        r"for \(int m = 0; m < ROW_TILES; m\+\+\) \{  ->  .* <= .*",
        "The maxima too many lie past the end of their array; the compiler drops them and makes "
        "the same program.",
        same_program=True,
    ),
    Reason(
        FLASH,
        "scale_and_mask",
        r"if \(keys < B_C \|\| .*\) \{  ->  if \(true\) \{",
        "The condition saves time alone: where all rows see all keys of the tile, no element is "
        "past the end or right of the diagonal, and nothing is masked.",
    ),
    Reason(
        FLASH,
        "flash_attention",
        r"const int first = .*  ->  const int first = \(true \? .*",
        "Blocks take the rows in another order, which changes no sum; it saves time with CAUSAL "
        "alone, where the blocks that take longest begin first.",
    ),
    Reason(
        FLASH,
        ANY,
        r".*shuffle_xor\((new_max|sum), 2\).*  ->  .*, 2 \+ 1\).*",
        "With the exchange by 1 that follows, lanes l, l ^ 3, l ^ 1 and l ^ 2 meet: the same four "
        "as with an exchange by 2.",
    ),
)


def reasons() -> tuple[Reason, ...]:
    """All of them, those of the chapters among them."""
    own = (getattr(module, "REASONS", ()) for module in chapter_cases.modules())
    return tuple(itertools.chain(SHARED, *own))


def fits(one: Reason, row) -> bool:
    """Whether a reason is about a row of the table."""
    change = f"{row.before}  ->  {row.after}"
    return all(
        re.fullmatch(pattern, text)
        for pattern, text in (
            (one.file, row.kernel), (one.function, row.function), (one.change, change),
        )
    )  # fmt: skip


def reason(row) -> str:
    """Why a survivor is equivalent; empty if nobody has said so."""
    return next((one.why for one in reasons() if fits(one, row)), "")
