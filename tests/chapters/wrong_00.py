"""Chapter 00, the first kernels: what they are run on when something in them is changed."""

from __future__ import annotations

from mutants.targets import matrix_sums, vector_sums

TRIALS = {"00_vector_add.cu": vector_sums, "00_matrix_add.cu": matrix_sums}
