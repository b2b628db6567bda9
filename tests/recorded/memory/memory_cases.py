"""Kernels whose memory counters Nsight Compute read."""

from __future__ import annotations

import functools

from ..cases import Case
from . import memory_patterns as patterns
from . import memory_programs as kernels


@functools.cache
def memory_cases() -> tuple[Case, ...]:
    """Every case of this module."""
    return tuple(
        patterns.global_cases()
        + patterns.shared_cases()
        + patterns.joined_cases()
        + kernels.control_cases()
        + kernels.kernels_cases()
    )
