"""Runs PTX on NumPy: results, counters and a trace of every launch, with no GPU."""
