"""`cp.testing`: NumPy's assertions, which take device arrays and NumPy arrays alike here."""

import numpy as _np

from . import missing
from .arrays import from_either as _from_either

__all__ = """
    assert_allclose assert_array_almost_equal assert_array_equal assert_array_less
""".split()
globals().update({name: _from_either(getattr(_np.testing, name)) for name in __all__})


def __getattr__(name: str):
    raise missing.unknown("cp.testing", name, __all__)
