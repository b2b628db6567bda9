"""Mutants: kernels of the series with one small fault each, and what the checks say of them.

`python -m tests.mutants` judges all of them and writes table/; see __main__.py.
"""
