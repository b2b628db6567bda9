"""Kernels that the assembler unrolls, joins and predicates, with the counters of an H200."""

import functools

from ..cases import Case
from .branches import branch_cases
from .products import product_cases


@functools.cache
def assembled_cases() -> tuple[Case, ...]:
    """Every case of this folder."""
    return (*product_cases(), *branch_cases())
