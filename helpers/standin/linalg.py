"""`cp.linalg`: what a check of a kernel's result needs."""

from __future__ import annotations

import numpy as _np

from . import missing
from .arrays import on_device as _on_device

__all__ = ["cholesky", "det", "eigh", "inv", "matrix_rank", "norm", "qr", "solve", "svd"]

cholesky = _on_device(_np.linalg.cholesky)
det = _on_device(_np.linalg.det)
eigh = _on_device(_np.linalg.eigh)
inv = _on_device(_np.linalg.inv)
matrix_rank = _on_device(_np.linalg.matrix_rank)
norm = _on_device(_np.linalg.norm)
qr = _on_device(_np.linalg.qr)
solve = _on_device(_np.linalg.solve)
svd = _on_device(_np.linalg.svd)


def __getattr__(name: str):
    raise missing.unknown("cp.linalg", name, __all__)
