"""`cp.linalg`: what a check of a kernel's result needs."""

import numpy as _np

from . import missing
from .arrays import on_device as _on_device

_FUNCTIONS = """
    cholesky cond cross det eig eigh eigvals eigvalsh inv lstsq matmul matrix_power matrix_rank
    matrix_transpose norm pinv qr slogdet solve svd tensorinv tensorsolve
""".split()
globals().update({name: _on_device(getattr(_np.linalg, name)) for name in _FUNCTIONS})
LinAlgError = _np.linalg.LinAlgError

__all__ = [*_FUNCTIONS, "LinAlgError"]


def __getattr__(name: str):
    raise missing.unknown("cp.linalg", name, __all__)
