"""Chapter 10, overlap: its rungs."""

from ..problem.flash_overlap import OVERLAP

RUNGS = OVERLAP
