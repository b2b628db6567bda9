"""Kernels whose loops and branches the assembler unrolls, joins and predicates."""
