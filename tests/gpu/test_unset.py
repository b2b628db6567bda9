"""Elements that are no number, counted by a kernel: on a GPU, or where there is none, simulated."""

import numpy as np
import pytest

from helpers import cp
from helpers.gpu.unset import count_nan


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_each_is_counted_and_nothing_else(dtype):
    values = np.arange(-300, 401, dtype=dtype).reshape(-1, 1)  # more than a block, and odd
    values[[3, 5, 700], 0] = np.inf, -np.inf, np.finfo(dtype).max
    assert count_nan(cp.asarray(values)) == 0
    values[[0, 7, 699], 0] = np.nan, -np.nan, np.nan
    assert count_nan(cp.asarray(values)) == np.isnan(values).sum() == 3
    assert count_nan(cp.asarray(values)[::2]) == 1
    assert count_nan(cp.asarray(values.astype(np.float64))) == 3
