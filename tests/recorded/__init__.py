"""Kernels whose results and counters were recorded on a real GPU, made again from seeds.

`tools/record/record.py` runs them on a GPU and writes what it wrote to `data/`; `tests/simulator/observe/test_recorded_h200.py` runs them again
on the simulator (or, with `-m gpu`, on the GPU at hand) and compares.
"""
