"""A kernel's own parameters as controls; then check, count, and on a GPU time.

    from helpers.bench import bench

Nothing here needs a notebook but `view`, which `bench` loads.
"""

from __future__ import annotations

from .entry import bench, sweep, sweep_results
from .result import Result
from .session import Session
from .subject import Control, Launch, Refused

__all__ = ["Control", "Launch", "Refused", "Result", "Session", "bench", "sweep", "sweep_results"]
