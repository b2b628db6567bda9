"""What a RawKernel of the stand-in takes as CuPy's does, and what it says to the rest."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import standin
from helpers.simulator.errors import SimulatorError

VALUE = 'extern "C" __global__ void k(%s n, long long* o) { o[0] = (long long)n; }'


@pytest.mark.parametrize(
    ("declared", "number"),
    [
        ("int", -7),
        ("unsigned int", 2**32 - 1),
        ("unsigned char", 255),
        ("short", -(2**15)),
        ("size_t", 2**40),
        ("bool", 1),
    ],
)
def test_a_python_int_becomes_the_declared_integer(declared, number):
    o = standin.zeros(1, np.int64)
    standin.RawKernel(VALUE % declared, "k")((1,), (1,), (number, o))
    assert int(o[0]) == number


@pytest.mark.parametrize(
    ("declared", "number", "sentence"),
    [
        ("unsigned int", -1, r"holds 0 to 4,294,967,295, but is -1: .* np\.uint32"),
        ("int", 2**31, r"holds -2,147,483,648 to 2,147,483,647, .* np\.int32"),
        ("float", 3, r"a Python int, which is passed as int64: write np\.float32\(3\)"),
        ("float", 0.5, r"a Python float, which is passed as float64: write np\.float32\(0\.5\)"),
    ],
)
def test_a_python_number_that_does_not_fit_names_numpys_type(declared, number, sentence):
    o = standin.zeros(1, np.int64)
    with pytest.raises(SimulatorError, match=sentence):
        standin.RawKernel(VALUE % declared, "k")((1,), (1,), (number, o))


def test_complex_numbers_are_float2_and_double2():
    for number, pair in ((np.complex64, "float2"), (np.complex128, "double2")):
        x = standin.ones(2, number)
        code = f'extern "C" __global__ void k({pair}* x) {{ x[threadIdx.x].y = 3; }}'
        standin.RawKernel(code, "k")((1,), (2,), (x,))
        assert x.get().tolist() == [1 + 3j, 1 + 3j]
    with pytest.raises(SimulatorError, match=r"pass x\.view\(np\.float64\)"):
        code = 'extern "C" __global__ void k(double* x) { x[0] = 3; }'
        standin.RawKernel(code, "k")((1,), (2,), (x,))


@pytest.mark.parametrize(
    ("pointer", "dtype", "numbers"),
    [
        ("float4", np.uint8, 16),
        ("float4", np.float16, 8),
        ("float4", np.complex64, 2),
        ("float2", np.int64, 1),
        ("double2", np.complex64, 2),
        ("uint4", np.float64, 2),
    ],
)
def test_vectors_carry_whole_words_of_anything(pointer, dtype, numbers):
    code = f'extern "C" __global__ void k(const {pointer}* x, {pointer}* y) {{ y[1] = x[0]; }}'
    x, y = standin.asarray(np.arange(numbers).astype(dtype)), standin.zeros(2 * numbers, dtype)
    standin.RawKernel(code, "k")((1,), (1,), (x, y))
    assert y.get().tolist() == [0] * numbers + list(range(numbers))


@pytest.mark.parametrize(
    ("pointer", "dtype", "advice"),
    [
        (
            "float4*",
            np.float64,
            r"cp\.empty\(x\.shape, np\.float32\), or pass x\.view\(np\.float32\)",
        ),
        (
            "const float*",
            np.int32,
            r"pass x\.astype\(np\.float32\), or pass x\.view\(np\.float32\)",
        ),
        ("const float*", np.float64, r"; pass x\.astype\(np\.float32\)\.$"),
        ("float*", np.complex64, r"; pass x\.view\(np\.float32\), which has each real part"),
        ("float*", np.complex128, r"; pass x\.astype\(np\.complex64\)\.view\(np\.float32\), "),
        ("int*", np.complex64, r"; pass x\.view\(np\.int32\) to read its bytes anew\.$"),
    ],
)
def test_arrays_of_other_elements_are_told_what_to_pass(pointer, dtype, advice):
    code = f'extern "C" __global__ void k({pointer} x) {{ }}'
    with pytest.raises(SimulatorError, match=advice):
        standin.RawKernel(code, "k")((1,), (1,), (standin.zeros(8, dtype),))


def test_cupys_header_of_complex_numbers():
    code = """
    #include <cupy/complex.cuh>
    extern "C" __global__ void k(complex<float>* x, float a) { x[0] = a * x[0] + conj(x[0]); }
    """
    x = standin.asarray(np.array([1 + 2j], np.complex64))
    standin.RawKernel(code, "k")((1,), (1,), (x, np.float32(2)))
    assert x.get().tolist() == [3 + 2j]


def test_a_declaration_that_goes_on_behind_a_backslash():
    code = 'extern "C" __global__ void k(int* o, \\\n    float x) { o[0] = x; }'
    with pytest.raises(SimulatorError, match=r"argument 2 \(x\) is declared as `float x`"):
        standin.RawKernel(code, "k")((1,), (1,), (standin.zeros(1, np.int32), 1.5))
