"""Chapter 00, the first kernel: what it is run on when something in it is changed."""

from __future__ import annotations

from mutants.targets import vector_sums

TRIALS = {"00_vector_add.cu": vector_sums}
