"""Blocks, warps and memory while a kernel runs."""
