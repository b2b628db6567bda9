"""`cp.testing`: NumPy's assertions, which take device arrays and NumPy arrays alike here."""

import numpy as _np

from . import missing
from .arrays import ndarray as _ndarray

__all__ = [
    "assert_allclose",
    "assert_array_almost_equal",
    "assert_array_equal",
    "assert_array_less",
]


def _of_host(assertion):
    def check(*args, **kwargs):
        host = [a.view(_np.ndarray) if isinstance(a, _ndarray) else a for a in args]
        return assertion(*host, **kwargs)

    check.__name__ = assertion.__name__
    check.__doc__ = assertion.__doc__
    return check


assert_allclose = _of_host(_np.testing.assert_allclose)
assert_array_almost_equal = _of_host(_np.testing.assert_array_almost_equal)
assert_array_equal = _of_host(_np.testing.assert_array_equal)
assert_array_less = _of_host(_np.testing.assert_array_less)


def __getattr__(name: str):
    raise missing.unknown("cp.testing", name, __all__)
