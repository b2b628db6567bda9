"""A kernel's own parameters as controls; then check, count, and on a GPU time.

    from helpers.bench import bench

Nothing here needs a notebook but `view`, which `bench` loads.
"""

from ..problem.problem import Problem
from .entry import bench, sweep, sweep_results
from .result import Result
from .session import Session
from .subject import Control

__all__ = ["Control", "Problem", "Result", "Session", "bench", "sweep", "sweep_results"]
